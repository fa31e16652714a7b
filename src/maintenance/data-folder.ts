/**
 * The data folder: the store and the instance secret. Commands and the server open it
 * alike, and may do so at the same time; serving is for one process only.
 */

import { Database } from 'bun:sqlite'
import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openSecrets, type Secrets } from '../auth/secrets.ts'
import { changeSigningKeys, newSigningKeys } from '../auth/signing-keys.ts'
import { CommandError } from '../errors.ts'
import type { Upgrading } from '../storage/lmdb/migrations.ts'
import { openLmdbStore } from '../storage/lmdb/store.ts'
import { requireOwn, requirePrivate } from '../storage/private-file.ts'
import { type Store, StoreError } from '../storage/store.ts'

export interface DataFolder {
  readonly path: string
  readonly store: Store
  readonly secrets: Secrets
  /** Did this opening make it? */
  readonly isNew: boolean
}

/** For commands that have nothing to say of an empty folder. Throws CommandError. */
export function requireDataFolder(path: string): void {
  if (existsSync(path)) {
    requireReadable(path)
    requirePrivateFolder(path)
  }
  if (!hasStore(path)) {
    throw new CommandError(`there is no data folder at ${path}: name it with --data, or run postern serve first`)
  }
  requireSecret(path)
}

function hasStore(path: string): boolean {
  return existsSync(join(path, 'store', 'data.mdb'))
}

/** What is in a folder of somebody else's looks like nothing. */
function requireReadable(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.X_OK)
  } catch (error) {
    throw new CommandError(`the data folder ${path} cannot be read: run this as the user that it belongs to`, 1, {
      cause: error,
    })
  }
}

/** Made anew beside data that needs the old one, it would lock everybody out without a word. */
function requireSecret(path: string): void {
  const file = join(path, 'instance-secret')
  if (hasStore(path) && !existsSync(file)) {
    throw new CommandError(`${file} is missing, and the store needs it: restore it from a backup`)
  }
}

/** For a command: opens a data folder that must be there. */
export async function openExistingDataFolder(path: string, stderr: Tell): Promise<DataFolder> {
  requireDataFolder(path)
  return openDataFolder(path, upgradeUnlessServed(path, stderr))
}

type Tell = (text: string) => void

/**
 * For a command: the store of an older version is upgraded only where nobody serves it, and that is told. A server of
 * that version would answer nothing but errors from then on.
 */
function upgradeUnlessServed(path: string, stderr: Tell): Upgrading {
  return (from, to, upgrade) => {
    using _lock = lock(path, 'an older postern serves this folder: stop it first, then start the new one')
    if (upgrade()) stderr(`the store in ${path} is upgraded from version ${from} to version ${to}\n`)
  }
}

/** For a command that looks at the store as it lies: upgrades one of an older version, and opens nothing else. */
export async function upgradeStore(path: string, stderr: Tell): Promise<void> {
  await openStore(join(path, 'store'), upgradeUnlessServed(path, stderr)).close()
}

/**
 * For a command that may make a data folder, and does so only where it was named: one that appears in whatever folder
 * the command was run in would be that of no server, and what is made in it would be good for nothing.
 */
export function openNamedDataFolder({ data, isNamed }: NamedFolder, stderr: Tell): Promise<DataFolder> {
  return isNamed ? openDataFolder(data, upgradeUnlessServed(data, stderr)) : openExistingDataFolder(data, stderr)
}

export interface NamedFolder {
  readonly data: string
  /** By the flag or the environment; false for the default. */
  readonly isNamed: boolean
}

/** Whoever mistyped the name sees it. */
export function madeFolder(path: string): string {
  return `made a new data folder at ${path}\n`
}

/** Opens a data folder, making it when it is missing. Throws CommandError with one line that says what to do. */
export async function openDataFolder(path: string, upgrading?: Upgrading): Promise<DataFolder> {
  makeFolder(path)
  const isNew = !hasStore(path)
  requireSecret(path)
  const secrets = openSecrets(path)
  const store = openStore(join(path, 'store'), upgrading)
  try {
    await ensureSigningKeys(store, secrets)
  } catch (error) {
    await store.close()
    throw error
  }
  return { path, store, secrets, isNew }
}

/** The first opening makes them. */
async function ensureSigningKeys(store: Store, secrets: Secrets): Promise<void> {
  await changeSigningKeys(store, secrets.sealingKey, (records) =>
    records === undefined ? newSigningKeys(Math.floor(Date.now() / 1000)) : undefined,
  )
}

function openStore(path: string, upgrading: Upgrading | undefined): Store {
  try {
    return openLmdbStore(path, undefined, upgrading)
  } catch (error) {
    if (error instanceof StoreError) throw new CommandError(error.message, 1, { cause: error })
    throw error
  }
}

/** Makes the folder when it is missing. Throws CommandError where it cannot be used. */
function makeFolder(path: string): void {
  // Whatever is written from here on is for its owner only, the store's files included.
  process.umask(0o077)
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const why = code === 'EEXIST' || code === 'ENOTDIR' ? 'it is a file, or in one' : message
    throw new CommandError(`cannot use the data folder ${path}: ${why}; choose another with --data`, 1, {
      cause: error,
    })
  }
  requirePrivateFolder(path)
}

/**
 * Whoever else could write here could put keys of their own in, or have the superuser write where a link points to. The
 * folder itself may be reached by a link, which is of the operator's making.
 */
function requirePrivateFolder(path: string): void {
  const found = statSync(path)
  requireOwn(path, found)
  if (process.getuid !== undefined && (found.mode & 0o077) !== 0) {
    throw new CommandError(`the data folder ${path} is accessible to other users: run \`chmod 700 ${path}\``)
  }
  requirePrivate(join(path, 'store'), 'folder')
  for (const name of files) requirePrivate(join(path, name), 'file')
}

const locks = ['audit.lock', 'server.lock']
/**
 * All that is read or written here; other files are nobody's business. SQLite reads some that it finds beside its
 * own.
 */
const files = [
  'instance-secret',
  'audit.jsonl',
  ...locks,
  ...locks.flatMap((name) => ['-journal', '-wal', '-shm'].map((end) => name + end)),
  join('store', 'data.mdb'),
  join('store', 'lock.mdb'),
]

/**
 * Takes the folder for serving, until the process ends however it ends, and makes it when it is missing. Throws
 * CommandError when another server has it. To be called before the folder is opened: only who has it upgrades the
 * store.
 */
export function lockForServing(path: string): Disposable {
  makeFolder(path)
  return lock(path, `another postern serves the data folder ${path}: stop it, or choose another folder with --data`)
}

/**
 * An SQLite lock, because it is the one lock of the operating system that the runtime offers: it needs no cleaning up
 * after a crash.
 */
function lock(path: string, whenTaken: string): Disposable {
  const held = new Database(join(path, 'server.lock'))
  try {
    held.run('PRAGMA locking_mode = EXCLUSIVE')
    held.run('BEGIN EXCLUSIVE')
  } catch (error) {
    held.close()
    throw new CommandError(whenTaken, 1, { cause: error })
  }
  return { [Symbol.dispose]: () => held.close() }
}
