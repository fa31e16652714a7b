/** A request to the endpoint of a namespace, authorized and read, and the answers that the platform gives by itself. */

import { allowanceOf } from '../../fairness/allowance.ts'
import { rpcErrorBody } from '../../http/error-response.ts'
import { noStoreJson, wholeResponse } from '../../http/respond.ts'
import { rpcCodes } from '../../model/mcp.ts'
import type { View } from '../../model/view.ts'
import { type Access, decideOnMessage } from '../../policy/decide.ts'
import { shorten } from '../../schema/cut-text.ts'
import { utf8Of } from '../../storage/bytes.ts'
import { version } from '../../version.ts'
import { refusalOf, requireNoLoop } from '../gateway/forward.ts'
import type { Message } from '../gateway/message.ts'
import type { ClientGreeting } from '../gateway/sessions.ts'
import type { EndpointContext } from './endpoint-context.ts'
import type { KeptListsDeps } from './kept-lists.ts'
import type { NameLength } from './listed-names.ts'

export interface EndpointRequest extends EndpointContext {
  readonly message: Message
  /** The caller, at this URL, in this session: it alone may use the ids that were given to it. */
  readonly owner: string
  /** The session that the client sent; '' and nothing offered without one. */
  readonly client: ClientGreeting
  /** The query parameters. */
  readonly given: EndpointOptions
  /** These, and the settings of the view. */
  readonly options: EndpointOptions
  /** As the record of calls has it: `search` for a call that was found by a search. */
  readonly via: 'namespace' | 'search'
}

export interface EndpointOptions {
  readonly length: NameLength
  /** Whether the tool `connections_status` is listed. */
  readonly hasStatus: boolean
  /** Whether the list has a search in place of all tools. */
  readonly isSearch: boolean
}

/** The query parameters, and what the view says. */
export function optionsOf(given: EndpointOptions, view: View | undefined): EndpointOptions {
  return {
    length: view?.names === 64 ? 64 : given.length,
    hasStatus: given.hasStatus || view?.status === true,
    isSearch: given.isSearch || view?.search === true,
  }
}

/** The name under which the endpoint answers. */
export function serverInfo({ namespace, view }: Pick<EndpointContext, 'namespace' | 'view'>) {
  return { name: 'postern', title: view?.title ?? view?.name ?? namespace.title ?? namespace.namespace, version }
}

/**
 * Requires that the caller's policy allows a message that the platform answers by itself. Throws `forbidden`, and
 * `loop_detected` for a request that this postern has sent. `body`: another one that the rules are asked about.
 */
export async function requireAllowed(
  deps: KeptListsDeps,
  asked: EndpointRequest,
  body: unknown = asked.message.body,
): Promise<void> {
  requireNoLoop(deps, asked.context.request, asked.message)
  await requireAccess(deps, asked, { rpc: body, id: asked.message.id })
}

/** Requires that the caller's policy allows this use of the namespace. Throws `forbidden`, with `id`. */
export async function requireAccess(
  deps: KeptListsDeps,
  asked: EndpointContext,
  { rpc, id }: Pick<Access, 'rpc'> & Pick<Message, 'id'>,
): Promise<void> {
  const { access, decision } = await decideOnUse(asked, { metadata: 'narrowed', rpc })
  if (!decision.allowed) throw refusalOf(deps, asked.context, { access, decision }, { id })
}

/** Decides on this use of connections of the namespace, in the caller's turns. */
export async function decideOnUse(
  { context: { caller, request }, namespace: { namespace } }: Pick<EndpointContext, 'context' | 'namespace'>,
  use: Pick<Access, 'metadata' | 'rpc'>,
) {
  const access: Access = { namespace, resource: 'connections', operation: 'execute', ...use }
  return { access, decision: await allowanceOf(request).run(decideOnMessage(caller.blocks, access)) }
}

/**
 * The answer to a request, as JSON; a result of text or bytes is JSON already. In revision 2026-07-28 it says who
 * answers. Throws 429.
 */
export function answer(asked: EndpointRequest, result: object | string | Uint8Array): Response {
  const { context, message } = asked
  const lead = `{"jsonrpc":"2.0","id":${JSON.stringify(message.id)},"result":`
  const body =
    result instanceof Uint8Array
      ? Buffer.concat([utf8Of(lead), result, utf8Of('}')])
      : `${lead}${typeof result === 'string' ? result : resultText(asked, result)}}`
  return wholeResponse(context.request, body, { headers: noStoreJson })
}

/** A result's text, of which these members are written already. */
export function writtenResult(asked: EndpointRequest, members: string): string {
  const rest = resultText(asked, {}).slice(1)
  return `{${members}${rest === '}' ? '' : ','}${rest}`
}

function resultText(asked: EndpointRequest, result: object): string {
  if (asked.message.era === 'handshake') return JSON.stringify(result)
  const _meta = { 'io.modelcontextprotocol/serverInfo': serverInfo(asked) }
  return JSON.stringify({ ...result, resultType: 'complete', _meta })
}

/** A notification, or a reply that nobody waits for. */
export const accepted = () => new Response(null, { status: 202, headers: { 'cache-control': 'no-store' } })

/** A JSON-RPC error: status 200, but 404 for a method unknown in 2026-07-28, and 400 for an unknown revision. */
export function rpcError({ message }: EndpointRequest, code: number, text: string, data?: unknown): Response {
  const isMissing = code === rpcCodes.methodNotFound && message.era === 'stateless'
  const status = isMissing ? 404 : code === rpcCodes.unsupportedRevision ? 400 : 200
  return new Response(rpcErrorBody(code, text, message.id, data), { status, headers: noStoreJson })
}

/** The answer for everything that the caller does not see: the same for every reason (contract, 20.2). */
export function unknown(asked: EndpointRequest, what: 'tool' | 'prompt' | 'resource', name: string): Response {
  // SEP-2164: the error of a resource repeats its URI.
  const data = what === 'resource' ? { uri: name } : undefined
  return rpcError(asked, rpcCodes.invalidParams, `Unknown ${what}: ${shorten(name)}`, data)
}
