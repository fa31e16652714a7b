/**
 * The lists of each connection as its server gave them last, kept in the store (contract, 20.4). A list that was read
 * once is answered at once, and read again behind the answer; a connection that was never seen is waited for a moment.
 */

import { LRUCache } from 'lru-cache'
import type { RequestContext } from '../../auth/authorizer.ts'
import { PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { Queue } from '../../fairness/queue.ts'
import { asPlatformError } from '../../http/error-response.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import { reading } from '../../schema/json.ts'
import { equalBytes, textOf } from '../../storage/bytes.ts'
import { connectionChange, findConnections, type StoredConnection } from '../../storage/connections.ts'
import { keyOf } from '../../storage/keys.ts'
import type { Usage } from '../../storage/usage.ts'
import { within } from '../../within.ts'
import { askedAs } from '../gateway/connection-status.ts'
import type { GatewayDeps } from '../gateway/forward.ts'
import { type Offer, readOffer } from './read-lists.ts'

/** Contract 20.4: milliseconds for which a kept list is not read again. Past it: it is read again behind the answer. */
export const listFreshMs = 10_000
/** Contract 20.4: milliseconds that an answer waits for connections that were never seen. Past it: they are left out. */
export const unseenWaitMs = 5000
/** Contract 20.4: milliseconds after a failed read in which a connection that was never seen is not waited for again. Past it: it is read again. */
export const failedRestMs = 30_000
/** Contract 20.4: milliseconds after its server last confirmed it in which a kept list is shown. Past it: the connection counts as never seen. */
export const listKeptMs = 24 * 3600 * 1000
/** How often an unchanged list is written again, so that the store knows when its server confirmed it last. */
const confirmMs = 3600 * 1000
/** Ours: reads of servers' lists at once for all owners. Past it: further reads wait. */
const readsAtOnceMax = 64
/** Contract 20.4: reads of servers' lists at once for one owner. Past it: further reads wait. */
const readsOfOwnerMax = 8
/** Bytes of kept lists that are cached in parsed form. Past it: the least recently used one is parsed again. */
const parsedBytesMax = 16 * 2 ** 20
/** Connections whose last read is remembered. Past it: the least recently used one is read at its next use. */
const readsKnownMax = 20_000

/** Why a connection's list is missing, or old. */
export interface ListProblem {
  readonly error: 'auth_required' | 'input_required' | 'disconnected' | 'upstream_error' | 'upstream_timeout'
  readonly message: string
  readonly setupUrl?: string
}

/** A connection with what it offers. Where servers were asked, at least one of `offer` and `problem` is there. */
export interface ListedConnection {
  readonly ref: ConnectionRef
  readonly stored: StoredConnection
  readonly offer?: Offer | undefined
  /** ISO 8601: when its server last confirmed the list. */
  readonly listedAt?: string | undefined
  readonly problem?: ListProblem | undefined
}

interface Kept {
  /** Names what was asked (`askedAs`): after another sign-in, or with other headers, the list is another. */
  readonly of: string
  readonly listedAt: string
  readonly offer: Offer
}

/** The last read of a connection's lists. */
interface LastRead {
  readonly of: string
  /** By the monotonic clock. */
  readonly at: number
  readonly problem: ListProblem | undefined
}

export interface KeptListsDeps extends GatewayDeps {
  readonly quota: Usage
}

export class KeptLists {
  readonly #deps: KeptListsDeps
  readonly #places = new Queue(readsAtOnceMax, readsOfOwnerMax)
  readonly #parsed = new LRUCache<string, { readonly bytes: Uint8Array; readonly kept: Kept }>({
    maxSize: parsedBytesMax,
    sizeCalculation: ({ bytes }) => bytes.length + 1000,
  })
  readonly #lastReads = new LRUCache<string, LastRead>({ max: readsKnownMax })
  /** Reads in progress, by what is asked. */
  readonly #reads = new Map<string, Promise<Kept>>()

  constructor(deps: KeptListsDeps) {
    this.#deps = deps
  }

  /**
   * These connections with their lists. `mayAsk`: servers may be asked, now or behind the answer. Never rejects for
   * one of them; rejects with `rate_limited`.
   */
  async of(context: RequestContext, refs: readonly ConnectionRef[], mayAsk: boolean): Promise<ListedConnection[]> {
    const { store } = this.#deps
    const found = await findConnections(store, refs)
    const records = await store.getMany(
      refs.map(({ namespace, connectionId }) => keyOf('keptList', namespace, connectionId)),
    )
    const late = { error: 'upstream_timeout', message: 'The MCP server has not listed its tools yet' } as const
    const { clock } = this.#deps
    const until = clock.monotonic() + unseenWaitMs
    return Promise.all(
      refs.flatMap((ref, index) => {
        const stored = found[index]
        if (stored === undefined) return []
        const waited = this.#listed(context, { ref, stored, bytes: records[index] }, mayAsk)
        return [within(until - clock.monotonic(), waited, () => ({ ref, stored, problem: late }))]
      }),
    )
  }

  async #listed(
    context: RequestContext,
    { ref, stored, bytes }: Pick<ListedConnection, 'ref' | 'stored'> & { readonly bytes: Uint8Array | undefined },
    mayAsk: boolean,
  ): Promise<ListedConnection> {
    const name = nameOf(ref)
    const of = hashOf(stored)
    const kept = await this.#keptIn(name, of, bytes, context)
    const state = stateProblem(stored)
    const known = { ref, stored, offer: kept?.offer, listedAt: kept?.listedAt }
    if (state !== undefined) return { ...known, problem: state }
    const last = this.#lastReads.get(name)
    const isKnown = last?.of === of
    const age = isKnown ? this.#deps.clock.monotonic() - last.at : Number.POSITIVE_INFINITY
    const problem = isKnown ? last.problem : undefined
    if (!mayAsk || (kept === undefined && problem !== undefined && age < failedRestMs)) return { ...known, problem }
    if (kept !== undefined) {
      if (age >= listFreshMs) this.#read(context, ref, stored).catch(() => {})
      return { ...known, problem }
    }
    return this.#read(context, ref, stored).then(
      ({ offer, listedAt }) => ({ ref, stored, offer, listedAt }),
      (thrown) => ({ ref, stored, problem: problemOf(thrown) }),
    )
  }

  /** The kept list in a record; undefined if it is another connection's by now, or too old. */
  async #keptIn(name: string, of: string, bytes: Uint8Array | undefined, { request }: RequestContext) {
    if (bytes === undefined) return undefined
    const known = this.#parsed.get(name)
    const parse = () => reading(bytes.length, () => JSON.parse(textOf(bytes)) as Kept)
    const isSame = known !== undefined && equalBytes(known.bytes, bytes)
    const kept = isSame ? known.kept : await allowanceOf(request).parse(bytes.length, parse())
    if (!isSame) this.#parsed.set(name, { bytes: Buffer.from(bytes), kept })
    const isRecent = this.#deps.clock.now() - Date.parse(kept.listedAt) < listKeptMs
    return kept.of === of && isRecent ? kept : undefined
  }

  /** Reads the lists from the server, once for all that wait, and keeps them. */
  #read(context: RequestContext, ref: ConnectionRef, stored: StoredConnection): Promise<Kept> {
    const of = hashOf(stored)
    const key = `${nameOf(ref)}\0${of}`
    const underWay = this.#reads.get(key) ?? this.#readNow(context, ref, stored).finally(() => this.#reads.delete(key))
    this.#reads.set(key, underWay)
    return underWay
  }

  async #readNow(context: RequestContext, ref: ConnectionRef, stored: StoredConnection): Promise<Kept> {
    const { clock } = this.#deps
    const of = hashOf(stored)
    const remember = (problem?: ListProblem) => this.#lastReads.set(nameOf(ref), { of, at: clock.monotonic(), problem })
    const leave = await this.#places.enter(context.caller)
    try {
      const { offer, json } = await readOffer(this.#deps, context, { ...ref, stored })
      const kept = { of, listedAt: new Date(clock.now()).toISOString(), offer }
      remember()
      await this.#keep(ref, kept, json)
      return kept
    } catch (thrown) {
      remember(problemOf(thrown))
      throw thrown
    } finally {
      leave()
    }
  }

  /** Writes a list that has changed, or was confirmed long ago, unless another write has changed the connection. */
  async #keep(ref: ConnectionRef, { of, listedAt }: Kept, json: string): Promise<void> {
    const { store, quota } = this.#deps
    const key = keyOf('keptList', ref.namespace, ref.connectionId)
    const [[before], former] = await Promise.all([findConnections(store, [ref]), store.get(key)])
    if (before === undefined || hashOf(before) !== of) return
    const head = (time: string) => `{"of":${JSON.stringify(of)},"listedAt":"${time}","offer":`
    // The time is not written each time.
    const formerTime = former === undefined ? undefined : timeIn(former)
    const isRecent = formerTime !== undefined && Date.parse(listedAt) - Date.parse(formerTime) < confirmMs
    if (isRecent && equalBytes(former, Buffer.from(`${head(formerTime)}${json}}`))) return
    const value = Buffer.from(`${head(listedAt)}${json}}`)
    const privatePart = { ...before.privatePart, listBytes: value.length }
    const change = connectionChange(ref, before, { connection: before.connection, privatePart }, quota)
    // A namespace that is full keeps no lists: they are read at each use.
    await store.commit({ ...change, puts: [...(change.puts ?? []), { key, value }] })
  }
}

const nameOf = ({ namespace, connectionId }: ConnectionRef) => `${namespace}/${connectionId}`

/** A hash of what is asked: it is kept beside the list, and the sealed headers are not. */
function hashOf(stored: StoredConnection): string {
  const { mock } = stored.connection
  return Bun.SHA256.hash(`${askedAs(stored)}\0${mock?.enabled === true}`, 'base64').slice(0, 22)
}

/** The time in a record, without parsing its lists. */
function timeIn(record: Uint8Array): string | undefined {
  return /"listedAt":"([^"]+)"/.exec(textOf(record.subarray(0, 200)))?.[1]
}

/** Why a connection must not be contacted in this state; undefined if it may be. */
function stateProblem({ connection: { status, mock } }: StoredConnection): ListProblem | undefined {
  if (mock?.enabled === true) return undefined
  const { setupUrl } = status as { setupUrl?: string }
  const link = setupUrl === undefined ? {} : { setupUrl }
  if (status.state === 'auth_required') return { error: 'auth_required', message: 'Sign-in is needed', ...link }
  if (status.state === 'input_required') return { error: 'input_required', message: 'Values are needed', ...link }
  if (status.state === 'disconnected') return { error: 'disconnected', message: 'Its server is not connected' }
  return undefined
}

function problemOf(thrown: unknown): ListProblem {
  const { code, message, options } = asPlatformError(thrown)
  const link = options.setupUrl === undefined ? {} : { setupUrl: options.setupUrl }
  if (code === 'upstream_unauthorized' || code === 'upstream_sign_in')
    return { error: 'auth_required', message: 'Sign-in is needed', ...link }
  if (code === 'upstream_timeout') return { error: 'upstream_timeout', message }
  const isTold = thrown instanceof PlatformError
  return { error: 'upstream_error', message: isTold ? message : 'The MCP server’s lists could not be read' }
}
