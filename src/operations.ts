/**
 * Every operation of the platform, once: method and path. What a path answers to, the names in metrics, the paths
 * that are checked as they came, and the paths of the OpenAPI document are derived from this table (`http/router.ts`,
 * `http/route.ts`, `features/reference/document.ts`). A handler that is missing does not compile.
 */

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE'
  /** A URI template (RFC 6570): `{name}` is one part of a path, `{+name}` the rest of it, slashes included. */
  readonly path: string
  /**
   * How errors are answered. `server`: `{error}` with a text (specification 7.2). `rpc`: a JSON-RPC error. Otherwise
   * `{error, message}`.
   */
  readonly errors?: 'server' | 'rpc'
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
  getServer: { method: 'GET', path: '/servers/{+qualifiedName}', errors: 'server' },
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
