/** The changes that a load of fixtures makes to connections: what differs between them and the store. */

import type { ConnectionRef } from '../../model/connection.ts'
import { equalBytes, textOf } from '../../storage/bytes.ts'
import {
  type ConnectionPrivate,
  connectionBytes,
  connectionEdits,
  findConnections,
  type NewConnection,
  type StoredConnection,
} from '../../storage/connections.ts'
import { keyOf } from '../../storage/keys.ts'
import { piecesOf } from '../../storage/pieces.ts'
import type { Key, Store } from '../../storage/store.ts'
import type { Usages } from '../../storage/usage.ts'
import { Spool } from '../spool.ts'
import { completeConnection } from './complete.ts'
import type { FixtureConnection } from './fixture-schema.ts'

/** Connections compared with the store at once. */
const comparedAtOnce = 500

/** Collects changes, which are in files until it is disposed. Changes of usages are added to `usages`. */
export class ConnectionChanges implements Disposable {
  readonly puts: Spool
  readonly deletes: Spool
  /** The entries of the namespaces in `isStaged`, which are written ahead (`storage/staged.ts`). */
  readonly staged: Spool
  /** Namespaces with changes. The others keep their versions, and caches stay valid. */
  readonly touched = new Set<string>()
  /** Connections that point elsewhere now, or have another owner: they lose headers, values and sign-ins of people. */
  readonly dropped: string[] = []
  readonly #store: Store
  readonly #usages: Usages
  readonly #isStaged: ReadonlySet<string>

  /** `folder`: of the files; left out: all is in memory. */
  constructor(store: Store, usages: Usages, isStaged: ReadonlySet<string>, folder: string | undefined) {
    this.#store = store
    this.#usages = usages
    this.#isStaged = isStaged
    this.puts = new Spool(folder)
    this.deletes = new Spool(folder)
    this.staged = new Spool(folder)
  }

  /**
   * Compares the connections of fixtures with the store. Others are left alone. `now`: when those are made that are new
   * and do not say it; a stored time stays, so that a reload changes nothing. `onEach` is called with the key of each
   * record. `replaces`: a different one is overwritten. `handedOver`: namespaces that get another owner, who gets
   * nothing that people gave to their connections.
   */
  async bring(
    given: Spool,
    now: Date,
    handedOver: ReadonlySet<string>,
    onEach: (key: Key, replaces: boolean) => void,
  ): Promise<void> {
    const fixtures = given.inOrder().map(({ value }) => JSON.parse(textOf(value)) as FixtureConnection)
    for await (const [fixture, stored] of this.#compared(fixtures)) {
      const { namespace, connectionId } = fixture
      const isHandedOver = handedOver.has(namespace)
      const since = isHandedOver ? undefined : stored?.connection.createdAt
      const connection = completeConnection(fixture, since ?? now.toISOString())
      const changes = !equalBytes(stored?.bytes, connectionBytes(connection))
      onEach(keyOf('connection', namespace, connectionId), changes && stored !== undefined)
      const isMoved = stored !== undefined && (isHandedOver || stored.connection.mcpUrl !== connection.mcpUrl)
      const privatePart = this.#privatePart(fixture, stored, isMoved)
      if (changes || privatePart !== stored?.privatePart) this.#change(fixture, stored, { connection, privatePart })
    }
  }

  /** Removes connections. One that is already gone is ignored. */
  async remove(gone: readonly ConnectionRef[]): Promise<void> {
    for await (const [ref, stored] of this.#compared(gone)) {
      this.touched.add(ref.namespace)
      if (stored !== undefined) this.#change(ref, stored, undefined)
    }
  }

  [Symbol.dispose](): void {
    for (const spool of [this.puts, this.deletes, this.staged]) spool[Symbol.dispose]()
  }

  /** Each with the connection that the store has. */
  async *#compared<Ref extends ConnectionRef>(
    refs: Iterable<Ref>,
  ): AsyncGenerator<[Ref, StoredConnection | undefined]> {
    for (const some of piecesOf(refs, { most: comparedAtOnce })) {
      const stored = await findConnections(this.#store, some)
      for (const [at, ref] of some.entries()) yield [ref, stored[at]]
    }
  }

  /** That of before, if the connection still is for the same server at the same place. */
  #privatePart(fixture: FixtureConnection, stored: StoredConnection | undefined, isMoved: boolean): ConnectionPrivate {
    const { server, setups, list: _, pins, ...given } = stored?.privatePart ?? {}
    if (stored !== undefined && !isMoved && server === fixture.server) return stored.privatePart
    // People gave their values to the server of before. Tickets, and sign-ins that have begun, are for it too, and so
    // void.
    const isGiven = Object.keys(given).length > 0
    const ends = stored !== undefined && (isMoved || isGiven || setups !== undefined)
    if (isGiven) this.dropped.push(`${fixture.namespace}/${fixture.connectionId}`)
    return {
      ...(fixture.server !== undefined && { server: fixture.server }),
      ...(ends && { setups: (setups ?? 0) + 1 }),
      // Pins begin again only for another URL.
      ...(pins !== undefined && !isMoved && { pins }),
    }
  }

  #change(ref: ConnectionRef, before: StoredConnection | undefined, after: NewConnection | undefined): void {
    const { puts, deletes, usage } = connectionEdits(ref, before, after)
    this.touched.add(ref.namespace)
    this.#usages.change(ref.namespace, usage)
    const spool = this.#isStaged.has(ref.namespace) ? this.staged : this.puts
    for (const { key, value } of puts) spool.add(key, value)
    for (const key of deletes) this.deletes.add(key)
  }
}
