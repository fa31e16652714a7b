/** Begins a sign-in: finds the authorization server and the client, and remembers what must come back. */

import { randomBytes } from 'node:crypto'
import { calculatePKCECodeChallenge, generateRandomCodeVerifier } from 'oauth4webapi'
import { endForOwnHost, ourCookie, withCookies } from '../../auth/browser-sessions.ts'
import type { Maker } from '../../auth/maker.ts'
import { hasAuthorization, sealPart, targetOf } from '../../auth/sealed-parts.ts'
import { setupStateOf } from '../../auth/setup-links.ts'
import { conflict } from '../../errors.ts'
import type { RateLimit } from '../../fairness/rate-limit.ts'
import { isLocalUrl } from '../../http/guard.ts'
import { attemptSeconds } from '../../limits.ts'
import type { ConnectionRef, GivenClient } from '../../model/connection.ts'
import type { UpstreamTarget } from '../../model/input-fields.ts'
import type { StoredConnection } from '../../storage/connections.ts'
import {
  type Discovered,
  discover,
  isSameIssuer,
  keptOf,
  offlineAccess,
  otherIssuer,
  type ServerMetadata,
} from './discovery.ts'
import {
  findClient,
  methodOf,
  redirectUriOf,
  replaceStored,
  type StoredClient,
  type UpstreamClient,
  type UpstreamSignInDeps,
} from './oauth-client.ts'
import { createOAuthFetch, SignInProblem } from './oauth-fetch.ts'
import { clientPage, continuePage, type Visit, type Visitor } from './setup-pages.ts'
import type { CodeExchange } from './tokens.ts'
import { requireVisit } from './visit.ts'

/** The record of a sign-in that has begun. The callback must belong to it, and finds it by its `state`. */
export interface Attempt extends CodeExchange {
  readonly ref: ConnectionRef
  /** The connection as it was then (`setupStateOf`). */
  readonly setupState: string
  /** The hash of the browser's cookie. */
  readonly browser: string
  readonly maker: Maker
  readonly by: Visitor
}

export interface BeginDeps extends UpstreamSignInDeps {
  /** Limits how often a client is replaced, by issuer: all connections to it share it. */
  readonly newClients: RateLimit
}

/** Ours: bytes of what postern keeps of a sign-in that has begun: URLs, scopes and the client of its server. Past it: 502. */
const attemptBytesMax = 16 * 1024

/** The cookie of the browser in which a sign-in has begun. */
export const browserCookie = (base: string) => ourCookie(base, 'postern-signin')

/** The server to ask. Throws `conflict` for a connection that nobody can sign in. */
export function signInTarget({ headersKey }: Pick<BeginDeps, 'headersKey'>, { ref, stored }: Visit): UpstreamTarget {
  const { connection } = stored
  if (connection.mock?.enabled === true || connection.mcpUrl === null) {
    throw conflict('This connection is mocked or has no URL, so there is nothing to sign in to')
  }
  const target = targetOf(stored, ref, headersKey)
  if (hasAuthorization(target.headers)) {
    throw conflict(
      'This connection sends its own authorization header: to sign in here, remove the header from the connection first',
    )
  }
  return target
}

/**
 * Finds the authorization server, keeps an attempt to sign in, and answers with a page whose link leads to that server.
 * Throws SignInProblem, and `conflict`.
 */
export async function beginSignIn(deps: BeginDeps, visit: Visit, as: SignInAs): Promise<Response> {
  const { records, base } = deps
  const { given } = as
  const { ref, stored, request } = visit
  const { connection, privatePart } = stored
  const mcpUrl = connection.mcpUrl ?? ''
  const fetch = createOAuthFetch(deps.upstream, 'Reaching the server', visit.holder)
  // Discovery looks again for an issuer that it found: if the server now names another, the client is not for that one.
  const issuerGiven = given?.isIssuerMet === true ? undefined : given?.issuer
  const found = await discover(fetch, mcpUrl, signInTarget(deps, visit), issuerGiven) // 502
  const client = as.asksForClient === true ? undefined : await chooseClient(deps, visit, found.server, as)
  if (client === undefined) return clientPage(visit, found.server.issuer, redirectUriOf(base))
  const scope = scopeOf(stored, given, found)
  const verifier = generateRandomCodeVerifier()
  const cookie = browserCookie(base)
  const browser = cookie.of(request) ?? randomBytes(32).toString('base64url')
  const attempt: Attempt = {
    ref,
    setupState: setupStateOf({ ref, connection, privatePart }),
    browser: hashOf(browser),
    verifier,
    server: keptOf(found.server),
    client,
    resource: found.resource,
    ...(scope !== undefined && { scope }),
    maker: visit.maker,
    by: visit.by,
  }
  if (Buffer.byteLength(JSON.stringify(attempt)) > attemptBytesMax)
    throw new SignInProblem('Beginning the sign-in', 'the URLs and scopes of the server are too long to keep')
  const state = await records.add('attempt', attempt, attemptSeconds)
  const url = new URL(found.server.authorization_endpoint)
  for (const [name, value] of Object.entries({
    response_type: 'code',
    client_id: client.clientId,
    redirect_uri: redirectUriOf(base),
    code_challenge: await calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    state,
    resource: found.resource,
    ...(scope !== undefined && { scope }),
    // OpenID Connect gives a lasting sign-in only to somebody who was asked (Core, 11).
    ...(asksLasting(scope) && { prompt: 'consent' }),
  }))
    url.searchParams.set(name, value)
  const { issuer } = found.server
  const isTyped = as.typed !== undefined || given?.isTyped === true
  const remedy = client.isRegistered === true ? 'register again' : isTyped ? 'enter another' : undefined
  // A developer's own authorization server beside postern is trusted with the sessions of that one machine.
  const ended = isLocalUrl(url.href) ? [] : await endForOwnHost(url.href, request, deps)
  return withCookies(continuePage({ ...visit, issuer, scope, host: new URL(base).host, href: url.href, remedy }), [
    cookie.set(browser, attemptSeconds),
    ...ended,
  ])
}

const asksLasting = (scope = '') => scope.split(' ').includes(offlineAccess)

/**
 * The scope, and that for a refresh token where the authorization server lists it (MCP 2026-07-28, Refresh Tokens). A
 * given scope stays as it is; where none is asked for, the server chooses.
 */
function scopeOf({ privatePart }: StoredConnection, given: StoredClient | undefined, found: Discovered) {
  const scope = privatePart.wantedScope ?? given?.scope ?? found.scope
  const { scopes_supported: listed } = found.server
  // Only looked through: one that is no list keeps nobody from signing in.
  const lists = Array.isArray(listed) && listed.includes(offlineAccess)
  const adds = scope !== undefined && given?.scope === undefined && lists && !asksLasting(scope)
  return adds ? `${scope} ${offlineAccess}` : scope
}

/** As which client somebody signs in. */
interface SignInAs {
  /** The client that was given with the connection. */
  readonly given?: StoredClient | undefined
  /** One that a person has entered on the page, because none can be had otherwise. */
  readonly typed?: Pick<GivenClient, 'clientId' | 'clientSecret'>
  /** A person wants to type another one in place of the one that was typed before. */
  readonly asksForClient?: boolean
  /** The authorization server does not know the client any more that it registered: a new one is registered. */
  readonly registersAgain?: boolean
}

/**
 * The client to ask as; undefined if a person must give one. One that was given or typed is bound to the issuer before
 * anything is sent there: its secret is for nobody else.
 */
async function chooseClient(
  deps: BeginDeps,
  visit: Visit,
  server: ServerMetadata,
  { given, typed, registersAgain }: SignInAs,
): Promise<UpstreamClient | undefined> {
  const { issuer } = server
  if (given !== undefined) {
    if (given.issuer === undefined) await keepGivenClient(deps, visit, { ...given, issuer, isIssuerMet: true })
    else if (!isSameIssuer(given.issuer, issuer)) {
      throw new SignInProblem('Choosing the client', otherIssuer(given.issuer, issuer))
    }
    return givenClientFor(server, given)
  }
  const fetch = createOAuthFetch(deps.upstream, 'Registering as a client', visit.holder)
  const client = await findClient(deps, server, fetch, registersAgain ? deps.newClients : undefined) // 502, 429
  if (typed === undefined) return client
  if (client !== undefined)
    throw conflict('postern can register with this server itself, and needs no client ID: open the page again')
  await keepGivenClient(deps, visit, { ...typed, issuer, isTyped: true, isIssuerMet: true })
  await deps.audit.record('connection.changed', { ...visit.by, ...visit.ref, what: 'client' })
  return givenClientFor(server, typed)
}

function givenClientFor(server: ServerMetadata, { clientId, clientSecret }: GivenClient): UpstreamClient {
  const method = methodOf(server, clientSecret !== undefined)
  return { clientId, ...(clientSecret !== undefined && { clientSecret }), method }
}

/** Throws `conflict` if the connection was changed in the meantime, and 403 if the namespace is full. */
async function keepGivenClient(deps: BeginDeps, visit: Visit, given: StoredClient) {
  const { signInKey } = deps
  const { ref, stored } = visit
  const oauth = sealPart('oauth', given, ref, signInKey)
  const after = { connection: stored.connection, privatePart: { ...stored.privatePart, oauth } }
  await requireVisit(deps, visit) // 409, 404, 403
  if (!(await replaceStored(deps, ref, stored, after)))
    throw conflict('The connection was changed meanwhile: open the page again')
}

export function hashOf(cookie: string): string {
  return Bun.SHA256.hash(cookie, 'base64url')
}
