/**
 * Browser sessions: somebody who has signed in with an API key, or by a sign-in link of the operator. The cookie's
 * record names the key, which is looked up at every use: a session ends with its key (contract, 12.1).
 */

import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Clock } from '../clock.ts'
import { PlatformError } from '../errors.ts'
import { allowanceOf } from '../fairness/allowance.ts'
import { browserSessionSeconds } from '../limits.ts'
import { keyOf } from '../storage/keys.ts'
import type { Store } from '../storage/store.ts'
import { readVersion } from '../storage/versions.ts'
import { type Authenticated, liveCaller } from './authenticate.ts'
import type { Directory } from './directory.ts'
import type { ExpiringRecords } from './expiring-records.ts'

export interface BrowserSession extends Authenticated {
  /** The hidden field that every form of this session must carry. `form`: what the form does, and to what. */
  formToken(form: string): string
}

export interface SessionParts {
  readonly records: ExpiringRecords
  readonly directory: Directory
  readonly store: Pick<Store, 'get' | 'commit'>
  readonly clock: Clock
}

/** The value behind a cookie. */
interface StartedSession {
  readonly keyId: string
  /** Milliseconds since 1970. */
  readonly startedAt: number
  /** The mark of the last time that all sessions of the key ended before; '' for never. */
  readonly after: string
}

/** Sessions behind one cookie: here, or at the console. `kind`: of their records. */
export function cookieSessions(
  { records, directory, store, clock }: SessionParts,
  kind: 'session' | 'console session',
  cookie: ReturnType<typeof ourCookie>,
) {
  return {
    /** The session of a request's cookie. Undefined if there is none, its key was revoked, or all of the key ended. */
    async find(request: Request) {
      const secret = cookie.of(request)
      const found = secret === undefined ? undefined : await records.find<StartedSession>(kind, secret)
      if (secret === undefined || found === undefined) return undefined
      const { keyId, startedAt, after } = found.value
      if ((await readVersion(store, keyOf('endedSessions', keyId))) !== after) return undefined
      const live = await liveCaller(directory, keyId)
      return live === undefined ? undefined : { live, secret, startedAt }
    },
    /** Starts a session. Resolves with the `Set-Cookie` header once the session is durable. */
    async start(keyId: string): Promise<string> {
      const after = await readVersion(store, keyOf('endedSessions', keyId))
      const value: StartedSession = { keyId, startedAt: clock.now(), after }
      return cookie.set(await records.add(kind, value, browserSessionSeconds), browserSessionSeconds)
    },
    /** Ends the session of a request. Resolves with the `Set-Cookie` header that removes the cookie. */
    async end(request: Request): Promise<string> {
      const secret = cookie.of(request)
      const found = secret === undefined ? undefined : await records.find(kind, secret)
      if (found !== undefined) await records.take(found, request)
      return cookie.set('', 0)
    },
  }
}

export type BrowserSessions = ReturnType<typeof createBrowserSessions>

/** `signInKey`: see `Secrets`. */
export function createBrowserSessions(parts: SessionParts, signInKey: Buffer, baseUrl: string) {
  const sessions = cookieSessions(parts, 'session', ourCookie(baseUrl, 'postern'))
  return {
    ...sessions,
    async find(request: Request): Promise<BrowserSession | undefined> {
      const found = await sessions.find(request)
      if (found === undefined) return undefined
      await allowanceOf(request).belongsTo(found.live.caller)
      return { ...found.live, formToken: (form) => formTokenOf(signInKey, found.secret, form) }
    },
  }
}

/** `cookies`: `Set-Cookie` headers; an undefined one stands for sessions that this server has none of. */
export function withCookies(response: Response, cookies: readonly (string | undefined)[]): Response {
  for (const cookie of cookies) if (cookie !== undefined) response.headers.append('set-cookie', cookie)
  return response
}

interface EndedSessions {
  readonly sessions: Pick<BrowserSessions, 'end'>
  readonly consoleSessions: Pick<BrowserSessions, 'end'> | undefined
  readonly base: string
}

/**
 * For an answer that sends the browser to another program's URL. Cookies have no port (RFC 6265, 8.5): a program on our
 * own host would get those of both sessions, and with them all that the user may do. So the sessions end, and the
 * browser forgets them before it goes there. Resolves with the cookies for `withCookies`.
 */
export async function endForOwnHost(url: string, request: Request, { base, ...parts }: EndedSessions) {
  if (new URL(url).hostname !== new URL(base).hostname) return []
  return Promise.all([parts.sessions.end(request), parts.consoleSessions?.end(request)])
}

/** Ours: cookies of a request; browsers keep 180 for a host. Past it: the request counts as not signed in. */
const cookiesMax = 200

/** Cookies of an https base URL get the `__Host-` prefix, which no other host or path can set. */
export function ourCookie(baseUrl: string, plainName: string, sameSite: 'Lax' | 'Strict' = 'Lax') {
  const isSecure = baseUrl.startsWith('https:')
  const start = `${isSecure ? '__Host-' : ''}${plainName}=`
  return {
    /** The value; undefined if it is absent or sent twice, since one of the two may be somebody else's. */
    of({ headers }: Request): string | undefined {
      const pairs = (headers.get('cookie') ?? '').split(/; */, cookiesMax + 1)
      if (pairs.length > cookiesMax) return undefined
      const values = pairs.filter((pair) => pair.startsWith(start)).map((pair) => pair.slice(start.length))
      return values.length === 1 ? values[0] : undefined
    },
    /** The `Set-Cookie` header. `maxAge`: seconds; 0 removes it. */
    set: (value: string, maxAge: number) =>
      `${start}${value}; Path=/; HttpOnly; SameSite=${sameSite}; Max-Age=${maxAge}${isSecure ? '; Secure' : ''}`,
  }
}

/** A token for one form, bound to a secret that only the browser with this session, or the holder of a ticket, has. */
export function formTokenOf(signInKey: Buffer, secret: string, form: string): string {
  return createHmac('sha256', signInKey).update(`form\0${secret}\0${form}`).digest('base64url')
}

/** Throws `forbidden` unless the form carries its token: another site may have sent it. */
export function requireFormToken(given: string | undefined, expected: string): void {
  const [a, b] = [Buffer.from(given ?? ''), Buffer.from(expected)]
  if (a.length === b.length && timingSafeEqual(a, b)) return
  throw new PlatformError('forbidden', 'This form is not from this session: open the page again')
}
