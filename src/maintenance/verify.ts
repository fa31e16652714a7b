/**
 * What is wrong in a store: every value against its checksum, every record against its shape and its key, every index
 * entry against its record. Index and records are compared by sums over hashes, so that a million rows need no memory;
 * entries are named one by one only when the sums differ.
 */

import { readSigningKeys } from '../auth/signing-keys.ts'
import { Connection } from '../model/connection.ts'
import { RecordedAnswer } from '../model/recorded-answer.ts'
import { ApiKey, Namespace, Organization, Role } from '../model/registry.ts'
import { ServerDetail } from '../model/server.ts'
import { problemText, type Validator, validatorOf } from '../schema/check.ts'
import { indexEntries, newConnectionsVersion } from '../storage/connections.ts'
import { indexKind, latin1Key, type ParsedKey, parseKey, recordName } from '../storage/keys.ts'
import { replaceIndex, scanStore } from '../storage/lmdb/scan.ts'
import { asBuffer, type Entry, type Key } from '../storage/store.ts'
import { createUsageCounter } from '../storage/usage.ts'

export interface Findings {
  /** Of records: only a backup helps. */
  readonly problems: readonly string[]
  /** Of the index and of what namespaces hold: `rebuildIndex` makes both again. */
  readonly indexProblems: readonly string[]
  /** How many connections each namespace has that was removed with its fixture, by name. */
  readonly leftovers: ReadonlyMap<string, number>
  /** The same of namespaces that are missing without a reason. */
  readonly lost: ReadonlyMap<string, number>
  readonly records: number
  readonly indexEntries: number
  readonly connections: number
  /** How much each namespace holds, as it is stored; to be written with the index. */
  readonly usages: readonly Entry[]
  /** Those that have connections. */
  readonly namespaces: readonly string[]
}

export interface VerifyOptions {
  /** Opens the signing keys. */
  readonly sealingKey: Buffer
  readonly onProgress: (what: string, done: number) => void
}

/** `folder` is the store's. */
export async function verifyStore(folder: string, { sealingKey, onProgress }: VerifyOptions): Promise<Findings> {
  const records = new RecordCheck(sealingKey)
  const actual = new KeySum()
  const indexProblems: string[] = []
  await scanStore(folder, {
    entry(entry) {
      const parsed = parseKey(entry.key)
      if (parsed?.kind === 'indexEntry') {
        actual.add(entry.key)
        onProgress('index entries', actual.count)
      } else {
        records.add(entry, parsed)
        onProgress('records', records.count)
      }
    },
    damaged(key) {
      if (key[0] === indexKind[0]) {
        indexProblems.push(`${recordName(key)}: cannot be read, nor the entries before it`)
      } else records.problems.push(`${recordName(key)}: cannot be read: its checksum does not match`)
    },
  })
  const problems = records.end()
  if (indexProblems.length === 0 && !records.expectedIndex.equals(actual)) {
    indexProblems.push(...(await indexDifferences(folder)))
  }
  const usages = records.usages.entries()
  // Where a record cannot be read nobody knows how much it is.
  if (problems.length === 0) indexProblems.push(...usageProblems(records.storedUsages, usages))
  return {
    problems,
    indexProblems,
    ...records.withoutNamespace(),
    records: records.count,
    indexEntries: actual.count,
    connections: records.connections,
    usages,
    namespaces: [...records.connectionsOf.keys()],
  }
}

/** Writes the index anew, and how much each namespace holds. */
export async function rebuildIndex(folder: string, { namespaces, usages }: Findings): Promise<void> {
  const entries: Entry[] = []
  await scanStore(folder, {
    entry: (entry) => void entries.push(...indexEntriesOf(entry)),
    damaged() {},
  })
  entries.sort((a, b) => Buffer.compare(a.key, b.key))
  await replaceIndex(folder, entries, [...namespaces.map(newConnectionsVersion), ...usages])
}

const roleShape = validatorOf(Role)
const connectionShape = validatorOf(Connection)
const [organizationShape, namespaceShape, apiKeyShape, serverShape, mockShape] = [
  validatorOf(Organization),
  validatorOf(Namespace),
  validatorOf(ApiKey),
  validatorOf(ServerDetail),
  validatorOf(RecordedAnswer),
]

/** Records, one after the other, and what they say of one another. */
class RecordCheck {
  readonly problems: string[] = []
  readonly usages = createUsageCounter()
  readonly storedUsages = new Map<string, string>()
  readonly expectedIndex = new KeySum()
  /** How many each namespace has. */
  readonly connectionsOf = new Map<string, number>()
  count = 0
  connections = 0
  readonly #sealingKey: Buffer
  readonly #namespaces = new Set<string>()
  readonly #leftNamespaces = new Set<string>()
  readonly #keyIds = new Set<string>()
  readonly #digestedKeyIds: string[] = []

  constructor(sealingKey: Buffer) {
    this.#sealingKey = sealingKey
  }

  add(entry: Entry, parsed: Exclude<ParsedKey, { kind: 'indexEntry' }> | undefined): void {
    this.count += 1
    this.usages.add(entry)
    const { key, value } = entry
    switch (parsed?.kind) {
      case undefined:
        this.#report(key, 'unknown kind of record')
        return
      case 'organization':
        this.#readOwn(key, value, organizationShape, ({ organizationId }) => organizationId === parsed.organizationId)
        return
      case 'member':
        if (!roleShape.isValid(textOf(value))) this.#report(key, 'is not a role')
        return
      case 'namespace':
        this.#readOwn(key, value, namespaceShape, ({ namespace }) => namespace === parsed.namespace)
        this.#namespaces.add(parsed.namespace)
        return
      case 'leftNamespace':
        this.#leftNamespaces.add(parsed.namespace)
        return
      case 'apiKey':
        if (this.#readOwn(key, value, apiKeyShape, ({ keyId }) => keyId === parsed.keyId))
          this.#keyIds.add(parsed.keyId)
        return
      case 'apiKeyDigest':
        this.#digestedKeyIds.push(textOf(value))
        return
      case 'server':
        this.#readOwn(key, value, serverShape, ({ qualifiedName }) => qualifiedName === parsed.qualifiedName)
        return
      case 'mock':
        this.#readOwn(key, value, mockShape, ({ server }) => server === parsed.server)
        return
      case 'connection':
        this.#addConnection(key, value, parsed)
        return
      case 'usage':
        this.storedUsages.set(parsed.namespace, textOf(value))
        return
      case 'revocation':
        if (!/^\d+$/.test(textOf(value))) this.#report(key, 'is not a time')
        return
      case 'signingKeys':
        this.#checkSigningKeys(value)
        return
      // Read as they are, by those that write them.
      case 'connectionPrivate':
      case 'connectionsVersion':
      case 'registryVersion':
      case 'started':
      case 'baseUrl':
      case 'fixturesDigest':
      case 'fixturesManifest':
      case 'ahead':
        return
    }
  }

  /** All problems, once every record was added. */
  end(): readonly string[] {
    for (const keyId of this.#digestedKeyIds) {
      if (!this.#keyIds.has(keyId)) this.problems.push(`hash of API key ${keyId}: there is no such key`)
    }
    return this.problems
  }

  /** How many connections are of namespaces that do not exist. */
  withoutNamespace(): Pick<Findings, 'leftovers' | 'lost'> {
    const orphans = [...this.connectionsOf].filter(([namespace]) => !this.#namespaces.has(namespace))
    return {
      leftovers: new Map(orphans.filter(([namespace]) => this.#leftNamespaces.has(namespace))),
      lost: new Map(orphans.filter(([namespace]) => !this.#leftNamespaces.has(namespace))),
    }
  }

  #addConnection(key: Key, value: Uint8Array, { namespace, connectionId }: ParsedKey & { kind: 'connection' }): void {
    const connection = this.#readOwn(key, value, connectionShape, (record) => record.connectionId === connectionId)
    if (connection === undefined) return
    this.connectionsOf.set(namespace, (this.connectionsOf.get(namespace) ?? 0) + 1)
    this.connections += 1
    for (const entry of indexEntries(namespace, connection)) this.expectedIndex.add(entry.key)
  }

  #checkSigningKeys(sealed: Uint8Array): void {
    try {
      readSigningKeys(sealed, this.#sealingKey)
    } catch (error) {
      this.problems.push((error as Error).message)
    }
  }

  /** The record, if it has its shape; reports where it has not, and where it is another's. */
  #readOwn<T>(key: Key, value: Uint8Array, shape: Validator<T>, isOwn: (record: T) => boolean): T | undefined {
    const record = jsonOf(value)
    if (!shape.isValid(record)) {
      const [problem = { place: '', message: 'is not JSON' }] = record === undefined ? [] : shape.problems(record, 1)
      this.#report(key, problemText(problem))
      return undefined
    }
    if (!isOwn(record)) this.#report(key, 'the record does not belong to its key')
    return record
  }

  #report(key: Key, problem: string): void {
    this.problems.push(`${recordName(key)}: ${problem}`)
  }
}

/** Namespaces whose count is not what they hold. One that holds nothing need not be counted. */
function usageProblems(stored: ReadonlyMap<string, string>, counted: readonly Entry[]): string[] {
  const actual = new Map(
    counted.flatMap(({ key, value }) => {
      const parsed = parseKey(key)
      return parsed?.kind === 'usage' ? [[parsed.namespace, textOf(value)] as const] : []
    }),
  )
  return [...new Set([...stored.keys(), ...actual.keys()])].flatMap((namespace) => {
    const [says, is] = [stored.get(namespace) ?? '0 0', actual.get(namespace) ?? '0 0']
    return says === is ? [] : [`usage of namespace ${namespace}: is counted as ${says}, and is ${is}`]
  })
}

/** A sum over hashes of keys: the same for the same keys in any order. */
class KeySum {
  count = 0
  #low = 0n
  add(key: Key): void {
    this.count += 1
    this.#low = BigInt.asUintN(64, this.#low + Bun.hash.xxHash3(key))
  }
  equals(other: KeySum): boolean {
    return this.count === other.count && this.#low === other.#low
  }
}

/** Which entries are missing, and which belong to no connection. */
async function indexDifferences(folder: string): Promise<string[]> {
  const missing = new Set<string>()
  const extra: string[] = []
  // Records come before their index entries, as `c` comes before `x`.
  await scanStore(folder, {
    entry(entry) {
      const key = latin1Key(entry.key)
      if (entry.key[0] !== indexKind[0]) for (const { key } of indexEntriesOf(entry)) missing.add(latin1Key(key))
      else if (!missing.delete(key)) extra.push(key)
    },
    damaged() {},
  })
  const nameOf = (key: string) => recordName(Buffer.from(key, 'latin1'))
  return [
    ...[...missing].map((key) => `${nameOf(key)}: is missing`),
    ...extra.map((key) => `${nameOf(key)}: belongs to no connection`),
  ]
}

/** Of a connection that can be read. */
function indexEntriesOf({ key, value }: Entry): Entry[] {
  const parsed = parseKey(key)
  const record = parsed?.kind === 'connection' ? jsonOf(value) : undefined
  return parsed?.kind === 'connection' && connectionShape.isValid(record)
    ? [...indexEntries(parsed.namespace, record)]
    : []
}

function jsonOf(value: Uint8Array): unknown {
  try {
    return JSON.parse(textOf(value))
  } catch {
    return undefined
  }
}

function textOf(value: Uint8Array): string {
  return asBuffer(value).toString()
}
