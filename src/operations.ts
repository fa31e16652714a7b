/**
 * The table of all operations, with method and path. The routes, the `Allow` header, the names in metrics and the raw
 * path checks are derived from it (`http/router.ts`, `http/route.ts`, `http/raw-path.ts`). The types require a handler
 * for each.
 */

import { formBytesMax, requestBodyBytesMax, rpcBodyBytesMax, serverBodyBytesMax } from './limits.ts'

/** The most that a request of an operation may take of its owner's allowances (`fairness/allowance.ts`). */
export interface Costs {
  /** Bytes of the body. Past it: the request is refused. */
  readonly bodyBytesMax: number
  /** Milliseconds in which the process handles a megabyte of the body, until the request is answered. */
  readonly bodyMsPerMegabyte: number
  /**
   * `many`: it reads as many records as somebody has stored, or one of a megabyte, and waits for one of its owner's
   * places to do so.
   */
  readonly reads: 'few' | 'many'
}

/** No body, and few records. */
const small: Costs = { bodyBytesMax: 0, bodyMsPerMegabyte: 0, reads: 'few' }
/** A list, or another answer that much is read for. */
const many: Costs = { bodyBytesMax: 0, bodyMsPerMegabyte: 0, reads: 'many' }
/** A small JSON body, which may have to be empty. */
const json: Costs = { bodyBytesMax: requestBodyBytesMax, bodyMsPerMegabyte: 50, reads: 'few' }
const form: Costs = { bodyBytesMax: formBytesMax, bodyMsPerMegabyte: 50, reads: 'few' }
const message: Costs = { bodyBytesMax: rpcBodyBytesMax, bodyMsPerMegabyte: 10, reads: 'few' }
const server: Costs = { bodyBytesMax: serverBodyBytesMax, bodyMsPerMegabyte: 50, reads: 'few' }

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** A URI template (RFC 6570): `{name}` is one segment of a path, `{+name}` the rest of it, slashes included. */
  readonly path: string
  readonly costs: Costs
  /**
   * The format of errors. `server`: `{error}` with a text, which for 404 is always the same (specification 7.2).
   * `text`: `{error}` with the message. `rpc`: a JSON-RPC error. `page`: a page for people. Left out: `{error,
   * message}`.
   */
  readonly errors?: 'server' | 'text' | 'rpc' | 'page'
}

export const operations = {
  createToken: { method: 'POST', path: '/tokens', costs: json },
  listConnections: { method: 'GET', path: '/connect/{namespace}', costs: many },
  createConnection: { method: 'POST', path: '/connect/{namespace}', costs: json },
  getConnection: { method: 'GET', path: '/connect/{namespace}/{connectionId}', costs: small },
  replaceConnection: { method: 'PUT', path: '/connect/{namespace}/{connectionId}', costs: json },
  deleteConnection: { method: 'DELETE', path: '/connect/{namespace}/{connectionId}', costs: small },
  callMcp: { method: 'POST', path: '/connect/{namespace}/{connectionId}/mcp', costs: message, errors: 'rpc' },
  listTools: { method: 'GET', path: '/connect/{namespace}/{connectionId}/.tools', costs: small },
  getTool: { method: 'GET', path: '/connect/{namespace}/{connectionId}/.tools/{+tool}', costs: small },
  callTool: { method: 'POST', path: '/connect/{namespace}/{connectionId}/.tools/{+tool}', costs: message },
  setupPage: { method: 'GET', path: '/connect/{namespace}/{connectionId}/setup', costs: small, errors: 'page' },
  startSetup: { method: 'POST', path: '/connect/{namespace}/{connectionId}/setup', costs: form, errors: 'page' },
  listServers: { method: 'GET', path: '/servers', costs: many, errors: 'text' },
  introspectServer: { method: 'POST', path: '/servers/{+qualifiedName}/.introspect', costs: json, errors: 'server' },
  createRelease: { method: 'PUT', path: '/servers/{+qualifiedName}/releases', costs: server, errors: 'server' },
  getRelease: { method: 'GET', path: '/servers/{+qualifiedName}/releases/{id}', costs: many, errors: 'server' },
  getServer: { method: 'GET', path: '/servers/{+qualifiedName}', costs: many, errors: 'server' },
  putServer: { method: 'PUT', path: '/servers/{+qualifiedName}', costs: server, errors: 'text' },
  changeServer: { method: 'PATCH', path: '/servers/{+qualifiedName}', costs: server, errors: 'server' },
  deleteServer: { method: 'DELETE', path: '/servers/{+qualifiedName}', costs: small, errors: 'server' },
  listRegistryServers: { method: 'GET', path: '/v0.1/servers', costs: many, errors: 'text' },
  listRegistryVersions: { method: 'GET', path: '/v0.1/servers/{+serverName}/versions', costs: many, errors: 'server' },
  getRegistryVersion: {
    method: 'GET',
    path: '/v0.1/servers/{+serverName}/versions/{version}',
    costs: many,
    errors: 'server',
  },
  getMe: { method: 'GET', path: '/me', costs: many, errors: 'text' },
  listNamespaces: { method: 'GET', path: '/namespaces', costs: many, errors: 'text' },
  createNamespace: { method: 'POST', path: '/namespaces', costs: json, errors: 'text' },
  getNamespace: { method: 'GET', path: '/namespaces/{namespace}', costs: small, errors: 'text' },
  putNamespace: { method: 'PUT', path: '/namespaces/{namespace}', costs: json, errors: 'text' },
  changeNamespace: { method: 'PATCH', path: '/namespaces/{namespace}', costs: json, errors: 'text' },
  deleteNamespace: { method: 'DELETE', path: '/namespaces/{namespace}', costs: small, errors: 'text' },
  getOrganization: { method: 'GET', path: '/organizations/{organizationId}', costs: many, errors: 'text' },
  putOrganization: { method: 'PUT', path: '/organizations/{organizationId}', costs: json, errors: 'text' },
  deleteOrganization: { method: 'DELETE', path: '/organizations/{organizationId}', costs: small, errors: 'text' },
  putMember: { method: 'PUT', path: '/organizations/{organizationId}/members/{userId}', costs: json, errors: 'text' },
  deleteMember: {
    method: 'DELETE',
    path: '/organizations/{organizationId}/members/{userId}',
    costs: small,
    errors: 'text',
  },
  createApiKey: { method: 'POST', path: '/organizations/{organizationId}/api-keys', costs: json, errors: 'text' },
  listApiKeys: { method: 'GET', path: '/organizations/{organizationId}/api-keys', costs: small, errors: 'text' },
  deleteApiKey: {
    method: 'DELETE',
    path: '/organizations/{organizationId}/api-keys/{keyId}',
    costs: small,
    errors: 'text',
  },
  signInPage: { method: 'GET', path: '/signin', costs: small, errors: 'page' },
  signIn: { method: 'POST', path: '/signin', costs: form, errors: 'page' },
  startCliLogin: { method: 'POST', path: '/api/auth/cli/session', costs: small, errors: 'text' },
  pollCliLogin: { method: 'GET', path: '/api/auth/cli/poll/{sessionId}', costs: small, errors: 'text' },
  cliLoginPage: { method: 'GET', path: '/signin/cli', costs: small, errors: 'page' },
  decideCliLogin: { method: 'POST', path: '/signin/cli', costs: form, errors: 'page' },
  protectedResource: {
    method: 'GET',
    path: '/.well-known/oauth-protected-resource/connect/{namespace}/{connectionId}/mcp',
    costs: small,
  },
  authorizationServer: { method: 'GET', path: '/.well-known/oauth-authorization-server', costs: small },
  authorizationServerOfPath: { method: 'GET', path: '/.well-known/oauth-authorization-server/{+path}', costs: small },
  oauthCallback: { method: 'GET', path: '/oauth/callback', costs: small, errors: 'page' },
  oauthDone: { method: 'GET', path: '/oauth/done', costs: small, errors: 'page' },
  clientDocument: { method: 'GET', path: '/oauth/client.json', costs: small },
  authorizePage: { method: 'GET', path: '/oauth/authorize', costs: small, errors: 'page' },
  decideConsent: { method: 'POST', path: '/oauth/authorize', costs: form, errors: 'page' },
  exchangeToken: { method: 'POST', path: '/oauth/token', costs: form },
  registerClient: { method: 'POST', path: '/oauth/register', costs: json },
  revokeGrant: { method: 'POST', path: '/oauth/revoke', costs: form },
  health: { method: 'GET', path: '/health', costs: small },
  jwks: { method: 'GET', path: '/.well-known/jwks.json', costs: small },
  openApi: { method: 'GET', path: '/openapi.json', costs: small },
  docs: { method: 'GET', path: '/docs', costs: small },
  apiReference: { method: 'GET', path: '/docs/api', costs: small },
  document: { method: 'GET', path: '/docs/{page}', costs: small },
  home: { method: 'GET', path: '/', costs: small },
  icon: { method: 'GET', path: '/favicon.ico', costs: small },
} as const satisfies Record<string, Operation>

export type OperationId = keyof typeof operations

/** Every operation with its id, in the order of the table. */
export const operationEntries = Object.entries(operations) as readonly (readonly [OperationId, Operation])[]
