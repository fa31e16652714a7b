/**
 * The table of all operations, with method and path. The routes, the `Allow` header, the names in metrics and the raw
 * path checks are derived from it (`http/router.ts`, `http/route.ts`, `http/raw-path.ts`). The types require a handler
 * for each.
 */

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** A URI template (RFC 6570): `{name}` is one segment of a path, `{+name}` the rest of it, slashes included. */
  readonly path: string
  /**
   * The format of errors. `server`: `{error}` with a text, which for 404 is always the same (specification 7.2).
   * `text`: `{error}` with the message. `rpc`: a JSON-RPC error. `page`: a page for people. Left out: `{error, message}`.
   */
  readonly errors?: 'server' | 'text' | 'rpc' | 'page'
}

export const operations = {
  createToken: { method: 'POST', path: '/tokens' },
  listConnections: { method: 'GET', path: '/connect/{namespace}' },
  createConnection: { method: 'POST', path: '/connect/{namespace}' },
  getConnection: { method: 'GET', path: '/connect/{namespace}/{connectionId}' },
  replaceConnection: { method: 'PUT', path: '/connect/{namespace}/{connectionId}' },
  deleteConnection: { method: 'DELETE', path: '/connect/{namespace}/{connectionId}' },
  callMcp: { method: 'POST', path: '/connect/{namespace}/{connectionId}/mcp', errors: 'rpc' },
  listTools: { method: 'GET', path: '/connect/{namespace}/{connectionId}/.tools' },
  getTool: { method: 'GET', path: '/connect/{namespace}/{connectionId}/.tools/{+tool}' },
  callTool: { method: 'POST', path: '/connect/{namespace}/{connectionId}/.tools/{+tool}' },
  setupPage: { method: 'GET', path: '/connect/{namespace}/{connectionId}/setup', errors: 'page' },
  startSetup: { method: 'POST', path: '/connect/{namespace}/{connectionId}/setup', errors: 'page' },
  listServers: { method: 'GET', path: '/servers', errors: 'text' },
  introspectServer: { method: 'POST', path: '/servers/{+qualifiedName}/.introspect', errors: 'server' },
  createRelease: { method: 'PUT', path: '/servers/{+qualifiedName}/releases', errors: 'server' },
  getRelease: { method: 'GET', path: '/servers/{+qualifiedName}/releases/{id}', errors: 'server' },
  getServer: { method: 'GET', path: '/servers/{+qualifiedName}', errors: 'server' },
  putServer: { method: 'PUT', path: '/servers/{+qualifiedName}', errors: 'text' },
  changeServer: { method: 'PATCH', path: '/servers/{+qualifiedName}', errors: 'server' },
  deleteServer: { method: 'DELETE', path: '/servers/{+qualifiedName}', errors: 'server' },
  listRegistryServers: { method: 'GET', path: '/v0.1/servers', errors: 'text' },
  listRegistryVersions: { method: 'GET', path: '/v0.1/servers/{+serverName}/versions', errors: 'server' },
  getRegistryVersion: { method: 'GET', path: '/v0.1/servers/{+serverName}/versions/{version}', errors: 'server' },
  getMe: { method: 'GET', path: '/me', errors: 'text' },
  listNamespaces: { method: 'GET', path: '/namespaces', errors: 'text' },
  createNamespace: { method: 'POST', path: '/namespaces', errors: 'text' },
  getNamespace: { method: 'GET', path: '/namespaces/{namespace}', errors: 'text' },
  putNamespace: { method: 'PUT', path: '/namespaces/{namespace}', errors: 'text' },
  changeNamespace: { method: 'PATCH', path: '/namespaces/{namespace}', errors: 'text' },
  deleteNamespace: { method: 'DELETE', path: '/namespaces/{namespace}', errors: 'text' },
  getOrganization: { method: 'GET', path: '/organizations/{organizationId}', errors: 'text' },
  putOrganization: { method: 'PUT', path: '/organizations/{organizationId}', errors: 'text' },
  deleteOrganization: { method: 'DELETE', path: '/organizations/{organizationId}', errors: 'text' },
  putMember: { method: 'PUT', path: '/organizations/{organizationId}/members/{userId}', errors: 'text' },
  deleteMember: { method: 'DELETE', path: '/organizations/{organizationId}/members/{userId}', errors: 'text' },
  createApiKey: { method: 'POST', path: '/organizations/{organizationId}/api-keys', errors: 'text' },
  listApiKeys: { method: 'GET', path: '/organizations/{organizationId}/api-keys', errors: 'text' },
  deleteApiKey: { method: 'DELETE', path: '/organizations/{organizationId}/api-keys/{keyId}', errors: 'text' },
  signInPage: { method: 'GET', path: '/signin', errors: 'page' },
  signIn: { method: 'POST', path: '/signin', errors: 'page' },
  startCliLogin: { method: 'POST', path: '/api/auth/cli/session', errors: 'text' },
  pollCliLogin: { method: 'GET', path: '/api/auth/cli/poll/{sessionId}', errors: 'text' },
  cliLoginPage: { method: 'GET', path: '/signin/cli', errors: 'page' },
  decideCliLogin: { method: 'POST', path: '/signin/cli', errors: 'page' },
  protectedResource: {
    method: 'GET',
    path: '/.well-known/oauth-protected-resource/connect/{namespace}/{connectionId}/mcp',
  },
  authorizationServer: { method: 'GET', path: '/.well-known/oauth-authorization-server' },
  authorizationServerOfPath: { method: 'GET', path: '/.well-known/oauth-authorization-server/{+path}' },
  oauthCallback: { method: 'GET', path: '/oauth/callback', errors: 'page' },
  oauthDone: { method: 'GET', path: '/oauth/done', errors: 'page' },
  clientDocument: { method: 'GET', path: '/oauth/client.json' },
  authorizePage: { method: 'GET', path: '/oauth/authorize', errors: 'page' },
  decideConsent: { method: 'POST', path: '/oauth/authorize', errors: 'page' },
  exchangeToken: { method: 'POST', path: '/oauth/token' },
  registerClient: { method: 'POST', path: '/oauth/register' },
  revokeGrant: { method: 'POST', path: '/oauth/revoke' },
  health: { method: 'GET', path: '/health' },
  jwks: { method: 'GET', path: '/.well-known/jwks.json' },
  openApi: { method: 'GET', path: '/openapi.json' },
  docs: { method: 'GET', path: '/docs' },
  apiReference: { method: 'GET', path: '/docs/api' },
  document: { method: 'GET', path: '/docs/{page}' },
  home: { method: 'GET', path: '/' },
  icon: { method: 'GET', path: '/favicon.ico' },
} as const satisfies Record<string, Operation>

export type OperationId = keyof typeof operations

/** Every operation with its id, in the order of the table. */
export const operationEntries = Object.entries(operations) as readonly (readonly [OperationId, Operation])[]
