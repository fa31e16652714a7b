/** Finds the authorization server of an MCP server (MCP, authorization; RFC 9728, RFC 8414). */

import { type Static, Type } from '@sinclair/typebox'
import type { AuthorizationServer } from 'oauth4webapi'
import type { UpstreamTarget } from '../../model/input-fields.ts'
import { newestHandshake, ownClientInfo, statelessHeaders, statelessMeta } from '../../model/mcp.ts'
import { fieldsOf } from '../../model/server.ts'
import { validatorOf } from '../../schema/check.ts'
import { parseForeign } from '../../schema/json.ts'
import { isUrl } from '../../schema/url-host.ts'
import { readChallenge } from './challenge.ts'
import { type OAuthFetch, requireSecure, SignInProblem } from './oauth-fetch.ts'

/** Ours: characters of all scopes that a server asks for; browsers and servers accept URLs of about that length. Past it: 502. */
const oauthScopeCharsMax = 8000
/** Ours: characters of a URL in metadata. Past it: 502. */
const oauthUrlCharsMax = 4000

/** The authorization server of an MCP server, and what to ask it for. */
export type Discovered = Awaited<ReturnType<typeof discover>>

// Characters of URLs (RFC 3986, 2): a URL is kept and compared to the letter, and a parser would leave out others.
const Text = Type.String({ maxLength: oauthUrlCharsMax, pattern: '^[\\x21-\\x7e]*$' })
const Texts = Type.Array(Type.String({ maxLength: 1000 }), { maxItems: 1000 })

const ResourceMetadata = Type.Object({
  resource: Text,
  authorization_servers: Type.Optional(Type.Array(Text)),
  scopes_supported: Type.Optional(Texts),
})
const resourceShape = validatorOf(ResourceMetadata)

/** The fields that are used of a server's metadata, and checked; `scopes_supported` may be anything. */
const ServerMetadata = Type.Object({
  issuer: Text,
  authorization_endpoint: Text,
  token_endpoint: Text,
  registration_endpoint: Type.Optional(Text),
  revocation_endpoint: Type.Optional(Text),
  code_challenge_methods_supported: Texts,
  token_endpoint_auth_methods_supported: Type.Optional(Texts),
  authorization_response_iss_parameter_supported: Type.Optional(Type.Boolean()),
  client_id_metadata_document_supported: Type.Optional(Type.Boolean()),
})
export type ServerMetadata = Static<typeof ServerMetadata> & AuthorizationServer
/** The fields that are used after a sign-in has begun, and kept with attempts and tokens: the rest may be large. */
const KeptServer = Type.Pick(ServerMetadata, [
  'issuer',
  'token_endpoint',
  'revocation_endpoint',
  'authorization_response_iss_parameter_supported',
])
export type KeptServer = Static<typeof KeptServer>

export function keptOf(server: ServerMetadata): KeptServer {
  return fieldsOf(KeptServer, server)
}
const serverShape = validatorOf(ServerMetadata)

/** The scope by which a client asks for a refresh token (OpenID Connect Core, 11). */
export const offlineAccess = 'offline_access'

const step = 'Finding the authorization server'

/**
 * `target`: where the first request goes, with the connection's own headers and what was entered for it. `issuer`: the
 * one that the connection was given by hand, the only one to ask. In the result, `resource` is that of all requests, to
 * the letter; `scope` the one that the server's challenge asks for, or else all that it supports; undefined for none.
 * Throws SignInProblem.
 */
export async function discover(fetch: OAuthFetch, mcpUrl: string, target: UpstreamTarget, issuer: string | undefined) {
  const { metadataUrl, scope } = await challengeOf(fetch, target)
  const resource = await findResource(fetch, mcpUrl, metadataUrl)
  const server = await findServer(fetch, chooseIssuer(resource, issuer) ?? new URL(mcpUrl).origin)
  const supported = resource?.scopes_supported ?? []
  const wanted = scope ?? (supported.length > 0 ? supported.join(' ') : undefined)
  if (wanted !== undefined && wanted.length > oauthScopeCharsMax) {
    throw new SignInProblem(step, `the server asks for too many scopes: they have ${wanted.length} characters`)
  }
  return { resource: resource?.resource ?? mcpUrl, server, scope: wanted }
}

/** Asks without a token, and reads from the refusal where to learn more, and for which scopes to ask. */
async function challengeOf(fetch: OAuthFetch, { url, headers }: UpstreamTarget) {
  const ask = (method: string, params: object, more: Readonly<Record<string, string>> = {}) =>
    fetch(url, {
      method: 'POST',
      headers: {
        ...headers,
        ...more,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
  const askStateless = (method: string) => ask(method, { _meta: statelessMeta }, statelessHeaders(method))
  const greeting = { protocolVersion: newestHandshake, capabilities: {}, clientInfo: ownClientInfo }
  let response = await ask('initialize', greeting)
  // A server that knows only the stateless revision refuses that.
  const isStateless = response.status >= 400 && response.status !== 401
  if (isStateless) response = await askStateless('server/discover')
  // Some servers let anybody greet them, and want a sign-in for all else.
  if (response.ok) {
    const session = response.headers.get('mcp-session-id')
    response = isStateless
      ? await askStateless('tools/list')
      : await ask('tools/list', {}, session === null ? {} : { 'mcp-session-id': session })
  }
  if (response.status !== 401) return { metadataUrl: undefined, scope: undefined }
  return readChallenge(response.headers.get('www-authenticate') ?? '')
}

/** The document about the resource; undefined if there is none, and the server is its own authorization server. */
async function findResource(fetch: OAuthFetch, mcpUrl: string, metadataUrl: string | undefined) {
  const { origin, pathname } = new URL(mcpUrl)
  const path = pathname === '/' ? '' : pathname
  const wellKnown = `${origin}/.well-known/oauth-protected-resource`
  const candidates = metadataUrl === undefined ? [...new Set([`${wellKnown}${path}`, wellKnown])] : [metadataUrl]
  for (const url of candidates) {
    const document = await readJson(fetch, url)
    if (document === undefined) continue
    if (!resourceShape.isValid(document)) throw new SignInProblem(step, `${url} is not the metadata of a resource`)
    if (!covers(document.resource, mcpUrl)) {
      throw new SignInProblem(step, `${url} is about another resource: ${document.resource}`)
    }
    return document
  }
  if (metadataUrl !== undefined) throw new SignInProblem(step, `${metadataUrl} was not found`)
  return undefined
}

/**
 * The given issuer, or the first that the resource names; undefined if nobody says. A given one that the resource does
 * not name is refused before anything is sent there: the client and its secret would be used for this server elsewhere.
 */
function chooseIssuer(resource: Static<typeof ResourceMetadata> | undefined, given: string | undefined) {
  if (resource === undefined) return given
  const { authorization_servers: named = [] } = resource
  if (given === undefined || named.some((one) => isSameIssuer(one, given))) return given ?? named[0]
  const names = named.length === 0 ? 'no authorization server' : named.slice(0, 3).join(', ')
  throw new SignInProblem(step, otherIssuer(given, names))
}

/** For a connection whose client was given with the issuer of another authorization server. */
export function otherIssuer(given: string, names: string): string {
  return `the connection’s OAuth client is for ${given}, and the server names ${names}: correct the issuer in the connection’s oauth, or leave it out`
}

/** Equal to the letter, but for one final slash. */
export function isSameIssuer(one: string, other: string): boolean {
  return one.replace(/\/$/, '') === other.replace(/\/$/, '')
}

/** The MCP URL's own origin, and its path or a beginning of it up to a slash. */
function covers(resource: string, mcpUrl: string): boolean {
  if (!isUrl(resource) || resource.includes('#')) return false
  const [given, asked] = [new URL(resource), new URL(mcpUrl)]
  if (given.origin !== asked.origin || given.search !== '' || given.username + given.password !== '') return false
  const prefix = given.pathname.replace(/\/$/, '')
  return asked.pathname === given.pathname || asked.pathname === prefix || asked.pathname.startsWith(`${prefix}/`)
}

/** In the order of MCP: OAuth's document, then OpenID's, each with the path of the issuer. */
async function findServer(fetch: OAuthFetch, issuer: string): Promise<ServerMetadata> {
  requireSecure(issuer, step)
  const { origin, pathname } = new URL(issuer)
  const path = pathname.replace(/\/$/, '')
  const candidates = [
    `${origin}/.well-known/oauth-authorization-server${path}`,
    `${origin}/.well-known/openid-configuration${path}`,
    ...(path === '' ? [] : [`${origin}${path}/.well-known/openid-configuration`]),
  ]
  for (const url of candidates) {
    const document = await readJson(fetch, url)
    if (document !== undefined) return checkServer(document, issuer, url)
  }
  throw new SignInProblem(
    step,
    `${issuer} has no metadata of an authorization server; if the server wants a key, give it to the connection as a header`,
  )
}

function checkServer(document: unknown, issuer: string, url: string): ServerMetadata {
  // Asked about first: without it PKCE would protect nothing, and the message should say so.
  const { code_challenge_methods_supported: methods } = (document ?? {}) as Partial<ServerMetadata>
  if (!Array.isArray(methods) || !methods.includes('S256')) {
    throw new SignInProblem(step, `${issuer} does not announce PKCE with S256`)
  }
  if (!serverShape.isValid(document))
    throw new SignInProblem(step, `${url} is not the metadata of an authorization server`)
  if (!isSameIssuer(document.issuer, issuer)) {
    throw new SignInProblem(step, `${url} is the metadata of another issuer: ${document.issuer}`)
  }
  const { authorization_endpoint, token_endpoint, registration_endpoint, revocation_endpoint } = document
  for (const endpoint of [authorization_endpoint, token_endpoint, registration_endpoint, revocation_endpoint]) {
    if (endpoint !== undefined) requireSecure(endpoint, step)
  }
  return document
}

/** Undefined for a 4xx: there is no such document. Throws SignInProblem for anything else that is not JSON. */
async function readJson(fetch: OAuthFetch, url: string): Promise<unknown> {
  requireSecure(url, step)
  const response = await fetch(url, { headers: { accept: 'application/json' } })
  if (response.status >= 400 && response.status < 500) return undefined
  if (response.status !== 200) throw new SignInProblem(step, `${url} answered ${response.status}`)
  try {
    return parseForeign(await response.text())
  } catch {
    throw new SignInProblem(step, `${url} is not JSON`)
  }
}
