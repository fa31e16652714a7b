/**
 * Loads fixtures into the store: all or nothing, and idempotent (contract 7). A fixture replaces the record of the same
 * id. A record that came from a fixture is removed with its fixture. A record written at run time is never removed, and
 * the log warns if one is replaced. The store keeps a manifest of the keys that the fixtures brought, to know which
 * records are theirs.
 */

import { apiKeyDigest } from '../../auth/api-key.ts'
import { CommandError } from '../../errors.ts'
import { removedNamesShownMax, removedWarnMin } from '../../limits.ts'
import type { ApiKey } from '../../model/registry.ts'
import type { Log } from '../../ops/log.ts'
import { isEmpty, nothingAhead, removeAhead, writeAhead } from '../../storage/ahead.ts'
import { equalBytes } from '../../storage/bytes.ts'
import { newConnectionsVersion, usageCount } from '../../storage/connections.ts'
import {
  aheadKey,
  apiKeyDigestKey,
  apiKeyKey,
  connectionLatin1Key,
  connectionsVersionKey,
  fixturesDigestKey,
  latin1Key,
  manifest,
  manifestKey,
  namespaceKey,
  parseKey,
  prefixRange,
  recordName,
  registryVersionKey,
} from '../../storage/keys.ts'
import { leftBehind } from '../../storage/leftovers.ts'
import {
  apiKeyEntries,
  memberEntry,
  mockEntry,
  namespaceEntry,
  organizationEntry,
  readApiKey,
  serverEntry,
} from '../../storage/registry-records.ts'
import type { Check, Entry, Key, Store } from '../../storage/store.ts'
import { newVersion } from '../../storage/versions.ts'
import { type NamespaceChange, namespaceChange, newNamespace, removal } from './namespace-change.ts'
import type { Fixtures } from './read-fixtures.ts'

/** `pepper`: the key for hashing API keys. `now`: `createdAt` of records without one. */
export interface LoadOptions {
  readonly pepper: Buffer
  readonly now: Date
  readonly log: Log
  /** A new namespace of at least this many bytes is written ahead (`storage/ahead.ts`). */
  readonly aheadBytesMin?: number
  /** Called with the number of entries written so far, and their total. */
  readonly onProgress?: (done: number, total: number) => void
}

/** Counts for the log. `removed`: records removed with their fixtures. */
export interface Loaded {
  readonly connections: number
  readonly servers: number
  readonly removed: number
}

/** True if the last load was of fixtures with this digest. */
export async function isLoaded(store: Store, digest: string): Promise<boolean> {
  return equalBytes(await store.get(fixturesDigestKey), Buffer.from(digest))
}

/**
 * Resolves when the load is durable. If it rejects, no visible record has changed. Throws CommandError for an API key
 * that already exists under another id.
 */
export async function loadFixtures(
  store: Store,
  fixtures: Fixtures,
  digest: string,
  options: LoadOptions,
): Promise<Loaded> {
  for (;;) {
    const loaded = await tryLoad(store, fixtures, digest, options)
    // A concurrent write changed the same part of the store: start again from what is stored now.
    if (loaded !== undefined) return loaded
  }
}

/**
 * One attempt. Undefined if a check failed. The checks cover the versions of the registry and of every namespace that
 * the fixtures bring connections to; each is read before what it covers.
 */
async function tryLoad(
  store: Store,
  fixtures: Fixtures,
  digest: string,
  { pepper, now, log, aheadBytesMin = aheadBytesDefault, onProgress = () => {} }: LoadOptions,
): Promise<Loaded | undefined> {
  await removeAhead(store)
  const checks: Check[] = [await checkOf(store, registryVersionKey)]
  const desired = await registryRecords(store, fixtures, pepper, now)
  const before = await readManifest(store)
  const puts: Entry[] = []
  const deletes: Key[] = [...before.parts]
  /**
   * Takes a record out of the old manifest, because these fixtures still bring it, and warns if they replace a record
   * that no fixture brought.
   */
  const bring = (key: Key, what: () => string, replaces: boolean) => {
    const isKnown = before.names.size > 0 && before.names.delete(latin1Key(key))
    if (replaces && !isKnown) log.warn('a fixture replaced a record that was written at run time', { record: what() })
  }

  for (const { key, value, what } of desired) {
    const stored = await store.get(key)
    const changes = stored === undefined || !equalBytes(stored, value)
    if (changes) puts.push({ key, value })
    bring(key, () => what, changes && stored !== undefined)
  }
  const ahead: NamespaceChange[] = []
  const aheadChecks: Check[] = []
  const changes: NamespaceChange[] = []
  for (const ready of fixtures.connections.namespaces) {
    const { namespace } = ready
    const check = await checkOf(store, connectionsVersionKey(namespace))
    checks.push(check)
    const nothingThere = await isEmpty(store, namespace)
    // The namespace is empty: its records in the old manifest are already gone, so they need no removal.
    if (nothingThere)
      for (const id of before.names.size > 0 ? ready.ids : []) before.names.delete(connectionLatin1Key(namespace, id))
    const change = nothingThere ? newNamespace(ready, now) : await namespaceChange(store, ready, { now, bring })
    const isHidden = nothingThere && (await store.get(namespaceKey(namespace))) === undefined
    if (isHidden && change.bytes >= aheadBytesMin) {
      ahead.push(change)
      aheadChecks.push(check)
    } else changes.push(change)
  }
  // What remains of the old manifest came from fixtures that no longer exist: remove it.
  const gone = new Map<string, string[]>()
  for (const name of before.names) {
    const key = Buffer.from(name, 'latin1')
    const parsed = parseKey(key)
    if (parsed?.kind === 'connection') {
      const ids = gone.get(parsed.namespace)
      if (ids === undefined) gone.set(parsed.namespace, [parsed.connectionId])
      else ids.push(parsed.connectionId)
    } else if (!(await isRevokedApiKey(store, key))) {
      // A revoked key stays: if its fixture came back, its old tokens would be valid again.
      deletes.push(key)
    }
  }
  for (const [namespace, ids] of gone) changes.push(await removal(store, namespace, ids))

  const left = await leftBehind(
    store,
    before.names,
    fixtures.namespaces.map(({ namespace }) => namespace),
  )
  for (const key of left.marks.deletes) deletes.push(key)
  puts.push(...left.marks.puts)

  /** Changes of usage, for each namespace that is touched. */
  const usages = new Map<string, { connections: number; bytes: number }>()
  for (const { namespace, connections, bytes } of [...ahead, ...changes].filter(({ isTouched }) => isTouched)) {
    const so = usages.get(namespace) ?? { connections: 0, bytes: 0 }
    usages.set(namespace, { connections: so.connections + connections, bytes: so.bytes + bytes })
  }
  for (const namespace of usages.keys()) puts.push(newConnectionsVersion(namespace))
  puts.push(newVersion(registryVersionKey), { key: fixturesDigestKey, value: Buffer.from(digest) })
  const total = puts.length + [...ahead, ...changes].reduce((sum, { size }) => sum + size, 0)
  const countEntries = counter(total, onProgress)
  const putsOf = (some: readonly NamespaceChange[]) => countEntries(inTurn(some.map(({ puts }) => puts)))
  if (ahead.length > 0) {
    const namespaces = ahead.map(({ namespace }) => namespace)
    if (!(await writeAhead(store, { namespaces, entries: putsOf(ahead), checks: aheadChecks }))) return undefined
    deletes.push(aheadKey)
    // Release them now: they hold as much memory as a million keys take.
    ahead.length = 0
  } else checks.push(nothingAhead)
  const committed = await store.load({
    checks,
    counts: [...usages].map(([namespace, { connections, bytes }]) => usageCount(namespace, connections, bytes)),
    deletes: inTurn([deletes, ...changes.map((change) => change.deletes)]),
    puts: inTurn([countEntries(puts), manifestEntries(broughtNames(desired, fixtures)), putsOf(changes)]),
  })
  if (!committed.ok) return undefined
  logRemoved(before.names, left.counts, log)
  return { connections: fixtures.connections.length, servers: fixtures.servers.length, removed: before.names.size }
}

/** Warns about removed records and leftovers. Many removed records may mean that the wrong folder was given. */
function logRemoved(removed: ReadonlySet<string>, left: ReadonlyMap<string, number>, log: Log): void {
  // The hash of an API key is removed with the key: do not count it.
  const records = [...removed]
    .map((name) => Buffer.from(name, 'latin1'))
    .filter((key) => parseKey(key)?.kind !== 'apiKeyDigest')
  if (records.length >= removedWarnMin) {
    const names = records.slice(0, removedNamesShownMax).map(recordName).join(', ')
    const more = records.length > removedNamesShownMax ? ', …' : ''
    log.warn('records were removed with their fixtures', { removed: records.length, records: names + more })
  }
  for (const [namespace, connections] of left) {
    log.warn('connections of a removed namespace are kept; `postern verify` tells how to remove them', {
      namespace,
      connections,
    })
  }
}

/** Default of `aheadBytesMin`. Smaller namespaces are loaded in one transaction. */
const aheadBytesDefault = 32 * 1024 * 1024

/** True for the record of an API key that is revoked. */
async function isRevokedApiKey(store: Store, key: Key): Promise<boolean> {
  if (parseKey(key)?.kind !== 'apiKey') return false
  const stored = await store.get(key)
  return stored !== undefined && readApiKey(stored).revokedAt !== null
}

/** An entry that the fixtures bring, apart from connections. */
interface Wanted extends Entry {
  /** The name of the record in the log. */
  readonly what: string
}

/**
 * The entries of all records except connections, whether or not they have changed. Throws CommandError for an API key
 * that was created at run time.
 */
async function registryRecords(store: Store, fixtures: Fixtures, pepper: Buffer, now: Date): Promise<Wanted[]> {
  const records: Wanted[] = []
  const add = (what: string, entry: Entry) => void records.push({ ...entry, what })
  for (const { organizationId, name, members } of fixtures.organizations) {
    add(`organization ${organizationId}`, organizationEntry({ organizationId, name }))
    for (const { userId, role } of members) {
      add(`member ${userId} of ${organizationId}`, memberEntry(organizationId, userId, role))
    }
  }
  for (const namespace of fixtures.namespaces) add(`namespace ${namespace.namespace}`, namespaceEntry(namespace))
  for (const server of fixtures.servers) add(`server ${server.qualifiedName}`, serverEntry(server))
  for (const [index, mock] of fixtures.mocks.entries()) {
    add(`mock of ${mock.server}`, mockEntry(String(index).padStart(6, '0'), mock))
  }
  for (const { file, key, userId, name = null, operator = false } of fixtures.apiKeys) {
    const digest = apiKeyDigest(pepper, key)
    // The id is derived from the key, so it is the same in every load, and tokens minted with the key survive a reload.
    const keyId = `key_${digest.slice(0, 16)}`
    const holder = await store.get(apiKeyDigestKey(digest))
    if (holder !== undefined && Buffer.from(holder).toString() !== keyId) {
      throw new CommandError(`${file}: brings a key that was made at run time (${Buffer.from(holder)}): choose another`)
    }
    const stored = await store.get(apiKeyKey(keyId))
    const known = stored === undefined ? undefined : readApiKey(stored)
    const record: ApiKey = {
      keyId,
      name,
      userId,
      operator,
      createdAt: known?.createdAt ?? now.toISOString(),
      // A revoked key stays revoked, even if its fixture is loaded again.
      revokedAt: known?.revokedAt ?? null,
    }
    for (const entry of apiKeyEntries(record, digest)) add(`API key ${keyId}`, entry)
  }
  return records
}

/** The stored manifest. */
interface Manifest {
  /** The keys of its parts. */
  readonly parts: readonly Key[]
  /** Keys of records, as latin1 text. `tryLoad` removes what the fixtures still bring. */
  readonly names: Set<string>
}

/** Keys in one part. */
const manifestPartSize = 500

async function readManifest(store: Store): Promise<Manifest> {
  const parts: Key[] = []
  const names = new Set<string>()
  let { gte, lt } = prefixRange(manifest)
  for (;;) {
    const { entries, more } = await store.range({ gte, lt, limit: 100 })
    for (const { key, value } of entries) {
      parts.push(key)
      for (const name of latin1Key(value).split('\n')) names.add(name)
    }
    const last = entries.at(-1)
    if (!more || last === undefined) return { parts, names }
    gte = Buffer.concat([last.key, Buffer.of(0)])
  }
}

/** The keys of all records that the fixtures bring, as latin1 text. */
function* broughtNames(desired: readonly Wanted[], { connections }: Fixtures): Generator<string> {
  for (const { key } of desired) yield latin1Key(key)
  for (const { namespace, ids } of connections.namespaces) {
    for (const id of ids) yield connectionLatin1Key(namespace, id)
  }
}

/**
 * The new manifest. Newlines can separate keys, because names contain no control characters and NUL is the only one in
 * a key.
 */
function* manifestEntries(names: Iterable<string>): Generator<Entry> {
  let part: string[] = []
  let parts = 0
  const entry = (): Entry => ({ key: manifestKey(parts), value: Buffer.from(part.join('\n'), 'latin1') })
  for (const name of names) {
    part.push(name)
    if (part.length < manifestPartSize) continue
    yield entry()
    parts += 1
    part = []
  }
  if (part.length > 0) yield entry()
}

function* inTurn<T>(lists: readonly Iterable<T>[]): Generator<T> {
  for (const list of lists) yield* list
}

/**
 * Returns a generator that passes entries through and reports progress every 20,000; the count continues from one list
 * to the next.
 */
function counter(total: number, onProgress: (done: number, total: number) => void) {
  let done = 0
  return function* countEntries(entries: Iterable<Entry>): Generator<Entry> {
    for (const entry of entries) {
      if (done % 20_000 === 0) onProgress(done, total)
      done += 1
      yield entry
    }
  }
}

/** A check that the key still holds its current value. */
async function checkOf(store: Store, key: Key): Promise<Check> {
  return { key, value: (await store.get(key)) ?? null }
}
