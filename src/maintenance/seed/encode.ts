/**
 * Connections of fixtures, made ready to be loaded: of each its id and its place are held in memory and the rest
 * waits in a spool, so that a million of them take no more than a few hundred bytes each.
 */

import type { Connection } from '../../model/connection.ts'
import { type ConnectionPrivate, termsOf } from '../../storage/connections.ts'
import { termBytes } from '../../storage/keys.ts'
import type { Spool } from './spool.ts'

export interface EncodedConnection {
  readonly server: string | undefined
  /** Its JSON. `createdAt` is '' where the fixture leaves it out: the time of the first load stands there later. */
  readonly record: Buffer
  readonly isDated: boolean
  /** Its index terms, one after the other. */
  readonly terms: Buffer
}

/** The connections of one namespace. */
export interface ReadyNamespace {
  readonly namespace: string
  /** In the order of the keys: a tree that grows at its end is several times as fast. */
  readonly ids: readonly string[]
  /** How many index terms they have, all together. */
  readonly terms: number
  /** How many bytes their records have, all together. */
  readonly bytes: number
  /** How many name their server, and how many bytes that takes beside their records. */
  readonly withServer: number
  readonly privateBytes: number
  /** How many do not say when they were made. */
  readonly undated: number
  /** The connection with the id of this index. */
  read(index: number): EncodedConnection
}

export interface EncodedConnections {
  readonly length: number
  /** Of the first that was read, and of the first mocked one. */
  readonly first: ConnectionName | undefined
  readonly firstMocked: ConnectionName | undefined
  readonly namespaces: readonly ReadyNamespace[]
}

export interface ConnectionName {
  readonly namespace: string
  readonly connectionId: string
}

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

/**  u32 length of all | u16 terms | u16 length of the server's name | u8 is dated | server | terms | record */
const headBytes = 9

export function encodeConnections(spool: Spool) {
  const groups = new Map<string, Filling>()
  let count = 0
  let first: ConnectionName | undefined
  let firstMocked: ConnectionName | undefined

  return {
    /** Returns how many bytes the record has. */
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
        group.privateBytes += besideServer(server).length
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

/** What a connection of fixtures has beside its record. */
export function besideServer(server: string): Uint8Array {
  const privatePart: ConnectionPrivate = { server }
  return Buffer.from(JSON.stringify(privatePart))
}

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

/** Undefined where they are in order as they stand. Ids are ASCII: the order of strings is that of their bytes. */
function sortedOrder(ids: readonly string[]): Uint32Array | undefined {
  if (ids.every((id, index) => index === 0 || (ids[index - 1] as string) < id)) return undefined
  return Uint32Array.from(ids.keys()).sort((a, b) => {
    const [one, other] = [ids[a] as string, ids[b] as string]
    return one < other ? -1 : one > other ? 1 : 0
  })
}
