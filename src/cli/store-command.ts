/** `postern store status | migrate | copy`: the store itself, in a data folder or in a database. */

import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { openSecrets, readOrCreate } from '../auth/secrets.ts'
import { CommandError } from '../errors.ts'
import { replicaGoneMs, storeCommandMs } from '../limits.ts'
import { type Copied, type Target, toDatabase, toFolder } from '../maintenance/copy.ts'
import {
  databaseOf,
  makeFolder,
  openExistingDataFolder,
  type Place,
  requireDataFolder,
} from '../maintenance/data-folder.ts'
import { openDatabase, openForSchema, secretCheckOf } from '../maintenance/database.ts'
import { readDatabase } from '../maintenance/database-place.ts'
import { oneLine } from '../ops/escape-control.ts'
import { type Scan, scanStore } from '../storage/lmdb/scan.ts'
import { scanDatabase } from '../storage/postgres/scan.ts'
import { schemaVersion } from '../storage/postgres/schema.ts'
import { auditCommand } from './audit.ts'
import { countText } from './count-text.ts'
import { storedBaseUrl } from './first-start.ts'
import { leavingNothing } from './leaving-nothing.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

/**
 * Prints where the store is, whether it is replicated, and which replicas use it. `servedAs`: the base URL of a server
 * that answers; a store that was served under another one is only named. Throws CommandError and StoreError.
 */
export async function storeStatus(place: Place, { stdout, stderr }: Terminal, servedAs?: string): Promise<void> {
  await using folder = await openExistingDataFolder(place, stderr)
  const { store, database, path } = folder
  const before = await storedBaseUrl(store)
  if (servedAs !== undefined && before !== servedAs) {
    const other = before === undefined ? 'which postern has not served yet' : `which was served as ${before}`
    return stderr(
      `${oneLine(`postern does not serve the store in ${place.data} here, ${other}: see \`postern store status\``)}\n`,
    )
  }
  const { bytes, durability, primary, clockOffsetMs } = await store.health()
  const size = ['size', `${Math.ceil(bytes / 2 ** 20)} MB`]
  if (database === undefined || primary === undefined)
    return stdout(table([['store', join(path, 'store')], size, ['durability', durability]]))
  const rows = (await database.replicas()).map(({ name, ageMs, program, baseUrl }) => [
    name,
    ageMs < replicaGoneMs ? 'alive' : `gone for ${Math.round(ageMs / 1000)} s`,
    program,
    baseUrl,
  ])
  const facts = [
    ['primary', primary.name],
    ['timeline', String(primary.timeline)],
    ['durability', durability],
    ['schema', String((await database.instance()).schemaVersion)],
    size,
    ['clock', `${clockOffsetMs} ms from the clock of this machine`],
  ]
  stdout(`${table(facts)}\n${table([['REPLICA', 'STATE', 'VERSION', 'BASE URL'], ...rows])}`)
}

/** Makes the schema of a database, or upgrades it; replicas may be running. Throws CommandError, StoreError. */
export async function migrateStore(place: Place, { stdout }: Terminal): Promise<void> {
  const database = databaseOf(place)
  if (database === undefined) throw new CommandError('only a database is migrated: name it with --store', 2)
  const store = await openForSchema(database, 'postern store migrate')
  await store.close()
  makeFolder(place.data)
  await auditCommand(place.data, 'store.migrated', { schema: schemaVersion })
  stdout(`the store has schema ${schemaVersion}\n`)
}

export interface CopyFlags {
  readonly from: string
  readonly to: string
  /** Has the audit log, where neither side is a folder. */
  readonly data: string
  readonly instanceSecretFile?: string
  /** Of databases whose URL has none. */
  readonly storePasswordFile?: string
}

/** Copies a store with everything in it. Throws CommandError and StoreError; then the target is as before. */
export async function copyStore(flags: CopyFlags, terminal: Terminal): Promise<void> {
  const { from, to, data, instanceSecretFile } = flags
  const [source, target] = [folderOf(from), folderOf(to)]
  if (source !== undefined) requireDataFolder(source)
  const secretFile = instanceSecretFile ?? (source && join(source, 'instance-secret'))
  if (secretFile === undefined)
    throw new CommandError(
      'the instance secret is not stored in the database: name its file with --instance-secret-file',
      2,
    )
  if (source !== undefined && instanceSecretFile !== undefined) requireSecretOf(source, instanceSecretFile)
  const audited = target ?? source ?? data
  // Before the copy: one that cannot be audited is not made.
  if (target === undefined) makeFolder(audited)
  const copy = () => copyBetween(flags, secretFile, terminal)
  const copied = await (target === undefined ? copy() : leavingNothing(target, copy))
  await auditCommand(audited, 'store.copied', { records: copied.records, sha256: copied.sha256 })
  terminal.stdout(`${countText(copied.records, 'record')}, sha256 ${copied.sha256}\n`)
}

/** Throws CommandError if the file has another secret than the folder: nothing in the copy could be opened with it. */
function requireSecretOf(folder: string, file: string): void {
  if (!existsSync(file)) throw new CommandError(secretMissing(file))
  const [own, given] = [join(folder, 'instance-secret'), file].map((path) => readFileSync(path, 'utf8').trim())
  if (own === given) return
  throw new CommandError(
    `${file} is not the secret of ${folder}: leave --instance-secret-file (POSTERN_INSTANCE_SECRET_FILE) out`,
  )
}

function secretMissing(file: string): string {
  return `${file} is missing, and the store needs its instance secret: name its file with --instance-secret-file`
}

/** The data folder that `--from` or `--to` names; undefined for a database. */
function folderOf(text: string): string | undefined {
  // Take every text that looks like a URL for one: a folder of such a name would have the password in its path.
  return /^\s*[a-z][a-z0-9+.-]*:\/\//i.test(text) ? undefined : text
}

async function copyBetween(
  { from, to, storePasswordFile }: CopyFlags,
  instanceSecretFile: string,
  terminal: Terminal,
): Promise<Copied> {
  await using opened = new AsyncDisposableStack()
  const [source, target] = [folderOf(from), folderOf(to)]
  const placeOf = (url: string, flag: string) => {
    const hasPassword = /^[^/]*\/\/[^/@]*:[^/@]*@/.test(url)
    const password = storePasswordFile === undefined || hasPassword ? {} : { storePasswordFile }
    const place = readDatabase(url, { instanceSecretFile, ...password }, '')
    const wrong = 'problem' in place && place.flag === '--store' ? flag : '--store-password-file'
    if ('problem' in place) throw new CommandError(`${wrong}: ${place.problem}`, 2)
    return place
  }
  let read: Scan
  if (source !== undefined) {
    read = scanStore(join(source, 'store'))
  } else {
    const options = { mayMake: false, label: 'postern store copy', waitMs: storeCommandMs, tell: terminal.stderr }
    const { store } = await openDatabase(placeOf(from, '--from'), options)
    opened.defer(() => store.close())
    read = scanDatabase(store)
  }
  let write: Target
  if (target !== undefined) {
    makeFolder(target)
    write = toFolder(join(target, 'store'))
  } else {
    if (!existsSync(instanceSecretFile)) throw new CommandError(secretMissing(instanceSecretFile))
    const store = await openForSchema(placeOf(to, '--to'), 'postern store copy')
    opened.defer(() => store.close())
    write = toDatabase(store, secretCheckOf(openSecrets(instanceSecretFile)))
  }
  const copied = await write(read)
  if (target !== undefined) takeSecret(instanceSecretFile, target)
  return copied
}

/** Puts the secret into the folder, unless it is already there. Throws CommandError for another one. */
function takeSecret(from: string, folder: string): void {
  const file = join(folder, 'instance-secret')
  const secret = readFileSync(from, 'utf8').trim()
  const isThere = existsSync(file)
  if (readOrCreate(file, () => secret) === secret) return
  throw new CommandError(
    `${file} ${isThere ? 'belongs to another store' : 'is not what was written'}: name a new folder with --to`,
  )
}
