/**
 * The table of all operations, with method and path. The routes, the `Allow` header, the names in metrics and the raw
 * path checks are derived from it (`http/router.ts`, `http/route.ts`, `http/raw-path.ts`). The types require a handler
 * for each.
 */

import { formBytesMax, requestBodyBytesMax, revocationBytesMax, rpcBodyBytesMax, serverBodyBytesMax } from './limits.ts'

/** The most that a request of an operation may take of its owner's allowances (`fairness/allowance.ts`). */
export interface Costs {
  /** Bytes of the body. Past it: the request is refused. */
  readonly bodyBytesMax: number
  /** Milliseconds in which the process handles a megabyte of the body, until the request is answered. */
  readonly bodyMsPerMegabyte: number
  /**
   * `many`: it reads as many records as somebody has stored, or one of a megabyte, and waits for one of its owner's
   * places to do so. `question`: the same for what policies allow. `log`: for the lines of a log, which takes longer.
   */
  readonly reads: 'few' | 'many' | 'question' | 'log'
  /** Whether it takes access away, at its own rate: its body waits for nothing of its owner, who may be flooded. */
  readonly isRemoval?: true
  /** Whether it answers anybody alike, so that the request belongs to the network that it comes from. */
  readonly isPublic?: true
  /** Whether it does work before anybody looks at a credential: it waits for its network's part of a pass first. */
  readonly isVisit?: true
}

/** No body, and few records. */
const small: Costs = { bodyBytesMax: 0, bodyMsPerMegabyte: 0, reads: 'few' }
/** The same for everybody. */
const open: Costs = { ...small, isPublic: true }
/** A page of people who sign in, or another step of that. */
const visit: Costs = { ...small, isVisit: true }
/** A list, or another answer that much is read for. */
const many: Costs = { bodyBytesMax: 0, bodyMsPerMegabyte: 0, reads: 'many' }
/** Lines of a log. */
const log: Costs = { bodyBytesMax: 0, bodyMsPerMegabyte: 0, reads: 'log' }
/** A small JSON body, which may have to be empty. */
const json: Costs = { bodyBytesMax: requestBodyBytesMax, bodyMsPerMegabyte: 50, reads: 'few' }
/** A body that waits for nothing of its owner, whom somebody else may flood, and is so small that it may. */
const revocation: Costs = { ...json, bodyBytesMax: revocationBytesMax, isRemoval: true }
/** As `json`, about what policies allow. */
const question: Costs = { ...json, reads: 'question' }
const form: Costs = { ...visit, bodyBytesMax: formBytesMax, bodyMsPerMegabyte: 50 }
const message: Costs = { bodyBytesMax: rpcBodyBytesMax, bodyMsPerMegabyte: 10, reads: 'few' }
const server: Costs = { bodyBytesMax: serverBodyBytesMax, bodyMsPerMegabyte: 50, reads: 'few' }

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** A URI template (RFC 6570): `{name}` is one segment of a path, `{+name}` the rest of it, slashes included. */
  readonly path: string
  readonly costs: Costs
  /** Whether the answer is a stream, which nobody would read for `HEAD`: that is 405. Left out: it is not. */
  readonly isStream?: boolean
  /**
   * The format of errors. `server`: `{error}` with a text, which for 404 is always the same (specification 7.2).
   * `text`: `{error}` with the message. `rpc`: a JSON-RPC error. `page`: a page for people. Left out: `{error,
   * message}`.
   */
  readonly errors?: 'server' | 'text' | 'rpc' | 'page' | undefined
}

/** Makes the rows of a method. */
const row =
  (method: Operation['method']) =>
  (path: string, costs: Costs, errors?: Operation['errors']): Operation => ({ method, path, costs, errors })
const [get, post, put, patch, remove] = [row('GET'), row('POST'), row('PUT'), row('PATCH'), row('DELETE')]
const stream = (path: string, errors?: Operation['errors']) => ({ ...get(path, small, errors), isStream: true })

/** A path belongs to the first row whose template it fits. */
export const operations = {
  createToken: post('/tokens', json),
  revokeToken: post('/tokens/revoke', revocation),
  explainToken: post('/tokens/explain', question),
  lintPolicy: post('/tokens/lint', question),
  coverTools: post('/tokens/coverage', question),
  diffPolicies: post('/tokens/diff', question),
  suggestPolicy: post('/tokens/suggest', question),
  listConnections: get('/connect/{namespace}', many),
  createConnection: post('/connect/{namespace}', json),
  listNamespaceTools: get('/connect/{namespace}/.tools', many),
  listRecipes: get('/connect/{namespace}/.clients', small),
  listHealth: get('/connect/{namespace}/.health', many),
  testConnection: post('/connect/{namespace}/{connectionId}/.test', small),
  getConnection: get('/connect/{namespace}/{connectionId}', small),
  replaceConnection: put('/connect/{namespace}/{connectionId}', json),
  deleteConnection: remove('/connect/{namespace}/{connectionId}', small),
  listenNamespace: stream('/connect/{namespace}/mcp', 'rpc'),
  callNamespace: post('/connect/{namespace}/mcp', message, 'rpc'),
  listenView: stream('/connect/{namespace}/mcp/{view}', 'rpc'),
  callView: post('/connect/{namespace}/mcp/{view}', message, 'rpc'),
  callMcp: post('/connect/{namespace}/{connectionId}/mcp', message, 'rpc'),
  listTools: get('/connect/{namespace}/{connectionId}/.tools', small),
  getTool: get('/connect/{namespace}/{connectionId}/.tools/{+tool}', small),
  callTool: post('/connect/{namespace}/{connectionId}/.tools/{+tool}', message),
  listPins: get('/connect/{namespace}/{connectionId}/.pins', many),
  acceptPins: post('/connect/{namespace}/{connectionId}/.pins', { ...json, reads: 'many' }),
  setupPage: get('/connect/{namespace}/{connectionId}/setup', visit, 'page'),
  startSetup: post('/connect/{namespace}/{connectionId}/setup', form, 'page'),
  listServers: get('/servers', many, 'text'),
  importServers: post('/servers/.import', server, 'text'),
  introspectServer: post('/servers/{+qualifiedName}/.introspect', json, 'server'),
  createRelease: put('/servers/{+qualifiedName}/releases', server, 'server'),
  getRelease: get('/servers/{+qualifiedName}/releases/{id}', many, 'server'),
  getServer: get('/servers/{+qualifiedName}', many, 'server'),
  putServer: put('/servers/{+qualifiedName}', server, 'text'),
  changeServer: patch('/servers/{+qualifiedName}', server, 'server'),
  deleteServer: remove('/servers/{+qualifiedName}', small, 'server'),
  listRegistryServers: get('/v0.1/servers', many, 'text'),
  listRegistryVersions: get('/v0.1/servers/{+serverName}/versions', many, 'server'),
  getRegistryVersion: get('/v0.1/servers/{+serverName}/versions/{version}', many, 'server'),
  listNamespaceRegistry: get('/registry/{namespace}/v0.1/servers', many, 'text'),
  listNamespaceVersions: get('/registry/{namespace}/v0.1/servers/{+serverName}/versions', many, 'text'),
  getNamespaceVersion: get('/registry/{namespace}/v0.1/servers/{+serverName}/versions/{version}', many, 'text'),
  getMe: get('/me', many, 'text'),
  listNamespaces: get('/namespaces', many, 'text'),
  createNamespace: post('/namespaces', json, 'text'),
  getNamespace: get('/namespaces/{namespace}', small, 'text'),
  putNamespace: put('/namespaces/{namespace}', json, 'text'),
  changeNamespace: patch('/namespaces/{namespace}', json, 'text'),
  deleteNamespace: remove('/namespaces/{namespace}', small, 'text'),
  listViews: get('/namespaces/{namespace}/views', many, 'text'),
  getView: get('/namespaces/{namespace}/views/{view}', small, 'text'),
  putView: put('/namespaces/{namespace}/views/{view}', json, 'text'),
  deleteView: remove('/namespaces/{namespace}/views/{view}', small, 'text'),
  listRegistryLinks: get('/namespaces/{namespace}/registry-links', small, 'text'),
  createRegistryLink: post('/namespaces/{namespace}/registry-links', json, 'text'),
  deleteRegistryLink: remove('/namespaces/{namespace}/registry-links/{linkId}', small, 'text'),
  getOrganization: get('/organizations/{organizationId}', many, 'text'),
  putOrganization: put('/organizations/{organizationId}', json, 'text'),
  deleteOrganization: remove('/organizations/{organizationId}', small, 'text'),
  putMember: put('/organizations/{organizationId}/members/{userId}', json, 'text'),
  deleteMember: remove('/organizations/{organizationId}/members/{userId}', small, 'text'),
  createApiKey: post('/organizations/{organizationId}/api-keys', json, 'text'),
  listApiKeys: get('/organizations/{organizationId}/api-keys', small, 'text'),
  deleteApiKey: remove('/organizations/{organizationId}/api-keys/{keyId}', small, 'text'),
  createOwnApiKey: post('/me/api-keys', json, 'text'),
  listOwnApiKeys: get('/me/api-keys', small, 'text'),
  deleteOwnApiKey: remove('/me/api-keys/{keyId}', small, 'text'),
  createAnyApiKey: post('/api-keys', json, 'text'),
  listAllApiKeys: get('/api-keys', many, 'text'),
  deleteAnyApiKey: remove('/api-keys/{keyId}', small, 'text'),
  listOwnGrants: get('/me/grants', many, 'text'),
  deleteOwnGrant: remove('/me/grants/{grantId}', small, 'text'),
  listAllGrants: get('/grants', many, 'text'),
  deleteAnyGrant: remove('/grants/{grantId}', small, 'text'),
  getOverview: get('/overview', log),
  listCalls: get('/calls', log),
  countCalls: get('/calls/series', log),
  getCall: get('/calls/{requestId}', log),
  listAudit: get('/audit', log),
  verifyAudit: get('/audit/verification', log),
  listenEvents: stream('/events'),
  listSigningKeys: get('/signing-keys', small),
  rotateSigningKeys: post('/signing-keys/rotate', small),
  startConsoleSession: post('/console/session', json),
  getConsoleSession: get('/console/session', small),
  endConsoleSession: remove('/console/session', small),
  consoleAsset: get('/console/assets/{name}', open),
  consolePage: get('/console', open, 'page'),
  consoleRoom: get('/console/{+path}', open, 'page'),
  signInPage: get('/signin', visit, 'page'),
  signIn: post('/signin', form, 'page'),
  startCliLogin: post('/api/auth/cli/session', visit, 'text'),
  pollCliLogin: get('/api/auth/cli/poll/{sessionId}', visit, 'text'),
  cliLoginPage: get('/signin/cli', visit, 'page'),
  decideCliLogin: post('/signin/cli', form, 'page'),
  protectedResource: get('/.well-known/oauth-protected-resource/connect/{namespace}/{connectionId}/mcp', open),
  protectedNamespace: get('/.well-known/oauth-protected-resource/connect/{namespace}/mcp', open),
  protectedView: get('/.well-known/oauth-protected-resource/connect/{namespace}/mcp/{view}', open),
  authorizationServer: get('/.well-known/oauth-authorization-server', open),
  authorizationServerOfPath: get('/.well-known/oauth-authorization-server/{+path}', open),
  oauthCallback: get('/oauth/callback', visit, 'page'),
  oauthDone: get('/oauth/done', visit, 'page'),
  clientDocument: get('/oauth/client.json', open),
  authorizePage: get('/oauth/authorize', visit, 'page'),
  decideConsent: post('/oauth/authorize', form, 'page'),
  exchangeToken: post('/oauth/token', form),
  registerClient: post('/oauth/register', { ...json, isVisit: true }),
  revokeGrant: post('/oauth/revoke', { ...revocation, isVisit: true }),
  health: get('/health', small),
  jwks: get('/.well-known/jwks.json', small),
  openApi: get('/openapi.json', open),
  docs: get('/docs', open),
  apiReference: get('/docs/api', open),
  document: get('/docs/{page}', open),
  home: get('/', open),
  icon: get('/favicon.ico', open),
}

export type OperationId = keyof typeof operations

/** Every operation with its id, in the order of the table. */
export const operationEntries = Object.entries(operations) as readonly (readonly [OperationId, Operation])[]
