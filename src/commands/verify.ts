/**
 * `postern verify`: every value against its checksum, every record against its shape and its key, every index entry
 * against its record. Index and records are compared by sums over hashes, so that a million rows need no memory;
 * entries are told one by one only when the sums differ.
 */

import { join } from 'node:path'
import { openSecrets } from '../auth/secrets.ts'
import { readSigningKeys } from '../auth/signing-keys.ts'
import { isCompiled } from '../compiled.ts'
import { expectDataFolder, openExistingDataFolder, upgradeStore } from '../data-folder.ts'
import { CommandError } from '../errors.ts'
import { problemText, type Shape, shapeOf } from '../model/check.ts'
import { Connection } from '../model/connection.ts'
import { RecordedAnswer } from '../model/recorded-answer.ts'
import { ApiKey, Namespace, Organization, Role } from '../model/registry.ts'
import { ServerDetail } from '../model/server.ts'
import { printable } from '../printable.ts'
import { indexEntries, newConnectionsVersion } from '../storage/connections.ts'
import { inspect, replaceIndex } from '../storage/inspect.ts'
import { connectionOf, indexKind, latin1Key, termEntries } from '../storage/keys.ts'
import { removeLeftovers as removeLeftoversOf } from '../storage/leftovers.ts'
import { checkFile } from '../storage/lmdb-file.ts'
import { recordName } from '../storage/record-name.ts'
import { asBuffer, type Entry, type Key } from '../storage/store.ts'
import { createUsages } from '../storage/usage.ts'
import { recordAct } from './audit.ts'
import { commandProgress } from './progress.ts'
import type { Terminal } from './terminal.ts'

interface Flags {
  readonly data: string
  readonly repair?: boolean
  readonly removeLeftovers?: boolean
}

/** What a record must be. Kinds that are not here hold no record of their own. */
const shapes: Readonly<Record<string, Shape<unknown>>> = {
  o: shapeOf(Organization),
  n: shapeOf(Namespace),
  k: shapeOf(ApiKey),
  s: shapeOf(ServerDetail),
  c: shapeOf(Connection),
  a: shapeOf(RecordedAnswer),
}
const roleShape = shapeOf(Role)
const known = new Set('oamnlkhscpxgfruGBFUyA')
const indexLetter = indexKind[0]
const shownMax = 100

/**
 * LMDB trusts its file, and where the file's own structure is damaged it takes the process with it. So another
 * process looks, and this one tells how it ended.
 */
export async function verify(flags: Flags, terminal: Terminal): Promise<void> {
  if (process.env[lookingHere] !== undefined) return verifyHere(flags, terminal)
  const program = isCompiled ? [process.execPath] : [process.execPath, Bun.main]
  const args = ['verify', '--data', flags.data]
  if (flags.repair === true) args.push('--repair')
  if (flags.removeLeftovers === true) args.push('--remove-leftovers')
  const child = Bun.spawn([...program, ...args], {
    env: { ...process.env, [lookingHere]: '1' },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  if (code > 2 || child.signalCode !== null) {
    throw new CommandError(`${join(flags.data, 'store', 'data.mdb')} is damaged in its structure: restore a backup`)
  }
  if (code !== 0) throw new CommandError(stderr.trimEnd(), code === 2 ? 2 : 1)
  terminal.stderr(stderr)
  terminal.stdout(stdout)
}

const lookingHere = 'POSTERN_VERIFY_HERE'

async function verifyHere({ data, repair = false, removeLeftovers = false }: Flags, terminal: Terminal): Promise<void> {
  process.umask(0o077)
  const folder = join(data, 'store')
  expectDataFolder(data)
  try {
    checkFile(join(folder, 'data.mdb'))
  } catch (error) {
    throw new CommandError((error as Error).message, 1, { cause: error })
  }
  await upgradeStore(data, terminal.stderr)
  const found = await look(data, terminal)
  const { problems, index, leftovers, lost, records, entries } = found
  if (index.length > 0 && repair) {
    await replaceIndex(folder, await expectedIndex(folder), [
      ...found.namespaces.map(newConnectionsVersion),
      ...found.usages,
    ])
    await recordAct(data, 'index.rebuilt', { connections: found.connections })
    terminal.stdout(`the index of ${found.connections} connections is written anew\n`)
  }
  const missing = [...lost.keys()].map((namespace) => `connections of ${namespace}: there is no such namespace`)
  const left = [...problems, ...(removeLeftovers ? [] : missing), ...(repair ? [] : index)]
  if (left.length > 0) {
    const more = left.length > shownMax ? [`and ${left.length - shownMax} more`] : []
    const advice = adviceFor(found)
    throw new CommandError([...left.slice(0, shownMax).map(printable), ...more, advice].join('\n'))
  }
  if (index.length === 0) terminal.stdout(`${records} records and ${entries} index entries, all as they should be\n`)
  if (removeLeftovers) await remove(data, [...leftovers.keys(), ...lost.keys()], terminal)
  else if (leftovers.size > 0) terminal.stderr(leftoverLines(leftovers))
}

function adviceFor({ problems, lost }: Found): string {
  if (problems.length > 0) return 'restore a backup'
  if (lost.size === 0) return 'run  postern verify --repair'
  return (
    'where a namespace was taken out of the fixtures, bring it back, or remove what is left of it with  ' +
    'postern verify --remove-leftovers ; where it was lost, restore a backup'
  )
}

async function remove(data: string, namespaces: readonly string[], { stdout, stderr }: Terminal): Promise<void> {
  if (namespaces.length === 0) stdout('nothing is left over\n')
  const { store } = await openExistingDataFolder(data, stderr)
  try {
    for (const namespace of namespaces) {
      const connections = await removeLeftoversOf(store, namespace)
      await recordAct(data, 'leftovers.removed', { namespace, connections })
      stdout(`removed ${connectionsOf(namespace, connections)}\n`)
    }
  } finally {
    await store.close()
  }
}

function leftoverLines(leftovers: ReadonlyMap<string, number>): string {
  const lines = [...leftovers].map(([namespace, count]) => `${connectionsOf(namespace, count)}\n`)
  return `${lines.join('')}They do no harm: nobody can reach them, and they come back with their namespace. To remove them:  postern verify --remove-leftovers\n`
}

function connectionsOf(namespace: string, count: number): string {
  return `${count} ${count === 1 ? 'connection' : 'connections'} of the namespace ${printable(namespace)}, which no longer exists`
}

interface Found {
  /** Of records: only a backup helps. */
  readonly problems: string[]
  /** Of the index and of what namespaces hold: it can be made again. */
  readonly index: string[]
  readonly usages: readonly Entry[]
  readonly namespaces: readonly string[]
  /** How many connections namespaces have that went with their fixture, by name. */
  readonly leftovers: ReadonlyMap<string, number>
  /** The same of those that are not there, and nobody knows why. */
  readonly lost: ReadonlyMap<string, number>
  readonly records: number
  readonly entries: number
  readonly connections: number
}

async function look(data: string, terminal: Terminal): Promise<Found> {
  const problems: string[] = []
  const index: string[] = []
  /** How many connections each has. */
  const namespaces = new Map<string, number>()
  const owned = new Set<string>()
  const marked = new Set<string>()
  const expected = new Sum()
  const actual = new Sum()
  let records = 0
  let connections = 0
  const progress = commandProgress(terminal)
  const keyIds = new Set<string>()
  const digests: string[] = []

  const usages = createUsages()
  const stored = new Map<string, string>()

  const check = ({ key, value }: Entry) => {
    const letter = String.fromCharCode(key[0] ?? 0)
    usages.add({ key, value })
    if (letter === 'u') stored.set(latin1Key(key), text(value))
    if (letter === 'x') {
      actual.add(key)
      progress.step('index entries', actual.count)
      return
    }
    records += 1
    progress.step('records', records)
    const name = nameOf(key)
    if (!known.has(letter)) return void problems.push(`${name}: is of no kind that is known`)
    const parts = latin1Key(key).slice(1).split('\0')
    if (letter === 'm' && !roleShape.accepts(text(value))) problems.push(`${name}: is no role`)
    if (letter === 'r' && !/^\d+$/.test(text(value))) problems.push(`${name}: is no time`)
    if (letter === 'h') digests.push(text(value))
    if (letter === 'l') marked.add(parts[0] ?? '')
    if (letter === 'y') problems.push(...signingKeyProblems(data, value))
    const shape = shapes[letter]
    if (shape === undefined) return
    const record = parsed(value)
    if (!shape.accepts(record)) {
      const [problem = { place: '', message: 'is not JSON' }] = record === undefined ? [] : shape.problems(record, 1)
      problems.push(`${name}: ${problemText(problem)}`)
      return
    }
    if (letter === 'k') keyIds.add((record as ApiKey).keyId)
    if (letter === 'n') owned.add((record as Namespace).namespace)
    if (letter === 'c') {
      const connection = record as Connection
      const { namespace = '', connectionId = '' } = connectionOf(key) ?? {}
      if (connection.connectionId !== connectionId) problems.push(`${name}: says that it is ${connection.connectionId}`)
      namespaces.set(namespace, (namespaces.get(namespace) ?? 0) + 1)
      connections += 1
      for (const entry of indexEntries(namespace, connection)) expected.add(entry.key)
    } else if (letter !== 'a' && !Object.values(record as object).includes(parts[0])) {
      problems.push(`${name}: says that it is another`)
    }
  }
  await inspect(join(data, 'store'), {
    entry: check,
    damaged(key) {
      if (key[0] === indexLetter) index.push(`${nameOf(key)}: cannot be read, nor the entries before it`)
      else problems.push(`${nameOf(key)}: cannot be read: its checksum does not match`)
    },
  })
  progress.end()
  const orphans = [...namespaces].filter(([namespace]) => !owned.has(namespace))
  const leftovers = new Map(orphans.filter(([namespace]) => marked.has(namespace)))
  const lost = new Map(orphans.filter(([namespace]) => !marked.has(namespace)))
  for (const keyId of digests) if (!keyIds.has(keyId)) problems.push(`hash of API key ${keyId}: there is no such key`)
  if (index.length === 0 && !expected.equals(actual)) index.push(...(await differences(join(data, 'store'))))
  // Where a record cannot be read nobody knows how much it is.
  const counted = usages.entries()
  if (problems.length === 0) index.push(...usageProblems(stored, counted))
  return {
    problems,
    index,
    usages: counted,
    namespaces: [...namespaces.keys()],
    leftovers,
    lost,
    records,
    entries: actual.count,
    connections,
  }
}

/** Namespaces that hold something else than it was counted. One that holds nothing need not say so. */
function usageProblems(stored: ReadonlyMap<string, string>, counted: readonly Entry[]): string[] {
  const right = new Map(counted.map(({ key, value }) => [latin1Key(key), text(value)]))
  return [...new Set([...stored.keys(), ...right.keys()])].flatMap((key) => {
    const [says, is] = [stored.get(key) ?? '0 0', right.get(key) ?? '0 0']
    return says === is ? [] : [`usage of namespace ${key.slice(1)}: is counted as ${says}, and is ${is}`]
  })
}

/** A sum over hashes of keys: the same for the same keys in any order. */
class Sum {
  count = 0
  #low = 0n
  add(key: Key): void {
    this.count += 1
    this.#low = BigInt.asUintN(64, this.#low + Bun.hash.xxHash3(key))
  }
  equals(other: Sum): boolean {
    return this.count === other.count && this.#low === other.#low
  }
}

/** Which entries are missing, and which are of no record. */
async function differences(folder: string): Promise<string[]> {
  const missing = new Set<string>()
  const extra: string[] = []
  // Records come before their index entries, as `c` comes before `x`.
  await inspect(folder, {
    entry({ key, value }) {
      if (key[0] === indexLetter) {
        if (!missing.delete(latin1Key(key))) extra.push(latin1Key(key))
      } else for (const entry of entriesOf(key, value)) missing.add(latin1Key(entry.key))
    },
    damaged() {},
  })
  const named = (key: string) => nameOf(Buffer.from(key, 'latin1'))
  return [
    ...[...missing].map((key) => `${named(key)}: is missing`),
    ...extra.map((key) => `${named(key)}: is of no connection`),
  ]
}

async function expectedIndex(folder: string): Promise<Entry[]> {
  const entries: Entry[] = []
  await inspect(folder, {
    entry: ({ key, value }) => void entries.push(...entriesOf(key, value)),
    damaged() {},
  })
  return entries.sort((a, b) => Buffer.compare(a.key, b.key))
}

function entriesOf(key: Key, value: Uint8Array): Entry[] {
  const at = connectionOf(key)
  const record = at === undefined ? undefined : parsed(value)
  if (at === undefined || !shapes['c']?.accepts(record)) return []
  return [...indexEntries(at.namespace, record as Connection)]
}

function signingKeyProblems(data: string, sealed: Uint8Array): string[] {
  try {
    readSigningKeys(sealed, openSecrets(data).sealingKey)
    return []
  } catch (error) {
    return [(error as Error).message]
  }
}

function nameOf(key: Key): string {
  const letter = String.fromCharCode(key[0] ?? 0)
  const parts = asBuffer(key).toString('utf8', 1).split('\0')
  if (letter === 'x') {
    const [namespace = ''] = parts
    const connectionId = latin1Key(key).slice(termEntries(namespace, new Uint8Array(16)).length)
    return `index entry of connection ${namespace}/${connectionId}`
  }
  return recordName(key)
}

function parsed(value: Uint8Array): unknown {
  try {
    return JSON.parse(text(value))
  } catch {
    return undefined
  }
}

function text(value: Uint8Array): string {
  return asBuffer(value).toString()
}
