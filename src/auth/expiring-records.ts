/**
 * Records that expire, each found by a secret that somebody else holds: the cookie of a browser session, a login link,
 * the `state` of a sign-in, an authorization code. The store has a keyed hash of the secret and the record sealed, so a
 * copy of the store gives neither. They live in the store and not in memory: every process finds them, and they survive
 * a restart.
 */

import { createHmac, randomBytes, randomInt } from 'node:crypto'
import { type Clock, secondsOf } from '../clock.ts'
import { asBuffer } from '../storage/bytes.ts'
import { expiringFrom, expiringKey, expiringRecords } from '../storage/keys.ts'
import type { Entry, Key, Store } from '../storage/store.ts'
import { openSealed, seal } from './secrets.ts'

/**
 * Expired records that one write deletes, more than it adds, so that they never pile up. Past it: the next write
 * deletes them.
 */
export const expiredRecordsDeletedMax = 20
/**
 * Expired records among which a write chooses those that it deletes. Past it: later ones wait until these are gone.
 */
const expiredRecordsReadMax = 1000

/** The purpose of a secret. A secret of one purpose finds nothing under another. */
export type Purpose = 'session' | 'login link' | 'cli login' | 'attempt' | 'code'

/** A record as it was read, for the checks and deletes of a write. */
export interface FoundRecord<T> {
  readonly value: T
  readonly key: Key
  readonly bytes: Uint8Array
}

export interface ExpiringRecords {
  /** A new secret and the entry to put. `lifetime`: seconds. */
  create(purpose: Purpose, value: object, lifetime: number): { readonly secret: string; readonly entry: Entry }
  /**
   * As `create`, in a place that nobody but its visitor knows: a commit with `deletes` and `entry` replaces the record
   * that was there, and its secret finds nothing any more. A place has one lifetime.
   */
  createAt(purpose: Purpose, place: string, value: object, lifetime: number): PlacedRecord
  /** The record of a secret. Undefined if there is none, or it has expired. */
  find<T>(purpose: Purpose, secret: string): Promise<FoundRecord<T> | undefined>
  /** The entry that gives a record another value, for a write that checks that it is as it was found. */
  replacing(purpose: Purpose, found: FoundRecord<unknown>, value: object): Entry
  /** Keys of some expired records, to be deleted by the next write: so they never pile up. */
  expired(): Promise<Key[]>
}

export interface PlacedRecord {
  readonly secret: string
  readonly entry: Entry
  readonly deletes: readonly Key[]
}

export interface ExpiringRecordsOptions {
  readonly store: Pick<Store, 'get' | 'keys'>
  /** See `Secrets`. */
  readonly signInKey: Buffer
  readonly clock: Clock
}

/** A secret: the time in its key, 8 characters in base 36; its place, if it has one; 32 random bytes in base64url. */
const secretShape = /^([0-9a-z]{8})([A-Za-z0-9_-]{43})?[A-Za-z0-9_-]{43}$/

/** A record in a place, which has other records at other times. */
interface Placed<T> {
  /** A keyed hash of the secret. */
  readonly of: string
  /** Unix seconds: not the time in its key. */
  readonly expires: number
  readonly value: T
}

export function createExpiringRecords({ store, signInKey, clock }: ExpiringRecordsOptions): ExpiringRecords {
  const nowSeconds = () => secondsOf(clock)
  const digestOf = (purpose: Purpose, secret: string) =>
    createHmac('sha256', signInKey).update(`${purpose}\0${secret}`).digest('base64url')
  const newSecret = (time: number, place = '') =>
    `${time.toString(36).padStart(8, '0')}${place}${randomBytes(32).toString('base64url')}`
  const sealed = (purpose: Purpose, key: Key, value: object) =>
    seal(signInKey, JSON.stringify(value), `${purpose} ${asBuffer(key).toString('latin1')}`)

  return {
    create(purpose, value, lifetime) {
      const expires = nowSeconds() + lifetime
      const secret = newSecret(expires)
      const key = expiringKey(expires, digestOf(purpose, secret))
      return { secret, entry: { key, value: sealed(purpose, key, value) } }
    },
    createAt(purpose, place, value, lifetime) {
      // Times in keys are multiples of the lifetime: a live record is at this one or the one before.
      const time = (Math.floor(nowSeconds() / lifetime) + 2) * lifetime
      const digest = digestOf(purpose, `at ${place}`)
      const secret = newSecret(time, digest)
      const key = expiringKey(time, digest)
      const placed: Placed<object> = { of: digestOf(purpose, secret), expires: nowSeconds() + lifetime, value }
      const entry = { key, value: sealed(purpose, key, placed) }
      return { secret, entry, deletes: [expiringKey(time - lifetime, digest)] }
    },
    async find<T>(purpose: Purpose, secret: string) {
      const [, time = '', place] = secretShape.exec(secret) ?? []
      const expires = Number.parseInt(time, 36)
      if (Number.isNaN(expires) || expires <= nowSeconds()) return undefined
      const key = expiringKey(expires, place ?? digestOf(purpose, secret))
      const bytes = await store.get(key)
      if (bytes === undefined) return undefined
      const text = openSealed(signInKey, asBuffer(bytes), `${purpose} ${asBuffer(key).toString('latin1')}`)
      if (text === undefined) return undefined
      if (place === undefined) return { value: JSON.parse(text) as T, key, bytes }
      const placed = JSON.parse(text) as Placed<T>
      const isIts = placed.of === digestOf(purpose, secret) && placed.expires > nowSeconds()
      return isIts ? { value: placed.value, key, bytes } : undefined
    },
    replacing: (purpose, { key }, value) => ({ key, value: sealed(purpose, key, value) }),
    async expired() {
      const range = { gte: expiringRecords, lt: expiringFrom(nowSeconds()), limit: expiredRecordsReadMax }
      const { keys } = await store.keys(range)
      // At a random place, so that writes at the same time do not all delete the same ones.
      const start = randomInt(Math.max(1, keys.length - expiredRecordsDeletedMax + 1))
      return keys.slice(start, start + expiredRecordsDeletedMax)
    },
  }
}
