/**
 * What a load of fixtures changes in one namespace. The comparison with the store keeps indexes only; records are
 * encoded again when they are written, so that memory does not grow with their size.
 */

import type { Connection } from '../../model/connection.ts'
import { equalBytes } from '../../storage/bytes.ts'
import { readConnection, readPrivate, termsOf } from '../../storage/connections.ts'
import { connectionKey, connectionPrivateKey, termBytes } from '../../storage/keys.ts'
import type { Entry, Key, Store } from '../../storage/store.ts'
import { type EncodedConnection, privateRecordWithServer, type ReadyNamespace } from './encode.ts'
import { createTermOrder, type TermOrder } from './term-order.ts'

/** The changes of one namespace. Its iterables read the spool, which must still be open. */
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
  /**
   * Called for every connection with the key of its record. `what` names it for the log; `replaces`: a different record
   * is overwritten.
   */
  readonly bring: (key: Key, what: () => string, replaces: boolean) => void
}

/** The change for a namespace that holds nothing: every record is put, and nothing has to be read. */
export function newNamespace(ready: ReadyNamespace, now: Date): NamespaceChange {
  const { namespace, ids, undated } = ready
  const createdAt = now.toISOString()
  function* puts(): Generator<Entry> {
    const terms = createTermOrder(ready.terms)
    const withPrivateRecord: number[] = []
    for (const [index, id] of ids.entries()) {
      const row = ready.read(index)
      for (let at = 0; at < row.terms.length; at += termBytes) terms.add(index, row.terms.subarray(at, at + termBytes))
      if (row.server !== undefined) withPrivateRecord.push(index)
      yield { key: connectionKey(namespace, id), value: recordOf(row, createdAt) }
    }
    yield* privateRecordEntries(ready, withPrivateRecord, new Map())
    yield* termEntries(ready, terms)
  }
  const size = ids.length + ready.withServer + ready.terms
  const bytes = ready.bytes + undated * createdAt.length + ready.privateBytes
  return { namespace, puts: puts(), deletes: [], size, connections: ids.length, bytes, dropped: [], isTouched: true }
}

/** Connections compared with the store in one read. */
const readAhead = 500

/**
 * Compares the fixtures with the stored connections. Connections that the fixtures do not contain are left alone. A
 * fixture without `createdAt` keeps the stored time, so that reloading it changes nothing.
 */
export async function namespaceChange(
  store: Store,
  ready: ReadyNamespace,
  { now, bring }: ChangeOptions,
): Promise<NamespaceChange> {
  const { namespace, ids } = ready
  /** Indexes of connections whose record is put, and of those whose private part is put. */
  const changed: number[] = []
  const changedPrivateRecord: number[] = []
  /** Stored `createdAt` of changed connections whose fixture has none, by index. */
  const madeAt = new Map<number, string>()
  const terms = createTermOrder()
  const goneTerms = createTermOrder()
  const removedPrivateRecord: Key[] = []
  /** The new `setups` of connections that point elsewhere now, by index. */
  const setupsAt = new Map<number, number>()
  const dropped: string[] = []
  let connections = 0
  let bytes = 0
  for (let start = 0; start < ids.length; start += readAhead) {
    const some = ids.slice(start, start + readAhead)
    const keys = some.map((id) => connectionKey(namespace, id))
    const stored = await store.getMany(keys)
    const privateRecordKeys = some.map((id) => connectionPrivateKey(namespace, id))
    const privatePart = await store.getMany(privateRecordKeys)
    for (const [offset, id] of some.entries()) {
      const index = start + offset
      const row = ready.read(index)
      const before = stored[offset]
      const createdAt = before === undefined || row.isDated ? undefined : readConnection(before).createdAt
      const value = recordOf(row, createdAt ?? now.toISOString())
      const changes = before === undefined || !equalBytes(before, value)
      bring(keys[offset] as Key, () => `connection ${namespace}/${id}`, changes && before !== undefined)
      if (changes) {
        changed.push(index)
        bytes += value.length - (before?.length ?? 0)
        if (before === undefined) connections += 1
        if (createdAt !== undefined) madeAt.set(index, createdAt)
        // Only the difference between old and new terms is written: most edits change none or one.
        const known = new Map(
          before === undefined ? [] : termsOf(readConnection(before)).map((term) => [textOf(term), term]),
        )
        for (let at = 0; at < row.terms.length; at += termBytes) {
          const term = row.terms.subarray(at, at + termBytes)
          if (!known.delete(textOf(term))) terms.add(index, term)
        }
        for (const term of known.values()) goneTerms.add(index, term)
      }
      const isMoved = changes && before !== undefined && readConnection(before).mcpUrl !== readConnection(value).mcpUrl
      const known = privatePart[offset]
      if (!isMoved && equalBytes(known, privateRecordOf(row) ?? null)) continue
      if (before !== undefined) {
        const { server, setups, ...given } = readPrivate(known)
        if (!isMoved && server === row.server) continue
        // What people gave was for the server of before. So are tickets, and sign-ins that have begun: they are void.
        const isGiven = Object.keys(given).length > 0
        if (isMoved || isGiven || setups !== undefined) setupsAt.set(index, (setups ?? 0) + 1)
        if (isGiven) dropped.push(`${namespace}/${id}`)
      }
      const wanted = privateRecordOf(row, setupsAt.get(index))
      bytes += (wanted?.length ?? 0) - (known?.length ?? 0)
      if (wanted === undefined) removedPrivateRecord.push(privateRecordKeys[offset] as Key)
      else changedPrivateRecord.push(index)
    }
  }

  function* puts(): Generator<Entry> {
    for (const index of changed) {
      const value = recordOf(ready.read(index), madeAt.get(index) ?? now.toISOString())
      yield { key: connectionKey(namespace, ids[index] as string), value }
    }
    yield* privateRecordEntries(ready, changedPrivateRecord, setupsAt)
    yield* termEntries(ready, terms)
  }
  const size = changed.length + changedPrivateRecord.length + terms.count
  function* deletes(): Generator<Key> {
    yield* removedPrivateRecord
    yield* goneTerms.keys(namespace, ids)
  }
  const isTouched = size + removedPrivateRecord.length + goneTerms.count > 0
  return { namespace, puts: puts(), deletes: deletes(), size, connections, bytes, dropped, isTouched }
}

/**
 * The change that removes these connections of a namespace, given in any order, with index and private parts. A
 * connection that is already gone is ignored.
 */
export async function removal(store: Store, namespace: string, some: readonly string[]): Promise<NamespaceChange> {
  const ids = [...some].sort()
  const terms = createTermOrder()
  const privatePart: Key[] = []
  let connections = 0
  let bytes = 0
  for (let start = 0; start < ids.length; start += readAhead) {
    const part = ids.slice(start, start + readAhead)
    const stored = await store.getMany(part.map((id) => connectionKey(namespace, id)))
    const privateRecordKeys = part.map((id) => connectionPrivateKey(namespace, id))
    const storedPrivateRecord = await store.getMany(privateRecordKeys)
    for (const [offset, record] of stored.entries()) {
      const privateBytes = storedPrivateRecord[offset]
      if (privateBytes !== undefined) privatePart.push(privateRecordKeys[offset] as Key)
      if (record === undefined) continue
      connections -= 1
      bytes -= record.length + (privateBytes?.length ?? 0)
      for (const term of termsOf(readConnection(record))) terms.add(start + offset, term)
    }
  }
  function* deletes(): Generator<Key> {
    for (const id of ids) yield connectionKey(namespace, id)
    yield* privatePart
    yield* terms.keys(namespace, ids)
  }
  return { namespace, puts: [], deletes: deletes(), size: 0, connections, bytes, dropped: [], isTouched: true }
}

function* privateRecordEntries(
  ready: ReadyNamespace,
  indexes: readonly number[],
  setupsAt: ReadonlyMap<number, number>,
): Generator<Entry> {
  for (const index of indexes) {
    const value = privateRecordOf(ready.read(index), setupsAt.get(index)) ?? nothing
    yield { key: connectionPrivateKey(ready.namespace, ready.ids[index] as string), value }
  }
}

function* termEntries({ namespace, ids }: ReadyNamespace, terms: TermOrder): Generator<Entry> {
  for (const key of terms.keys(namespace, ids)) yield { key, value: nothing }
}

/** What a fixture says of its connection's private part; undefined for nothing. */
function privateRecordOf({ server }: EncodedConnection, setups?: number): Uint8Array | undefined {
  return server === undefined && setups === undefined ? undefined : privateRecordWithServer(server, setups)
}

/** The stored bytes of a record. If the fixture has no time, `createdAt` is inserted. */
function recordOf({ record, isDated }: EncodedConnection, createdAt: string): Uint8Array {
  if (isDated) return record
  const connection: Connection = { ...readConnection(record), createdAt }
  return Buffer.from(JSON.stringify(connection))
}

function textOf(term: Uint8Array): string {
  return Buffer.from(term).toString('latin1')
}

const nothing = new Uint8Array(0)
