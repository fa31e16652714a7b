/**
 * Console sessions: a browser that has signed in to the console with an API key (contract, 23.2). Its cookie stands for
 * that key at the interface, where a request comes from our own page: the browser says so (`Sec-Fetch-Site`), and a
 * request that may change something carries a secret that only that page has read.
 */

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { unauthorized } from '../errors.ts'
import { pathOf } from '../http/path.ts'
import { browserSessionSeconds } from '../limits.ts'
import { keyOf } from '../storage/keys.ts'
import type { Store } from '../storage/store.ts'
import { type Authenticated, liveCaller } from './authenticate.ts'
import { hasEnded, ourCookie, type StartedSession } from './browser-sessions.ts'
import type { Directory } from './directory.ts'
import type { ExpiringRecords } from './expiring-records.ts'

export interface ConsoleSession extends Authenticated {
  /** The header `x-postern-csrf` of requests that may change something. */
  readonly csrf: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

/** See `createConsoleSessions`. */
export type ConsoleSessions = ReturnType<typeof createConsoleSessions>

interface Parts {
  readonly records: ExpiringRecords
  readonly directory: Directory
  readonly store: Pick<Store, 'get' | 'commit'>
  readonly signInKey: Buffer
  readonly issuer: string
  readonly clock: Clock
}

/** Where only `Authorization` counts: clients of MCP and OAuth are no page of ours. */
const notForCookies = /^\/(?:connect\/[^/]+\/(?:[^/]+\/)?mcp(?:\/|$)|oauth\/)/

export function createConsoleSessions({ records, directory, store, signInKey, issuer, clock }: Parts) {
  const cookie = ourCookie(issuer, 'postern_console', 'Strict')
  const csrfOf = (secret: string) => createHmac('sha256', signInKey).update(`csrf\0${secret}`).digest('base64url')

  /** The session of a request's cookie, whatever page the request is of. */
  async function find(request: Request): Promise<ConsoleSession | undefined> {
    const secret = cookie.of(request)
    const found = secret === undefined ? undefined : await records.find<StartedSession>('console session', secret)
    if (secret === undefined || found === undefined) return undefined
    const { keyId, startedAt } = found.value
    if (await hasEnded(store, found.value)) return undefined
    const live = await liveCaller(directory, keyId)
    if (live === undefined) return undefined
    return { ...live, csrf: csrfOf(secret), expiresAt: startedAt + browserSessionSeconds * 1000 }
  }

  return {
    find,
    /**
     * The caller of a request without `Authorization`; undefined if it has no cookie of ours. Throws `unauthorized` for
     * one whose cookie does not count: the session has ended, or another page may have sent it.
     */
    async authenticate(request: Request): Promise<Authenticated | undefined> {
      if (cookie.of(request) === undefined || notForCookies.test(pathOf(request.url))) return undefined
      const session = request.headers.get('sec-fetch-site') === 'same-origin' ? await find(request) : undefined
      if (session === undefined || !isOurs(request, session.csrf)) throw unauthorized()
      return session
    },
    /** Starts a session. Resolves with its `Set-Cookie` header once it is durable. */
    async start(keyId: string): Promise<string> {
      const value: StartedSession = { keyId, startedAt: clock.now() }
      return cookie.set(await records.add('console session', value, browserSessionSeconds), browserSessionSeconds)
    },
    /** Ends the session of a request. Resolves with the `Set-Cookie` header that removes its cookie. */
    async end(request: Request): Promise<string> {
      const secret = cookie.of(request)
      const found = secret === undefined ? undefined : await records.find('console session', secret)
      if (found !== undefined) await records.take(found)
      return cookie.set('', 0)
    },
    /** Ends all sessions of a key, at every replica. */
    async endAll(keyId: string): Promise<void> {
      const value = Buffer.from(String(clock.now()))
      await store.commit({ puts: [{ key: keyOf('endedSessions', keyId), value }], fromReserve: 'revocation' })
    },
  }
}

function isOurs({ method, headers }: Request, csrf: string): boolean {
  if (method === 'GET' || method === 'HEAD') return true
  const [given, expected] = [Buffer.from(headers.get('x-postern-csrf') ?? ''), Buffer.from(csrf)]
  return given.length === expected.length && timingSafeEqual(given, expected)
}
