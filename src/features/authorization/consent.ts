/**
 * `/oauth/authorize`: a client sends its user here, and the user allows or denies (sign-in contract, 3.5, 3.6). Nothing
 * redirects to a client before the user has decided: a mistake in the request is a page.
 */

import type { AuthorizedConnection, Authorizer, RequestContext } from '../../auth/authorizer.ts'
import { type BrowserSession, type BrowserSessions, requireFormToken } from '../../auth/browser-sessions.ts'
import type { ExpiringRecords } from '../../auth/expiring-records.ts'
import { invalidRequest, PlatformError } from '../../errors.ts'
import type { Holder } from '../../fairness/owner.ts'
import { type Form, readForm } from '../../http/form.ts'
import { redirect } from '../../http/html-page.ts'
import { pathOf } from '../../http/path.ts'
import { readQuery } from '../../http/query.ts'
import { codeSeconds } from '../../limits.ts'
import type { Store } from '../../storage/store.ts'
import type { Client, Clients } from './clients.ts'
import { consentPage, grantDays } from './consent-page.ts'
import { OAuthError } from './oauth-error.ts'
import { connectionOf, type Endpoints, resourceOf } from './oauth-metadata.ts'
import { policyOf } from './policy.ts'
import { isRegistered, withParameters } from './redirect-uris.ts'

/** Ours: tools that the consent page lists, and that a grant may name; a token must fit its header. Past it: they are typed, or 400. */
const grantToolsMax = 200
/** Ours: characters of `state` and other parameters that are passed on. Past it: 400. */
const stateCharsMax = 2000

/** The consent behind an authorization code. */
export interface CodeRecord {
  readonly clientId: string
  readonly redirectUri: string
  /** The S256 code challenge (RFC 7636). */
  readonly challenge: string
  readonly namespace: string
  readonly connectionId: string
  readonly userId: string
  readonly keyId: string
  readonly tools?: readonly string[]
  readonly days: number
  /** When the connection was made: another one of the same name is not the one that was allowed. */
  readonly connectionMade: string
}

export interface AuthorizeDeps {
  readonly authorizer: Pick<Authorizer, 'requireConnection'>
  readonly sessions: BrowserSessions
  readonly clients: Clients
  readonly records: ExpiringRecords
  readonly store: Pick<Store, 'commit'>
  readonly endpoints: Endpoints
  /** Names of the tools behind a connection; undefined if the server does not list them in time. */
  readonly listTools: (context: RequestContext, connection: AuthorizedConnection) => Promise<string[] | undefined>
}

/** The caller and the connection of a consent page, and the problem that it shows. */
interface Shown {
  readonly context: RequestContext
  readonly connection: AuthorizedConnection
  readonly problem?: string
}

/** A valid request of a client, for one connection. */
interface AuthorizationRequest {
  readonly client: Client
  readonly redirectUri: string
  readonly challenge: string
  readonly state: string | undefined
  readonly namespace: string
  readonly connectionId: string
}

export function authorizeHandlers(deps: AuthorizeDeps) {
  return {
    authorizePage: (request: Request) => authorizePage(deps, request),
    decideConsent: (request: Request) => decideConsent(deps, request),
  }
}

async function authorizePage(deps: AuthorizeDeps, request: Request): Promise<Response> {
  const { authorizer } = deps
  requireParameters(readQuery(request.url)) // 400
  const session = await sessionOf(deps, request)
  if (session instanceof Response) return session // 303
  const asked = await readRequest(deps, request, session.caller) // 400, 429
  const context = { ...session, request }
  const connection = await authorizer.requireConnection(context, 'execute', asked) // 404
  return show(deps, asked, session, { context, connection })
}

async function decideConsent(deps: AuthorizeDeps, request: Request): Promise<Response> {
  const { sessions, authorizer, endpoints, records, store } = deps
  const session = await sessionOf(deps, request)
  if (session instanceof Response) return session // 303
  const form = await readForm(request) // 400
  const asked = await readRequest(deps, request, session.caller) // 400, 429
  const context = { ...session, request }
  const connection = await authorizer.requireConnection(context, 'execute', asked) // 404
  requireFormToken(form.one('form'), session.formToken(formOf(request, connection))) // 403
  const decision = readDecision(form, asked) // 400
  if (typeof decision === 'object' && 'problem' in decision) {
    return show(deps, asked, session, { context, connection, problem: decision.problem })
  }
  const answer = async (parameters: Record<string, string | undefined>) => {
    const to = withParameters(asked.redirectUri, { ...parameters, state: asked.state, iss: endpoints.issuer })
    const response = redirect(to)
    // Cookies have no port (RFC 6265, 8.5): a client on our own host would get that of the session, and with it
    // all that its user may do. The browser forgets it before it goes there.
    if (new URL(to).hostname === new URL(endpoints.base).hostname)
      response.headers.set('set-cookie', await sessions.end(request))
    return response
  }
  if (decision === 'deny') return answer({ error: 'access_denied' })
  const { namespace, connectionId } = asked
  const record: CodeRecord = {
    clientId: asked.client.clientId,
    redirectUri: asked.redirectUri,
    challenge: asked.challenge,
    namespace,
    connectionId,
    userId: session.caller.userId,
    keyId: session.caller.keyId,
    connectionMade: connection.stored.connection.createdAt,
    ...decision,
  }
  const { secret, entry } = records.create('code', record, codeSeconds)
  await store.commit({ puts: [entry], deletes: await records.expired() })
  return answer({ code: secret })
}

/** The session, or the redirect to sign in and come back. */
async function sessionOf(deps: AuthorizeDeps, request: Request): Promise<BrowserSession | Response> {
  const { sessions, endpoints } = deps
  const session = await sessions.find(request)
  const next = `${pathOf(request.url)}${searchOf(request)}`
  return session ?? redirect(`${endpoints.base}/signin?${new URLSearchParams({ next })}`)
}

/** `problem`: what was wrong with the user's choice. Then the page is 400. */
async function show(
  deps: AuthorizeDeps,
  asked: AuthorizationRequest,
  session: BrowserSession,
  { context, connection, problem }: Shown,
): Promise<Response> {
  const { endpoints } = deps
  const tools = await deps.listTools(context, connection)
  const { state } = connection.stored.connection.status
  return consentPage({
    action: `${endpoints.base}/oauth/authorize${searchOf(context.request)}`,
    formToken: session.formToken(formOf(context.request, connection)),
    client: asked.client,
    redirectUri: asked.redirectUri,
    namespace: asked.namespace,
    connectionId: asked.connectionId,
    userId: session.caller.userId,
    signInUrl: `${endpoints.base}/signin`,
    setupUrl:
      state === 'auth_required' || state === 'input_required'
        ? `${endpoints.base}/connect/${asked.namespace}/${asked.connectionId}/setup`
        : undefined,
    tools: tools !== undefined && tools.length <= grantToolsMax ? tools : undefined,
    problem,
  })
}

/** A form is good for the very request and connection that its page showed. */
function formOf(request: Request, { stored: { connection } }: AuthorizedConnection): string {
  return `consent\0${searchOf(request)}\0${connection.createdAt}\0${connection.mcpUrl}`
}

function searchOf({ url }: Request): string {
  const start = url.indexOf('?')
  return start < 0 ? '' : url.slice(start)
}

/** Checks what can be checked before anybody has signed in. Throws `invalid_request`. */
function requireParameters(query: ReadonlyMap<string, string>): {
  readonly clientId: string
  readonly redirectUri: string
  readonly challenge: string
  readonly resource: string
  readonly state: string | undefined
} {
  const required = (name: string) => {
    const value = query.get(name)
    if (value === undefined || value === '') throw invalidRequest(`${name}: is missing from the client’s request`)
    return value
  }
  if (required('response_type') !== 'code') throw invalidRequest('response_type: must be code')
  const challenge = required('code_challenge')
  if (query.get('code_challenge_method') !== 'S256') throw invalidRequest('code_challenge_method: must be S256')
  if (!/^[A-Za-z0-9_-]{43}$/.test(challenge)) throw invalidRequest('code_challenge: is not an S256 challenge')
  const state = query.get('state')
  if (state !== undefined && state.length > stateCharsMax) {
    throw invalidRequest(`state: has more than ${stateCharsMax} characters`)
  }
  return {
    clientId: required('client_id'),
    redirectUri: required('redirect_uri'),
    challenge,
    resource: required('resource'),
    state,
  }
}

/**
 * The whole request. `holder`: for whom the client's document is fetched. Throws `invalid_request` with a text for the
 * user, and `rate_limited`.
 */
async function readRequest(
  { clients, endpoints }: AuthorizeDeps,
  request: Request,
  holder: Holder,
): Promise<AuthorizationRequest> {
  const { clientId, redirectUri, challenge, resource, state } = requireParameters(readQuery(request.url))
  const connection = connectionOf(endpoints, resource)
  if (connection === undefined) {
    throw invalidRequest(
      `resource: must be the URL of a connection here, like ${resourceOf(endpoints, 'NAMESPACE', 'CONNECTION')}`,
    )
  }
  const client = await clients.find(clientId, holder).catch((thrown) => {
    if (thrown instanceof OAuthError) throw invalidRequest(thrown.message)
    throw thrown
  })
  if (!isRegistered(redirectUri, client.redirectUris)) {
    throw invalidRequest('redirect_uri: is not one that this client has registered')
  }
  return { client, redirectUri, challenge, state, ...connection }
}

/**
 * The user's decision, or the problem with it: then the page is shown again. Throws `invalid_request` for anything that
 * the page does not offer.
 */
function readDecision(
  form: Form,
  { namespace, connectionId }: AuthorizationRequest,
): 'deny' | { readonly days: number; readonly tools?: readonly string[] } | { readonly problem: string } {
  const decision = form.one('decision')
  if (decision === 'deny') return 'deny'
  if (decision !== 'allow') throw invalidRequest('decision: must be allow or deny')
  const days = grantDays.find((one) => String(one) === form.one('days'))
  if (days === undefined) throw invalidRequest(`days: must be one of ${grantDays.join(', ')}`)
  const access = form.one('access')
  if (access === undefined) return { problem: 'Choose what it may use.' }
  if (access !== 'all' && access !== 'some') throw invalidRequest('access: must be all or some')
  // Typed names are separated by commas or spaces. That of a box is taken as it is: a server may choose any.
  const given = form.all('tool')
  const names = form.one('typed') === undefined ? given : given.flatMap((text) => text.split(/[\s,]+/))
  const tools = names.filter((name) => name !== '')
  if (access === 'all') {
    // A user who ticks boxes may have forgotten the choice above them.
    if (tools.length > 0)
      return { problem: 'You chose all tools, and some of them. Choose “Use only these tools”, or none of the boxes.' }
    return { days }
  }
  if (tools.length === 0) return { problem: 'Choose at least one tool, or “Use all tools”.' }
  if (tools.length > grantToolsMax) return { problem: `At most ${grantToolsMax} tools can be chosen.` }
  try {
    policyOf({ namespace, connectionId, tools })
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error
    return { problem: error.message }
  }
  return { days, tools }
}
