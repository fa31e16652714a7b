/**
 * Browser sessions: somebody who has signed in with an API key, or by a login link of the operator. The cookie's record
 * names the key, which is looked up at every use: a session ends with its key (sign-in contract, 2.1).
 */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { PlatformError } from '../errors.ts'
import { allowanceOf } from '../fairness/allowance.ts'
import { browserSessionSeconds } from '../limits.ts'
import type { Store } from '../storage/store.ts'
import { type Caller, callerOfKey, isLive } from './authenticate.ts'
import type { Directory, DirectorySnapshot } from './directory.ts'
import type { ExpiringRecords } from './expiring-records.ts'

export interface BrowserSession {
  readonly caller: Caller
  readonly directory: DirectorySnapshot
  /** The hidden field that every form of this session must carry. `form`: what the form does, and to what. */
  formToken(form: string): string
}

export interface BrowserSessions {
  /** The session of a request's cookie. Undefined if there is none, or its key was revoked. */
  find(request: Request): Promise<BrowserSession | undefined>
  /** Starts a session. Resolves with the `Set-Cookie` header once the session is durable. */
  start(keyId: string): Promise<string>
  /** Ends the session of a request. Resolves with the `Set-Cookie` header that removes the cookie. */
  end(request: Request): Promise<string>
}

export interface BrowserSessionOptions {
  readonly store: Store
  readonly records: ExpiringRecords
  readonly directory: Directory
  readonly signInKey: Buffer
  /** Cookies of an https base URL get the `__Host-` prefix, which no other host or path can set. */
  readonly baseUrl: string
}

interface SessionRecord {
  readonly keyId: string
}

export function createBrowserSessions(options: BrowserSessionOptions): BrowserSessions {
  const { store, records, directory, signInKey } = options
  const isSecure = options.baseUrl.startsWith('https:')
  const cookieName = isSecure ? '__Host-postern' : 'postern'
  const cookie = (value: string, maxAge: number) =>
    `${cookieName}=${value}; Path=/; HttpOnly; SameSite=Lax; Max-Age=${maxAge}${isSecure ? '; Secure' : ''}`

  return {
    async find(request) {
      const secret = cookieOf(request, cookieName)
      const found = secret === undefined ? undefined : await records.find<SessionRecord>('session', secret)
      if (secret === undefined || found === undefined) return undefined
      const snapshot = await directory.current()
      const key = await snapshot.apiKey(found.value.keyId)
      if (!isLive(key)) return undefined
      const caller = callerOfKey(key)
      await allowanceOf(request).belongsTo(caller)
      return {
        caller,
        directory: snapshot,
        formToken: (form) => formTokenOf(signInKey, secret, form),
      }
    },
    async start(keyId) {
      const record: SessionRecord = { keyId }
      const { secret, entry } = records.create('session', record, browserSessionSeconds)
      await store.commit({ puts: [entry], deletes: await records.expired() })
      return cookie(secret, browserSessionSeconds)
    },
    async end(request) {
      const secret = cookieOf(request, cookieName)
      const found = secret === undefined ? undefined : await records.find('session', secret)
      if (found !== undefined) await store.commit({ deletes: [found.key], fromReserve: 'revocation' })
      return cookie('', 0)
    },
  }
}

/** The value of a cookie; undefined if it is absent or sent twice, since one of the two may be somebody else's. */
export function cookieOf(request: Request, name: string): string | undefined {
  const pairs = (request.headers.get('cookie') ?? '').split(/; */)
  const values = pairs.filter((pair) => pair.startsWith(`${name}=`)).map((pair) => pair.slice(name.length + 1))
  return values.length === 1 ? values[0] : undefined
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
