/** Assembles the application: all routes, behind one guard and one error boundary. Neither listens nor opens files. */

import { Authenticator } from './auth/authenticate.ts'
import { countedByOwner, createAuthorizer } from './auth/authorizer.ts'
import { createBrowserSessions } from './auth/browser-sessions.ts'
import { createConsoleSessions } from './auth/console-sessions.ts'
import { createDenials } from './auth/denials.ts'
import { createDirectory } from './auth/directory.ts'
import { createExpiringRecords } from './auth/expiring-records.ts'
import { createRefuse } from './auth/failed-credentials.ts'
import type { Secrets } from './auth/secrets.ts'
import { signingInput } from './auth/service-token.ts'
import { createSetupLinks } from './auth/setup-links.ts'
import { createWrites } from './auth/writes.ts'
import { type Clock, timestampOf } from './clock.ts'
import type { Fairness } from './fairness/fairness.ts'
import { createHolderRateLimit, createRateLimit } from './fairness/rate-limit.ts'
import { createFastLane, type FastLane } from './fast-lane/fast-lane.ts'
import { createVersionedLane } from './fast-lane/versioned-lane.ts'
import { authorizationHandlers } from './features/authorization/authorization-handlers.ts'
import { createKeptDocuments } from './features/authorization/clients.ts'
import { grantHandlers } from './features/authorization/grant-handlers.ts'
import { type AuthorizationSettings, challengeOf, isSignInPossible } from './features/authorization/oauth-metadata.ts'
import { connectionHandlers } from './features/connections/connection-handlers.ts'
import { type ConnectionLists, createConnectionLists } from './features/connections/connection-lists.ts'
import { consolePageHandlers } from './features/console/page-handlers.ts'
import { consoleSessionHandlers } from './features/console/session-handlers.ts'
import { createEndpointParts } from './features/endpoint/endpoint-deps.ts'
import { endpointHandlers } from './features/endpoint/endpoint-handler.ts'
import { endpointTools } from './features/endpoint/endpoint-tools.ts'
import type { KeptListsDeps } from './features/endpoint/kept-lists.ts'
import { pinHandlers } from './features/endpoint/pin-handlers.ts'
import { eventHandlers } from './features/events/event-handlers.ts'
import { createEventLog, type EventLog } from './features/events/event-log.ts'
import { publishingAudit, publishingStore } from './features/events/sources.ts'
import { explainHandlers } from './features/explain/explain-handlers.ts'
import { createCallRecorder } from './features/gateway/call-record.ts'
import { createStatusRecorder } from './features/gateway/connection-status.ts'
import { mcpHandlers } from './features/gateway/mcp-handler.ts'
import { createOpenStreams, type Every, everyMoment } from './features/gateway/open-streams.ts'
import { createProxy } from './features/gateway/proxy.ts'
import { createSessions } from './features/gateway/sessions.ts'
import { toolHandlers } from './features/gateway/tool-handlers.ts'
import { shownTools } from './features/gateway/tool-requests.ts'
import { callStoryHandlers } from './features/health/call-story.ts'
import { healthHandlers } from './features/health/health-handlers.ts'
import { createMocks } from './features/mocks/mocks.ts'
import { apiKeyHandlers } from './features/organizations/api-keys.ts'
import { createDeletions } from './features/organizations/deletions.ts'
import { meHandlers } from './features/organizations/me.ts'
import { namespaceHandlers } from './features/organizations/namespaces.ts'
import { organizationHandlers } from './features/organizations/organizations.ts'
import { viewHandlers } from './features/organizations/views.ts'
import { Pins } from './features/pins/pins.ts'
import { auditHandlers } from './features/records/audit-handlers.ts'
import { callHandlers } from './features/records/call-handlers.ts'
import { referenceHandlers } from './features/reference/reference-handlers.ts'
import { registryHandlers } from './features/registry/registry-handlers.ts'
import { registryLinkHandlers } from './features/registry/registry-links.ts'
import { Catalogue } from './features/servers/catalogue.ts'
import { importHandlers } from './features/servers/import-handlers.ts'
import { registryReadHandlers } from './features/servers/mcp-registry.ts'
import { releaseHandlers } from './features/servers/releases.ts'
import type { ServerDeps } from './features/servers/server-deps.ts'
import { serverHandlers } from './features/servers/server-handlers.ts'
import { serverListHandlers } from './features/servers/server-list.ts'
import { cliLoginHandlers } from './features/sign-in/cli-login-handlers.ts'
import { signInHandlers } from './features/sign-in/sign-in-handlers.ts'
import { createMint, type Mint } from './features/tokens/mint.ts'
import type { Signers } from './features/tokens/signers.ts'
import { signingKeyHandlers } from './features/tokens/signing-key-handlers.ts'
import { tokenHandlers } from './features/tokens/token-handlers.ts'
import { callbackHandlers } from './features/upstream-sign-in/callback.ts'
import { clientDocument } from './features/upstream-sign-in/oauth-client.ts'
import { setupHandlers } from './features/upstream-sign-in/setup.ts'
import { createUpstreamCredentials } from './features/upstream-sign-in/token-refresh.ts'
import type { ClientSockets } from './http/client-sockets.ts'
import { withinPasses } from './http/costly-heads.ts'
import { asPlatformError, errorResponse, unavailableError, wantsPage } from './http/error-response.ts'
import type { Guard } from './http/guard.ts'
import type { Handlers } from './http/handler.ts'
import { createMiddleware, type Middleware } from './http/middleware.ts'
import { pathOf } from './http/path.ts'
import { withRawPath } from './http/raw-path.ts'
import { jsonResponse } from './http/respond.ts'
import { errorsOf } from './http/route.ts'
import { createRouter, type ErrorShape } from './http/router.ts'
import { traceRequests } from './http/traced-requests.ts'
import * as limits from './limits.ts'
import type { CallRecord } from './model/recorded-call.ts'
import type { Audit } from './ops/audit-log.ts'
import type { CallLog } from './ops/call-log.ts'
import type { Log } from './ops/log.ts'
import type { Observer } from './ops/metrics.ts'
import type { Tracing } from './ops/tracing.ts'
import type { Store } from './storage/store.ts'
import type { Usage } from './storage/usage.ts'
import type { Upstream } from './upstream/upstream.ts'

/** Contract 17.3: seconds' worth of calls, at the rate of `--call-rate`, that a key may make at once. Past it: 429. */
const callBurstSeconds = 20

export interface AppDeps {
  readonly store: Store
  readonly secrets: Secrets
  /** The base URL: issuer and audience of tokens. */
  readonly issuer: string
  readonly guard: Guard
  readonly audit: Audit
  readonly rates: Rates
  /** The most that a namespace may hold; Infinity for no bound. Beyond it, connections and servers are refused. */
  readonly quota: Usage
  /** Whether `/v0.1/servers` answers readers without a credential. */
  readonly isRegistryOpen: boolean
  readonly tracing?: Tracing | undefined
  readonly callLog?: CallLog | undefined
  /** Namespaces that a user owns and may not make another; Infinity for no limit. */
  readonly namespacesPerUser: number
  readonly signers: Pick<Signers, 'sign'>
  readonly upstream: Upstream
  /** Memory, turns, places: everything that requests share. */
  readonly fairness: Fairness
  /** Milliseconds until the head of an upstream's response must have arrived. */
  readonly upstreamTimeoutMs: number
  readonly sockets: ClientSockets
  readonly clock: Clock
  /** Repeats an action; by the runtime's timers if left out. */
  readonly every?: Every
  readonly log: Log
  readonly authorization: AuthorizationSettings
  readonly observer?: Observer
  /** Whether there is a console: its pages, its sessions, and streams of events. True by default. */
  readonly hasConsole?: boolean
  /** False by default. */
  readonly hasSampleTraffic?: boolean
  /** Whether to use the fast lane. True by default. */
  readonly fastLane?: boolean
}

/** Rates per second: tokens, writes and calls of tools per API key, failures per address. 0: no limit. */
export type Rates = Readonly<Record<'mints' | 'writes' | 'calls' | 'failures', number>>

/** Makes the application: its handler of requests, and the counts of its cache of pages. */
export function createApp(given: AppDeps) {
  const events = createEventLog(given.clock)
  const store = publishingStore(given.store, events)
  const deps = { ...given, store, audit: publishingAudit(given.audit, events, given.clock) }
  const lists = createConnectionLists(deps.store, deps.secrets.cursorKey)
  const fastLane = deps.fastLane === false ? undefined : fastLaneOf(deps, lists)
  const { guard, log, observer, clock, fairness, sockets } = deps
  const middleware = createMiddleware({ guard, log, observe: observer?.answered, clock })
  const shared = createParts(deps, middleware, lists, fastLane)
  const gateway = createGateway(deps, middleware, shared, events)
  const mint = createMint({ ...shared, signers: deps.signers, observer })
  const parts = { ...shared, gateway, mint, events }

  /** The response for anything thrown while handling a request. */
  function answerError(request: Request, thrown: unknown, shape: ErrorShape = shapeOutsideOf(request)): Response {
    const error = unavailableError(thrown) ?? asPlatformError(thrown)
    // Only our own failures are logged; an upstream's show in the connection's state.
    if (['internal', 'unavailable', 'outcome_unknown'].includes(error.code)) middleware.noteError(request, thrown)
    const isPage = shape === undefined && wantsPage(request, error)
    return errorResponse(error, isPage ? 'page' : shape, { url: request.url, base: parts.base })
  }

  const route = createRouter({ handlers: createHandlers(deps, parts), fairness, sockets, answerError })
  const answer = traceRequests(middleware.wrap(route, answerError, fastLane?.respond), deps.tracing)
  return {
    fetch: withinPasses(withRawPath(answer), sockets),
    pageCache: fastLane?.pageCache ?? (() => ({ hits: 0, misses: 0 })),
    /** Takes all servers into memory, in turns, as the first list of servers would. */
    readCatalogue: shared.catalogue.refresh,
    continueDeletions: () => shared.deletions.continueAll(),
  }
}

type Parts = ReturnType<typeof createParts>

interface HandlerParts extends Parts {
  readonly gateway: ReturnType<typeof createGateway>
  readonly mint: Mint
  readonly events: EventLog
}

/** Shared by several features: who asks, and what they may access. Each takes the part that its own `Deps` names. */
function createParts(deps: AppDeps, middleware: Middleware, lists: ConnectionLists, fastLane: FastLane | undefined) {
  const { store, secrets, issuer, audit, rates, upstream, clock, log, observer, sockets, quota } = deps
  const { signInKey, headersKey, tokenIdKey } = secrets
  const denials = createDenials(audit, middleware.requestId)
  const directory = createDirectory(store)
  const records = createExpiringRecords(store, signInKey, clock)
  const consoleSessions =
    deps.hasConsole === false
      ? undefined
      : createConsoleSessions({ records, directory, store, signInKey, issuer, clock })
  const authenticator = new Authenticator({
    directory,
    ...(consoleSessions && { cookieCaller: consoleSessions.authenticate }),
    pepper: secrets.apiKeyPepper,
    sealingKey: secrets.sealingKey,
    ...{ issuer, clock },
    refuse: createRefuse({
      ...{ log, clock, sockets, observer, requestId: middleware.requestId },
      failures: createRateLimit({ perSecond: rates.failures, clock }),
    }),
  })
  const ordinary = createAuthorizer(authenticator, store, denials, clock)
  const base = issuer.replace(/\/$/, '')
  const authorizer = countedByOwner(fastLane?.authorizer(ordinary) ?? ordinary, clock)
  const writeRate = createHolderRateLimit({ perSecond: rates.writes, clock })
  const removalRate = atMost(limits.removalsPerMinuteMax, 60, clock)
  const parts = {
    ...{ lists, fastLane, store, upstream, audit, denials, directory, authenticator, records, quota, clock, sockets },
    ...{ issuer, base, signInKey, headersKey, tokenIdKey, pepper: secrets.apiKeyPepper },
    authorizer,
    writes: createWrites({ authorizer, denials, audit, store, writeRate, removalRate }),
    sessions: createBrowserSessions({ records, directory, store, clock }, signInKey, issuer),
    links: createSetupLinks(base, signInKey, clock),
    consoleSessions,
    namespacesPerUser: deps.namespacesPerUser,
    newKeys: atMost(limits.newKeysPerHourMax, 3600, clock),
    newNamespaces: atMost(limits.newNamespacesPerDayMax, 86_400, clock),
    hasDocument: deps.authorization.hasClientDocument,
    catalogue: new Catalogue(store),
  }
  const credentials = createUpstreamCredentials(parts)
  return { ...parts, credentials, deletions: createDeletions({ ...parts, credentials }) }
}

function createGateway(deps: AppDeps, { requestId }: Middleware, parts: Parts, events: EventLog) {
  const { secrets, upstream, fairness, clock, observer, callLog, rates, sockets } = deps
  const sessions = createSessions(secrets.sessionKey)
  const isRecorded = callLog !== undefined || observer !== undefined
  const onRecorded = (call: CallRecord) => events.publish({ type: 'call', call })
  const recording = { log: callLog, key: secrets.callKey, observe: observer?.called, onRecorded, requestId, clock }
  const gateway: KeptListsDeps = {
    ...parts,
    pins: new Pins(parts),
    get firstLists() {
      return endpoint.kept
    },
    sessions,
    fairness,
    send: createProxy(upstream, sessions, deps.upstreamTimeoutMs),
    upstreamTimeoutMs: deps.upstreamTimeoutMs,
    recordStatus: createStatusRecorder(deps.store, clock, deps.log),
    answerMock: createMocks(sockets),
    watchStream: createOpenStreams(deps.every),
    pseudonym: secrets.pseudonym,
    tracing: deps.tracing,
    recordCall: isRecorded ? createCallRecorder(recording) : undefined,
    calls: createRateLimit({ perSecond: rates.calls, burst: rates.calls * callBurstSeconds, clock }),
  }
  const endpoint = createEndpointParts(gateway, deps.every ?? everyMoment, secrets.sessionKey)
  return { ...parts, ...gateway, ...endpoint }
}

function createHandlers(deps: AppDeps, parts: HandlerParts): Handlers {
  const { issuer, rates, clock, observer, authorization: settings, isRegistryOpen } = deps
  const { base, gateway, fastLane } = parts
  const noop = () => {}
  const onAnswer = fastLane?.rememberDetails ?? noop
  const { callLog, audit, secrets } = deps
  const records = { ...parts, callsPath: callLog?.path, auditPath: audit.path, cursorKey: secrets.cursorKey }
  const health = { ...gateway, ...records, hasSampleTraffic: deps.hasSampleTraffic === true }
  const servers: ServerDeps = { ...parts, isRegistryOpen, onAnswer }
  return {
    ...connectionHandlers({ ...parts, onPage: fastLane?.rememberPage ?? noop }),
    ...mcpHandlers({
      ...gateway,
      challenge: challengeOf(base, settings),
      noteClient: (ref, userId, client) => parts.events.noteClient(ref, userId, client),
    }),
    ...endpointHandlers({ ...gateway, challenge: challengeOf(base, settings) }),
    ...toolHandlers(gateway),
    ...pinHandlers(gateway),
    ...registryReadHandlers(servers),
    ...registryHandlers(parts),
    ...registryLinkHandlers(parts),
    ...serverListHandlers(servers),
    ...releaseHandlers(servers),
    ...serverHandlers(servers),
    ...importHandlers(servers),
    ...meHandlers(parts),
    ...namespaceHandlers(parts),
    ...viewHandlers(parts),
    ...organizationHandlers(parts),
    ...apiKeyHandlers(parts),
    ...grantHandlers(parts),
    ...callHandlers(records),
    ...auditHandlers(records),
    ...explainHandlers(health),
    ...signingKeyHandlers({ ...parts, sealingKey: secrets.sealingKey }),
    ...healthHandlers(health),
    ...callStoryHandlers(health),
    ...eventHandlers({ ...health, events: parts.events, every: deps.every ?? everyMoment }),
    ...tokenHandlers({
      ...parts,
      mints: createHolderRateLimit({ perSecond: rates.mints, clock }),
      observer,
    }),
    ...createSignInHandlers(deps, parts),
    ...referenceHandlers(issuer),
    health: () => jsonResponse(JSON.stringify({ status: 'ok', timestamp: timestampOf(clock) })),
  }
}

/** Sign-in of people and clients here, and here to MCP servers. */
function createSignInHandlers(deps: AppDeps, parts: HandlerParts) {
  const { clock, authorization: settings } = deps
  const { authenticator, base, gateway, mint } = parts
  const signIns = atMost(limits.sessionsPerMinuteMax, 60, clock)
  return {
    ...signInHandlers({ ...parts, signIns }),
    ...consoleSessionHandlers({ ...parts, signIns }),
    ...consolePageHandlers(parts),
    ...cliLoginHandlers({
      ...parts,
      mintForDay: async (of, requireAllowed) => (await mint({ policy: [{ ttl: '24h' }] }, of, requireAllowed)).token,
      begins: atMost(limits.cliLoginsPerMinuteMax, 60, clock),
      isPossible: isSignInPossible(base, settings),
    }),
    ...setupHandlers({
      ...parts,
      setups: createRateLimit({ perSecond: limits.setupsPerMinuteMax / 60, clock }),
      setupsOfOwner: atMost(limits.ownerSetupsPerMinuteMax, 60, clock),
      newClients: atMost(limits.newClientsPerHourMax, 3600, clock),
    }),
    ...callbackHandlers(parts),
    clientDocument: () =>
      jsonResponse(JSON.stringify(clientDocument(base)), { 'cache-control': 'public, max-age=300' }),
    ...authorizationHandlers({
      ...parts,
      settings,
      keptDocuments: createKeptDocuments(),
      async sign(claims, caller) {
        const { active } = await authenticator.keys()
        const text = signingInput(claims, active)
        return `${text}.${await deps.signers.sign(text, active, caller)}`
      },
      listTools: (context, resource) =>
        resource.connection === undefined
          ? endpointTools(gateway, context, resource)
          : shownTools(gateway, context, resource.connection),
      registrations: atMost(limits.registrationsPerMinuteMax, 60, clock),
      documents: atMost(limits.clientDocumentsPerMinuteMax, 60, clock),
      newGrants: atMost(limits.grantsPerMinuteMax, 60, clock),
    }),
  }
}

/** So many in so many seconds, at once or one after the other. */
function atMost(most: number, seconds: number, clock: Clock) {
  return createRateLimit({ perSecond: most / seconds, burst: most, clock })
}

function fastLaneOf({ store, clock }: AppDeps, lists: ConnectionLists): FastLane {
  return store.local === undefined ? createVersionedLane(store, clock) : createFastLane(store.local, lists, clock)
}

/** The error format for requests that the guard refuses. Never JSON-RPC: it may be of no MCP client. */
function shapeOutsideOf(request: Request): ErrorShape {
  const shape = errorsOf(pathOf(request.url))
  return shape === 'server' || shape === 'text' ? shape : undefined
}
