/** Streams of list changes: `GET` in the handshake era, `subscriptions/listen` in 2026-07-28 (contract, 20.6). */

import { credentialIdOf } from '../../auth/authenticate.ts'
import { invalidRequest, PlatformError } from '../../errors.ts'
import { listenerOf } from '../../fairness/owner.ts'
import type { Work } from '../../fairness/turns.ts'
import { EventStream, holdStream } from '../gateway/event-stream.ts'
import { messageEvent } from '../gateway/relayed-stream.ts'
import { type ListKind, listKinds } from '../gateway/tool-requests.ts'
import { inBackground } from './background.ts'
import { clientOwnerOf, openClient } from './client-session.ts'
import { enterEndpoint } from './endpoint-context.ts'
import type { EndpointDeps } from './endpoint-deps.ts'
import {
  decideOnUse,
  type EndpointOptions,
  type EndpointRequest,
  optionsOf,
  requireAllowed,
} from './endpoint-request.ts'
import { type Shown, withLists } from './joined-lists.ts'
import { type ChangedKind, changedKinds, type Digests, listsOf } from './list-changes.ts'
import { listedEntries } from './listed-entries.ts'

/** Bytes that a client has not read. Past it: its stream ends. */
const unreadBytesMax = 64 * 1024
/** Cost of hashing a character of a definition, in the unit of `sliceCost`. */
const hashingCost = 0.1

type Listening = Pick<EndpointRequest, 'context' | 'namespace' | 'view' | 'given'>

/** Opens the stream of a client's session. Throws 400 without one, and 404 for one of somebody else. */
export async function openSessionStream(deps: EndpointDeps, asked: Listening): Promise<Response> {
  const { request } = asked.context
  const sessionId = request.headers.get('mcp-session-id')
  if (request.headers.get('accept')?.includes('text/event-stream') !== true)
    throw invalidRequest('accept: must have text/event-stream') // 400
  if (sessionId === null) throw invalidRequest('mcp-session-id: is missing: initialize first') // 400
  if (openClient(deps.sessionKey, clientOwnerOf(asked.context), sessionId).sessionId === '')
    throw new PlatformError('session_not_found', 'The session has ended: initialize again') // 404
  return openStream(deps, asked, { kinds: new Set(changedKinds) })
}

/** Answers `subscriptions/listen`. */
export async function openSubscription(deps: EndpointDeps, asked: EndpointRequest): Promise<Response> {
  await requireAllowed(deps, asked) // 403
  const { message } = asked
  const { notifications } = (message.body['params'] ?? {}) as { notifications?: Record<string, unknown> }
  const kinds = new Set(changedKinds.filter((kind) => notifications?.[`${kind}ListChanged`] === true))
  const _meta = { 'io.modelcontextprotocol/subscriptionId': String(message.id) }
  const honoured = Object.fromEntries([...kinds].map((kind) => [`${kind}ListChanged`, true]))
  const first = {
    jsonrpc: '2.0',
    method: 'notifications/subscriptions/acknowledged',
    params: { notifications: honoured, _meta },
  }
  return openStream(deps, asked, { kinds, params: { _meta }, first })
}

interface Told {
  readonly kinds: ReadonlySet<ChangedKind>
  /** Of each notification. */
  readonly params?: object
  /** The message that the stream begins with. */
  readonly first?: object
}

/** The stream, which ends within a second of its credential, membership, view or namespace. Throws 429. */
async function openStream(deps: EndpointDeps, asked: Listening, { kinds, params, first }: Told): Promise<Response> {
  const { context, namespace, view, given } = asked
  const { caller, request } = context
  using held = holdStream(deps, context)
  const events = new EventStream(unreadBytesMax)
  const write = (text: string) => {
    if (events.isFull) events.close()
    else events.write(text)
  }
  const tell = (kind: ChangedKind) =>
    write(messageEvent(JSON.stringify({ jsonrpc: '2.0', method: `notifications/${kind}/list_changed`, params })))
  held.defer(
    await deps.changes.listen({
      namespace: namespace.namespace,
      view: view?.name,
      holder: caller,
      group: [credentialIdOf(caller), namespace.namespace, view?.name ?? '', JSON.stringify(given)].join('\0'),
      ...{ kinds, tell },
      look: () => digestsOf(deps, request, given),
      comment: () => write(':\n\n'),
    }),
  )
  // Without a word at its end: such a stream carries notifications and nothing else.
  held.defer(
    deps.watchStream(
      () => enterEndpoint(deps, request, true),
      () => events.close(),
    ),
  )
  // A comment, so that the client has the head at once.
  write(first === undefined ? ':\n\n' : messageEvent(JSON.stringify(first)))
  return events.response(held.move())
}

/**
 * A hash of each list as the client would get it now, without waiting for any server: what one that is asked says now
 * changes a version, for which this is called again.
 */
async function digestsOf(deps: EndpointDeps, request: Request, given: EndpointOptions): Promise<Digests> {
  const { context, namespace, view } = await enterEndpoint(deps, request, true)
  const options = optionsOf(given, view)
  const asked = { namespace: namespace.namespace, mayAsk: 'behind' } as const
  // Others' writes cause this work: the listener's own requests must not wait for it.
  return inBackground(deps, context, { holder: listenerOf(context.caller) }, (own, allowance) =>
    withLists(deps, own, asked, async (shownAt) => {
      const lists = new Set<ListKind>()
      for (const kind of changedKinds.flatMap((one) => listsOf[one])) {
        const rpc = { jsonrpc: '2.0', id: 1, method: listKinds[kind].method, params: {} }
        const { decision } = await decideOnUse({ context: own, namespace }, { metadata: 'narrowed', rpc })
        if (decision.allowed) lists.add(kind)
      }
      return allowance.run(digesting(await shownAt(options.length), lists, { options, view }))
    }),
  )
}

/** The hashes, as work in steps: all lists together may have 16 MB. `lists`: those that the client may ask for. */
function* digesting(
  shown: readonly Shown[],
  lists: ReadonlySet<ListKind>,
  about: Pick<EndpointRequest, 'options' | 'view'>,
): Work<Digests> {
  const digests: Partial<Record<ChangedKind, string>> = {}
  for (const kind of changedKinds) {
    // A sum: another order is no change, and sorting is no work of small steps.
    let sum = 0n
    for (const list of listsOf[kind]) {
      if (!lists.has(list)) continue
      const { joined, own } = yield* listedEntries(shown, list, about)
      for (const one of joined.definitions) {
        yield one.size * hashingCost
        sum += Bun.hash(`${list} ${yield* one.writing()}`) as bigint
      }
      for (const one of own) sum += Bun.hash(JSON.stringify(one)) as bigint
    }
    digests[kind] = String(sum)
  }
  return digests as Digests
}
