/**
 * Encodes the connections of fixtures for loading. Memory holds the id and spool position of each; the rest is in the
 * spool, so that a million connections take a few hundred bytes each.
 */

import type { Connection } from '../../model/connection.ts'
import { type ConnectionPrivate, termsOf } from '../../storage/connections.ts'
import { termBytes } from '../../storage/keys.ts'
import type { Spool } from './spool.ts'

/** A connection read back from the spool. The buffers are views. */
export interface EncodedConnection {
  readonly server: string | undefined
  /** Its JSON. `createdAt` is '' if the fixture has none; the load inserts a time. */
  readonly record: Buffer
  /** True if the fixture has `createdAt`. */
  readonly isDated: boolean
  /** Its index terms, 16 bytes each, concatenated. */
  readonly terms: Buffer
}

/** The connections of one namespace, with totals that a load needs before it reads them. */
export interface ReadyNamespace {
  readonly namespace: string
  /** Connection ids in key order: writing a tree in key order is several times faster. */
  readonly ids: readonly string[]
  /** Number of index terms of all connections. */
  readonly terms: number
  /** Bytes of all records, without the times that are inserted. */
  readonly bytes: number
  /** Number of connections with a server, and bytes of their private parts. */
  readonly withServer: number
  readonly privateBytes: number
  /** Number of connections without `createdAt`. */
  readonly undated: number
  /** Reads the connection `ids[index]`. Fastest in ascending order. */
  read(index: number): EncodedConnection
}

/** All connections of a set of fixtures, by namespace. */
export interface EncodedConnections {
  readonly length: number
  /** The first connection and the first mocked one, for the greeting. */
  readonly first: ConnectionName | undefined
  readonly firstMocked: ConnectionName | undefined
  readonly namespaces: readonly ReadyNamespace[]
}

export interface ConnectionName {
  readonly namespace: string
  readonly connectionId: string
}

/** A namespace while connections are added. `places` are spool positions, in the order of `ids`. */
interface Filling {
  readonly namespace: string
  readonly ids: string[]
  readonly places: number[]
  terms: number
  bytes: number
  withServer: number
  privateBytes: number
  undated: number
}

/**
 * Head of a spool entry: u32 total length | u16 terms | u16 length of the server's name | u8 is dated. Then: server |
 * terms | record.
 */
const headBytes = 9

/** Collects connections in the spool, grouped by namespace. Call `ready` after the last `add`. */
export function encodeConnections(spool: Spool) {
  const groups = new Map<string, Filling>()
  let count = 0
  let first: ConnectionName | undefined
  let firstMocked: ConnectionName | undefined

  return {
    /** Adds a connection. Returns the bytes of its record. */
    add(namespace: string, connection: Connection, server: string | undefined): number {
      const { connectionId } = connection
      let group = groups.get(namespace)
      if (group === undefined) {
        group = { namespace, ids: [], places: [], terms: 0, bytes: 0, withServer: 0, privateBytes: 0, undated: 0 }
        groups.set(namespace, group)
      }
      const terms = termsOf(connection)
      const name = server ?? ''
      const record = JSON.stringify(connection)
      const recordBytes = Buffer.byteLength(record)
      const length = headBytes + name.length + terms.length * termBytes + recordBytes
      const { bytes, start, position } = spool.add(length)
      bytes.writeUInt32LE(length, start)
      bytes.writeUInt16LE(terms.length, start + 4)
      bytes.writeUInt16LE(name.length, start + 6)
      bytes[start + 8] = connection.createdAt === '' ? 0 : 1
      let at = start + headBytes
      at += bytes.write(name, at, 'latin1')
      for (const term of terms) {
        bytes.set(term, at)
        at += termBytes
      }
      bytes.write(record, at)
      group.ids.push(connectionId)
      group.places.push(position)
      group.terms += terms.length
      group.bytes += recordBytes
      if (connection.createdAt === '') group.undated += 1
      if (server !== undefined) {
        group.withServer += 1
        group.privateBytes += privateRecordWithServer(server).length
      }
      count += 1
      first ??= { namespace, connectionId }
      if (connection.mock?.enabled === true) firstMocked ??= { namespace, connectionId }
      return recordBytes
    },
    ready: (): EncodedConnections => ({
      length: count,
      first,
      firstMocked,
      namespaces: [...groups.values()].map((group) => readyNamespace(group, spool)),
    }),
  }
}

/** The stored private part of a fixture's connection. */
export function privateRecordWithServer(server: string | undefined, setups?: number): Uint8Array {
  const privatePart: ConnectionPrivate = { ...(server && { server }), ...(setups !== undefined && { setups }) }
  return Buffer.from(JSON.stringify(privatePart))
}

/** Sorts a namespace by id, without moving anything in the spool. */
function readyNamespace({ ids, places, ...rest }: Filling, spool: Spool): ReadyNamespace {
  const order = sortedOrder(ids)
  const at = (index: number) => places[order === undefined ? index : (order[index] as number)] as number
  return {
    ...rest,
    ids: order === undefined ? ids : Array.from(order, (index) => ids[index] as string),
    read(index) {
      const place = at(index)
      const whole = spool.read(place, spool.read(place, headBytes).readUInt32LE(0))
      const termsAt = headBytes + whole.readUInt16LE(6)
      const recordAt = termsAt + whole.readUInt16LE(4) * termBytes
      return {
        server: termsAt === headBytes ? undefined : whole.toString('latin1', headBytes, termsAt),
        record: whole.subarray(recordAt),
        isDated: whole[8] === 1,
        terms: whole.subarray(termsAt, recordAt),
      }
    },
  }
}

/**
 * The order of the ids as indexes; undefined if they are sorted already. Ids are ASCII, so string order is byte order.
 */
function sortedOrder(ids: readonly string[]): Uint32Array | undefined {
  if (ids.every((id, index) => index === 0 || (ids[index - 1] as string) < id)) return undefined
  return Uint32Array.from(ids.keys()).sort((a, b) => {
    const [one, other] = [ids[a] as string, ids[b] as string]
    return one < other ? -1 : one > other ? 1 : 0
  })
}
