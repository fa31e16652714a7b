/**
 * Console sessions: a browser that has signed in to the console with an API key (contract, 23.2). Its cookie stands for
 * that key at the interface, where a request comes from our own page: the browser says so (`Sec-Fetch-Site`), and a
 * request that may change something carries a secret that only that page has read.
 */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { unauthorized } from '../errors.ts'
import type { Holder } from '../fairness/owner.ts'
import { pathOf } from '../http/path.ts'
import { browserSessionSeconds } from '../limits.ts'
import { keyOf } from '../storage/keys.ts'
import { newVersion } from '../storage/versions.ts'
import type { Authenticated } from './authenticate.ts'
import { cookieSessions, ourCookie, type SessionParts } from './browser-sessions.ts'

export interface ConsoleSession extends Authenticated {
  /** The header `x-postern-csrf` of requests that may change something. */
  readonly csrf: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
}

export type ConsoleSessions = ReturnType<typeof createConsoleSessions>

interface Parts extends SessionParts {
  readonly signInKey: Buffer
  readonly issuer: string
}

/** Where only `Authorization` counts: clients of MCP and OAuth are no page of ours. */
const notForCookies = /^\/(?:connect\/[^/]+\/(?:[^/]+\/)?mcp(?:\/|$)|oauth\/)/

export function createConsoleSessions({ signInKey, issuer, ...parts }: Parts) {
  const { store } = parts
  const cookie = ourCookie(issuer, 'postern_console', 'Strict')
  const sessions = cookieSessions(parts, 'console session', cookie)
  const csrfOf = (secret: string) => createHmac('sha256', signInKey).update(`csrf\0${secret}`).digest('base64url')

  /** The session of a request's cookie, also if another page sends the request. Beside `Authorization` no cookie counts. */
  async function find(request: Request): Promise<ConsoleSession | undefined> {
    const found = request.headers.has('authorization') ? undefined : await sessions.find(request)
    if (found === undefined) return undefined
    const { live, secret, startedAt } = found
    return { ...live, csrf: csrfOf(secret), expiresAt: startedAt + browserSessionSeconds * 1000 }
  }

  return {
    ...sessions,
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
    /** Ends all sessions of a key, at every replica. */
    async endAll(holder: Holder): Promise<void> {
      const puts = [newVersion(keyOf('endedSessions', holder.keyId))]
      await store.commit({ holder, puts, fromReserve: 'revocation' })
    },
  }
}

function isOurs({ method, headers }: Request, csrf: string): boolean {
  if (method === 'GET' || method === 'HEAD') return true
  const [given, expected] = [Buffer.from(headers.get('x-postern-csrf') ?? ''), Buffer.from(csrf)]
  return given.length === expected.length && timingSafeEqual(given, expected)
}
