/** A store in PostgreSQL. Its data folder has the audit log and the secret, which the database must never have. */

import { createHmac } from 'node:crypto'
import { existsSync } from 'node:fs'
import { openSecrets, type Secrets } from '../auth/secrets.ts'
import { CommandError } from '../errors.ts'
import { storeCommandMs } from '../limits.ts'
import { equalBytes } from '../storage/bytes.ts'
import { openPostgresStore, type PostgresOptions, type PostgresStore } from '../storage/postgres/store.ts'
import type { DatabasePlace } from './database-place.ts'

export interface OpenDatabaseOptions extends Omit<PostgresOptions, 'address' | 'mayMigrate'> {
  /** Whether the schema and, for a new database, the secret may be made. Commands only use what is there. */
  readonly mayMake: boolean
  /** Writes a line for the operator. */
  readonly tell: (text: string) => void
}

/** Opens the database with its own secret. Throws CommandError or StoreError with a line for the operator. */
export async function openDatabase(
  { address, secretFile }: DatabasePlace,
  options: OpenDatabaseOptions,
): Promise<{ readonly store: PostgresStore; readonly secrets: Secrets; readonly isNew: boolean }> {
  const { mayMake, tell, ...rest } = options
  const isThere = existsSync(secretFile)
  const missing = () =>
    new CommandError(
      `${secretFile} is missing, and the store needs its instance secret: copy it from another replica, or name it with --instance-secret-file`,
    )
  if (!isThere && !mayMake) throw missing()
  const store = await openPostgresStore({ address, mayMigrate: mayMake, ...rest })
  try {
    const { secretCheck: stored } = await store.instance()
    // Looked for again: of replicas that start together with one file, another may have made both meanwhile.
    if (stored !== null && !existsSync(secretFile)) throw missing()
    const secrets = openSecrets(secretFile)
    const isFirst = await requireSecretOf(store, secrets, stored, secretFile)
    if (!isThere && isFirst) {
      tell(`made the instance secret ${secretFile}: every replica and every backup needs this file\n`)
    }
    return { store, secrets, isNew: stored === null }
  } catch (error) {
    await store.close()
    throw error
  }
}

/** True if this process is the first to open a new database. Throws CommandError if the database has another secret. */
async function requireSecretOf(
  store: PostgresStore,
  secrets: Secrets,
  stored: Uint8Array | null,
  file: string,
): Promise<boolean> {
  const ours = secretCheckOf(secrets)
  if (stored === null && (await store.noteSecretCheck(ours))) return true
  if (equalBytes(stored ?? (await store.instance()).secretCheck ?? undefined, ours)) return false
  throw new CommandError(`${file} is not the instance secret of this store: copy it from another replica`)
}

/** The value by which a database knows its instance secret. */
export function secretCheckOf({ storeCheckKey }: Secrets): Uint8Array {
  return createHmac('sha256', storeCheckKey).update('this store').digest()
}

/** Makes the schema of a database, or upgrades it, and nothing else: it needs no secret. Throws StoreError. */
export function openForSchema({ address }: DatabasePlace, label: string): Promise<PostgresStore> {
  return openPostgresStore({ address, mayMigrate: true, label, waitMs: storeCommandMs })
}
