/** The connections of fixtures. Their JSON is in the spool, so that a million take a hundred bytes each in memory. */

import type { Connection } from '../../model/connection.ts'
import { connectionBytes } from '../../storage/connections.ts'
import type { Place, Spool } from './spool.ts'

export interface FixtureRow {
  readonly connectionId: string
  /** Of its record's JSON. `createdAt` is '' if the fixture has none; the load inserts a time. */
  readonly place: Place
  /** The registered server that it is for. */
  readonly server: string | undefined
}

export interface NamespaceRows {
  readonly namespace: string
  /** In the order of their ids, which is that of keys: writing a tree in key order is several times faster. */
  readonly rows: readonly FixtureRow[]
  /** The record's JSON. Fastest in the order in which the connections were added. */
  recordOf(row: FixtureRow): Buffer
}

export interface ConnectionName {
  readonly namespace: string
  readonly connectionId: string
}

export class FixtureConnections {
  length = 0
  /** The first connection and the first mocked one, for the greeting. */
  first: ConnectionName | undefined
  firstMocked: ConnectionName | undefined
  readonly #rows = new Map<string, FixtureRow[]>()
  readonly #spool: Spool

  constructor(spool: Spool) {
    this.#spool = spool
  }

  /** Adds a connection. Returns the bytes of its record. */
  add(namespace: string, connection: Connection, server: string | undefined): number {
    const { connectionId } = connection
    const record = connectionBytes(connection)
    const rows = this.#rows.get(namespace) ?? []
    rows.push({ connectionId, place: this.#spool.add(record), server })
    this.#rows.set(namespace, rows)
    this.length += 1
    this.first ??= { namespace, connectionId }
    if (connection.mock?.enabled === true) this.firstMocked ??= { namespace, connectionId }
    return record.length
  }

  get namespaces(): NamespaceRows[] {
    // Ids are ASCII, so that the order of strings is that of bytes.
    const byId = (a: FixtureRow, b: FixtureRow) => (a.connectionId < b.connectionId ? -1 : 1)
    const recordOf = ({ place }: FixtureRow) => this.#spool.read(place)
    return [...this.#rows].map(([namespace, rows]) => ({ namespace, rows: rows.sort(byId), recordOf }))
  }
}
