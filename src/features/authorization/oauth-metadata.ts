/** The documents by which a client finds its way from a connection's URL to a token (RFC 9728, RFC 8414). */

import { isSecureUrl } from '../../http/guard.ts'
import { pathOf } from '../../http/path.ts'
import { isConnectionId, isSlug } from '../../model/names.ts'
import { isViewName } from '../../model/view.ts'

/** The one scope. The user decides on the consent page what a token may do. */
export const scope = 'mcp'

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

/** Whether clients can sign in here: never over plain HTTP, except on this machine. */
export function isSignInPossible(base: string, { isOn }: Pick<AuthorizationSettings, 'isOn'>): boolean {
  return isOn && isSecureUrl(base)
}

/** The URLs of this authorization server. `issuer`: the base URL, exactly as tokens have it. */
export interface Endpoints {
  readonly issuer: string
  /** The base URL without a trailing slash. */
  readonly base: string
}

/** A URL that tokens are for: the endpoint of a connection, of a namespace, or of a view of one. */
export interface Resource {
  readonly namespace: string
  readonly connectionId?: string | undefined
  readonly view?: string | undefined
}

/** The URL itself: the `resource` of its tokens. */
export function resourceOf({ base }: Endpoints, { namespace, connectionId, view }: Resource): string {
  const parts = [namespace, connectionId, 'mcp', view].filter((part) => part !== undefined)
  return `${base}/connect/${parts.join('/')}`
}

/** The resource of a URL; undefined if no endpoint here can have it. */
export function resourceIn({ base }: Endpoints, url: string): Resource | undefined {
  const prefix = `${base}/connect/`
  return url.startsWith(prefix) ? resourceOfNames(url.slice(prefix.length).split('/')) : undefined
}

/** The resource of the names in a path after `/connect/`. */
export function resourceOfNames([namespace = '', second = '', third, ...rest]: readonly string[]):
  | Resource
  | undefined {
  if (!isSlug(namespace) || rest.length > 0) return undefined
  if (second === 'mcp' && third === undefined) return { namespace }
  if (second === 'mcp' && third !== undefined) return isViewName(third) ? { namespace, view: third } : undefined
  return third === 'mcp' && isConnectionId(second) ? { namespace, connectionId: second } : undefined
}

export function protectedResource(endpoints: Endpoints, resource: Resource): object {
  return {
    resource: resourceOf(endpoints, resource),
    authorization_servers: [endpoints.issuer],
    scopes_supported: [scope],
    bearer_methods_supported: ['header'],
  }
}

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

/** The `WWW-Authenticate` of a 401 at an MCP endpoint (RFC 9728, 5.1); undefined if nobody can sign in. */
export function challengeOf(base: string, settings: AuthorizationSettings): ((request: Request) => string) | undefined {
  if (!isSignInPossible(base, settings)) return undefined
  return ({ url, headers }) => {
    const refused = headers.has('authorization') ? 'error="invalid_token", ' : ''
    const document = `${base}/.well-known/oauth-protected-resource${pathOf(url)}`
    return `Bearer ${refused}resource_metadata="${document}", scope="${scope}"`
  }
}
