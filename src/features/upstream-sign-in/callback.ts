/**
 * `/oauth/callback`: the authorization server of a connection's server sends the browser back (sign-in contract, 1.5).
 * What does not belong to an attempt of this very browser is refused, and nothing of it is shown or sent on.
 */

import { cookieOf } from '../../auth/browser-sessions.ts'
import { targetOf } from '../../auth/connection-input.ts'
import type { ExpiringRecords, FoundRecord } from '../../auth/expiring-records.ts'
import { invalidRequest } from '../../errors.ts'
import { html } from '../../http/html.ts'
import { page, redirect } from '../../http/page.ts'
import type { ConnectionStatus, ServerInfo } from '../../model/connection.ts'
import type { Audit } from '../../ops/audit-log.ts'
import { connectionChange, findConnection, type StoredConnection } from '../../storage/connections.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import type { Store } from '../../storage/store.ts'
import { probeServer } from '../../upstream/probe.ts'
import { type Upstream, UpstreamError } from '../../upstream/upstream.ts'
import { type Attempt, cookieName, hashOf } from './begin.ts'
import { type ClientOptions, forgetClient, redirectUriOf } from './client.ts'
import { createOAuthFetch, SignInProblem } from './oauth-fetch.ts'
import { exchangeCode, sealTokens, type UpstreamTokens, withoutTokens } from './tokens.ts'

export interface CallbackDeps extends Omit<ClientOptions, 'store'> {
  readonly store: Store
  readonly upstream: Upstream
  readonly records: ExpiringRecords
  readonly headersKey: Buffer
  readonly audit: Audit
  /** Milliseconds since 1970. */
  readonly now: () => number
}

export function callbackHandlers(deps: CallbackDeps) {
  const { store, upstream, records, signInKey, base, audit, now } = deps

  /** The attempt that the parameters belong to, which is used up. Throws `invalid_request`, always with one text. */
  async function attemptOf(request: Request, parameters: URLSearchParams): Promise<Attempt> {
    const refused = invalidRequest('This sign-in is unknown here, was used, or has expired: start again')
    if (new Set(parameters.keys()).size !== [...parameters.keys()].length) throw refused
    const found = await records.find<Attempt>('attempt', parameters.get('state') ?? '')
    if (found === undefined) throw refused
    const cookie = cookieOf(request, cookieName(base))
    if (cookie === undefined || hashOf(cookie) !== found.value.browser) throw refused
    const { server } = found.value
    const iss = parameters.get('iss')
    // Mix-up (RFC 9207): compared to the letter, before anything else of the answer is read.
    if (iss === null ? server.authorization_response_iss_parameter_supported === true : iss !== server.issuer)
      throw refused
    if (!(await useUp(found))) throw refused
    return found.value
  }

  async function useUp({ key, bytes }: FoundRecord<Attempt>): Promise<boolean> {
    return (await store.commit({ checks: [{ key, value: bytes }], deletes: [key], fromReserve: true })).ok
  }

  /** The connection, if it is still the one of the attempt. */
  async function connectionOf({ ref, createdAt, setups }: Attempt): Promise<StoredConnection> {
    const stored = await findConnection(store, ref.namespace, ref.connectionId)
    if (stored?.connection.createdAt === createdAt && (stored.privatePart.setups ?? 0) === setups) return stored
    throw invalidRequest('The connection has changed since this sign-in began: start again')
  }

  /** Asks the server with the token. Throws SignInProblem if it does not take it. */
  async function greet({ ref }: Attempt, stored: StoredConnection, { accessToken }: UpstreamTokens) {
    const { url, headers } = targetOf(stored, ref, deps.headersKey)
    const withToken = { ...headers, authorization: `Bearer ${accessToken}` }
    try {
      const greeted = await probeServer(upstream, url, withToken, { via: undefined })
      if (greeted.status.state === 'connected') return greeted
      if (greeted.status.state === 'error') throw new SignInProblem('Greeting the server', greeted.status.message)
    } catch (error) {
      if (!(error instanceof UpstreamError)) throw error
      throw new SignInProblem('Greeting the server', error.message, { cause: error })
    }
    throw new SignInProblem('Greeting the server', 'it refuses the token that its authorization server gave')
  }

  async function keep(
    attempt: Attempt,
    tokens: UpstreamTokens,
    { status, serverInfo }: { readonly status: ConnectionStatus; readonly serverInfo?: ServerInfo },
  ): Promise<void> {
    const { ref, userId } = attempt
    const kept = userId === undefined ? tokens : { ...tokens, userId }
    await decideAgain('the connection', async () => {
      const before = await connectionOf(attempt)
      const after = {
        connection: { ...before.connection, status, ...(serverInfo && { serverInfo }) },
        privatePart: { ...withoutTokens(before.privatePart), tokens: sealTokens(kept, ref, signInKey) },
      }
      return (await store.commit(connectionChange(ref.namespace, ref.connectionId, before, after))).ok || 'again'
    })
  }

  return {
    async oauthCallback(request: Request): Promise<Response> {
      const parameters = new URLSearchParams(request.url.slice(request.url.indexOf('?') + 1))
      const attempt = await attemptOf(request, parameters) // 400
      const error = parameters.get('error')
      if (error !== null) return refusedPage(attempt, error, parameters.get('error_description'))
      const stored = await connectionOf(attempt) // 400
      const fetch = createOAuthFetch(upstream, 'Exchanging the code')
      const exchange = { ...attempt, redirectUri: redirectUriOf(base) }
      const tokens = await exchangeCode(exchange, parameters, fetch, now()).catch(async (thrown) => {
        const { error: code } = ((thrown as Error).cause ?? {}) as { error?: unknown }
        // The next sign-in registers again.
        if (code === 'invalid_client' && attempt.client.isRegistered === true)
          await forgetClient(deps, attempt.server.issuer)
        throw thrown
      }) // 502
      await keep(attempt, tokens, await greet(attempt, stored, tokens)) // 502, 400
      const { ref, server, userId, keyId } = attempt
      await audit.record('upstream.signed_in', { ...ref, issuer: server.issuer, userId, keyId })
      return redirect(`${base}/oauth/done`)
    },

    oauthDone: (): Response =>
      page({ title: 'Connected', body: html`<p>The server is connected. You can close this page.</p>` }),
  }
}

function refusedPage({ server }: Attempt, error: string, description: string | null): Response {
  const shown = `${error.slice(0, 100)}${description === null ? '' : `: ${description.slice(0, 300)}`}`
  return page({
    title: 'The sign-in was refused',
    status: 400,
    body: html`<p>${server.issuer} says:</p><p class="warning">${shown}</p>`,
  })
}
