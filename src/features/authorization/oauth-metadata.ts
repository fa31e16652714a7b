/** The documents by which a client finds its way from a connection's URL to a token (RFC 9728, RFC 8414). */

import { isConnectionId, isSlug } from '../../model/names.ts'

/** The one scope. The user decides on the consent page what a token may do. */
export const scope = 'mcp'

/** The URLs of this authorization server. `issuer`: the base URL, exactly as tokens have it. */
export interface Endpoints {
  readonly issuer: string
  /** The base URL without a trailing slash. */
  readonly base: string
}

export function endpointsOf(issuer: string): Endpoints {
  return { issuer, base: issuer.replace(/\/$/, '') }
}

/** The URL of a connection's MCP endpoint: the `resource` of its tokens. */
export function resourceOf({ base }: Endpoints, namespace: string, connectionId: string): string {
  return `${base}/connect/${namespace}/${connectionId}/mcp`
}

/** The connection of a `resource`; undefined if it is not the URL of one here. */
export function connectionOf(
  { base }: Endpoints,
  resource: string,
): { readonly namespace: string; readonly connectionId: string } | undefined {
  const prefix = `${base}/connect/`
  if (!resource.startsWith(prefix)) return undefined
  const [namespace = '', connectionId = '', mcp, ...rest] = resource.slice(prefix.length).split('/')
  const isOne = mcp === 'mcp' && rest.length === 0 && isSlug(namespace) && isConnectionId(connectionId)
  return isOne ? { namespace, connectionId } : undefined
}

export function protectedResource(endpoints: Endpoints, namespace: string, connectionId: string): object {
  return {
    resource: resourceOf(endpoints, namespace, connectionId),
    authorization_servers: [endpoints.issuer],
    scopes_supported: [scope],
    bearer_methods_supported: ['header'],
  }
}

/** `takesDocuments`: whether client documents can be fetched, and so are announced. */
export function authorizationServer({ issuer, base }: Endpoints, takesDocuments: boolean): object {
  return {
    issuer,
    authorization_endpoint: `${base}/oauth/authorize`,
    token_endpoint: `${base}/oauth/token`,
    registration_endpoint: `${base}/oauth/register`,
    revocation_endpoint: `${base}/oauth/revoke`,
    jwks_uri: `${base}/.well-known/jwks.json`,
    scopes_supported: [scope],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
    grant_types_supported: ['authorization_code', 'refresh_token'],
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    revocation_endpoint_auth_methods_supported: ['none'],
    authorization_response_iss_parameter_supported: true,
    client_id_metadata_document_supported: takesDocuments,
  }
}

/** The challenge of a 401 at a connection's MCP endpoint (RFC 9728, 5.1). `hasCredential`: one was sent, and refused. */
export function challenge({ base }: Endpoints, path: string, hasCredential: boolean): string {
  const parameters = [
    ...(hasCredential ? ['error="invalid_token"'] : []),
    `resource_metadata="${base}/.well-known/oauth-protected-resource${path}"`,
    `scope="${scope}"`,
  ]
  return `Bearer ${parameters.join(', ')}`
}
