/**
 * The application: every route, behind one guard and one error boundary. It does not listen and opens
 * nothing; what varies comes in, so tests run it on a store in memory and a clock that stands still.
 */

import { Elysia } from 'elysia'
import { createAuthenticator } from './auth/authenticate.ts'
import type { Secrets } from './auth/secrets.ts'
import { createConnectionLists } from './connections/list.ts'
import { connectionRoutes } from './connections/routes.ts'
import { notFound, PlatformError } from './errors.ts'
import type { Guard } from './http/guard.ts'
import { pathOf } from './http/path.ts'
import { asPlatformError, errorResponse, jsonResponse } from './http/respond.ts'
import type { Log } from './log.ts'
import { createRegistry } from './registry/registry.ts'
import { serverRoutes } from './servers/routes.ts'
import { type Store, StoreError } from './storage/store.ts'
import { tokenRoutes } from './tokens/routes.ts'

export interface AppDeps {
  readonly store: Store
  readonly secrets: Secrets
  /** The base URL: issuer and audience of tokens. */
  readonly issuer: string
  readonly guard: Guard
  /** Milliseconds since 1970. */
  readonly now: () => number
  readonly log: Log
}

export function createApp({ store, secrets, issuer, guard, now, log }: AppDeps) {
  const registry = createRegistry(store)
  const authenticator = createAuthenticator({
    registry,
    pepper: secrets.apiKeyPepper,
    sealingKey: secrets.sealingKey,
    issuer,
    now,
  })
  const lists = createConnectionLists(store, secrets.cursorKey)

  // `normalize: false`: the framework would remove unknown fields instead of refusing them. Only the root's
  // settings count. The error boundary stands before the routes, because it covers what is mounted after it.
  return (
    new Elysia({
      normalize: false,
      aot: true,
      precompile: true,
      systemRouter: false,
      handler: { standardHostname: false },
    })
      .onRequest(({ request, set }) => {
        const corsHeaders = guard.check(request.headers)
        if (corsHeaders === undefined) return undefined
        Object.assign(set.headers, corsHeaders)
        return guard.preflight(request, corsHeaders)
      })
      .onError(({ request, error, code }) => {
        const path = pathOf(request.url)
        const answer = code === 'NOT_FOUND' ? unknownRoute(path) : boundary(error)
        if (answer.code === 'internal')
          log.error('request failed', { method: request.method, route: routeOf(path), error: detail(error) })
        return errorResponse(
          path,
          answer,
          answer.code === 'method_not_allowed' ? { allow: allowedMethods(path) ?? '' } : {},
        )
      })
      .use(connectionRoutes({ authenticator, lists }))
      .use(serverRoutes({ authenticator }))
      .get('/health', () => jsonResponse(JSON.stringify({ status: 'ok', timestamp: new Date(now()).toISOString() })))
      // Last: the bearer plugin, which it brings, reads all headers and the query of every route after it.
      .use(tokenRoutes({ authenticator, issuer, now }))
  )
}

function boundary(thrown: unknown): PlatformError {
  // A damaged record is no passing trouble: it is answered as a fault of ours, and the log says which.
  if (thrown instanceof StoreError && thrown.kind !== 'damaged')
    return new PlatformError('unavailable', 'The store cannot be written right now', { cause: thrown })
  return asPlatformError(thrown)
}

const methods: readonly (readonly [path: RegExp, allowed: string])[] = [
  [/^\/tokens\/?$/, 'POST'],
  [/^\/(?:connect\/[^/]+|servers\/.+|health|\.well-known\/jwks\.json)\/?$/, 'GET'],
]

function allowedMethods(path: string): string | undefined {
  return methods.find(([pattern]) => pattern.test(path))?.[1]
}

/** A path that exists under another method says so. */
function unknownRoute(path: string): PlatformError {
  const allowed = allowedMethods(path)
  if (allowed === undefined) return notFound()
  return new PlatformError('method_not_allowed', `This path answers ${allowed} only`)
}

/** The first part only: the rest names things of the caller's. */
function routeOf(path: string): string {
  return `/${path.split('/')[1] ?? ''}`
}

function detail(thrown: unknown): string {
  return thrown instanceof Error ? (thrown.stack ?? thrown.message) : String(thrown)
}
