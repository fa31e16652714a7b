/** A request as it is described, and what is decided about it outside the policy (contract, 21.2). */

import { type Caller, canAccessNamespace } from '../../auth/authenticate.ts'
import { type AuthorizedConnection, namespaceOf, type RequestContext, sees } from '../../auth/authorizer.ts'
import { isGrantedForAnother, madeAtOf } from '../../auth/grants.ts'
import { managesNamespace } from '../../auth/namespace-access.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { oneConnection } from '../../auth/stored-connections.ts'
import { invalidRequest } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import type { DescribedRequest, ExplainedOutside, Verdict } from '../../model/explain.ts'
import { isConnectionId } from '../../model/names.ts'
import type { Namespace } from '../../model/organization.ts'
import { namespaceFilter } from '../../policy/decide.ts'
import type { Described, DescribedMessage } from '../../policy/explain.ts'
import { connectionIdFact } from '../../policy/metadata.ts'
import { parsingMessage } from '../gateway/message.ts'
import type { Explained } from './subject.ts'

export interface LookedAt {
  readonly request: Described
  /** It is about one connection: then its metadata decides earlier, and hides it. */
  readonly isAboutConnection: boolean
  /** The connection that was named, if the caller sees it. */
  readonly connection: AuthorizedConnection | undefined
  readonly outside: readonly ExplainedOutside[]
}

/** Looks at the namespace and the connection of a request. Throws as `describing`. */
export async function lookAt(
  { store, base }: Pick<SharedParts, 'store' | 'base'>,
  context: RequestContext,
  subject: Explained,
  given: DescribedRequest,
): Promise<LookedAt> {
  const described = await allowanceOf(context.request).run(describing(given)) // 400, 429
  const { namespace: name, connection: id } = given
  const { resource, operation } = described.request
  const found = name === undefined ? undefined : await reachedBy(context, subject.caller, name)
  const connection = found === undefined || id === undefined ? undefined : await seenBy(store, context, found, id)
  const facts = connection && { connectionId: connection.connectionId, metadata: connection.stored.connection.metadata }
  const request = facts === undefined ? described.request : { ...described.request, metadata: facts }
  const isLed = found !== undefined && (await managesNamespace(subject.caller, found, context.directory))
  const outside: ExplainedOutside[] = []
  if (subject.token !== undefined) {
    const isOld = found !== undefined && (await isForFormer(context, subject.token, { found, connection, base }))
    const words = `${subject.token.claims.jti} was allowed for another endpoint that had this name`
    outside.push(isOld ? verdictOn('token', false, words) : tokenVerdict(subject.token, request, { id, base }))
  }
  const needsReach = resource !== 'servers' || operation !== 'read'
  const isList = resource === 'namespaces' && operation === 'read' && name === undefined
  const who = subject.caller.organizationId ?? subject.caller.userId
  if (needsReach && !isList) {
    // Of another namespace it is not said whether it is there.
    const seen = context.caller.blocks.length === 0 ? '' : ', and that the credential of this request sees'
    const missing = `there is no namespace ${name} that ${who} reaches${seen}`
    const words = found === undefined ? missing : `${who} reaches ${name}`
    outside.push(verdictOn('reach', name && found !== undefined, words))
  }
  if (id !== undefined) {
    const words = connection === undefined ? `there is no connection ${id} in ${name}` : `${id} is in ${name}`
    outside.push(verdictOn('connection', connection !== undefined, words))
  }
  if ((resource === 'servers' || resource === 'namespaces') && operation === 'write') {
    const leads = isLed ? 'may change' : 'may not change'
    outside.push(verdictOn('lead', name && isLed, `${who} ${leads} ${name} and its servers`))
  }
  return { ...described, request, connection, outside }
}

/** Reads a description in steps. Throws `invalid_request` if it contradicts itself, or its message is refused. */
export function* describing(given: DescribedRequest): Work<Pick<LookedAt, 'request' | 'isAboutConnection'>> {
  const { namespace, connection, metadata } = given
  const { resource, operation } = impliedBy(given)
  const message = yield* readingMessage(given)
  const request = { namespace, resource, operation, message, metadata: factsOf(given, resource, operation) }
  const isCall = resource === 'connections' && operation === 'execute'
  const isAboutConnection = connection !== undefined || isCall || (metadata !== undefined && operation !== 'write')
  return { request, isAboutConnection }
}

/** Undefined: it depends on the namespace, which is not known. */
function verdictOn(place: string, holds: boolean | '' | undefined, words: string): ExplainedOutside {
  if (typeof holds === 'boolean') return { place, verdict: holds ? 'allow' : 'refuse', missing: [], words }
  return { place, verdict: 'depends', missing: ['namespace'], words: 'no namespace was named' }
}

/** The resource and the operation, said or implied. Throws `invalid_request` for members that exclude one another. */
function impliedBy(given: DescribedRequest): Pick<Described, 'resource' | 'operation'> {
  const { namespace, connection, metadata, tool, message } = given
  const only = (member: 'resource' | 'operation', value: string, because: string) => {
    if ((given[member] ?? value) !== value)
      throw invalidRequest(`request.${member}: must be ${value} if the request has ${because}`)
  }
  const call = tool === undefined ? 'message' : 'tool'
  const isCall = tool !== undefined || message !== undefined
  const subject = connection === undefined ? 'metadata' : 'connection'
  const isConnection = connection !== undefined || metadata !== undefined
  if (tool !== undefined && message !== undefined)
    throw invalidRequest('request.message: cannot be combined with tool: send one of the two')
  if (given.arguments !== undefined && tool === undefined)
    throw invalidRequest('request.arguments: name the tool too, in request.tool')
  if (connection !== undefined && metadata !== undefined)
    throw invalidRequest('request.metadata: cannot be combined with connection: send one of the two')
  if (connection !== undefined && namespace === undefined)
    throw invalidRequest('request.connection: name its namespace, too')
  if (isCall) only('operation', 'execute', call)
  if (isCall || isConnection) only('resource', 'connections', isCall ? call : subject)
  return {
    resource: isCall || isConnection ? 'connections' : given.resource,
    operation: isCall ? 'execute' : given.operation,
  }
}

/** A call of this tool, whose arguments are not known. */
export function toolCall(name: string): DescribedMessage {
  return { body: { jsonrpc: '2.0', method: 'tools/call', params: { name } }, isKnown: (path) => knownOfTool.test(path) }
}

/** A call of a tool of which not even the name is known. */
export const anyToolCall: DescribedMessage = {
  ...toolCall(''),
  isKnown: (path) => path !== 'params.name' && knownOfTool.test(path),
}

/** Paths of a call that are known by the name of its tool alone; `params` is an object, and the name has no parts. */
const knownOfTool = /^(?:method|jsonrpc|params|params\.name(?:\..*)?)$/s

function* readingMessage({ tool, arguments: given, message }: DescribedRequest): Work<DescribedMessage | undefined> {
  if (tool !== undefined && given === undefined) return toolCall(tool)
  if (tool !== undefined) {
    const body = { jsonrpc: '2.0', method: 'tools/call', params: { name: tool, arguments: given } }
    return { body, isKnown: (path) => path !== 'id' }
  }
  if (message === undefined) return undefined
  yield* parsingMessage(Buffer.from(JSON.stringify(message))) // 400
  // The message as it was sent: its text has no -0, which matches nothing.
  return { body: message, isKnown: () => true }
}

/** The namespace, if the caller sees it and the subject reaches it. */
async function reachedBy(context: RequestContext, subject: Caller, name: string) {
  const namespace = await namespaceOf(context, name)
  if (namespace === undefined || !namespaceFilter(context.caller.blocks)(name)) return undefined
  return (await canAccessNamespace(subject, namespace, context.directory)) ? namespace : undefined
}

async function seenBy(
  store: SharedParts['store'],
  context: RequestContext,
  { namespace }: Namespace,
  connectionId: string,
): Promise<AuthorizedConnection | undefined> {
  const ref = { namespace, connectionId }
  const stored = isConnectionId(connectionId) ? await oneConnection(store, context.request, ref) : undefined
  return stored !== undefined && sees(context, ref, stored) ? { ...ref, stored } : undefined
}

function factsOf(
  { metadata, connection }: DescribedRequest,
  resource: Described['resource'],
  operation: Described['operation'],
): Described['metadata'] {
  if (metadata !== undefined) {
    const { [connectionIdFact]: id } = metadata
    return typeof id === 'string' ? { connectionId: id, metadata } : { metadata }
  }
  if (resource !== undefined && resource !== 'connections') return 'none'
  return resource === 'connections' && operation === 'read' && connection === undefined ? 'narrowed' : undefined
}

/** Whether a client that signed in was allowed an endpoint that had this name before, as `authorizeCall` asks. */
async function isForFormer(
  { directory }: RequestContext,
  { claims }: NonNullable<Explained['token']>,
  { found, connection, base }: { found: Namespace; connection: AuthorizedConnection | undefined; base: string },
): Promise<boolean> {
  const [, , namespace = '', at, viewName = ''] = claims.aud.slice(base.length).split('/')
  if (namespace !== found.namespace || (at !== 'mcp' && at !== connection?.connectionId)) return false
  const view = at === 'mcp' && viewName !== '' ? await directory.view(namespace, viewName) : undefined
  const made = at === 'mcp' ? view : connection?.stored.connection
  return isGrantedForAnother(directory, claims, madeAtOf(found, made))
}

/** Whether the token is good now, and for such a request: a client's token is good at one endpoint alone. */
function tokenVerdict(
  { claims: { iss, aud, jti }, state }: NonNullable<Explained['token']>,
  { namespace, resource, operation }: Described,
  { id, base }: { readonly id: string | undefined; readonly base: string },
): ExplainedOutside {
  const place = 'token'
  if (state !== 'active') return { place, verdict: 'refuse', missing: [], words: `${jti} is ${state}` }
  if (aud === iss) return { place, verdict: 'allow', missing: [], words: `${jti} is active` }
  const [, , at, connection] = aud.slice(base.length).split('/')
  const asked = { resource, operation, namespace, ...(connection !== 'mcp' && { connection: id }) }
  const good = { resource: 'connections', operation: 'execute', namespace: at, connection }
  const parts = Object.keys(asked) as (keyof typeof asked)[]
  const missing = parts.filter((part) => asked[part] === undefined)
  const isOther = parts.some((part) => asked[part] !== undefined && asked[part] !== good[part])
  const verdict: Verdict = isOther ? 'refuse' : missing.length > 0 ? 'depends' : 'allow'
  return { place, verdict, missing: isOther ? [] : missing, words: `${jti} is valid only at ${aud}` }
}
