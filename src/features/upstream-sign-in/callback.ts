/**
 * `/oauth/callback`: the authorization server of a connection's server sends the browser back (contract, 14.5). A
 * request that does not belong to an attempt of this very browser is refused, and nothing of it is shown or sent on.
 */

import { isStillGood } from '../../auth/maker.ts'
import { sealPart, targetOf } from '../../auth/sealed-parts.ts'
import { setupStateOf, withSignInEnd } from '../../auth/setup-links.ts'
import { invalidRequest, PlatformError } from '../../errors.ts'
import type { Holder } from '../../fairness/owner.ts'
import { handlersOf } from '../../http/handler.ts'
import { html } from '../../http/html.ts'
import { page, redirect, row } from '../../http/html-page.ts'
import { readInteger, readQuery } from '../../http/query.ts'
import type { UpstreamTarget } from '../../model/input-fields.ts'
import { isConnectionId, isSlug } from '../../model/names.ts'
import { findConnection, type StoredConnection } from '../../storage/connections.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import { type ProbeResult, probeServer } from '../../upstream/probe.ts'
import { type Upstream, UpstreamError } from '../../upstream/upstream.ts'
import { type Attempt, browserCookie, hashOf } from './begin.ts'
import { forgetClient, redirectUriOf, replaceStored, type UpstreamSignInDeps } from './oauth-client.ts'
import { createOAuthFetch, holderOf, SignInProblem } from './oauth-fetch.ts'
import { minuteOf } from './setup-pages.ts'
import { exchangeCode, lastTimeMs, revokeTokens, signInEnd, type UpstreamTokens, withoutTokens } from './tokens.ts'

export const callbackHandlers = handlersOf({
  oauthCallback,
  oauthDone: (_: UpstreamSignInDeps, request: Request) => connectedPage(request),
})

async function oauthCallback(deps: UpstreamSignInDeps, request: Request): Promise<Response> {
  const { base } = deps
  const parameters = new URLSearchParams(request.url.slice(request.url.indexOf('?') + 1))
  const attempt = await attemptOf(deps, request, parameters) // 400
  // A person who came by a link with a ticket has no session, and opens that link again.
  const setupUrl = attempt.by.userId === undefined ? undefined : deps.links.urlOf(attempt.ref)
  const error = parameters.get('error')
  if (error !== null) return refusedPage(attempt, error, parameters.get('error_description'), setupUrl)
  const end = await finish(deps, attempt, parameters).catch((thrown) => {
    throw thrown instanceof PlatformError && setupUrl !== undefined ? thrown.with({ setupUrl }) : thrown
  }) // 502, 400
  const until = end === undefined ? {} : { until: String(Math.floor(Date.parse(end) / 1000)) }
  return redirect(`${base}/oauth/done?${new URLSearchParams({ ...attempt.ref, ...until })}`)
}

/** The attempt that the parameters belong to, which is used up. Throws `invalid_request`, always with one text. */
async function attemptOf(deps: UpstreamSignInDeps, request: Request, parameters: URLSearchParams): Promise<Attempt> {
  const { records, base } = deps
  const refused = invalidRequest('This sign-in is unknown here, was used, or has expired: start again')
  if (new Set(parameters.keys()).size !== [...parameters.keys()].length) throw refused
  const found = await records.find<Attempt>('attempt', parameters.get('state') ?? '')
  if (found === undefined) throw refused
  const cookie = browserCookie(base).of(request)
  if (cookie === undefined || hashOf(cookie) !== found.value.browser) throw refused
  const { server } = found.value
  const iss = parameters.get('iss')
  // Mix-up (RFC 9207): compared to the letter, before anything else of the answer is read.
  if (iss === null ? server.authorization_response_iss_parameter_supported === true : iss !== server.issuer)
    throw refused
  if (!(await records.take(found, request))) throw refused
  return found.value
}

/** The connection of an attempt. Throws 400 if it has changed, or if the attempt's maker may no longer access it. */
async function connectionOf(deps: UpstreamSignInDeps, { ref, setupState, maker }: Attempt): Promise<StoredConnection> {
  const { store, directory } = deps
  const stored = await findConnection(store, ref.namespace, ref.connectionId)
  const isSame = stored !== undefined && setupStateOf({ ref, ...stored }) === setupState
  if (isSame && (await isStillGood(maker, ref.namespace, await directory.current()))) return stored
  throw invalidRequest('The connection has changed since this sign-in began: start again')
}

async function keep(deps: UpstreamSignInDeps, attempt: Attempt, tokens: UpstreamTokens, probed: ProbeResult) {
  const { signInKey } = deps
  const { status, serverInfo } = probed
  const { ref, by } = attempt
  const { userId } = by
  const kept = userId === undefined ? tokens : { ...tokens, userId }
  await decideAgain('the connection', async () => {
    const before = await connectionOf(deps, attempt)
    const end = signInEnd(tokens)
    const privatePart = {
      ...withoutTokens(before.privatePart),
      tokens: sealPart('tokens', kept, ref, signInKey),
      ...(end !== undefined && { signedInUntil: end }),
    }
    const connection = {
      ...before.connection,
      status: withSignInEnd(status, privatePart),
      ...(serverInfo && { serverInfo }),
    }
    const after = { connection, privatePart }
    return (await replaceStored(deps, ref, before, after)) || 'again'
  })
}

/** Exchanges the code, tries the token, keeps it, and says when it ends. Throws SignInProblem, `invalid_request`. */
async function finish(deps: UpstreamSignInDeps, attempt: Attempt, parameters: URLSearchParams) {
  const { upstream, base, audit, clock } = deps
  const stored = await connectionOf(deps, attempt) // 400
  const holder = await holderOf(deps, attempt.ref, attempt.by)
  const fetch = createOAuthFetch(upstream, 'Exchanging the code', holder)
  const callback = { redirectUri: redirectUriOf(base), parameters }
  const tokens = await exchangeCode(attempt, callback, fetch, clock.now()).catch(async (thrown) => {
    const { error: code } = ((thrown as Error).cause ?? {}) as { error?: unknown }
    // The next sign-in registers again.
    if (code === 'invalid_client' && attempt.client.isRegistered === true)
      await forgetClient(deps, attempt.server.issuer, attempt.client)
    throw thrown
  }) // 502
  try {
    const target = targetOf(stored, attempt.ref, deps.headersKey)
    await keep(deps, attempt, tokens, await probe(upstream, target, holder, tokens)) // 502, 400
  } catch (thrown) {
    // Nobody has them: the connection may have gone meanwhile.
    if (thrown instanceof PlatformError) void revokeTokens(tokens, fetch).catch(() => {})
    throw thrown
  }
  const { ref, server, by } = attempt
  await audit.record('upstream.signed_in', { ...ref, issuer: server.issuer, ...by })
  return signInEnd(tokens)
}

/** Asks the server with the token. Throws SignInProblem if it does not take it. */
async function probe(
  upstream: Upstream,
  { url, headers }: UpstreamTarget,
  holder: Holder,
  { accessToken }: UpstreamTokens,
): Promise<ProbeResult> {
  const step = 'Connecting to the server'
  const withToken = { ...headers, authorization: `Bearer ${accessToken}` }
  const probed = await probeServer(upstream, url, withToken, { holder }).catch((error) => {
    throw error instanceof UpstreamError ? new SignInProblem(step, error.message, { cause: error }) : error
  })
  const { status } = probed
  if (status.state === 'connected') return probed
  const refusal = 'it refuses the token that its authorization server gave'
  throw new SignInProblem(step, status.state === 'error' ? status.message : refusal)
}

/** The page after a sign-in. `until`: when it ends, in seconds since 1970, where nothing renews it. Throws 400. */
function connectedPage({ url }: Request): Response {
  const query = readQuery(url, ['namespace', 'connectionId', 'until'])
  const [namespace = '', connectionId = ''] = [query.get('namespace'), query.get('connectionId')]
  // Anybody can make such a link, so it may hold names and a time, and nothing else.
  const isNamed = isSlug(namespace) && isConnectionId(connectionId)
  const rows = isNamed && html`<dl>${row('Namespace', namespace)}${row('Connection', connectionId)}</dl>`
  const until = readInteger(query, 'until', { least: 1, most: Math.floor(lastTimeMs / 1000), otherwise: 0 })
  const end =
    until > 0 &&
    html`<p>This sign-in ends at ${minuteOf(until * 1000)}: the server gave nothing to renew it with. Somebody has to sign
in again then.</p>`
  const body = html`${rows}<p>The server is connected. You can close this page.</p>${end}`
  return page({ title: 'Connected', body })
}

function refusedPage({ server }: Attempt, error: string, description: string | null, setupUrl?: string): Response {
  const shown = `${error.slice(0, 100)}${description === null ? '' : `: ${description.slice(0, 300)}`}`
  const again =
    setupUrl === undefined
      ? html`<p>To try again, open the link that led you here.</p>`
      : html`<p><a class="button" href="${setupUrl}">Try again</a></p>`
  return page({
    title: 'The sign-in was refused',
    status: 400,
    body: html`<p>${server.issuer} says:</p><p class="warning">${shown}</p>${again}`,
  })
}
