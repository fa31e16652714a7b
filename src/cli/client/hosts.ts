/** The platforms that the user has logged in to, with their API keys: `hosts.json`, readable by its owner only. */

import { randomBytes } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { CommandError } from '../../errors.ts'
import { requirePrivate } from '../../storage/private-file.ts'

export interface Hosts {
  /** The URL that was logged in to last. */
  readonly current?: string
  /** API keys by URL. */
  readonly keys: Readonly<Record<string, string>>
}

export type Environment = Readonly<Record<string, string | undefined>>

function pathOf(environment: Environment): string {
  const config = environment['XDG_CONFIG_HOME'] || join(environment['HOME'] || homedir(), '.config')
  return join(config, 'postern', 'hosts.json')
}

/** Throws CommandError for a file that others may read, or that is damaged. */
export function readHosts(environment: Environment): Hosts {
  const path = pathOf(environment)
  if (!existsSync(path)) return { keys: {} }
  requirePrivate(path, 'file')
  try {
    const { current, keys } = JSON.parse(readFileSync(path, 'utf8')) as Partial<Hosts>
    return { keys: { ...keys }, ...(current !== undefined && { current }) }
  } catch (error) {
    throw new CommandError(`${path} is damaged: delete it and log in again`, 1, { cause: error })
  }
}

/** Replaces the file at once. */
export function writeHosts(environment: Environment, hosts: Hosts): void {
  const path = pathOf(environment)
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const draft = `${path}.${randomBytes(8).toString('hex')}`
  try {
    writeFileSync(draft, `${JSON.stringify(hosts, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
    renameSync(draft, path)
  } finally {
    rmSync(draft, { force: true })
  }
}
