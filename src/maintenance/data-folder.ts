/**
 * The data folder: the store, the instance secret and the audit log. The server and the commands open it in the same
 * way, and may have it open at the same time; only one process may serve it.
 */

import { Database } from 'bun:sqlite'
import { accessSync, constants, existsSync, mkdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openSecrets, type Secrets } from '../auth/secrets.ts'
import { changeSigningKeys, newSigningKeys } from '../auth/signing-keys.ts'
import { CommandError } from '../errors.ts'
import { storeCommandMs } from '../limits.ts'
import { openingLockFile } from '../storage/lmdb/opening-lock.ts'
import { openLmdbStore } from '../storage/lmdb/store.ts'
import type { PostgresStore } from '../storage/postgres/store.ts'
import { requireOwn, requirePrivate } from '../storage/private-file.ts'
import type { Store } from '../storage/store.ts'
import type { OpenDatabaseOptions } from './database.ts'
import { type DatabaseFlags, type DatabasePlace, readDatabase } from './database-place.ts'

/** An open data folder, with its store or one in a database. Closes it when it is disposed. */
export interface DataFolder extends AsyncDisposable {
  readonly path: string
  readonly store: Store
  /** The store, if it is in a database. */
  readonly database?: PostgresStore
  readonly secrets: Secrets
  /** True if this call created the store. */
  readonly isNew: boolean
}

/** Throws CommandError unless `path` has a store and its secret and is private to its owner. */
export function requireDataFolder(path: string): void {
  if (existsSync(path)) requireReadable(path)
  if (!hasStore(path)) {
    throw new CommandError(
      `there is no data folder at ${path}: name it with --data, or run this command where the server runs`,
    )
  }
  requirePrivateFolder(path)
  requireSecret(path)
}

/** The one test for "this is a data folder": LMDB creates data.mdb with the store. */
function hasStore(path: string): boolean {
  return existsSync(join(path, 'store', 'data.mdb'))
}

/** Where we may not read, existsSync() is false for every file. Say that, and not "there is no data folder". */
function requireReadable(path: string): void {
  try {
    accessSync(path, constants.R_OK | constants.X_OK)
  } catch (error) {
    throw new CommandError(`the data folder ${path} cannot be read: run this as the user that it belongs to`, 1, {
      cause: error,
    })
  }
}

/** Throws CommandError for a store without its secret: with a new one, all keys and headers would be lost. */
function requireSecret(path: string): void {
  const file = join(path, 'instance-secret')
  if (hasStore(path) && !existsSync(file)) {
    throw new CommandError(`${file} is missing, and the store needs it: restore it from a backup`)
  }
}

/** The store of a command: in the data folder, or in the database that its flags name. */
export interface Place extends DatabaseFlags {
  readonly data: string
}

/** For a command: opens an existing store. Throws CommandError if there is none, and StoreError. */
export async function openExistingDataFolder(place: Place, tell: (text: string) => void): Promise<DataFolder> {
  const { data } = place
  const database = databaseOf(place)
  if (database !== undefined) {
    // The label is the name of a command in the database's own lists.
    const options = { mayMake: false, label: 'postern command', waitMs: storeCommandMs, tell }
    return openDatabaseFolder(data, database, options)
  }
  requireDataFolder(data)
  return openDataFolder(data)
}

/** The database that the flags name. Throws CommandError 2 for flags that are wrong. */
export function databaseOf(place: Place): DatabasePlace | undefined {
  // An empty variable is none: that is how container files unset one.
  if (place.store === undefined || place.store === '') return undefined
  const database = readDatabase(place.store, place, place.data)
  if ('problem' in database) throw new CommandError(`${database.flag} ${database.problem}`, 2)
  return database
}

/** Opens a store in a database. Throws CommandError if the folder has a store, too: that one would be forgotten. */
export async function openDatabaseFolder(
  path: string,
  place: DatabasePlace,
  options: OpenDatabaseOptions,
): Promise<DataFolder & { readonly database: PostgresStore }> {
  if (hasStore(path)) {
    throw new CommandError(
      `${path} has its own store: copy it with \`postern store copy --from ${path} --to URL\`, or name another --data`,
    )
  }
  // A command that cannot open the store leaves no folder behind; a start puts its secret there.
  if (options.mayMake) makeFolder(path)
  // Loaded here: most commands need none, and start sooner.
  const { openDatabase } = await import('./database.ts')
  const { store, secrets, isNew } = await openDatabase(place, options)
  return { ...(await openedFolder(path, store, secrets, isNew)), database: store }
}

/**
 * Opens the folder for a command that may create one. The command creates it only at a path that the operator named: no
 * server works on a folder that appears at the default path of the current directory, and no server knows a key in it.
 */
export function openNamedDataFolder(place: NamedFolder, tell: (text: string) => void): Promise<DataFolder> {
  const { data, isNamed, store } = place
  if (!isNamed || (store ?? '') !== '') return openExistingDataFolder(place, tell)
  return openDataFolder(data)
}

export interface NamedFolder extends Place {
  /** True if the path was given by a flag or the environment, false for the default. */
  readonly isNamed: boolean
}

/** The notice after a folder was created, so that a mistyped path is noticed. */
export function madeFolder(path: string): string {
  return `made a new data folder at ${path}\n`
}

/** Opens a data folder, and creates it if it is missing. Throws CommandError or StoreError for the operator. */
export async function openDataFolder(path: string): Promise<DataFolder> {
  makeFolder(path)
  // Asked first: the next lines create what is missing.
  const isNew = !hasStore(path)
  requireSecret(path)
  const secrets = openSecrets(join(path, 'instance-secret'))
  return openedFolder(path, openLmdbStore(join(path, 'store')), secrets, isNew)
}

/** Creates the signing keys at the first opening. If two processes do so at once, both use the keys of the first. */
async function openedFolder(path: string, store: Store, secrets: Secrets, isNew: boolean): Promise<DataFolder> {
  try {
    // Of a store in a database, it may not be there yet.
    makeFolder(path)
    await changeSigningKeys(store, secrets.sealingKey, (records) =>
      records === undefined ? newSigningKeys(Math.floor(Date.now() / 1000)) : undefined,
    )
  } catch (error) {
    await store.close()
    throw error
  }
  return { path, store, secrets, isNew, [Symbol.asyncDispose]: () => store.close() }
}

/** Creates the folder if it is missing. Throws CommandError if it cannot be used. */
export function makeFolder(path: string): void {
  // From here on every new file is private to its owner, LMDB's files included.
  process.umask(0o077)
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 })
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const isFile = code === 'EEXIST' || code === 'ENOTDIR'
    const isOthers = code === 'EACCES' || code === 'EPERM'
    const why = isFile
      ? 'it is a file, or in one'
      : isOthers
        ? 'it belongs to another user, or is in a folder that does'
        : message
    throw new CommandError(`cannot use the data folder ${path}: ${why}; choose another with --data`, 1, {
      cause: error,
    })
  }
  requirePrivateFolder(path)
}

/**
 * Throws CommandError unless the folder, which may be a link, and the files in it are private. With write access
 * another user could insert API keys, or place a symbolic link through which root writes elsewhere.
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
/** Every file that postern uses here, and those that SQLite opens next to its own. Others are ignored. */
const files = [
  'instance-secret',
  'audit.jsonl',
  'calls.jsonl',
  ...locks,
  ...locks.flatMap((name) => ['-journal', '-wal', '-shm'].map((end) => name + end)),
  join('store', 'data.mdb'),
  join('store', 'lock.mdb'),
  ...['', '-journal'].map((end) => join('store', openingLockFile + end)),
]

/**
 * Locks the folder for serving, and creates it if it is missing. The lock lasts until it is disposed or the process
 * ends, in whatever way. Throws CommandError if another server holds it. Call it before the folder is opened.
 */
export function lockForServing(path: string): Disposable {
  makeFolder(path)
  // SQLite's is the only lock of the operating system that the runtime offers. The system releases it after a crash.
  const held = new Database(join(path, 'server.lock'))
  try {
    held.run('PRAGMA locking_mode = EXCLUSIVE')
    held.run('BEGIN EXCLUSIVE')
  } catch (error) {
    held.close()
    const what = `another postern serves the data folder ${path}`
    throw new CommandError(`${what}: stop it, or choose another folder with --data`, 1, { cause: error })
  }
  return { [Symbol.dispose]: () => held.close() }
}
