/**
 * The application: every route, behind one guard and one error boundary. It does not listen and opens
 * nothing; what varies comes in, so tests run it on a store in memory and a clock that stands still.
 */

import { Elysia } from 'elysia'
import type { Audit } from './audit/audit-log.ts'
import { createRefusals } from './audit/refusals.ts'
import { createAuthenticator } from './auth/authenticate.ts'
import { createRefusedLog, type RefusedBecause } from './auth/refused-log.ts'
import type { Secrets } from './auth/secrets.ts'
import { createConnectionLists } from './connections/list.ts'
import { connectionRoutes } from './connections/routes.ts'
import { notFound, PlatformError } from './errors.ts'
import { createOpenStreams, type Every } from './gateway/open-streams.ts'
import { createProxy } from './gateway/proxy.ts'
import { gatewayRoutes } from './gateway/routes.ts'
import { createSessions } from './gateway/sessions.ts'
import { createStates } from './gateway/states.ts'
import { toolRoutes } from './gateway/tools.ts'
import { createEdge, type Fetch } from './http/edge.ts'
import type { Guard } from './http/guard.ts'
import { pathOf } from './http/path.ts'
import { createRateLimit } from './http/rate-limit.ts'
import { asPlatformError, errorResponse, jsonResponse } from './http/respond.ts'
import type { Shares } from './http/shares.ts'
import { createTurns } from './http/turns.ts'
import type { Log } from './log.ts'
import { createMocks } from './mocks/mock.ts'
import { openApiRoutes } from './openapi/routes.ts'
import { createRegistry } from './registry/registry.ts'
import { serverRoutes } from './servers/routes.ts'
import type { Quota } from './storage/connections.ts'
import { createKnownConnections } from './storage/known-connections.ts'
import { type Store, StoreError } from './storage/store.ts'
import { tokenRoutes } from './tokens/routes.ts'
import type { Signers } from './tokens/signers.ts'
import type { Upstream } from './upstream/upstream.ts'

export interface AppDeps {
  readonly store: Store
  readonly secrets: Secrets
  /** The base URL: issuer and audience of tokens. */
  readonly issuer: string
  readonly guard: Guard
  readonly audit: Audit
  readonly rates: Rates
  /** What a namespace may hold before nothing more is made in it. */
  readonly quota: Quota
  /** Signs tokens. */
  readonly signers: Pick<Signers, 'sign'>
  /** Reaches MCP servers. */
  readonly upstream: Upstream
  /** Bytes of answers under way that callers share. */
  readonly memory: Shares
  /** Milliseconds that one has for the head of its answer. */
  readonly upstreamPatience: number
  /** Lets a request take longer than a silent connection may, until what it gives is called. */
  readonly takeTime: (request: Request) => () => void
  /** Holds a request for so many milliseconds, or until the client disconnects. */
  readonly wait: (milliseconds: number, request: Request) => Promise<void>
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Milliseconds that never go back. */
  readonly monotonic: () => number
  /** Does something every so often; by the runtime's own timers where it is left out. */
  readonly every?: Every
  /** Where a request comes from. */
  readonly addressOf: (request: Request) => string
  readonly log: Log
  /** Told what happens, where somebody counts. */
  readonly observer?: Observer
}

/** A second, each; 0 for no limit. */
export interface Rates {
  readonly mints: number
  readonly failures: number
  readonly writes: number
}

export interface Observer {
  answered(operation: string, status: number, seconds: number): void
  minted(): void
  refused(reason: string): void
  credentialRefused(reason: RefusedBecause): void
  upstreamAnswered(outcome: string, seconds: number): void
}

export interface App {
  readonly fetch: Fetch
  readonly pageCache: () => { readonly hits: number; readonly misses: number }
}

export function createApp(deps: AppDeps): App {
  const { store, secrets, issuer, guard, audit, rates, quota, upstream, now, monotonic, addressOf, log, observer } =
    deps
  const registry = createRegistry(store)
  const noteRefused = createRefusedLog(log, monotonic)
  const authenticator = createAuthenticator({
    registry,
    pepper: secrets.apiKeyPepper,
    sealingKey: secrets.sealingKey,
    issuer,
    now,
    failures: createRateLimit({ perSecond: rates.failures, now: monotonic }),
    addressOf,
    onRefused(reason, details) {
      noteRefused(reason, details)
      observer?.credentialRefused(reason)
    },
  })
  const mints = createRateLimit({ perSecond: rates.mints, now: monotonic })
  const lists = createConnectionLists(store, secrets.cursorKey)
  const sessions = createSessions(secrets.sessionKey)
  const states = createStates({ store, now: monotonic, log })
  const edge = createEdge({ guard, log, observe: observer?.answered })
  const refusals = createRefusals(audit, edge.requestId)

  const connections = createKnownConnections(store)
  const turns = createTurns()
  const gateway = {
    authenticator,
    refusals,
    connections,
    headersKey: secrets.headersKey,
    sessions,
    memory: deps.memory,
    proxy: createProxy({
      upstream,
      sessions,
      memory: deps.memory,
      turns,
      patience: deps.upstreamPatience,
      onState: states.note,
    }),
    mocks: createMocks({ wait: deps.wait }),
    turns,
    streams: createOpenStreams(deps.every),
    takeTime: deps.takeTime,
    pseudonym: secrets.pseudonym,
  }

  /** The answer to whatever was thrown on the way. */
  function refuse(request: Request, thrown: unknown): Response {
    const error = boundary(thrown)
    // A fault of an upstream is nobody's here to mend.
    if (error.code === 'internal' || error.code === 'unavailable') edge.fault(request, thrown)
    const path = pathOf(request.url)
    const allow = error.code === 'method_not_allowed' ? { allow: allowedMethods(path) ?? '' } : {}
    return errorResponse(path, error, allow)
  }

  // `normalize: false`: the framework would remove unknown fields instead of refusing them. Only the root's
  // settings count. The error boundary stands before the routes, because it covers what is mounted after it.
  const routes = new Elysia({
    normalize: false,
    aot: true,
    precompile: true,
    systemRouter: false,
    handler: { standardHostname: false },
  })
    .onError(({ request, error, code }) => refuse(request, code === 'NOT_FOUND' ? unknownRoute(request) : error))
    .use(
      connectionRoutes({
        authenticator,
        ready: edge.ready,
        lists,
        refusals,
        audit,
        store,
        connections,
        upstream,
        headersKey: secrets.headersKey,
        writes: createRateLimit({ perSecond: rates.writes, now: monotonic }),
        quota,
        now,
      }),
    )
    .use(gatewayRoutes(gateway))
    .use(toolRoutes(gateway))
    .use(serverRoutes({ authenticator, refusals, ready: edge.ready }))
    .use(openApiRoutes(issuer))
    .get('/health', () => jsonResponse(JSON.stringify({ status: 'ok', timestamp: new Date(now()).toISOString() })))
    // Last: the bearer plugin, which it brings, reads all headers and the query of every route after it.
    .use(tokenRoutes({ authenticator, signers: deps.signers, mints, audit, refusals, issuer, now, observer }))
    .compile()
  return { fetch: edge.around(routes.fetch, refuse), pageCache: lists.statistics }
}

function boundary(thrown: unknown): PlatformError {
  // A damaged record is no passing trouble: it is answered as a fault of ours, and the log says which.
  if (thrown instanceof StoreError && thrown.kind !== 'damaged')
    return new PlatformError('unavailable', 'The store cannot be written right now', { cause: thrown })
  return asPlatformError(thrown)
}

const methods: readonly (readonly [path: RegExp, allowed: string])[] = [
  [/^\/tokens\/?$/, 'POST'],
  [/^\/connect\/[^/]+\/?$/, 'GET, POST'],
  [/^\/connect\/[^/]+\/[^/]+\/?$/, 'GET, PUT, DELETE'],
  [/^\/connect\/[^/]+\/[^/]+\/\.tools\/?$/, 'GET'],
  [/^\/connect\/[^/]+\/[^/]+\/\.tools\/.+$/, 'GET, POST'],
  [/^\/$/, 'GET'],
  [/^\/(?:servers\/.+|health|docs|openapi\.json|\.well-known\/jwks\.json)\/?$/, 'GET'],
]

function allowedMethods(path: string): string | undefined {
  return methods.find(([pattern]) => pattern.test(path))?.[1]
}

/** A path that exists under another method says so. */
function unknownRoute(request: Request): PlatformError {
  const allowed = allowedMethods(pathOf(request.url))
  if (allowed === undefined) return notFound()
  return new PlatformError('method_not_allowed', `This path answers ${allowed} only`)
}
