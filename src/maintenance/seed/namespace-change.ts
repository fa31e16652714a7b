/** The changes that a load of fixtures makes in one namespace. */

import { equalBytes } from '../../storage/bytes.ts'
import {
  type ConnectionPrivate,
  connectionBytes,
  readConnection,
  readPrivate,
  termsOf,
} from '../../storage/connections.ts'
import { keyOf, latin1Key } from '../../storage/keys.ts'
import type { Entry, Key, Store } from '../../storage/store.ts'
import { indexBytesOf } from '../../storage/usage.ts'
import type { FixtureRow, NamespaceRows } from './connections-by-namespace.ts'
import { createTermOrder } from './term-order.ts'

/** The changes of one namespace. */
export interface NamespaceChange {
  readonly namespace: string
  /** Each kind in key order. To be iterated once. */
  readonly puts: Iterable<Entry>
  readonly deletes: Iterable<Key>
  /** Number of entries in `puts`. */
  readonly size: number
  /** Changes of the namespace's usage: connections, and bytes of records and private parts. May be negative. */
  readonly connections: number
  readonly bytes: number
  /** Connections that point elsewhere now, and lose what people gave them: headers, values, sign-ins. */
  readonly dropped: readonly string[]
  /** False if the store already holds exactly this. An untouched namespace keeps its version, and caches stay valid. */
  readonly isTouched: boolean
}

/** `now`: `createdAt` of new connections without one. */
export interface ChangeOptions {
  readonly now: Date
  /** Called for every connection with the key of its record. `replaces`: a different record is overwritten. */
  readonly bring: (key: Key, replaces: boolean) => void
}

/** Connections compared with the store at once. */
const comparedAtOnce = 500

/**
 * Compares the fixtures of a namespace with the store. Connections that the fixtures do not contain are left alone. A
 * fixture without `createdAt` keeps the stored time, so that reloading it changes nothing.
 */
export async function namespaceChange(
  store: Store,
  { namespace, rows, recordOf }: NamespaceRows,
  { now, bring }: ChangeOptions,
): Promise<NamespaceChange> {
  /** Rows whose records are put, with their `createdAt` if the fixture has none. */
  const changed: { readonly row: FixtureRow; readonly createdAt: string }[] = []
  const [terms, goneTerms] = [createTermOrder(), createTermOrder()]
  const privateRecords: Entry[] = []
  const gonePrivateRecords: Key[] = []
  const dropped: string[] = []
  let [connections, bytes] = [0, 0]
  for await (const { index, row, key, before, privateKey, privateBefore } of compared(store, namespace, rows)) {
    const stored = before && readConnection(before)
    const createdAt = stored?.createdAt ?? now.toISOString()
    const value = datedRecord(recordOf(row), createdAt)
    const changes = before === undefined || !equalBytes(before, value)
    bring(key, changes && stored !== undefined)
    let isMoved = false
    if (changes) {
      changed.push({ row, createdAt })
      bytes += value.length - (before?.length ?? 0)
      if (stored === undefined) connections += 1
      const connection = readConnection(value)
      bytes += indexBytesOf(namespace, connection) - (stored ? indexBytesOf(namespace, stored) : 0)
      isMoved = stored !== undefined && stored.mcpUrl !== connection.mcpUrl
      // Only the difference between old and new terms is written: most edits change none or one.
      const known = new Map((stored ? termsOf(stored) : []).map((term) => [latin1Key(term), term]))
      for (const term of termsOf(connection)) if (!known.delete(latin1Key(term))) terms.add(index, term)
      for (const term of known.values()) goneTerms.add(index, term)
    }
    const { server, setups, ...given } = readPrivate(privateBefore)
    if (!isMoved && server === row.server) continue
    // People gave their values to the server of before. Tickets, and sign-ins that have begun, are for it too, and so
    // void.
    const isGiven = Object.keys(given).length > 0
    const ends = stored !== undefined && (isMoved || isGiven || setups !== undefined)
    if (isGiven) dropped.push(`${namespace}/${row.connectionId}`)
    const part: ConnectionPrivate = {
      ...(row.server !== undefined && { server: row.server }),
      ...(ends && { setups: (setups ?? 0) + 1 }),
    }
    const privateValue = Object.keys(part).length === 0 ? undefined : Buffer.from(JSON.stringify(part))
    bytes += (privateValue?.length ?? 0) - (privateBefore?.length ?? 0)
    if (privateValue !== undefined) privateRecords.push({ key: privateKey, value: privateValue })
    else if (privateBefore !== undefined) gonePrivateRecords.push(privateKey)
  }

  function* puts(): Generator<Entry> {
    for (const { row, createdAt } of changed)
      yield { key: keyOf('connection', namespace, row.connectionId), value: datedRecord(recordOf(row), createdAt) }
    yield* privateRecords
    for (const key of terms.keys(namespace, rows)) yield { key, value: nothing }
  }
  function* deletes(): Generator<Key> {
    yield* gonePrivateRecords
    yield* goneTerms.keys(namespace, rows)
  }
  const size = changed.length + privateRecords.length + terms.count
  const isTouched = size + gonePrivateRecords.length + goneTerms.count > 0
  return { namespace, puts: puts(), deletes: deletes(), size, connections, bytes, dropped, isTouched }
}

/**
 * The change that removes these connections of a namespace, given in any order, with index and private parts. A
 * connection that is already gone is ignored.
 */
export async function removal(store: Store, namespace: string, ids: readonly string[]): Promise<NamespaceChange> {
  const rows = [...ids].sort().map((connectionId) => ({ connectionId }))
  const terms = createTermOrder()
  let [connections, bytes] = [0, 0]
  for await (const { index, before, privateBefore } of compared(store, namespace, rows)) {
    if (before === undefined) continue
    connections -= 1
    const connection = readConnection(before)
    bytes -= before.length + (privateBefore?.length ?? 0) + indexBytesOf(namespace, connection)
    for (const term of termsOf(connection)) terms.add(index, term)
  }
  function* deletes(): Generator<Key> {
    for (const { connectionId } of rows) yield keyOf('connection', namespace, connectionId)
    for (const { connectionId } of rows) yield keyOf('connectionPrivate', namespace, connectionId)
    yield* terms.keys(namespace, rows)
  }
  return { namespace, puts: [], deletes: deletes(), size: 0, connections, bytes, dropped: [], isTouched: true }
}

/** Each row with what the store has of its connection. */
async function* compared<Row extends { readonly connectionId: string }>(
  store: Store,
  namespace: string,
  rows: readonly Row[],
) {
  for (let start = 0; start < rows.length; start += comparedAtOnce) {
    const some = rows.slice(start, start + comparedAtOnce)
    const keys = some.map(({ connectionId }) => keyOf('connection', namespace, connectionId))
    const privateKeys = some.map(({ connectionId }) => keyOf('connectionPrivate', namespace, connectionId))
    const [stored, storedPrivate] = [await store.getMany(keys), await store.getMany(privateKeys)]
    for (const [at, row] of some.entries()) {
      const [key, privateKey] = [keys[at] as Key, privateKeys[at] as Key]
      yield { index: start + at, row, key, before: stored[at], privateKey, privateBefore: storedPrivate[at] }
    }
  }
}

/** The record with this time, if it has none. */
function datedRecord(record: Buffer, createdAt: string): Uint8Array {
  if (!record.includes('"createdAt":""')) return record
  const connection = readConnection(record)
  return connectionBytes({ ...connection, createdAt: connection.createdAt || createdAt })
}

const nothing = new Uint8Array(0)
