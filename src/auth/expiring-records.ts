/**
 * Records that expire, each found by a secret that somebody else holds: the cookie of a browser session, a sign-in
 * link, the `state` of a sign-in, an authorization code. The store has a keyed hash of the secret and the record
 * sealed, so a copy of the store gives neither. Every process finds them there, also after a restart.
 */

import { createHmac, randomBytes, randomInt } from 'node:crypto'
import { type Clock, secondsOf } from '../clock.ts'
import { allowanceOf } from '../fairness/allowance.ts'
import { asBuffer } from '../storage/bytes.ts'
import { expiringFrom, expiringKey, prefixOf } from '../storage/keys.ts'
import type { Key, Store } from '../storage/store.ts'
import { openSealed, seal } from './secrets.ts'

/** Expired records that one write deletes: more than it adds, so none pile up. Past it: the next write deletes them. */
export const expiredRecordsDeletedMax = 20
/** Expired records among which a write chooses those that it deletes. Past it: later ones wait until these are gone. */
const expiredRecordsReadMax = 1000

/** The purpose of a secret. A secret of one purpose finds nothing under another. */
export type Purpose = 'session' | 'console session' | 'login link' | 'cli login' | 'attempt' | 'code'

/** A record as it was read, for the checks and deletes of a write. */
export interface FoundRecord<T> {
  readonly value: T
  readonly key: Key
  readonly bytes: Uint8Array
}

/** A secret: the time in its key, 8 characters in base 36; 32 random bytes in base64url. */
const secretShape = /^([0-9a-z]{8})[A-Za-z0-9_-]{43}$/

export type ExpiringRecords = ReturnType<typeof createExpiringRecords>

/** `signInKey`: see `Secrets`. */
export function createExpiringRecords(store: Pick<Store, 'get' | 'keys' | 'commit'>, signInKey: Buffer, clock: Clock) {
  const nowSeconds = () => secondsOf(clock)
  const digestOf = (purpose: Purpose, secret: string) =>
    createHmac('sha256', signInKey).update(`${purpose}\0${secret}`).digest('base64url')
  const sealed = (purpose: Purpose, key: Key, value: object) =>
    seal(signInKey, JSON.stringify(value), `${purpose} ${asBuffer(key).toString('latin1')}`)

  async function expired(): Promise<Key[]> {
    const range = { gte: prefixOf('expiring'), lt: expiringFrom(nowSeconds()), limit: expiredRecordsReadMax }
    const { keys } = await store.keys(range)
    // At a random place, so that writes at the same time do not all delete the same ones.
    const start = randomInt(Math.max(1, keys.length - expiredRecordsDeletedMax + 1))
    return keys.slice(start, start + expiredRecordsDeletedMax)
  }

  return {
    /**
     * Keeps a value for `lifetime` seconds, durably, and resolves with its new secret. Deletes some expired records.
     */
    async add(purpose: Purpose, value: object, lifetime: number): Promise<string> {
      const expires = nowSeconds() + lifetime
      const secret = `${expires.toString(36).padStart(8, '0')}${randomBytes(32).toString('base64url')}`
      const key = expiringKey(expires, digestOf(purpose, secret))
      await store.commit({ puts: [{ key, value: sealed(purpose, key, value) }], deletes: await expired() })
      return secret
    },
    /** The record of a secret. Undefined if there is none, or it has expired. */
    async find<T>(purpose: Purpose, secret: string): Promise<FoundRecord<T> | undefined> {
      const [, time = ''] = secretShape.exec(secret) ?? []
      const expires = Number.parseInt(time, 36)
      if (Number.isNaN(expires) || expires <= nowSeconds()) return undefined
      const key = expiringKey(expires, digestOf(purpose, secret))
      const bytes = await store.get(key)
      if (bytes === undefined) return undefined
      const text = openSealed(signInKey, asBuffer(bytes), `${purpose} ${asBuffer(key).toString('latin1')}`)
      return text === undefined ? undefined : { value: JSON.parse(text) as T, key, bytes }
    },
    /** Gives a record another value. False if it is no longer as it was found. */
    async replace(purpose: Purpose, { key, bytes }: FoundRecord<unknown>, value: object): Promise<boolean> {
      const puts = [{ key, value: sealed(purpose, key, value) }]
      return (await store.commit({ checks: [{ key, value: bytes }], puts })).ok
    },
    /** Uses a record up, on behalf of who asks. False if somebody else was first. */
    async take({ key, bytes }: FoundRecord<unknown>, request: Request): Promise<boolean> {
      const { holder } = allowanceOf(request)
      const checks = [{ key, value: bytes }]
      return (await store.commit({ holder, checks, deletes: [key], fromReserve: 'revocation' })).ok
    },
  }
}
