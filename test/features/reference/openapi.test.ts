/** The OpenAPI document against the platform: every operation, every status that it names, every body. */

import { beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import Ajv from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import document from '../../../docs/openapi.json' with { type: 'json' }
import { grantEntry } from '../../../src/auth/grants.ts'
import { referenceHandlers } from '../../../src/features/reference/reference-handlers.ts'
import { operationOf } from '../../../src/http/route.ts'
import { type Operation, type OperationId, operationEntries, operations } from '../../../src/operations.ts'
import { CallLog } from '../../../src/ops/call-log.ts'
import { withIndex } from '../../../src/storage/directory-records.ts'
import { type Store, StoreError } from '../../../src/storage/store.ts'
import { type Upstream, UpstreamError } from '../../../src/upstream/upstream.ts'
import { mintToken, readCases, runCase, titleOf } from '../../api/cases.ts'
import { type Api, apiOf } from '../../support/api.ts'
import { clockOf } from '../../support/clock.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { createTestPlatform, issuer, keyIdOf, startOfTime, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { workplace } from '../../support/workplace.ts'

interface Body {
  readonly content?: { readonly 'application/json': { readonly schema: object; readonly example?: object } }
}
interface Described {
  readonly operationId: OperationId
  readonly requestBody?: Body
  readonly responses: Readonly<Record<string, Body>>
}

const described = Object.values(document.paths).flatMap((methods) => Object.values(methods)) as unknown as Described[]
const descriptionOf = (id: OperationId) => described.find(({ operationId }) => operationId === id)

/** Pages for people, operations of sign-ins, streams, and the document itself. */
const notDescribed: readonly OperationId[] = [
  ...operationEntries.flatMap(([id, { errors }]) => (errors === 'page' ? [id] : [])),
  'clientDocument',
  'protectedResource',
  'protectedNamespace',
  'protectedView',
  'listenNamespace',
  'listenView',
  'authorizationServer',
  'authorizationServerOfPath',
  'exchangeToken',
  'registerClient',
  'revokeGrant',
  'consoleAsset',
  'startCliLogin',
  'pollCliLogin',
  'openApi',
  'docs',
  'apiReference',
  'document',
  'home',
  'icon',
]

const ajv = new Ajv({ strict: false, allErrors: true })
addFormats(ajv)
ajv.addSchema({ $id: 'document', components: document.components })
const validators = new Map<string, ReturnType<typeof ajv.compile>>()

/** What is wrong with a value of this schema of the document. */
function problems(schema: object, value: unknown): unknown {
  const text = JSON.stringify(schema).replaceAll('"#/', '"document#/')
  const validate = validators.get(text) ?? ajv.compile(JSON.parse(text))
  validators.set(text, validate)
  return validate(value) ? [] : validate.errors
}
const schemaOf = (body: Body) => {
  if (body.content === undefined) throw new Error('it has no body')
  return body.content['application/json'].schema
}

/** Every answer that a test of this file got, held to the document. */
const seen = new Set<string>()
async function hold(path: string, init: RequestInit, response: Response): Promise<void> {
  const id = operationOf(init.method ?? 'GET', path.split('?')[0] ?? '')
  if (id === undefined || notDescribed.includes(id)) return
  const { status } = response
  seen.add(`${id} ${status}`)
  const found = descriptionOf(id)?.responses[status]
  if (found === undefined) throw new Error(`${id} answers ${status}, which the document does not have`)
  if (found.content !== undefined && 'text/event-stream' in found.content) {
    expect(response.headers.get('content-type')).toStartWith('text/event-stream')
    await response.body?.cancel()
    return
  }
  const text = await response.clone().text()
  if (found.content === undefined) expect({ id, status, text }).toEqual({ id, status, text: '' })
  else
    expect({ id, status, problems: problems(schemaOf(found), JSON.parse(text)) }).toEqual({ id, status, problems: [] })
  const { requestBody } = descriptionOf(id) ?? {}
  if (response.ok && requestBody !== undefined && typeof init.body === 'string' && init.body !== 'null') {
    expect({ body: init.body, problems: problems(schemaOf(requestBody), JSON.parse(init.body)) }).toMatchObject({
      problems: [],
    })
  }
}
const holding = (platform: TestPlatform) => async (path: string, init: RequestInit) => {
  const response = await platform.fetch(path, init)
  await hold(path, init, response)
  return response
}

describe('what the cases of the API are answered is what the document says', () => {
  let platform: TestPlatform
  beforeAll(async () => {
    platform = await createTestPlatform()
  })
  for (const one of readCases()) test(titleOf(one), () => runCase(one, holding(platform)))
})

interface Asked {
  readonly platform?: 'usual' | 'crowded' | 'down'
  readonly path?: string
  readonly body?: unknown
  readonly form?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** Of whom; nobody: no credential. */
  readonly as?: keyof typeof sampleKeys | 'nobody' | { readonly policy: readonly object[] }
  /** How the server behind the connection behaves. */
  readonly upstream?: 'works' | 'is down' | 'is late'
}
interface Walk {
  /** What is answered with success. */
  readonly path: string
  readonly body?: unknown
  readonly form?: Readonly<Record<string, string>>
  /** What makes of it a request of each status. What all operations have in common is in `common`. */
  readonly statuses?: Readonly<Record<number, Asked>>
}

const nothing = '/connect/ada/nothing'
const connection = '/connect/ada/one'
const waiting = '/connect/northwind/waiting'
const madeServer = '/servers/made/thing'
const reading = { policy: [{ operations: 'read' }] }
const writing = { policy: [{ operations: 'write' }] }
const executing = { policy: [{ operations: 'execute' }] }
const mcpUrl = 'https://example.com/mcp'
const large = { a: 'x'.repeat(1_100_000) }
const message = (method: string, params: object = {}) => ({ jsonrpc: '2.0', id: 1, method, params })
const behind = { 502: { upstream: 'is down' }, 504: { upstream: 'is late' } } as const

const common: Readonly<Record<number, Asked>> = {
  400: { path: '?unknown=1' },
  401: { as: 'nobody' },
  429: { platform: 'crowded', headers: { authorization: 'Bearer nope' } },
  503: { platform: 'down' },
}

const walks: Readonly<Partial<Record<OperationId, Walk>>> = {
  createToken: {
    path: '/tokens',
    body: {},
    statuses: { 403: { as: 'linus', body: { organizationId: 'org_northwind' } } },
  },
  listConnections: {
    path: '/connect/ada',
    statuses: { 403: { as: executing }, 404: { path: '/connect/nowhere' } },
  },
  createConnection: {
    path: '/connect/ada',
    body: { mcpUrl },
    statuses: { 403: { as: reading }, 404: { path: '/connect/nowhere' } },
  },
  getConnection: { path: connection, statuses: { 403: { as: executing }, 404: { path: nothing } } },
  replaceConnection: {
    path: connection,
    body: { mcpUrl },
    statuses: {
      201: { path: `${connection}-made` },
      403: { as: reading },
      404: { path: '/connect/nowhere/one' },
      409: { body: { mcpUrl: 'https://other.example.com/mcp' } },
    },
  },
  deleteConnection: { path: connection, statuses: { 403: { as: reading }, 404: { path: nothing } } },
  callNamespace: {
    path: `${connection.slice(0, connection.lastIndexOf('/'))}/mcp`,
    body: message('ping'),
    statuses: {
      202: { body: { jsonrpc: '2.0', method: 'notifications/cancelled' } },
      400: { body: [] },
      403: { as: reading },
      404: { path: '/connect/nowhere/mcp' },
      413: { body: message('ping', large) },
      508: { headers: { via: '1.1 postern-test' } },
    },
  },
  listNamespaceTools: {
    path: '/connect/ada/.tools',
    statuses: { 400: { path: '?x=1' }, 403: { as: reading }, 404: { path: '/connect/nowhere/.tools' } },
  },
  listRecipes: {
    path: '/connect/ada/.clients',
    statuses: { 403: { as: { policy: [{ operations: 'write' }] } }, 404: { path: '/connect/nowhere/.clients' } },
  },
  callView: {
    path: `${connection.slice(0, connection.lastIndexOf('/'))}/mcp/made`,
    body: message('ping'),
    statuses: {
      202: { body: { jsonrpc: '2.0', method: 'notifications/cancelled' } },
      400: { body: [] },
      403: { as: reading },
      404: { path: `${connection.slice(0, connection.lastIndexOf('/'))}/mcp/nothing` },
      413: { body: message('ping', large) },
      508: { headers: { via: '1.1 postern-test' } },
    },
  },
  listViews: {
    path: '/namespaces/made/views',
    statuses: { 403: { as: executing }, 404: { path: '/namespaces/nowhere/views' } },
  },
  getView: {
    path: '/namespaces/made/views/made',
    statuses: { 403: { as: executing }, 404: { path: '/namespaces/made/views/nothing' } },
  },
  putView: {
    path: '/namespaces/made/views/made',
    body: { policy: [] },
    statuses: {
      201: { path: '/namespaces/made/views/new' },
      403: { as: reading },
      404: { path: '/namespaces/nowhere/views/made' },
      409: { path: '/namespaces/northwind/views/merchandising' },
    },
  },
  deleteView: {
    path: '/namespaces/made/views/to-go',
    statuses: {
      403: { as: reading },
      404: { path: '/namespaces/made/views/nothing' },
      409: { path: '/namespaces/northwind/views/merchandising' },
    },
  },
  callMcp: {
    path: `${connection}/mcp`,
    body: message('ping'),
    statuses: {
      ...behind,
      202: { body: { jsonrpc: '2.0', method: 'notifications/cancelled' } },
      400: { body: [] },
      403: { as: reading },
      404: { path: `${nothing}/mcp` },
      409: { path: `${waiting}/mcp` },
      413: { body: message('ping', large) },
      508: { headers: { via: '1.1 postern-test' } },
    },
  },
  listTools: {
    path: `${connection}/.tools`,
    statuses: {
      ...behind,
      403: { as: reading },
      404: { path: `${nothing}/.tools` },
      409: { path: `${waiting}/.tools` },
    },
  },
  getTool: {
    path: `${connection}/.tools/a`,
    statuses: {
      ...behind,
      403: { as: reading },
      404: { path: `${nothing}/.tools/a` },
      409: { path: `${waiting}/.tools/a` },
    },
  },
  listPins: {
    path: `${connection}/.pins`,
    statuses: { 400: { path: '?x=1' }, 403: { as: executing }, 404: { path: `${nothing}/.pins` } },
  },
  acceptPins: {
    path: `${connection}/.pins`,
    body: {},
    statuses: {
      403: { as: reading },
      404: { path: `${nothing}/.pins` },
      409: { body: { accept: { nothing: '0'.repeat(64) } } },
    },
  },
  callTool: {
    path: `${connection}/.tools/a`,
    body: {},
    statuses: {
      ...behind,
      403: { as: reading },
      404: { path: `${nothing}/.tools/a` },
      409: { path: `${waiting}/.tools/a` },
      413: { body: large },
    },
  },
  getServer: {
    path: '/servers/northwind%2Fcalendar',
    statuses: { 403: { as: executing }, 404: { path: '/servers/nowhere' } },
  },
  listServers: { path: '/servers', statuses: { 403: { as: executing }, 404: { path: '/servers/' } } },
  putServer: {
    path: madeServer,
    body: { description: 'made' },
    statuses: {
      403: { as: reading },
      404: { path: '/servers/nowhere/thing' },
      409: { path: '/servers/northwind/weather' },
      413: { body: { description: 'x'.repeat(1_100_000) } },
    },
  },
  changeServer: {
    path: madeServer,
    body: { unlisted: false },
    statuses: {
      403: { as: reading },
      404: { path: '/servers/made/none' },
      409: { path: '/servers/northwind/weather', body: { unlisted: true } },
      413: { body: { description: 'x'.repeat(1_100_000) } },
    },
  },
  deleteServer: {
    path: madeServer,
    statuses: {
      403: { as: reading },
      404: { path: '/servers/made/none' },
      409: { path: '/servers/northwind/weather' },
    },
  },
  introspectServer: {
    path: `${madeServer}/.introspect`,
    statuses: {
      403: { as: reading },
      404: { path: '/servers/made/none/.introspect' },
      409: { path: '/servers/northwind/weather/.introspect' },
      502: { upstream: 'is down' },
    },
  },
  createRelease: {
    path: `${madeServer.replace('made/', 'made%2F')}/releases`,
    form: { payload: JSON.stringify({ type: 'external', upstreamUrl: mcpUrl }) },
    statuses: {
      403: { as: reading },
      404: { path: '/servers/made%2Fnone/releases' },
      409: { path: '/servers/northwind%2Fweather/releases' },
      413: { form: { payload: 'x'.repeat(1_100_000) } },
    },
  },
  getRelease: {
    path: `${madeServer.replace('made/', 'made%2F')}/releases/last`,
    statuses: { 403: { as: executing }, 404: { path: '/servers/made%2Fthing/releases/none' } },
  },
  listRegistryServers: { path: '/v0.1/servers', statuses: { 403: { as: executing } } },
  listRegistryVersions: {
    path: '/v0.1/servers/northwind%2Fweather/versions',
    statuses: { 403: { as: executing }, 404: { path: '/v0.1/servers/none%2Fnone/versions' } },
  },
  getRegistryVersion: {
    path: '/v0.1/servers/northwind%2Fweather/versions/latest',
    statuses: { 403: { as: executing }, 404: { path: '/v0.1/servers/northwind%2Fweather/versions/9' } },
  },
  listNamespaceRegistry: {
    path: '/registry/made/v0.1/servers',
    statuses: { 404: { path: '/registry/nowhere/v0.1/servers' } },
  },
  listNamespaceVersions: {
    path: '/registry/made/v0.1/servers/localhost%2Fmade/versions',
    statuses: { 404: { path: '/registry/made/v0.1/servers/none%2Fnone/versions' } },
  },
  getNamespaceVersion: {
    path: '/registry/made/v0.1/servers/localhost%2Fmade/versions/latest',
    statuses: { 404: { path: '/registry/made/v0.1/servers/localhost%2Fmade/versions/9' } },
  },
  listRegistryLinks: {
    path: '/namespaces/made/registry-links',
    statuses: { 403: { as: executing }, 404: { path: '/namespaces/nowhere/registry-links' } },
  },
  createRegistryLink: {
    path: '/namespaces/made/registry-links',
    body: {},
    statuses: { 403: { as: reading }, 404: { path: '/namespaces/nowhere/registry-links' } },
  },
  deleteRegistryLink: {
    path: '/namespaces/made/registry-links/last',
    statuses: { 403: { as: reading }, 404: { path: '/namespaces/made/registry-links/nothing' } },
  },
  getMe: { path: '/me' },
  listNamespaces: { path: '/namespaces', statuses: { 403: { as: executing } } },
  createNamespace: { path: '/namespaces', statuses: { 201: { as: 'jonas' }, 403: { as: reading } } },
  getNamespace: { path: '/namespaces/ada', statuses: { 403: { as: executing }, 404: { path: '/namespaces/nowhere' } } },
  putNamespace: {
    path: '/namespaces/made',
    body: {},
    statuses: {
      403: { as: reading },
      404: { as: { policy: [{ namespaces: 'ada' }] } },
      409: { as: 'jonas', path: '/namespaces/priya' },
    },
  },
  changeNamespace: {
    path: '/namespaces/made',
    body: { pins: 'off' },
    statuses: {
      403: { as: reading },
      404: { path: '/namespaces/nowhere' },
      409: { path: '/namespaces/ada', body: { pins: 'block' } },
    },
  },
  deleteNamespace: {
    path: '/namespaces/made-to-go',
    statuses: { 403: { as: reading }, 404: { path: '/namespaces/nowhere' }, 409: { path: '/namespaces/ada' } },
  },
  getOrganization: {
    path: '/organizations/made',
    statuses: { 403: { as: reading }, 404: { path: '/organizations/nowhere' } },
  },
  putOrganization: {
    path: '/organizations/made',
    body: { owner: 'ada' },
    statuses: {
      201: { path: '/organizations/made-now' },
      403: { as: 'ada' },
      404: { path: '/organizations/.x' },
      409: { path: '/organizations/org_lumen' },
    },
  },
  deleteOrganization: {
    path: '/organizations/made-to-go',
    statuses: {
      403: { as: reading },
      404: { path: '/organizations/nowhere' },
      409: { path: '/organizations/org_lumen' },
    },
  },
  putMember: {
    path: '/organizations/made/members/grace',
    body: { role: 'admin' },
    statuses: {
      403: { as: reading },
      404: { path: '/organizations/nowhere/members/grace' },
      409: { path: '/organizations/made/members/ada' },
    },
  },
  deleteMember: {
    path: '/organizations/made/members/to-go',
    statuses: {
      403: { as: reading },
      404: { path: '/organizations/nowhere/members/grace' },
      409: { path: '/organizations/made/members/ada' },
    },
  },
  createApiKey: {
    path: '/organizations/made/api-keys',
    body: { name: 'ci' },
    statuses: { 403: { as: 'linus' } },
  },
  listApiKeys: { path: '/organizations/made/api-keys', statuses: { 403: { as: 'linus' } } },
  deleteApiKey: {
    path: '/organizations/made/api-keys/last',
    statuses: { 403: { as: 'linus' }, 404: { path: '/organizations/made/api-keys/none' } },
  },
  createOwnApiKey: {
    path: '/me/api-keys',
    body: { name: 'laptop' },
    statuses: { 403: { as: { policy: [{ ttl: '1h' }] } } },
  },
  listOwnApiKeys: { path: '/me/api-keys', statuses: { 403: { as: { policy: [{ ttl: '1h' }] } } } },
  deleteOwnApiKey: {
    path: '/me/api-keys/own',
    statuses: { 403: { as: { policy: [{ ttl: '1h' }] } }, 404: { path: '/me/api-keys/none' } },
  },
  createAnyApiKey: { path: '/api-keys', body: { userId: 'bob' }, statuses: { 403: { as: 'linus' } } },
  listAllApiKeys: { path: '/api-keys', statuses: { 403: { as: 'linus' } } },
  deleteAnyApiKey: {
    path: '/api-keys/last',
    statuses: { 403: { as: 'linus' }, 404: { path: '/api-keys/none' } },
  },
  listOwnGrants: { path: '/me/grants', statuses: { 403: { as: { policy: [{ ttl: '1h' }] } } } },
  deleteOwnGrant: {
    path: '/me/grants/grant_made',
    statuses: { 403: { as: { policy: [{ ttl: '1h' }] } }, 404: { path: '/me/grants/none' } },
  },
  listAllGrants: { path: '/grants', statuses: { 403: { as: 'linus' } } },
  deleteAnyGrant: {
    path: '/grants/grant_made',
    statuses: { 403: { as: 'linus' }, 404: { path: '/grants/none' } },
  },
  revokeToken: {
    path: '/tokens/revoke',
    body: { tokenId: `tok_${'a'.repeat(22)}` },
    statuses: { 403: { as: 'linus' } },
  },
  explainToken: {
    path: '/tokens/explain',
    body: { policy: [{ rpcReqMatch: { method: 'x' } }] },
    statuses: { 403: { body: { organizationId: 'org_none' } }, 404: { body: { token: 'none' } } },
  },
  lintPolicy: {
    path: '/tokens/lint',
    body: { policy: [{ rpcReqMatch: { method: 'x' } }] },
    statuses: { 403: { body: { organizationId: 'org_none' } }, 404: { body: { token: 'none' } } },
  },
  coverTools: {
    path: '/tokens/coverage',
    body: { policy: [{ rpcReqMatch: { method: 'x' } }], limit: 2 },
    statuses: { 403: { body: { organizationId: 'org_none' } }, 404: { body: { token: 'none' } } },
  },
  diffPolicies: {
    path: '/tokens/diff',
    body: { old: { policy: [{ operations: 'read' }] }, new: { policy: [{ resources: 'connections' }] } },
    statuses: { 404: { body: { old: { token: 'none' }, new: { token: 'none' } } } },
  },
  suggestPolicy: { path: '/tokens/suggest', body: { days: 1 }, statuses: { 404: { body: { token: 'none' } } } },
  listCalls: { path: '/calls' },
  countCalls: { path: '/calls/series' },
  getCall: { path: '/calls/r', statuses: { 404: { path: '/calls/none' } } },
  getOverview: { path: '/overview' },
  listenEvents: { path: '/events' },
  startConsoleSession: {
    path: '/console/session',
    body: { key: sampleKeys.ada },
    statuses: {
      400: { body: {} },
      401: { body: { key: 'nope' } },
      429: { platform: 'crowded', body: { key: 'nope' } },
    },
  },
  getConsoleSession: { path: '/console/session', statuses: { 401: { headers: { cookie: '' } } } },
  endConsoleSession: { path: '/console/session', statuses: { 401: { headers: { cookie: '' } } } },
  listHealth: {
    path: '/connect/northwind/.health',
    statuses: { 403: { as: writing }, 404: { path: '/connect/none/.health' } },
  },
  testConnection: {
    path: '/connect/northwind/crm-ada/.test',
    statuses: { 403: { as: writing }, 404: { path: '/connect/northwind/none/.test' } },
  },
  listSigningKeys: { path: '/signing-keys', statuses: { 403: { as: 'linus' } } },
  rotateSigningKeys: { path: '/signing-keys/rotate', statuses: { 403: { as: 'linus' }, 409: {} } },
  listAudit: { path: '/audit', statuses: { 403: { as: 'linus' } } },
  verifyAudit: { path: '/audit/verification', statuses: { 403: { as: 'linus' } } },
  importServers: {
    path: '/servers/.import',
    body: { servers: [] },
    statuses: { 403: { as: 'linus' }, 413: { body: { servers: ['x'.repeat(2 ** 21)] } } },
  },
  health: { path: '/health' },
  jwks: { path: '/.well-known/jwks.json' },
}

/** Works, until it is told to be down. */
function sometimesDown(): { readonly store: Store; goDown(): void } {
  let isDown = false
  const memory = openMemoryStore()
  const guarded = <T extends object>(target: T): T =>
    new Proxy(target, {
      get(_, name) {
        const value = Reflect.get(target, name)
        if (typeof value === 'object' && value !== null) return guarded(value)
        if (typeof value !== 'function') return value
        return (...args: unknown[]) => {
          if (isDown) throw new StoreError('unavailable', 'the disk is full')
          return value.apply(target, args)
        }
      },
    })
  return {
    store: guarded(memory),
    goDown() {
      isDown = true
    },
  }
}

let manner: Asked['upstream'] = 'works'
/** An MCP server with one tool. */
const upstream: Upstream = {
  async send({ body }) {
    if (manner === 'is down') throw new UpstreamError('down', 'nobody is there')
    if (manner === 'is late') throw new UpstreamError('late', 'no answer within 1 s')
    const { id, method } = JSON.parse(typeof body === 'string' ? body : Buffer.from(body ?? []).toString())
    const results: Record<string, object> = {
      initialize: {
        protocolVersion: '2025-06-18',
        capabilities: { tools: {} },
        serverInfo: { name: 'stub', version: '1' },
      },
      'tools/list': { tools: [{ name: 'a', inputSchema: { type: 'object' } }] },
      'tools/call': { content: [] },
    }
    if (id === undefined) return { status: 202, headers: {}, body: undefined }
    const answer = JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? {} })
    return { status: 200, headers: { 'content-type': 'application/json' }, body: new Uint8Array(Buffer.from(answer)) }
  },
}

describe('every operation gives every status that the document names', () => {
  const place = workplace()
  const platforms = {} as Record<NonNullable<Asked['platform']>, TestPlatform>
  let waitingId = ''
  beforeAll(async () => {
    const disk = sometimesDown()
    const callsPath = join(place.folder, 'calls.jsonl')
    const callLog = new CallLog(callsPath, { clock: clockOf(() => 0), onFailure: () => {} })
    await callLog.record({
      ...{ requestId: 'r', userId: 'ada', keyId: 'k', namespace: 'northwind', connectionId: 'crm-ada', tool: 't' },
      ...{ via: 'mcp', outcome: 'ok', ms: 1, bytesIn: 1, bytesOut: 1, args: 'a' },
    })
    platforms.usual = await createTestPlatform({ upstream, callLog })
    platforms.crowded = await createTestPlatform({ upstream, rates: { failures: 0.01 } })
    platforms.down = await createTestPlatform({ upstream, store: disk.store })
    const crowded = apiOf(platforms.crowded.fetch, sampleKeys.operator)
    await crowded('PUT /namespaces/made')
    await crowded('PATCH /namespaces/made', { registry: 'members' })
    disk.goDown()
    const headers = { authorization: `Bearer ${sampleKeys.operator}` }
    const list = await (await platforms.usual.fetch('/connect/northwind?limit=100', { headers })).json()
    const { connections } = list as { connections: { connectionId: string; status: { state: string } }[] }
    waitingId = connections.find(({ status }) => status.state === 'input_required')?.connectionId ?? ''
  })

  /** What the walks of the directory need, as other walks may have left it. Returns the ids of what was made last. */
  async function prepareRegistry() {
    const api = apiOf(platforms.usual.fetch, sampleKeys.operator)
    for (const organization of ['made', 'made-to-go']) await api(`PUT /organizations/${organization}`, { owner: 'ada' })
    await api('PUT /organizations/made/members/to-go', { role: 'member' })
    for (const namespace of ['made', 'made-to-go']) await api(`PUT /namespaces/${namespace}`)
    for (const view of ['made', 'to-go']) await api(`PUT /namespaces/made/views/${view}`, { policy: [] })
    await api('DELETE /namespaces/made/views/new')
    await api('PUT /namespaces/ada/views/made', { policy: [] })
    await api(`PUT ${madeServer}`, { mcpUrl })
    const form = new FormData()
    form.set('payload', JSON.stringify({ type: 'external', upstreamUrl: mcpUrl }))
    const headers = { authorization: `Bearer ${sampleKeys.operator}` }
    const released = await platforms.usual.fetch('/servers/made%2Fthing/releases', {
      method: 'PUT',
      headers,
      body: form,
    })
    const { deploymentId } = (await released.json()) as { deploymentId: string }
    const made = { client: 'c', clientId: 'c', namespace: 'made', connectionId: 'c', madeAt: '' }
    const times = { createdAt: new Date(startOfTime).toISOString(), expires: startOfTime / 1000 + 3600 }
    const keyId = await keyIdOf(platforms.usual, 'operator')
    const grant = { grantId: 'grant_made', userId: 'operator', keyId, ...made, ...times }
    await platforms.usual.store.commit({ puts: withIndex(grantEntry(grant)) })
    await api('PATCH /namespaces/made', { registry: 'members' })
    const { links } = (await api('GET /namespaces/made/registry-links')).body
    for (const { id } of links) await api(`DELETE /namespaces/made/registry-links/${id}`)
    const link: string = (await api('POST /namespaces/made/registry-links', {})).body.id
    return { release: deploymentId, key: await keyOfMade(api), own: await ownKey(api), link }
  }

  /** A key of the operator beside the one in use. */
  async function ownKey(api: Api): Promise<string> {
    const { apiKeys } = (await api('GET /me/api-keys')).body as { apiKeys: { id: string; name: string }[] }
    const made = apiKeys.find(({ name }) => name === 'laptop')
    return made?.id ?? (await api('POST /me/api-keys', { name: 'laptop' })).body.id
  }

  /** The only key of the organization, which makes so many in an hour. */
  async function keyOfMade(api: Api): Promise<string> {
    const [first, ...others] = (await api('GET /organizations/made/api-keys')).body.apiKeys
    for (const { id } of others) await api(`DELETE /organizations/made/api-keys/${id}`)
    return first?.id ?? (await api('POST /organizations/made/api-keys', { name: 'ci' })).body.id
  }

  /** Of a session that has just begun, and what a page of the console sends with it. */
  async function ofSession(): Promise<Record<string, string>> {
    const headers = { 'content-type': 'application/json' }
    const init = { method: 'POST', headers, body: JSON.stringify({ key: sampleKeys.ada }) }
    const response = await platforms.usual.fetch('/console/session', init)
    const { csrf } = (await response.json()) as { csrf: string }
    const cookie = response.headers.get('set-cookie')?.split(';')[0] ?? ''
    return { cookie, 'x-postern-csrf': csrf, 'sec-fetch-site': 'same-origin' }
  }

  async function ask(id: OperationId, { path, body, form }: Walk, asked: Asked): Promise<Response> {
    manner = 'works'
    const { release, key, own, link } = await prepareRegistry()
    const { method } = operations[id]
    const platform = platforms[asked.platform ?? 'usual']
    const usual = holding(platforms.usual)
    const json = { 'content-type': 'application/json' }
    const operator = { authorization: `Bearer ${sampleKeys.operator}` }
    // As other walks may have left it: it is there.
    await usual(connection, { method: 'PUT', headers: { ...operator, ...json }, body: JSON.stringify({ mcpUrl }) })
    const { as = 'operator' } = asked
    const isBySession = id === 'getConsoleSession' || id === 'endConsoleSession'
    const credential =
      as === 'nobody' || isBySession
        ? undefined
        : typeof as === 'string'
          ? sampleKeys[as]
          : await mintToken(usual, sampleKeys.operator, as)
    manner = asked.upstream ?? 'works'
    const target = asked.path?.startsWith('?') ? `${path}${asked.path}` : (asked.path ?? path)
    const sent = 'body' in asked ? asked.body : body
    const fields = asked.form ?? form
    const data = new FormData()
    for (const [name, value] of Object.entries(fields ?? {})) data.set(name, value)
    const init = {
      method,
      headers: {
        ...(credential !== undefined && { authorization: `Bearer ${credential}` }),
        ...(sent !== undefined && json),
        ...(isBySession && (await ofSession())),
        ...asked.headers,
      },
      ...(sent !== undefined && { body: JSON.stringify(sent) }),
      ...(fields !== undefined && { body: data }),
    }
    const there = target
      .replace('/waiting', `/${waitingId}`)
      .replace(/releases\/last$/, `releases/${release}`)
      .replace(/api-keys\/last$/, `api-keys/${key}`)
      .replace(/api-keys\/own$/, `api-keys/${own}`)
      .replace(/registry-links\/last$/, `registry-links/${link}`)
    return holding(platform)(there, init)
  }

  for (const { operationId: id, responses } of described) {
    const walk = walks[id]
    if (walk === undefined) {
      test(`${id} has a walk in this file`, () => expect(Object.keys(walks)).toContain(id))
      continue
    }
    for (const status of Object.keys(responses).map(Number)) {
      test(`${id} ${status}`, async () => {
        const asked = { ...(walk.statuses?.[status] ?? common[status]) }
        let answer = await ask(id, walk, asked)
        // What is counted is refused when there were too many.
        if (status === 429) for (let i = 0; i < 5 && answer.status !== 429; i += 1) answer = await ask(id, walk, asked)
        const text = answer.bodyUsed ? '' : await answer.text()
        expect({ status: answer.status, text }).toMatchObject({ status })
      })
    }
  }

  test('every operation is described, but for pages and the document itself', () => {
    const ids = [...described.map(({ operationId }) => operationId), ...notDescribed]
    expect(ids.sort()).toEqual((Object.keys(operations) as OperationId[]).sort())
  })

  // Of nobody's operation: it is refused before anything looks at whose it is.
  test('a stranger’s page is refused with an error of the platform, and of servers with theirs', async () => {
    for (const id of Object.keys(walks) as OperationId[]) {
      const init = { method: operations[id].method, headers: { host: 'evil.example' } }
      const response = await platforms.usual.fetch(walks[id]?.path ?? '', init)
      const { errors }: Operation = operations[id]
      // A path has one format for what is refused before it is known what is asked.
      const name = errors === 'server' || errors === 'text' ? 'ServerError' : 'Error'
      const schema = { $ref: `#/components/schemas/${name}` }
      const found = problems(schema, await response.json())
      expect({ id, status: response.status, found }).toEqual({ id, status: 403, found: [] })
    }
  })

  test('every status of success that the document has was seen', () => {
    const said = described.flatMap(({ operationId, responses }) =>
      Object.keys(responses).flatMap((status) => (status < '300' ? [`${operationId} ${status}`] : [])),
    )
    expect(said.filter((one) => !seen.has(one))).toEqual([])
  })
})

test('the document that is served is the one that these tests read', async () => {
  const platform = await createTestPlatform()
  const { servers, ...served } = (await (await platform.fetch('/openapi.json')).json()) as typeof document
  const { servers: _, ...read } = document
  expect({ servers, served }).toEqual({ servers: [{ url: issuer }], served: read })
})

test('the document stands on its own: every reference is there', () => {
  const text = JSON.stringify(document)
  for (const [, name = ''] of text.matchAll(/#\/components\/schemas\/(\w+)/g)) {
    expect(Object.keys(document.components.schemas)).toContain(name)
  }
  expect(document.openapi).toBe('3.1.0')
  expect(text).not.toContain('errorMessage')
})

let platform: TestPlatform
beforeAll(async () => {
  platform = await createTestPlatform()
})

test('the reference page needs no script and no network, and says so to the browser', async () => {
  const response = await platform.fetch('/docs/api')
  // Without its script nothing can be searched or copied, and all can be read.
  const page = (await response.text()).replace(/<script>[^]*?<\/script>/, '')
  expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
  expect(response.headers.get('content-security-policy')).toMatch(/^default-src 'none'; style-src 'sha256-[^']+'; /)
  expect(page).not.toMatch(
    /<script|<link|<img|src=|style="| on\w+=|href="(?!#|\/openapi\.json"|\/docs["/])|url\(|@import/,
  )
  for (const path of Object.keys(document.paths)) expect(page).toContain(path.replace('&', '&amp;'))
  const ids = new Set([...page.matchAll(/id="(\w+)"/g)].map(([, id]) => id))
  for (const [, name] of page.matchAll(/href="#(\w+)"/g)) expect(ids).toContain(name)
})

test('the reference page is sound: a main part, contents, no empty link or heading, and words that may break', async () => {
  const page = await (await platform.fetch('/docs/api')).text()
  expect(page.match(/<main>/g)).toHaveLength(1)
  expect(page).not.toMatch(/href="#"|<code><\/code>|<th><\/th>|<td><\/td>/)
  const [contents = ''] = /<nav [^]*<\/nav>/.exec(page) ?? []
  expect(contents.match(/href="#\w+"/g)).toHaveLength(described.length + 1)
  // A long word would make a narrow window scroll sideways.
  expect(page).toContain('overflow-wrap: anywhere')
})

test('the document has an example for every body, and each is what it is an example of', () => {
  const bodies = described.flatMap(({ requestBody }) => requestBody ?? [])
  expect(bodies.length).toBeGreaterThan(4)
  for (const body of bodies) {
    const { example } = body.content?.['application/json'] ?? {}
    expect({ example, problems: problems(schemaOf(body), example) }).toEqual({
      example: expect.any(Object),
      problems: [],
    })
  }
})

test('browsers that ask for an icon are told that there is none', async () => {
  expect((await platform.fetch('/favicon.ico')).status).toBe(204)
})

test('the address alone leads to the reference page, under the path of the base URL', async () => {
  const response = await platform.fetch('/')
  expect({ status: response.status, location: response.headers.get('location') }).toEqual({
    status: 302,
    location: '/docs',
  })
  expect((await platform.fetch('/', { method: 'POST' })).headers.get('allow')).toBe('GET')
  expect((await platform.fetch('/', { headers: { host: 'evil.example' } })).status).toBe(403)
  const below = await referenceHandlers('https://example.com/gate').home(new Request('http://localhost/'))
  expect(below.headers.get('location')).toBe('/gate/docs')
})
