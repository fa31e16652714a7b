/** All operations by which a client that knows only a connection's URL signs in (sign-in contract, section 3). */

import type { Authenticator, Caller } from '../../auth/authenticate.ts'
import { secondsOf } from '../../clock.ts'
import { notFound, PlatformError } from '../../errors.ts'
import { type RateLimit, requireRate } from '../../fairness/rate-limit.ts'
import { readJsonBody } from '../../http/body.ts'
import { networkOf } from '../../http/client-address.ts'
import type { ClientSockets } from '../../http/client-sockets.ts'
import { isSecureUrl } from '../../http/guard.ts'
import type { Handler, Handlers } from '../../http/handler.ts'
import { nameAfter, namesInPath, pathOf } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { jsonResponse, noStoreJson } from '../../http/respond.ts'
import { isConnectionId, isSlug } from '../../model/names.ts'
import type { ServiceTokenClaims } from '../../model/token.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import { createClients } from './clients.ts'
import { type AuthorizeDeps, authorizeHandlers } from './consent.ts'
import { OAuthError, oauthErrorResponse } from './oauth-error.ts'
import { authorizationServer, challenge, endpointsOf, protectedResource, scope } from './oauth-metadata.ts'
import { type TokenDeps, tokenHandlers } from './token-endpoint.ts'

export interface AuthorizationSettings {
  /** False with `--no-sign-in`: then there is no sign-in here. */
  readonly isOn: boolean
  /** Schemes from `--redirect-scheme`, besides those of well-known clients. */
  readonly redirectSchemes: readonly string[]
  /** False with `--no-client-document`: postern then registers with authorization servers of upstreams. */
  readonly hasClientDocument: boolean
  /** Whether client documents are announced: not with `--no-public-upstream`, which cannot fetch them. */
  readonly takesDocuments: boolean
}

export interface AuthorizationDeps
  extends Omit<AuthorizeDeps, 'clients' | 'endpoints'>,
    Omit<TokenDeps, 'clients' | 'endpoints' | 'store'> {
  readonly store: TokenDeps['store']
  readonly settings: AuthorizationSettings
  readonly issuer: string
  readonly upstream: Upstream
  readonly authenticator: Pick<Authenticator, 'minted' | 'liveKey' | 'claimsOf'>
  readonly sign: (claims: ServiceTokenClaims, caller: Caller) => Promise<string>
  /** Limits registrations per address. */
  readonly registrations: RateLimit
  /** Limits fetches of clients' documents per owner. */
  readonly documents: RateLimit
  readonly sockets: Pick<ClientSockets, 'addressOf'>
}

export type AuthorizationOperations =
  | 'protectedResource'
  | 'authorizationServer'
  | 'authorizationServerOfPath'
  | 'authorizePage'
  | 'decideConsent'
  | 'exchangeToken'
  | 'registerClient'
  | 'revokeGrant'

/** Whether clients can sign in here: never over plain HTTP, except on this machine. */
export function isSignInPossible(issuer: string, { isOn }: Pick<AuthorizationSettings, 'isOn'>): boolean {
  return isOn && isSecureUrl(issuer)
}

export function authorizationHandlers(deps: AuthorizationDeps): Pick<Handlers, AuthorizationOperations> {
  const { settings, issuer, store, upstream, clock } = deps
  const endpoints = endpointsOf(issuer)
  const clients = createClients({
    store,
    upstream,
    signInKey: deps.signInKey,
    schemes: settings.redirectSchemes,
    takesDocuments: settings.takesDocuments,
    fetches: deps.documents,
    clock,
  })
  const { authorizePage, decideConsent } = authorizeHandlers({ ...deps, clients, endpoints })
  const { exchangeToken, revokeGrant } = tokenHandlers({ ...deps, clients, endpoints })
  const basePath = new URL(issuer).pathname.replace(/\/$/, '')
  const serverMetadata = () => publicJson(authorizationServer(endpoints, settings.takesDocuments))

  const handlers: Pick<Handlers, AuthorizationOperations> = {
    protectedResource(request) {
      refuseQuery(request.url) // 400
      const [, , namespace = '', connectionId = ''] = namesInPath(request.url)
      // Alike for every name that could exist, so that it does not show which do.
      if (!isSlug(namespace) || !isConnectionId(connectionId)) throw notFound() // 404
      return publicJson(protectedResource(endpoints, namespace, connectionId))
    },
    authorizationServer: serverMetadata,
    authorizationServerOfPath(request) {
      const path = nameAfter('/.well-known/oauth-authorization-server', request.url)
      if (basePath === '' || path !== basePath) throw notFound() // 404
      return serverMetadata()
    },
    authorizePage,
    decideConsent,
    exchangeToken: oauthErrors(exchangeToken),
    revokeGrant: oauthErrors(revokeGrant),
    registerClient: oauthErrors(async (request) => {
      const address = deps.sockets.addressOf(request)
      requireRate(deps.registrations.wait(address), tooManyClients) // 429
      const registration = clients.read(await readJsonBody(request)) // 400
      // Only what is registered counts: nobody uses up the rate of others with what is refused.
      requireRate(deps.registrations.take(address), tooManyClients) // 429
      const { clientId, name, redirectUris, refreshes } = await clients.register(registration, networkOf(address))
      const body = {
        client_id: clientId,
        client_id_issued_at: secondsOf(clock),
        ...(name !== undefined && { client_name: name }),
        redirect_uris: redirectUris,
        grant_types: ['authorization_code', ...(refreshes ? ['refresh_token'] : [])],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
        scope,
      }
      return new Response(JSON.stringify(body), { status: 201, headers: noStoreJson })
    }),
  }
  return isSignInPossible(issuer, settings) ? handlers : absent(handlers)
}

const tooManyClients = 'Too many clients have been registered from this address'

/** The `WWW-Authenticate` of a 401 at a connection's MCP endpoint; undefined if there is no sign-in here. */
export function challengeOf(
  issuer: string,
  settings: AuthorizationSettings,
): ((request: Request) => string) | undefined {
  if (!isSignInPossible(issuer, settings)) return undefined
  const endpoints = endpointsOf(issuer)
  return ({ url, headers }) => challenge(endpoints, pathOf(url), headers.has('authorization'))
}

function publicJson(value: object): Response {
  return jsonResponse(JSON.stringify(value), { 'cache-control': 'public, max-age=300' })
}

/** OAuth's own errors, and bodies that cannot be read, in OAuth's words. */
function oauthErrors(handle: (request: Request) => Promise<Response>): Handler {
  return async (request) => {
    try {
      return await handle(request)
    } catch (thrown) {
      if (thrown instanceof OAuthError) return oauthErrorResponse(thrown)
      if (!(thrown instanceof PlatformError) || thrown.code !== 'invalid_request') throw thrown
      return oauthErrorResponse(new OAuthError('invalid_request', thrown.message))
    }
  }
}

/** Where there is no sign-in, its paths are answered like unknown ones. */
function absent(handlers: Pick<Handlers, AuthorizationOperations>): Pick<Handlers, AuthorizationOperations> {
  const missing = () => {
    throw notFound()
  }
  return Object.fromEntries(Object.keys(handlers).map((id) => [id, missing])) as unknown as typeof handlers
}
