/**
 * Loads fixtures into the store: all or nothing, and idempotent (contract, 11.2). A fixture replaces the record of the
 * same id. A record that came from a fixture is removed with its fixture. A record written at run time is never
 * removed, and the log warns if one is replaced. The store keeps a manifest of the keys that the fixtures brought, to
 * know which records are theirs.
 */

import type { ConnectionRef } from '../../model/connection.ts'
import type { Log } from '../../ops/log.ts'
import { equalBytes, textOf } from '../../storage/bytes.ts'
import { newConnectionsVersion } from '../../storage/connections.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import { indexKeysOf, newListingVersions, readApiKey, withIndex } from '../../storage/directory-records.ts'
import { namespaceEnd } from '../../storage/ended-namespaces.ts'
import { everyEntry, everyKey } from '../../storage/every-entry.ts'
import { directoryVersionKey, keyOf, latin1Key, manifestKey, prefixOf, stagedKey } from '../../storage/keys.ts'
import { piecesOf } from '../../storage/pieces.ts'
import { isDirectoryIndex, parseKey, recordName } from '../../storage/record-kinds.ts'
import { isEmpty, nothingStaged, removeStaged, stageConnections } from '../../storage/staged.ts'
import type { Check, Entry, Key, Store } from '../../storage/store.ts'
import { createUsages, type Usages } from '../../storage/usage.ts'
import { checkOf, newVersion } from '../../storage/versions.ts'
import { ConnectionChanges } from './connection-changes.ts'
import { desiredEntries, handedOver } from './desired.ts'
import { patientStore } from './patient-store.ts'
import type { Fixtures } from './read-fixtures.ts'
import { retainInUse } from './retained.ts'

/** Records removed with their fixtures; a small edit removes fewer. Past it: the log warns, the folder may be wrong. */
const removedWarnMin = 10
/** Removed records named in the log. Past it: an ellipsis. */
const removedNamesShownMax = 5

/** `pepper`: the key for hashing API keys. `now`: `createdAt` of records without one. */
export interface LoadOptions {
  readonly pepper: Buffer
  readonly now: Date
  readonly log: Log
  /** Where changes wait until they are written; left out: in memory. */
  readonly folder?: string
  /** Connections of at least this many bytes are staged in namespaces that are new (`storage/staged.ts`). */
  readonly stagedBytesMin?: number
  /** Called with the number of records compared with the store, then with that of entries written. */
  readonly onProgress?: (stage: string, done: number, total?: number) => void
}

/** Attempts of a load during which others have their turn. Past it: nobody else does anything until it is done. */
const patientAttempts = 3

/** Connections or entries between two reports of progress. */
const progressEvery = 10_000

/** True if the last load was of fixtures with this digest. */
export async function isLoaded(store: Store, digest: string): Promise<boolean> {
  return equalBytes(await store.get(keyOf('fixturesDigest')), Buffer.from(digest))
}

/**
 * Resolves when the load is durable, with counts for the log. If it rejects, no visible record has changed. Throws
 * CommandError for an API key that already exists under another id.
 */
export async function loadFixtures(store: Store, fixtures: Fixtures, digest: string, options: LoadOptions) {
  // A concurrent write may change the same part of the store: then it starts again from what is stored now. Where many
  // write, others wait at last, or the load would never end.
  return decideAgain('the store', async (attempt) => {
    const seen = attempt < patientAttempts ? patientStore(store) : store
    return (await tryLoad(seen, fixtures, digest, options)) ?? 'again'
  })
}

/**
 * One attempt. Undefined if a check failed. The checks cover the versions of the directory and of every namespace that
 * the fixtures bring connections to, or whose owner loses it; each is read before what it covers.
 */
async function tryLoad(
  store: Store,
  fixtures: Fixtures,
  digest: string,
  { pepper, now, log, folder, stagedBytesMin = stagedBytesDefault, onProgress = () => {} }: LoadOptions,
) {
  await removeStaged(store)
  const checks: Check[] = [await checkOf(store, directoryVersionKey)]
  const namespaces = [...fixtures.connectionIds.keys()]
  const before = await readManifest(store)
  const given = await handedOver(store, fixtures)
  // A connection that is made there meanwhile, by somebody who may no more, is for nobody else.
  const leaving = [...given, ...goingNamespaces(before.names, fixtures)]
  for (const namespace of new Set([...namespaces, ...leaving]))
    checks.push(await checkOf(store, keyOf('connectionsVersion', namespace)))
  const isFromFixture = (name: string) => before.names.has(name)
  const isFirst = before.names.size === 0
  const desired = await desiredEntries(store, fixtures, { pepper, now, isFromFixture, isFirst, handedOver: given })
  let brought = 0
  /** Takes out of the old manifest what still comes, and warns if it replaces a record that no fixture brought. */
  const bring = (key: Key, replaces: boolean) => {
    brought += 1
    if (brought % progressEvery === 0) onProgress('comparing fixtures', brought)
    const isKnown = before.names.size > 0 && before.names.delete(latin1Key(key))
    if (replaces && !isKnown && isNamed(key))
      log.warn('a fixture replaced a record that was made over HTTP or by a command', { record: recordName(key) })
  }

  const usages = createUsages()
  const { puts, deletes, listings } = await directoryChange(store, desired, usages, bring)
  deletes.push(...before.parts)
  for (const namespace of given) deletes.push(...(await registryKeysOf(store, namespace)))
  const hidden = fixtures.connections.bytes >= stagedBytesMin ? await hiddenOf(store, namespaces) : []
  using changes = new ConnectionChanges(store, usages, new Set(hidden), folder)
  await changes.bring(fixtures.connections, now, given, bring)
  // The rest of the old manifest came from fixtures that no longer exist: remove it, or keep what is still in use.
  const staying = await retainInUse(store, before.names)
  const gone = await goneWithFixtures(store, before.names, usages)
  deletes.push(...gone.keys)
  for (const qualifiedName of gone.listings) listings.add(qualifiedName)
  await changes.remove(gone.connections)
  puts.push(...newListingVersions(listings), ...[...changes.touched].map(newConnectionsVersion))
  const ended = leaving.filter((name) => given.has(name) || before.names.has(latin1Key(keyOf('namespace', name))))
  puts.push(...ended.map((namespace) => namespaceEnd(namespace, now)))
  puts.push(newVersion(directoryVersionKey), { key: keyOf('fixturesDigest'), value: Buffer.from(digest) })

  const total = puts.length + changes.staged.length + changes.puts.length
  let done = 0
  function* countEntries(...lists: readonly Iterable<Entry>[]): Generator<Entry> {
    for (const entry of inTurn(lists)) {
      if (done % progressEvery === 0) onProgress('loading fixtures', done, total)
      done += 1
      yield entry
    }
  }
  if (hidden.length > 0) {
    if (!(await stageConnections(store, hidden, countEntries(changes.staged.inOrder())))) return undefined
    deletes.push(stagedKey)
  } else checks.push(nothingStaged)
  const committed = await store.load({
    checks,
    counts: usages.counts(),
    deletes: inTurn([deletes, changes.deletes.keys()]),
    puts: inTurn([manifestEntries(broughtNames(desired, fixtures)), countEntries(puts, changes.puts.inOrder())]),
  })
  if (!committed.ok) return undefined
  const removed = [...before.names].map((name) => Buffer.from(name, 'latin1')).filter(isNamed)
  // Many may mean that the wrong folder was given.
  if (removed.length >= removedWarnMin) {
    const records = shown(removed.slice(0, removedNamesShownMax + 1).map(recordName))
    log.warn('records were removed with their fixtures', { removed: removed.length, records })
  }
  if (changes.dropped.length > 0)
    log.warn(
      'connections of fixtures point elsewhere now, or have another owner, and lost their headers, values and sign-ins',
      {
        connections: changes.dropped.length,
        records: shown(changes.dropped),
      },
    )
  for (const record of staying)
    log.info('fixture removed; its record stays, because it holds what was made over HTTP or by a command', { record })
  return {
    connections: fixtures.connections.length,
    servers: fixtures.servers.length,
    /** Records removed with their fixtures. */
    removed: removed.length,
  }
}

/** `bring`: see `tryLoad`. Adds what servers change to `usages`. `listings`: the servers whose listings change. */
async function directoryChange(
  store: Store,
  desired: readonly Entry[],
  usages: Usages,
  bring: (key: Key, replaces: boolean) => void,
): Promise<{ readonly puts: Entry[]; readonly deletes: Key[]; readonly listings: Set<string> }> {
  const [puts, deletes, listings]: [Entry[], Key[], Set<string>] = [[], [], new Set()]
  for (const { key, value } of desired) {
    const stored = await store.get(key)
    const changes = stored === undefined || !equalBytes(stored, value)
    if (changes) {
      // Its new index entries may be others; deletes come before puts.
      if (stored !== undefined) deletes.push(...indexKeysOf({ key, value: stored }))
      puts.push(...withIndex({ key, value }))
      usages.remove(key, stored)
      usages.add({ key, value })
      const parsed = parseKey(key)
      if (parsed?.kind === 'listing') listings.add(parsed.qualifiedName)
    }
    bring(key, changes && stored !== undefined)
  }
  return { puts, deletes, listings }
}

/** The namespaces of these that do not exist, and hold nothing. */
async function hiddenOf(store: Store, namespaces: readonly string[]): Promise<string[]> {
  const hidden: string[] = []
  for (const namespace of namespaces) {
    const isThere = (await store.get(keyOf('namespace', namespace))) !== undefined
    if (!isThere && (await isEmpty(store, namespace))) hidden.push(namespace)
  }
  return hidden
}

/** The records of an old manifest that go. `keys`: of the directory. Subtracts what servers held from `usages`. */
async function goneWithFixtures(store: Store, names: ReadonlySet<string>, usages: Usages) {
  const keys: Key[] = []
  const revoked = new Set<string>()
  const listings: string[] = []
  const connections: ConnectionRef[] = []
  for (const name of names) {
    const key = Buffer.from(name, 'latin1')
    const parsed = parseKey(key)
    if (parsed?.kind === 'connection') {
      connections.push(parsed)
      continue
    }
    const stored = await store.get(key)
    const keyId = parsed?.kind === 'apiKeyDigest' && stored !== undefined ? textOf(stored) : undefined
    const apiKey = keyId === undefined ? undefined : await store.get(keyOf('apiKey', keyId))
    // A revoked key stays, with its hash: if its fixture came back, its old tokens would be valid again. A key that got
    // another user is gone: its hash is that of the other one, which is revoked, too.
    if (apiKey !== undefined && readApiKey(apiKey).revokedAt !== null)
      revoked.add(latin1Key(keyOf('apiKey', keyId ?? '')))
    else keys.push(key)
    if (parsed?.kind === 'namespace') keys.push(...(await registryKeysOf(store, parsed.namespace)))
    if (parsed?.kind === 'listing') listings.push(parsed.qualifiedName)
    usages.remove(key, stored)
  }
  return { keys: keys.filter((key) => !revoked.has(latin1Key(key))), listings, connections }
}

/** The keys of a namespace's registry: its links, each of which lets its holder read it, and its entries' versions. */
async function registryKeysOf(store: Store, namespace: string): Promise<Key[]> {
  const keys: Key[] = []
  for (const kind of ['registryLink', 'publishedEntry'] as const)
    for await (const key of everyKey(store, prefixOf(kind, namespace))) keys.push(key)
  return keys
}

function shown(names: readonly string[]): string {
  return `${names.slice(0, removedNamesShownMax).join(', ')}${names.length > removedNamesShownMax ? ', …' : ''}`
}

/**
 * Whether a warning names the record. Hashes of API keys, index entries, listings and places are written and removed
 * together with a record that it names.
 */
function isNamed(key: Key): boolean {
  const kind = parseKey(key)?.kind
  return kind !== 'apiKeyDigest' && kind !== 'listing' && kind !== 'place' && !isDirectoryIndex(key)
}

/** Default of `stagedBytesMin`. Fewer are loaded in one transaction. */
const stagedBytesDefault = 32 * 1024 * 1024

/** Keys in one part. */
const manifestPartSize = 500

/** The keys of its parts, and of records as latin1 text; `tryLoad` takes out those that the fixtures still bring. */
async function readManifest(store: Store) {
  const parts: Key[] = []
  const names = new Set<string>()
  for await (const { key, value } of everyEntry(store, prefixOf('fixturesManifest'))) {
    parts.push(key)
    for (const name of latin1Key(value).split('\n')) names.add(name)
  }
  return { parts, names }
}

/** Namespaces of the old manifest that the fixtures do not bring any more. */
function goingNamespaces(names: ReadonlySet<string>, { namespaces }: Fixtures): string[] {
  const staying = new Set(namespaces.map(({ namespace }) => namespace))
  const start = latin1Key(prefixOf('namespace'))
  const all = [...names].filter((name) => name.startsWith(start)).map((name) => name.slice(start.length))
  return all.filter((namespace) => !staying.has(namespace))
}

/** The keys of all records that the fixtures bring, as latin1 text. */
function* broughtNames(desired: readonly Entry[], { connectionIds }: Fixtures): Generator<string> {
  for (const { key } of desired) yield latin1Key(key)
  for (const [namespace, ids] of connectionIds) {
    for (const connectionId of ids) yield latin1Key(keyOf('connection', namespace, connectionId))
  }
}

/** The new manifest. A newline can separate keys: NUL is the only control character in one. */
function* manifestEntries(names: Iterable<string>): Generator<Entry> {
  let parts = 0
  for (const part of piecesOf(names, { most: manifestPartSize })) {
    yield { key: manifestKey(parts), value: Buffer.from(part.join('\n'), 'latin1') }
    parts += 1
  }
}

function* inTurn<T>(lists: readonly Iterable<T>[]): Generator<T> {
  for (const list of lists) yield* list
}
