/**
 * Finds what is wrong in a store: checks every value against its checksum, every record against its schema and key, and
 * every index entry against its record. Index and records are compared by sums of hashes, so that memory does not grow
 * with the rows; single entries are looked for only if the sums differ.
 */

import { readSigningKeys } from '../auth/signing-keys.ts'
import type { Connection } from '../model/connection.ts'
import { namespaceOf } from '../model/names.ts'
import { type ApiKey, Role } from '../model/organization.ts'
import { problemText, validatorOf } from '../schema/check.ts'
import { textOf } from '../storage/bytes.ts'
import { indexEntries, newConnectionsVersion } from '../storage/connections.ts'
import { indexKeysOf } from '../storage/directory-records.ts'
import { directoryVersionKey, keyOf, latin1Key } from '../storage/keys.ts'
import type { Repair, Scan, Scanned } from '../storage/lmdb/scan.ts'
import {
  isDirectoryIndex,
  type ParsedKey,
  parseKey,
  type RecordKind,
  recordKinds,
  recordName,
} from '../storage/record-kinds.ts'
import type { Entry, Key } from '../storage/store.ts'
import { createUsages } from '../storage/usage.ts'
import { newVersion } from '../storage/versions.ts'

export type Findings = Awaited<ReturnType<typeof verifyStore>>

/**
 * Checks a store in one snapshot; servers may use it meanwhile. `sealingKey` opens the signing keys. `onProgress`,
 * called for every record and index entry, must be cheap. Throws StoreError if the store cannot be opened.
 */
export async function verifyStore(scan: Scan, sealingKey: Buffer, onProgress: (what: string, done: number) => void) {
  const records = new RecordCheck(sealingKey)
  const actual = new KeySum()
  const indexProblems: string[] = []
  const lookAt = ({ key, value }: Scanned) => {
    const parsed = parseKey(key)
    if (value === undefined) {
      if (parsed?.kind === 'indexEntry')
        indexProblems.push(`${recordName(key)}: cannot be read, nor the entries before it`)
      else records.damaged.push(`${recordName(key)}: cannot be read: its checksum does not match`)
    } else if (parsed?.kind === 'indexEntry' || isDirectoryIndex(key)) {
      actual.add(key)
      onProgress('index entries', actual.count)
    } else {
      records.add({ key, value }, parsed)
      onProgress('records', records.count)
    }
  }
  await scan((scanned) => scanned.forEach(lookAt))
  const problems = records.end()
  if (indexProblems.length === 0 && !records.expectedIndex.equals(actual)) {
    indexProblems.push(...(await indexDifferences(scan)))
  }
  const usages = records.usages.entries()
  // If a record is unreadable its size is unknown, and the count would be wrong for that reason only.
  if (records.damaged.length + problems.length === 0) indexProblems.push(...usageProblems(records.storedUsages, usages))
  return {
    /** Records that are not as they were written. Only a backup helps. */
    damaged: records.damaged as readonly string[],
    /** Records that are as they were written, and are not valid. */
    problems,
    /** Differences in the index and the usages. `rebuildIndex` repairs both. */
    indexProblems,
    records: records.count,
    indexEntries: actual.count,
    connections: records.connections,
    /** Recounted usages as store entries, for `rebuildIndex`. */
    usages,
    /** Namespaces that have connections. */
    namespaces: [...records.connected],
  }
}

/**
 * Rewrites the whole index and all usages from the records in one transaction, with new versions, so that no cache
 * survives. A commit of another process between the scan and it is missing from the new index.
 */
export async function rebuildIndex({ scan, replaceIndex }: Repair, { namespaces, usages }: Findings): Promise<void> {
  const entries: Entry[] = []
  const ofDirectory: Entry[] = []
  await scan((scanned) => {
    for (const one of scanned.flatMap(indexEntriesOf)) (isDirectoryIndex(one.key) ? ofDirectory : entries).push(one)
  })
  entries.sort((a, b) => Buffer.compare(a.key, b.key))
  const versions = [newVersion(directoryVersionKey), ...namespaces.map(newConnectionsVersion)]
  await replaceIndex(entries, [...ofDirectory, ...versions, ...usages])
}

const roleShape = validatorOf(Role)
/** Of the kinds whose values are the JSON of a record. */
const shapes = new Map(
  Object.entries(recordKinds).flatMap(([kind, { schema }]) =>
    schema === undefined ? [] : [[kind as RecordKind, validatorOf(schema)] as const],
  ),
)
const isReadable = (kind: RecordKind, value: Uint8Array) => shapes.get(kind)?.isValid(jsonOf(value)) !== false

/** Checks records one at a time, and collects what must be compared at the end. */
class RecordCheck {
  readonly damaged: string[] = []
  readonly problems: string[] = []
  readonly usages = createUsages()
  /** By key (`latin1Key`). */
  readonly storedUsages = new Map<string, string>()
  readonly expectedIndex = new KeySum()
  /** Namespaces that have connections. */
  readonly connected = new Set<string>()
  /** Namespaces that have views or servers. */
  readonly #within = new Set<string>()
  count = 0
  connections = 0
  readonly #sealingKey: Buffer
  /** Keys (`latin1Key`) of the records that others belong to. */
  readonly #there = new Set<string>()
  /** Organizations that records belong to, each with the key of one such record. */
  readonly #needed = new Map<string, string>()
  /** Key ids that hashes point to. Hashes (`h`) come before key records (`k`), so they are compared at the end. */
  readonly #digestedKeyIds = new Set<string>()

  constructor(sealingKey: Buffer) {
    this.#sealingKey = sealingKey
  }

  add(entry: Entry, parsed: ParsedKey | undefined): void {
    this.count += 1
    this.usages.add(entry)
    for (const { key } of directoryIndexOf(entry)) this.expectedIndex.add(key)
    const { key, value } = entry
    if (parsed === undefined) {
      this.#report(key, 'unknown kind of record')
      return
    }
    const record = this.#readOwn(entry, parsed)
    switch (parsed.kind) {
      case 'organization':
      case 'deletingNamespace':
        this.#there.add(latin1Key(key))
        return
      case 'member':
        if (!roleShape.isValid(textOf(value))) this.#report(key, 'is not a role')
        this.#needOrganization(parsed, key)
        return
      case 'namespace':
        this.#needOrganization(record, key)
        this.#there.add(latin1Key(key))
        return
      case 'apiKey':
        if (record === undefined) return
        this.#there.add(latin1Key(key))
        if (!this.#digestedKeyIds.has(parsed.keyId)) this.#report(key, 'has no hash')
        if ((record as ApiKey).revokedAt === null) this.#needOrganization(record, key)
        return
      case 'apiKeyDigest':
        this.#digestedKeyIds.add(textOf(value))
        return
      case 'view':
        this.#within.add(parsed.namespace)
        return
      case 'server':
        this.#within.add(namespaceOf(parsed.qualifiedName))
        return
      case 'connection':
        if (record === undefined) return
        this.connected.add(parsed.namespace)
        this.connections += 1
        for (const one of indexEntries(parsed.namespace, record as Connection)) this.expectedIndex.add(one.key)
        return
      case 'usage':
        this.storedUsages.set(latin1Key(key), textOf(value))
        return
      case 'revocation':
        if (!/^\d+$/.test(textOf(value))) this.#report(key, 'is not a time')
        return
      case 'signingKeys':
        try {
          readSigningKeys(value, this.#sealingKey)
        } catch (error) {
          this.damaged.push((error as Error).message)
        }
    }
  }

  /** All problems. Call it after the last record. */
  end(): readonly string[] {
    for (const keyId of this.#digestedKeyIds) {
      if (!this.#has('apiKey', keyId)) this.problems.push(`hash of API key ${keyId}: there is no such key`)
    }
    for (const [organizationId, record] of this.#needed) {
      if (!this.#has('organization', organizationId))
        this.#report(Buffer.from(record, 'latin1'), `its organization ${organizationId} is missing`)
    }
    for (const namespace of this.#within)
      if (!this.#has('namespace', namespace))
        this.problems.push(`views or servers of ${namespace}: there is no such namespace`)
    for (const namespace of this.connected) {
      // The server that deletes a namespace, or the next one that starts, removes its connections.
      if (!this.#has('namespace', namespace) && !this.#has('deletingNamespace', namespace))
        this.problems.push(`connections of ${namespace}: there is no such namespace`)
    }
    return this.problems
  }

  #has(kind: 'apiKey' | 'organization' | 'namespace' | 'deletingNamespace', id: string): boolean {
    return this.#there.has(latin1Key(keyOf(kind, id)))
  }

  /**
   * Parses and checks a record whose kind has a schema. Reports one that is invalid, and one whose fields differ from
   * the parts of its key. Undefined for an invalid one, and where there is no schema.
   */
  #readOwn({ key, value }: Entry, parsed: ParsedKey): object | undefined {
    const shape = shapes.get(parsed.kind)
    if (shape === undefined) return undefined
    const record = jsonOf(value)
    if (!shape.isValid(record)) {
      const [problem = { place: '', message: 'is not JSON' }] = record === undefined ? [] : shape.problems(record, 1)
      this.#report(key, problemText(problem))
      return undefined
    }
    const parts: Readonly<Record<string, unknown>> = parsed
    const fields = record as Readonly<Record<string, unknown>>
    if (recordKinds[parsed.kind].parts.some((part) => part in fields && fields[part] !== parts[part]))
      this.#report(key, 'the record does not belong to its key')
    return fields
  }

  #needOrganization(record: object | undefined, key: Key): void {
    const { organizationId } = (record ?? {}) as { readonly organizationId?: string }
    if (organizationId !== undefined && !this.#needed.has(organizationId))
      this.#needed.set(organizationId, latin1Key(key))
  }

  #report(key: Key, problem: string): void {
    this.problems.push(`${recordName(key)}: ${problem}`)
  }
}

/** Usages that differ from the count, both by key. A missing usage equals zero. */
function usageProblems(stored: ReadonlyMap<string, string>, counted: readonly Entry[]): string[] {
  const actual = new Map(counted.map(({ key, value }) => [latin1Key(key), textOf(value)]))
  return [...new Set([...stored.keys(), ...actual.keys()])].flatMap((key) => {
    const [says, is] = [stored.get(key) ?? '0 0 0', actual.get(key) ?? '0 0 0']
    return says === is ? [] : [`${nameOf(key)}: the stored count is ${says}, and the records give ${is}`]
  })
}

function nameOf(key: string): string {
  return recordName(Buffer.from(key, 'latin1'))
}

/** An order-independent sum of key hashes: equal sets of keys give equal sums. 64 bits are enough against accidents. */
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

/** The missing index entries and those without a record. It keeps keys in memory, and runs only if sums differ. */
async function indexDifferences(scan: Scan): Promise<string[]> {
  const missing = new Set<string>()
  const extra: string[] = []
  const found = new Set<string>()
  // Connections (`c`) come before their index entries (`x`). Those of the directory may come before their records.
  await scan((scanned) => {
    for (const record of scanned) {
      const key = latin1Key(record.key)
      if (record.value === undefined) continue
      if (isDirectoryIndex(record.key)) found.add(key)
      else if (parseKey(record.key)?.kind !== 'indexEntry')
        for (const one of indexEntriesOf(record)) missing.add(latin1Key(one.key))
      else if (!missing.delete(key)) extra.push(key)
    }
  })
  for (const key of found) if (!missing.delete(key)) extra.push(key)
  return [
    ...[...missing].map((key) => `${nameOf(key)}: is missing`),
    ...extra.map((key) => `${nameOf(key)}: belongs to no record`),
  ]
}

/** The index entries of a readable connection or record of the directory; none for any other record. */
function indexEntriesOf({ key, value }: Scanned): Entry[] {
  if (value === undefined) return []
  const parsed = parseKey(key)
  if (parsed?.kind !== 'connection') return directoryIndexOf({ key, value })
  if (!isReadable('connection', value)) return []
  return [...indexEntries(parsed.namespace, jsonOf(value) as Connection)]
}

/** The entries of the directory's indexes for a readable record. */
function directoryIndexOf(entry: Entry): Entry[] {
  const kind = parseKey(entry.key)?.kind
  const isGrant = kind === 'grant' && typeof (jsonOf(entry.value) as { userId?: unknown } | null)?.userId === 'string'
  const isOther = (kind === 'namespace' || kind === 'apiKey' || kind === 'member') && isReadable(kind, entry.value)
  if (!isGrant && !isOther) return []
  return indexKeysOf(entry).map((key) => ({ key, value: new Uint8Array(0) }))
}

function jsonOf(value: Uint8Array): unknown {
  try {
    return JSON.parse(textOf(value))
  } catch {
    return undefined
  }
}
