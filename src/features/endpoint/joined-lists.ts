/** Joins the lists of all connections that a caller sees into the lists of one endpoint (contract, 20.4). */

import type { RequestContext } from '../../auth/authorizer.ts'
import { PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import { hasRpcRules } from '../../policy/tools.ts'
import type { Store } from '../../storage/store.ts'
import { narrowed } from '../gateway/filter-tools.ts'
import type { ListKind } from '../gateway/tool-requests.ts'
import type { EndpointRequest } from './endpoint-request.ts'
import { type KeptLists, type ListedConnection, listFreshMs, type MayAsk } from './kept-lists.ts'
import { fitting, type ListProblem, type Size, tooLarge } from './list-problem.ts'
import type { NameLength } from './listed-names.ts'
import type { ListedDefinition, RenderedOffer } from './rendered-offer.ts'
import { connectionsNamedIn, joinedConnectionsMax, seenConnections } from './seen-connections.ts'

/** Why a connection's definitions are left out of a list. */
interface Skipped extends ListProblem {
  readonly connectionId: string
}

/** A connection with its definitions as this caller's lists show them. */
export interface Shown extends ListedConnection {
  readonly lists: RenderedOffer | undefined
}

/** Which lists a request is about. */
interface ListsOf {
  readonly namespace: string
  readonly mayAsk: MayAsk
  /** Only the connections that may have this listed name, where the caller sees too many to join all. */
  readonly called?: string | undefined
}

/** Passes to `use` what the caller's connections offer, by length of names. Throws 400, 429, and what `use` throws. */
export async function withLists<T>(
  { kept, store }: { readonly kept: KeptLists; readonly store: Store },
  context: RequestContext,
  { namespace, mayAsk, called }: ListsOf,
  use: (shownAt: (length: NameLength) => Promise<readonly Shown[]>) => Promise<T>,
): Promise<T> {
  const all = await seenConnections(store, context, namespace)
  const refs = all ?? (called === undefined ? undefined : await connectionsNamedIn(store, context, namespace, called))
  if (refs === undefined) {
    throw new PlatformError(
      'too_many_connections',
      `An endpoint lists at most ${joinedConnectionsMax} connections, and this caller has access to more: use a view, or a token whose policy allows fewer. Calls still work`,
    )
  }
  return kept.use(context, refs, mayAsk, (listed) =>
    use(async (length) => {
      const shown: Shown[] = []
      for (const one of listed) {
        const work = one.kept && narrowing(kept.rendering(one.connectionId, one.kept, length), context)
        shown.push({ ...one, lists: work && (await allowanceOf(context.request).run(work)) })
      }
      return shown
    }),
  )
}

/** The same for a request to the endpoint: it may wait for servers, and its options say how long names are. */
export function withShown<T>(
  deps: { readonly kept: KeptLists; readonly store: Store },
  { context, namespace: { namespace }, options }: EndpointRequest,
  use: (shown: readonly Shown[]) => Promise<T> | T,
): Promise<T> {
  return withLists(deps, context, { namespace, mayAsk: true }, async (shownAt) => use(await shownAt(options.length)))
}

/** The definitions that the caller could use, as work in steps. */
function* narrowing(
  offer: Work<RenderedOffer>,
  { caller: { blocks } }: RequestContext,
): Generator<number, RenderedOffer> {
  const lists = yield* offer
  if (!hasRpcRules(blocks)) return lists
  return { ...lists, tools: yield* narrowed(lists.tools, ({ own }) => own, blocks) }
}

/** The definitions of one kind, and the connections that lack some. */
export interface JoinedList {
  readonly definitions: readonly ListedDefinition[]
  readonly skipped: readonly Skipped[]
  readonly stale: readonly (Skipped & { readonly listedAt: string })[]
}

/** Definitions that are joined, or written, in one step. */
const definitionsPerStep = 100
/** Cost of joining a definition, or of writing one; in the unit of `sliceCost`. */
const joiningCost = 40
/** Names that a connection's collision tells. Past it: their number. */
const collisionsToldMax = 10
/** Cost of looking at a definition, in the same unit. */
const sizeCost = 1

/** Joins one kind of list, in the order of the connections, as work in steps. */
export function* joining(shown: readonly Shown[], kind: ListKind): Work<JoinedList> {
  const skipped: Skipped[] = []
  const stale: (Skipped & { readonly listedAt: string })[] = []
  const byName = new Map<string, ListedDefinition>()
  const collided = new Set<string>()
  const collisions = new Map<string, Set<string>>()
  const sizes = new Map<Shown, Size>()
  for (const one of shown) {
    const all = one.lists?.[kind] ?? []
    yield all.length * sizeCost
    sizes.set(one, { bytes: all.reduce((sum, { size }) => sum + size, 0), definitions: all.length })
  }
  const fits = fitting(shown, (one) => sizes.get(one) as Size)
  for (const one of shown) {
    const { connectionId, lists, kept, problem } = one
    if (lists === undefined) {
      if (problem !== undefined) skipped.push({ connectionId, ...problem })
      continue
    }
    if (problem !== undefined) stale.push({ connectionId, ...problem, listedAt: kept?.listedAt ?? '' })
    if (!fits.has(one)) {
      skipped.push({ connectionId, ...tooLarge })
      continue
    }
    for (const [index, definition] of lists[kind].entries()) {
      if (index % definitionsPerStep === 0) yield definitionsPerStep * joiningCost
      const { listed } = definition
      const former = byName.get(listed)
      if (former !== undefined) {
        collided.add(listed)
        for (const id of [former.connectionId, connectionId])
          collisions.getOrInsertComputed(id, () => new Set()).add(listed)
      } else byName.set(listed, definition)
    }
  }
  for (const name of collided) byName.delete(name)
  for (const [connectionId, names] of collisions) {
    const told = [...names].slice(0, collisionsToldMax).join(', ')
    const more = names.size > collisionsToldMax ? ` and ${names.size - collisionsToldMax} other names` : ''
    const message = `Two definitions would have the name ${told}${more}, so neither is listed`
    skipped.push({ connectionId, error: 'name_collision', message })
  }
  yield byName.size * sizeCost
  return { definitions: [...byName.values()], skipped, stale }
}

/** How many definitions each connection has in a joined list, as work in steps. */
export function* countingByConnection({ definitions }: JoinedList): Work<ReadonlyMap<string, number>> {
  yield definitions.length * sizeCost
  const counts = new Map<string, number>()
  for (const { connectionId } of definitions) counts.set(connectionId, (counts.get(connectionId) ?? 0) + 1)
  return counts
}

/** A list's result as JSON, as work in steps. `own`: entries of the endpoint itself. */
export function* listing(
  kind: ListKind,
  { definitions, skipped, stale }: JoinedList,
  { isStateless, own = [] }: { readonly isStateless: boolean; readonly own?: readonly object[] },
): Work<string> {
  const meta = {
    ...(skipped.length > 0 && { 'postern/skipped': skipped }),
    ...(stale.length > 0 && { 'postern/stale': stale }),
  }
  const members = {
    ...(Object.keys(meta).length > 0 && { _meta: meta }),
    ...(isStateless && { resultType: 'complete', cacheScope: 'private', ttlMs: listFreshMs }),
  }
  const rest = JSON.stringify(members).slice(1, -1)
  const texts = [yield* joiningTexts(definitions, (one) => one.writing()), ...own.map((one) => JSON.stringify(one))]
  return `{"${kind}":[${texts.filter((text) => text !== '').join()}]${rest === '' ? '' : `,${rest}`}}`
}

/** The texts of definitions with commas between them, as work in steps. */
export function* joiningTexts(
  definitions: readonly ListedDefinition[],
  write: (one: ListedDefinition) => Work<string> | string,
): Work<string> {
  const texts: string[] = []
  for (let from = 0; from < definitions.length; from += definitionsPerStep) {
    yield definitionsPerStep * joiningCost
    const some: string[] = []
    for (const one of definitions.slice(from, from + definitionsPerStep)) {
      const text = write(one)
      some.push(typeof text === 'string' ? text : yield* text)
    }
    // Joined here: the runtime would put all small pieces together in one step.
    texts.push(some.join())
  }
  return texts.join()
}
