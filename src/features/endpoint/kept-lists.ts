/**
 * The lists of each connection as its server gave them last, kept in the store (contract, 20.4). A list that was read
 * once is answered at once, and read again behind the answer; a connection that was never seen is waited for a moment.
 */

import type { AuthorizedConnection, RequestContext } from '../../auth/authorizer.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { manyConnections, oneConnection, recordsInParts } from '../../auth/stored-connections.ts'
import { timestampOf } from '../../clock.ts'
import { notFound, PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { ownerOf } from '../../fairness/owner.ts'
import { Queue } from '../../fairness/queue.ts'
import { inSlices } from '../../fairness/turns.ts'
import { asPlatformError } from '../../http/error-response.ts'
import { authorizationFreshMs, toolsCharsMax } from '../../limits.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import { equalBytes } from '../../storage/bytes.ts'
import { connectionChange, findConnection, findConnections, type StoredConnection } from '../../storage/connections.ts'
import { keyOf } from '../../storage/keys.ts'
import type { Usage } from '../../storage/usage.ts'
import { within } from '../../within.ts'
import { inScope } from '../connections/plan.ts'
import type { GatewayDeps } from '../gateway/forward.ts'
import type { FirstLists } from '../gateway/pinned-answers.ts'
import { createAcceptedLists, seeKept } from './accepted-lists.ts'
import { JoinPlaces, largeBytes } from './join-places.ts'
import { createKeptMemory, hashOf, type KeptMemory, nameOf } from './kept-memory.ts'
import { type Kept, readingRecord, sizeOf } from './kept-record.ts'
import { createLastReads } from './last-reads.ts'
import {
  fitting,
  type ListProblem,
  late,
  problemOf,
  type Size,
  stateProblem,
  TooLarge,
  tooLarge,
} from './list-problem.ts'
import { readOffer } from './read-lists.ts'
import { createRenderings } from './rendered-offer.ts'

/** Contract 20.4: milliseconds for which a kept list is not read again. Past it: it is read again behind the answer. */
export const listFreshMs = 10_000
/** Contract 20.4: milliseconds that an answer waits for connections without a kept list. Past it: they are left out. */
const unseenWaitMs = 5000
/** Contract 20.4: milliseconds after a failed read in which no answer waits for a connection without a kept list. Past it: it is read again. */
const failedRestMs = 30_000
/** Contract 20.4: milliseconds that postern shows a kept list after its server last confirmed it. Past it: the connection counts as never seen. */
export const listKeptMs = 24 * 3600 * 1000
/** How often an unchanged list is written again, so that the store knows when its server confirmed it last. */
const confirmMs = 3600 * 1000
/** Ours: lists that postern reads from MCP servers at the same time, for all owners. Past it: further reads wait. */
const readsAtOnceMax = 64
/** Contract 20.4: lists that postern reads from MCP servers at the same time for one owner. Past it: further reads wait. */
const readsOfOwnerMax = 8

/** Milliseconds of a connection that is read and looked up for an answer. Counted against `ownerTimeShare`. */
const connectionMs = 0.025
/** Connections that are looked at before the time is, in half a millisecond. */
const lookedAtOnce = 16

/** A connection with what it offers. Where servers were asked, at least one of `kept` and `problem` is there. */
export interface ListedConnection extends AuthorizedConnection {
  readonly kept?: Kept | undefined
  readonly problem?: ListProblem | undefined
}

/** Whether servers may be asked for an answer, or only `behind` it: then nothing waits for them. */
export type MayAsk = boolean | 'behind'

/** A connection with the size of its lists as they are stored. */
interface Seen extends AuthorizedConnection, Size {}

const isSeen = ({ caller }: Pick<RequestContext, 'caller'>, { connection }: StoredConnection) =>
  inScope(connection, { filters: [], blocks: caller.blocks })

export interface KeptListsDeps extends GatewayDeps, Pick<SharedParts, 'directory'> {
  readonly quota: Usage
}

export class KeptLists implements FirstLists {
  readonly #deps: KeptListsDeps
  readonly #places = new Queue(readsAtOnceMax, readsOfOwnerMax)
  /** For servers whose last read has failed: they keep no others waiting. */
  readonly #lastPlaces = new Queue(readsAtOnceMax, readsOfOwnerMax)
  readonly #joins = new JoinPlaces()
  readonly #read: KeptMemory
  readonly #acceptedOf: ReturnType<typeof createAcceptedLists>
  readonly #lastReads: ReturnType<typeof createLastReads>
  /** The definitions of kept lists as endpoints list them. */
  readonly rendering = createRenderings()
  /** Grows when something changes that the store does not have: a read has failed, or works again. */
  changes = 0
  /** Reads in progress, by what is asked. */
  readonly #reads = new Map<string, Promise<Kept>>()

  constructor(deps: KeptListsDeps) {
    this.#deps = deps
    this.#read = createKeptMemory(deps.store)
    this.#lastReads = createLastReads(deps.clock)
    this.#acceptedOf = createAcceptedLists(deps.pins)
  }

  /**
   * Passes those of these connections that the caller sees to `use`, with what each offers. Once more if meanwhile one
   * was deleted, or changed so that the caller does not see it any more. Never rejects because of one of them; rejects
   * with `rate_limited`, and with what `use` throws. Of one owner, one use of large lists is under way at a time.
   */
  async use<T>(
    context: RequestContext,
    refs: readonly ConnectionRef[],
    mayAsk: MayAsk,
    use: (listed: ListedConnection[]) => Promise<T> | T,
  ): Promise<T> {
    const { store, clock } = this.#deps
    const allowance = allowanceOf(context.request)
    for (let isKnownLarge = false; ; ) {
      allowance.spend(refs.length * connectionMs)
      const began = clock.monotonic()
      const found = await manyConnections(store, context.request, refs)
      const seen = refs.flatMap((ref, index) => {
        const stored = found[index]
        if (stored === undefined || !isSeen(context, stored)) return []
        const { bytes = 0, definitions = 0 } = stored.privatePart.list ?? {}
        return [{ ...ref, stored, bytes, definitions }]
      })
      const bytes = seen.reduce((sum, one) => sum + one.bytes, 0)
      const definitions = seen.reduce((sum, one) => sum + one.definitions, 0)
      const isLarge = isKnownLarge || bytes > largeBytes
      using places = new DisposableStack()
      // They may wait for servers with the request.
      places.defer(allowance.takeRecords(seen.reduce((sum, { stored }) => sum + stored.bytes.length, 0)))
      if (isLarge) places.use(await this.#joins.enter(context, { bytes: Math.max(bytes, largeBytes), definitions }))
      const listed = await this.#all(context, seen, mayAsk)
      // Lists that were read just now may be larger than those that were stored.
      const isLargeNow = listed.reduce((sum, { kept }) => sum + sizeOf(kept).bytes, 0) > largeBytes
      if (isLargeNow && !isLarge) {
        isKnownLarge = true
        continue
      }
      const used = await use(listed)
      // Nobody waits for its place while the store is asked once more.
      places.dispose()
      if (clock.monotonic() - began <= authorizationFreshMs || (await this.#areStillSeen(context, seen))) return used
    }
  }

  async #areStillSeen({ caller, request }: RequestContext, seen: readonly Seen[]): Promise<boolean> {
    const { store } = this.#deps
    let index = 0
    // Without waiting: between two parts the first might change.
    for await (const records of recordsInParts(store, request, seen, false))
      for (const record of records) {
        const one = seen[index] as Seen
        index += 1
        if (record !== undefined && equalBytes(record.bytes, one.stored.bytes)) continue
        const changed = await oneConnection(store, request, one)
        if (changed === undefined || !isSeen({ caller }, changed)) return false
      }
    return true
  }

  async #all(context: RequestContext, seen: readonly Seen[], mayAsk: MayAsk): Promise<ListedConnection[]> {
    const { clock, directory } = this.#deps
    const began = clock.monotonic()
    const fits = fitting(seen, (one) => one)
    const slices = allowanceOf(context.request).slices()
    const look = (one: Seen) => (fits.has(one) ? this.#known(context, one, mayAsk) : { problem: tooLarge })
    const known: Awaited<ReturnType<typeof look>>[] = []
    for (let from = 0; from < seen.length; from += lookedAtOnce) {
      while (slices.isOver) await slices.next()
      known.push(...(await Promise.all(seen.slice(from, from + lookedAtOnce).map(look))))
    }
    const left = began + unseenWaitMs - clock.monotonic()
    const found = await Promise.all(
      known.map((one, index) =>
        'reading' in one ? within(left, one.reading, () => this.#noteLate(seen[index] as Seen)) : one,
      ),
    )
    const all = seen.map((one, index): ListedConnection => ({ ...one, ...found[index] }))
    // Lists that were read just now, or that are in memory alone, have no size in the record of their connection.
    const fitNow = fitting(all, ({ kept }) => sizeOf(kept))
    const listed = all.map((one) => (fitNow.has(one) ? one : { ...one, kept: undefined, problem: tooLarge }))
    if (clock.monotonic() - began <= authorizationFreshMs) return this.#accepted(context, listed)
    // Servers were waited for: what their connections are, and what their pins are set to, may have changed.
    return this.#accepted({ ...context, directory: await directory.current() }, await this.#now(context, listed))
  }

  /** Its read goes on behind the answer, and for a while no other request waits for it. */
  #noteLate(connection: AuthorizedConnection): Known {
    this.#lastReads.note(nameOf(connection), hashOf(connection.stored), late)
    return { problem: late }
  }

  /** Connections as they are now, without those that are gone, and without the lists of those that were changed. */
  async #now(context: RequestContext, listed: readonly ListedConnection[]): Promise<ListedConnection[]> {
    const found = await manyConnections(this.#deps.store, context.request, listed)
    return listed.flatMap((one, index) => {
      const stored = found[index]
      if (stored === undefined) return []
      const now = { ...one, stored }
      return hashOf(stored) === hashOf(one.stored) ? now : { ...now, kept: undefined, problem: late }
    })
  }

  /**
   * The lists of a connection as far as they are known, or a read of them. The read outlives requests that no longer
   * wait for it, so it has nothing of theirs.
   */
  async #known(
    context: RequestContext,
    connection: AuthorizedConnection,
    mayAsk: MayAsk,
  ): Promise<Known | { readonly reading: Promise<Known> }> {
    const of = hashOf(connection.stored)
    const kept = await this.#keptOf(context, connection, of)
    const state = stateProblem(connection.stored)
    if (state !== undefined) return { kept, problem: state }
    const last = this.#lastReads.of(nameOf(connection))
    const known = last?.of === of ? last : undefined
    const { age = Number.POSITIVE_INFINITY, problem } = known ?? {}
    if (!mayAsk || (kept === undefined && problem !== undefined && age < failedRestMs)) return { kept, problem }
    if (kept === undefined && mayAsk === true)
      return { reading: this.#readOnce(context, connection).then(asKnown, asProblem) }
    if (kept === undefined || age >= listFreshMs) this.#readOnce(context, connection).catch(() => {})
    return { kept, problem }
  }

  /**
   * The lists of a connection have changed, as its server says: they are read again behind the caller's request; after
   * a change within a second of the last read, when that second is over.
   */
  noteChanged(context: RequestContext, connection: AuthorizedConnection): void {
    this.#lastReads.noteChanged(nameOf(connection), () => void this.#readOnce(context, connection).catch(() => {}))
  }

  #accepted(context: RequestContext, listed: readonly ListedConnection[]): Promise<ListedConnection[]> {
    return Promise.all(
      listed.map(async (one) => (one.kept ? { ...one, kept: await this.#acceptedOf(context, one, one.kept) } : one)),
    )
  }

  /** Reads the offer of a connection that was read just now, without asking its server; undefined if unknown. */
  async offerOf(context: RequestContext, connection: AuthorizedConnection): Promise<Kept | undefined> {
    const kept = await this.#keptOf(context, connection, hashOf(connection.stored))
    return kept && this.#acceptedOf(context, connection, kept)
  }

  /** Reads kept lists again that lack these tools or instructions, until no answer would wait any more. */
  async readWithout(
    context: RequestContext,
    connection: AuthorizedConnection,
    { tools, instructions }: { readonly tools: readonly string[]; readonly instructions: string | undefined },
  ): Promise<void> {
    const kept = await this.offerOf(context, connection).catch(() => undefined)
    if (kept === undefined || stateProblem(connection.stored) !== undefined) return
    const shown = new Set(kept.lists.tools.map(({ own }) => own))
    const isTextShown = instructions === undefined || kept.instructionsHash === instructions
    if (isTextShown && tools.every((name) => shown.has(name))) return
    const reading = this.#readOnce(context, connection).catch(() => {})
    await within(unseenWaitMs, reading, () => {})
  }

  async readFirst(context: RequestContext, connection: AuthorizedConnection) {
    const { namespace, connectionId, stored } = connection
    const last = this.#lastReads.of(nameOf(connection))
    const isResting = last?.problem !== undefined && last.age < failedRestMs
    // Each page of a server whose list cannot be read would read it again.
    if (isResting && last.of === hashOf(stored)) throw new PlatformError('upstream_error', last.problem?.message ?? '')
    await this.#readOnce(context, connection)
    const now = await findConnection(this.#deps.store, namespace, connectionId)
    if (now === undefined) throw notFound()
    return { namespace, connectionId, stored: now }
  }

  /** Compares lists with the connection’s pins. Throws only where those block. */
  async #compare(context: RequestContext, connection: AuthorizedConnection, kept: Kept): Promise<void> {
    const { pins } = this.#deps
    const setting = await pins.settingOf(context, connection)
    if (setting === 'off') return
    await seeKept(pins, context, connection, kept).catch((thrown) => {
      if (setting === 'block') throw thrown
    })
  }

  /** The kept lists; undefined if there are none, they are another connection's by now, or too old. */
  async #keptOf({ request }: RequestContext, connection: AuthorizedConnection, of: string): Promise<Kept | undefined> {
    const { list } = connection.stored.privatePart
    // In a namespace that is full they are in memory alone.
    const kept = list === undefined ? this.#read.get(connection) : await this.#read.of(request, connection, list)
    const isRecent = kept !== undefined && this.#deps.clock.now() - Date.parse(kept.listedAt) < listKeptMs
    return kept?.of === of && isRecent ? kept : undefined
  }

  /**
   * Reads the lists from the server, once for all requests of an owner that wait, and keeps them. An owner may have to
   * wait for its own places and time, so that each reads for itself.
   */
  #readOnce(context: RequestContext, connection: AuthorizedConnection): Promise<Kept> {
    const key = `${nameOf(connection)}\0${hashOf(connection.stored)}\0${ownerOf(context.caller)}`
    const read = () => this.#readNow(context, connection).finally(() => this.#reads.delete(key))
    return this.#reads.getOrInsertComputed(key, read)
  }

  async #readNow(context: RequestContext, connection: AuthorizedConnection): Promise<Kept> {
    const { clock } = this.#deps
    const name = nameOf(connection)
    const of = hashOf(connection.stored)
    const last = this.#lastReads.of(name)?.problem
    const remember = (problem?: ListProblem) => {
      this.#lastReads.note(name, of, problem)
      if (problem?.message !== last?.message) this.changes += 1
    }
    const leave = await (last === undefined ? this.#places : this.#lastPlaces).enter(context.caller)
    try {
      const head = { of, listedAt: timestampOf(clock) }
      const record = await readOffer(this.#deps, context, connection, head)
      // No list has room for it.
      if (record.length > toolsCharsMax) throw new TooLarge()
      const kept = await inSlices(readingRecord(record))
      await this.#compare(context, connection, kept)
      remember()
      await this.#keep(connection, kept, record)
      return kept
    } catch (thrown) {
      // One that its owner has no room for says nothing of the server.
      if (asPlatformError(thrown).code !== 'rate_limited') remember(problemOf(thrown))
      throw thrown
    } finally {
      leave()
    }
  }

  /** Writes lists that have changed, or were confirmed long ago, unless another write has changed the connection. */
  async #keep(ref: ConnectionRef, kept: Kept, value: Buffer): Promise<void> {
    const { store, quota } = this.#deps
    const [before] = await findConnections(store, [ref])
    if (before === undefined || hashOf(before) !== kept.of) return
    const former = before.privatePart.list?.id === kept.id ? this.#read.get(ref) : undefined
    // The time is not written each time.
    if (former !== undefined && Date.parse(kept.listedAt) - Date.parse(former.listedAt) < confirmMs) return
    const { id, era } = kept
    const list = { ...sizeOf(kept), id, ...(era === 'stateless' && { era }) }
    const privatePart = { ...before.privatePart, list }
    const change = connectionChange(ref, before, { connection: before.connection, privatePart }, quota)
    const key = keyOf('keptList', ref.namespace, ref.connectionId)
    // In a namespace that is full they are kept in memory alone.
    this.#read.set(ref, kept)
    this.changes += 1
    await store.commit({ ...change, puts: [...(change.puts ?? []), { key, value }] })
  }
}

type Known = Pick<ListedConnection, 'kept' | 'problem'>

const asKnown = (kept: Kept): Known => ({ kept })
const asProblem = (thrown: unknown): Known => ({ problem: problemOf(thrown) })
