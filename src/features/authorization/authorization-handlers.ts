/** All operations by which a client that knows only a connection's URL signs in (contract, 13). */

import { secondsOf } from '../../clock.ts'
import { notFound, PlatformError } from '../../errors.ts'
import { requireRate } from '../../fairness/rate-limit.ts'
import { readJsonBody } from '../../http/body.ts'
import { providerOf } from '../../http/client-address.ts'
import type { Handler } from '../../http/handler.ts'
import { nameAfter, namesInPath } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { jsonResponse, noStoreJson } from '../../http/respond.ts'
import { readMetadata, registerClient } from './clients.ts'
import { authorizeHandlers } from './consent.ts'
import type { OAuthDeps } from './oauth-deps.ts'
import { OAuthError, oauthErrorResponse } from './oauth-error.ts'
import { authorizationServer, isSignInPossible, protectedResource, resourceOfNames, scope } from './oauth-metadata.ts'
import { exchangeToken, revokeGrant } from './token-endpoint.ts'

export function authorizationHandlers(deps: OAuthDeps) {
  const { settings, base } = deps
  const basePath = new URL(base).pathname.replace(/\/$/, '')
  const serverMetadata = () => publicJson(authorizationServer(deps, settings.takesDocuments))

  function resourceDocument(request: Request): Response {
    refuseQuery(request.url) // 400
    const [, , ...names] = namesInPath(request.url)
    const resource = resourceOfNames(names)
    // Alike for every name that could exist, so that it does not show which do.
    if (resource === undefined) throw notFound() // 404
    return publicJson(protectedResource(deps, resource))
  }

  const handlers = {
    protectedResource: resourceDocument,
    protectedNamespace: resourceDocument,
    protectedView: resourceDocument,
    authorizationServer: serverMetadata,
    authorizationServerOfPath(request: Request) {
      const path = nameAfter('/.well-known/oauth-authorization-server', request.url)
      if (basePath === '' || path !== basePath) throw notFound() // 404
      return serverMetadata()
    },
    ...authorizeHandlers(deps),
    exchangeToken: oauthErrors((request) => exchangeToken(deps, request)),
    revokeGrant: oauthErrors((request) => revokeGrant(deps, request)),
    registerClient: oauthErrors(async (request) => {
      const address = deps.sockets.addressOf(request)
      requireRate(deps.registrations.wait(address), tooManyClients) // 429
      const registration = readMetadata(await readJsonBody(request), settings.redirectSchemes) // 400
      // Only what is registered counts: nobody uses up the rate of others with what is refused.
      requireRate(deps.registrations.take(address), tooManyClients) // 429
      const { clientId, name, redirectUris, refreshes } = await registerClient(deps, registration, providerOf(address))
      const body = {
        client_id: clientId,
        client_id_issued_at: secondsOf(deps.clock),
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
  return isSignInPossible(base, settings) ? handlers : absent(handlers)
}

const tooManyClients = 'Too many clients have been registered from this address'

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
function absent<T extends object>(handlers: T): T {
  const missing = () => {
    throw notFound()
  }
  return Object.fromEntries(Object.keys(handlers).map((id) => [id, missing])) as T
}
