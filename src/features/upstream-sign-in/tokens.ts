/** The tokens of a connection that somebody has signed in: how they are kept, exchanged, refreshed and revoked. */

import {
  authorizationCodeGrantRequest,
  processRefreshTokenResponse,
  refreshTokenGrantRequest,
  revocationRequest,
  validateAuthResponse,
} from 'oauth4webapi'
import { parseForeign } from '../../schema/json.ts'
import type { ConnectionPrivate } from '../../storage/connections.ts'
import type { KeptServer } from './discovery.ts'
import { authenticationOf, problemOf, type UpstreamClient } from './oauth-client.ts'
import { type OAuthFetch, requestOver, SignInProblem } from './oauth-fetch.ts'

/** As whom, and where, somebody signs in. */
interface SignInTo {
  readonly client: UpstreamClient
  readonly server: KeptServer
  readonly resource: string
  readonly scope?: string
}

export interface UpstreamTokens extends SignInTo {
  readonly accessToken: string
  readonly refreshToken?: string
  /** Milliseconds since 1970, of the response and of the expiry; without an expiry the token is good until a 401. */
  readonly obtainedAt: number
  readonly expiresAt?: number
  /** The user who signed in, if by a browser session. */
  readonly userId?: string
}

/** The end of the year 9999: RFC 3339 has no later times. */
export const lastTimeMs = 253_402_300_799_999

/** The record without tokens and what belongs to them. Tickets and sign-ins of before are void. */
export function withoutTokens({
  tokens: _,
  refreshUntil: __,
  refreshAfter: ___,
  wantedScope: ____,
  signedInUntil: _____,
  ...rest
}: ConnectionPrivate): ConnectionPrivate {
  return { ...rest, setups: (rest.setups ?? 0) + 1 }
}

/** When the sign-in ends with its token, because nothing renews it; undefined if that is not known. ISO 8601. */
export function signInEnd({ refreshToken, expiresAt }: UpstreamTokens): string | undefined {
  if (refreshToken !== undefined || expiresAt === undefined || expiresAt > lastTimeMs) return undefined
  return new Date(expiresAt).toISOString()
}

/** The values that a code is exchanged with. */
export interface CodeExchange extends SignInTo {
  readonly verifier: string
}

/** Throws SignInProblem. `parameters`: the query of the callback, whose `state` and `iss` were checked. */
export async function exchangeCode(
  { server, client, resource, verifier, scope }: CodeExchange,
  { redirectUri, parameters }: { readonly redirectUri: string; readonly parameters: URLSearchParams },
  fetch: OAuthFetch,
  now: number,
): Promise<UpstreamTokens> {
  const step = 'Exchanging the code'
  const as = { client_id: client.clientId }
  const request = async () => {
    const checked = validateAuthResponse(server, as, parameters, parameters.get('state') ?? '')
    const options = requestOver(fetch, { resource })
    const auth = authenticationOf(client)
    const response = await authorizationCodeGrantRequest(server, as, auth, checked, redirectUri, verifier, options)
    return readTokens(server, client, response)
  }
  const answer = await request().catch((error) => {
    if (error instanceof SignInProblem) throw error
    throw new SignInProblem(step, `${server.issuer} refused it: ${problemOf(error)}`, { cause: error })
  })
  return { ...answer, ...timesOf(answer, now), client, server, resource, ...(scope !== undefined && { scope }) }
}

/** Why no new tokens came. `ended`: they never will; `failed`: they may later. */
function failure(kind: 'ended' | 'failed', why: string, isUnknownClient = false) {
  return { kind, why, isUnknownClient }
}

/** New tokens, or why there are none. Rejects with SignInProblem if the server cannot be reached. */
export async function refreshTokens(tokens: UpstreamTokens, fetch: OAuthFetch, now: number) {
  const { server, client, resource, refreshToken } = tokens
  if (refreshToken === undefined) return failure('ended', 'there is no refresh token')
  const as = { client_id: client.clientId }
  const options = requestOver(fetch, { resource })
  const response = await refreshTokenGrantRequest(server, as, authenticationOf(client), refreshToken, options)
  try {
    const answer = await readTokens(server, client, response)
    const { expiresAt: _, ...kept } = tokens
    // Without a new refresh token the old one stays. An expiry that is not told is unknown.
    const renewed: UpstreamTokens = { ...kept, ...answer, ...timesOf(answer, now) }
    return renewed
  } catch (error) {
    const { error: code } = (error ?? {}) as { error?: unknown }
    const isEnd = code === 'invalid_grant' || code === 'invalid_client'
    return failure(isEnd ? 'ended' : 'failed', problemOf(error), code === 'invalid_client')
  }
}

/** Revokes the refresh token, or else the access token. Best effort: nobody waits for it. */
export async function revokeTokens({ server, client, refreshToken, accessToken }: UpstreamTokens, fetch: OAuthFetch) {
  if (server.revocation_endpoint === undefined) return
  const as = { client_id: client.clientId }
  const options = requestOver(fetch, { token_type_hint: refreshToken === undefined ? 'access_token' : 'refresh_token' })
  await revocationRequest(server, as, authenticationOf(client), refreshToken ?? accessToken, options)
}

async function readTokens(server: KeptServer, client: UpstreamClient, response: Response) {
  // The library takes a challenge for the whole answer. RFC 6749, 5.2, wants one beside the error after Basic.
  response.headers.delete('www-authenticate')
  const as = { client_id: client.clientId }
  const answer = await processRefreshTokenResponse(server, as, await withoutIdToken(response))
  // A header can carry no other characters (RFC 6750, 2.1).
  if (!/^[\x21-\x7e]+$/.test(answer.access_token))
    throw new Error('its token has characters that a token must not have')
  if (answer.token_type !== 'bearer') throw new Error(`its token has the type ${answer.token_type}, not Bearer`)
  return {
    accessToken: answer.access_token,
    ...(answer.refresh_token !== undefined && { refreshToken: answer.refresh_token }),
    ...(answer.expires_in !== undefined && { expiresIn: answer.expires_in }),
  }
}

/** We do not ask who the user is, so an ID token is not read, and one that is wrong spoils nothing. */
async function withoutIdToken(response: Response): Promise<Response> {
  if (response.status !== 200) return response
  const text = await response.text()
  const { headers } = response
  try {
    const { id_token: _, ...answer } = parseForeign(text) as Record<string, unknown>
    return Response.json(answer, { headers })
  } catch {
    return new Response(text, { headers })
  }
}

function timesOf({ expiresIn }: { readonly expiresIn?: number }, now: number) {
  return { obtainedAt: now, ...(expiresIn !== undefined && { expiresAt: now + expiresIn * 1000 }) }
}
