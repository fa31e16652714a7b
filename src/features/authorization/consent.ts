/**
 * `/oauth/authorize`: a client sends its user here, and the user allows or denies (contract, 13.5, 13.6). Nothing
 * redirects to a client before the user has decided: a mistake in the request is a page.
 */

import { contextOf } from '../../auth/authorizer.ts'
import { endForOwnHost, requireFormToken, withCookies } from '../../auth/browser-sessions.ts'
import type { Grant } from '../../auth/grants.ts'
import { invalidRequest, PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { requireRate } from '../../fairness/rate-limit.ts'
import { type Form, readForm } from '../../http/form.ts'
import { handlersOf } from '../../http/handler.ts'
import { redirect } from '../../http/html-page.ts'
import { pathOf } from '../../http/path.ts'
import { readQuery } from '../../http/query.ts'
import { codeSeconds } from '../../limits.ts'
import { chosenToolsMax } from '../../model/mcp.ts'
import { findAsked } from './asked-resource.ts'
import { findClient } from './clients.ts'
import { type Asked, consentPage, formOf, grantDays, searchOf, toolChoices } from './consent-page.ts'
import type { OAuthDeps } from './oauth-deps.ts'
import { OAuthError } from './oauth-error.ts'
import { type Resource, resourceIn, resourceOf } from './oauth-metadata.ts'
import { policyOf } from './policy.ts'
import { isRegistered, withParameters } from './redirect-uris.ts'

/** Ours: characters of the names of all tools together that the consent page lists. Past it: the user types the names of the tools. */
const listedToolsCharsMax = 16_384
/** Ours: characters of `state` and other parameters that are passed on. Past it: 400. */
const stateCharsMax = 2000

/** The consent behind an authorization code. */
export interface CodeRecord
  extends Pick<Grant, 'clientId' | 'namespace' | 'connectionId' | 'view' | 'madeAt' | 'userId' | 'keyId' | 'tools'> {
  readonly redirectUri: string
  /** The S256 code challenge (RFC 7636). */
  readonly challenge: string
  readonly days: number
}

export const authorizeHandlers = handlersOf({ authorizePage, decideConsent })

async function authorizePage(deps: OAuthDeps, request: Request): Promise<Response> {
  const asked = await readRequest(deps, request) // 400, 404, 429
  return asked instanceof Response ? asked : show(deps, request, asked) // 303
}

async function decideConsent(deps: OAuthDeps, request: Request): Promise<Response> {
  const { issuer, records } = deps
  const before = await readRequest(deps, request) // 400, 404, 429
  if (before instanceof Response) return before // 303
  const form = await readForm(request) // 400
  // The form may have come slowly: the session may have ended in the meantime.
  const asked = await readRequest(deps, request) // 400, 404, 429
  if (asked instanceof Response) return asked // 303
  const { client, redirectUri, challenge, state, session, resource } = asked
  requireFormToken(form.one('form'), session.formToken(formOf(asked))) // 403
  const decision = readDecision(form, resource) // 400
  if (typeof decision === 'object' && 'problem' in decision) return show(deps, request, asked, decision.problem)
  const answer = async (parameters: Record<string, string>) => {
    const to = withParameters(redirectUri, { ...parameters, ...(state !== undefined && { state }), iss: issuer })
    return withCookies(redirect(to), await endForOwnHost(to, request, deps))
  }
  if (decision === 'deny') return answer({ error: 'access_denied' })
  const { namespace, connectionId, view, madeAt } = resource
  const { userId, keyId } = session.caller
  // Each becomes a grant, or is kept until it has expired.
  requireRate(deps.newGrants.take(userId), 'This user gives clients access too often') // 429
  const record: CodeRecord = {
    ...{ clientId: client.clientId, redirectUri, challenge, namespace, madeAt, userId, keyId },
    ...(connectionId !== undefined && { connectionId }),
    ...(view !== undefined && { view }),
    ...decision,
  }
  return answer({ code: await records.add('code', record, codeSeconds) })
}

/** The page, with the tools of the resource if they can be listed. `problem`: with the user's last choice. */
async function show(deps: OAuthDeps, request: Request, asked: Asked, problem?: string): Promise<Response> {
  const tools = await deps.listTools(asked.context, asked.resource)
  const isShort = tools !== undefined && tools.map(({ name }) => name).join('').length <= listedToolsCharsMax
  const choices = isShort ? await allowanceOf(request).run(toolChoices(tools)) : undefined // 429
  // Servers, and turns, may have been waited for.
  const now = await enter(deps, request, asked.resource) // 404
  if (now instanceof Response) return now // 303
  // Another one of its name has tools of its own.
  const isSame = now.resource.madeAt === asked.resource.madeAt
  return consentPage(deps.base, { ...asked, ...now }, isSame ? choices : undefined, problem)
}

/** Checks what can be checked before anybody has signed in. Throws `invalid_request`. */
function readParameters(query: ReadonlyMap<string, string>) {
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
 * The whole request, or the redirect to sign in and come back. Throws 404, and `invalid_request` with a text for the
 * user; `rate_limited` if too many documents of clients are fetched for them.
 */
async function readRequest(deps: OAuthDeps, request: Request): Promise<Asked | Response> {
  const { clientId, redirectUri, challenge, resource, state } = readParameters(readQuery(request.url))
  const session = await deps.sessions.find(request)
  if (session === undefined) return toSignIn(deps, request)
  const named = resourceIn(deps, resource)
  if (named === undefined) {
    const like = resourceOf(deps, { namespace: 'NAMESPACE', connectionId: 'CONNECTION' })
    throw invalidRequest(
      `resource: must be the URL of a connection, a namespace or a view of this postern, like ${like}`,
    )
  }
  const client = await findClient(deps, clientId, session.caller).catch((thrown) => {
    if (thrown instanceof OAuthError) throw invalidRequest(thrown.message)
    throw thrown
  })
  if (!isRegistered(redirectUri, client.redirectUris)) {
    throw invalidRequest(
      'redirect_uri: is not one that this client has registered: remove the server from the client, and add it again',
    )
  }
  // The document of a client may have been waited for.
  const entered = await enter(deps, request, named) // 404
  return entered instanceof Response ? entered : { client, redirectUri, challenge, state, ...entered }
}

/** The session and the resource, as they are now, or the redirect to sign in and come back. Throws 404. */
async function enter(
  deps: OAuthDeps,
  request: Request,
  { namespace, connectionId, view }: Resource,
): Promise<Pick<Asked, 'session' | 'context' | 'resource'> | Response> {
  const session = await deps.sessions.find(request)
  if (session === undefined) return toSignIn(deps, request)
  const context = contextOf(session, request, deps.clock)
  return { session, context, resource: await findAsked(deps, context, { namespace, connectionId, view }) }
}

function toSignIn({ base }: OAuthDeps, request: Request): Response {
  const next = `${pathOf(request.url)}${searchOf(request)}`
  return redirect(`${base}/signin?${new URLSearchParams({ next })}`)
}

/** The user's decision, or the problem with it. Throws `invalid_request` for what the page does not offer. */
function readDecision(form: Form, { namespace, connectionId }: Resource) {
  const decision = form.one('decision')
  if (decision === 'deny') return 'deny'
  if (decision !== 'allow') throw invalidRequest('decision: must be allow or deny')
  const days = grantDays.find((one) => String(one) === form.one('days'))
  if (days === undefined) throw invalidRequest(`days: must be one of ${grantDays.join(', ')}`)
  const access = form.one('access')
  if (access === undefined) return { problem: 'Choose which tools the client may use.' }
  if (access !== 'all' && access !== 'some') throw invalidRequest('access: must be all or some')
  // Typed names are separated by commas or spaces. That of a box is taken as it is: a server may choose any.
  const given = form.getAll('tool')
  const names = form.one('typed') === undefined ? given : given.flatMap((text) => text.split(/[\s,]+/))
  const tools = [...new Set(names.filter((name) => name !== ''))]
  if (access === 'all') {
    // A user who ticks boxes may have forgotten the choice above them.
    if (tools.length > 0)
      return { problem: 'You chose all tools, and some of them. Choose “Use only these tools”, or none of the boxes.' }
    return { days }
  }
  if (tools.length === 0) return { problem: 'Choose at least one tool, or “Use all tools”.' }
  if (tools.length > chosenToolsMax) return { problem: `At most ${chosenToolsMax} tools can be chosen.` }
  try {
    policyOf({ namespace, ...(connectionId !== undefined && { connectionId }), tools })
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error
    return { problem: error.message }
  }
  return { days, tools }
}
