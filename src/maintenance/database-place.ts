/** Where a store in PostgreSQL is, as the flags of `serve` and of commands say it. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Address, readAddress } from '../storage/postgres/store-url.ts'
import { requirePrivate } from '../storage/private-file.ts'

/** The flags that name a store in a database, unchecked. */
export interface DatabaseFlags {
  /** `postgres://…`; undefined for the store in the data folder. */
  readonly store?: string
  readonly storePasswordFile?: string
  readonly instanceSecretFile?: string
}

/** A database, and the file of the secret that belongs to it. */
export interface DatabasePlace {
  readonly address: Address
  readonly secretFile: string
}

/** The place that the flags name, or the problem and the flag that has it. `data`: the data folder. */
export function readDatabase(
  url: string,
  { storePasswordFile, instanceSecretFile }: DatabaseFlags,
  data: string,
): DatabasePlace | { readonly flag: string; readonly problem: string } {
  const address = readAddress(url)
  if (typeof address === 'string') return { flag: '--store', problem: address }
  const secretFile = instanceSecretFile ?? join(data, 'instance-secret')
  if (storePasswordFile === undefined) return { address, secretFile }
  if (address.password !== '')
    return { flag: '--store-password-file', problem: 'is not needed: --store has a password' }
  try {
    requirePrivate(storePasswordFile, 'file')
    return { address: { ...address, password: readFileSync(storePasswordFile, 'utf8').trim() }, secretFile }
  } catch (error) {
    return { flag: '--store-password-file', problem: (error as Error).message }
  }
}
