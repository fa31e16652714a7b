/**
 * The Ed25519 keys that sign service tokens, and how others find their public half (RFC 7517, RFC 7638).
 *
 * A key is `next` first: published, so that verifiers who keep the list know it before it signs. Then it is
 * `active` and signs. Then it is `retired`: it signs nothing more, and is published and accepted until the last
 * of its tokens is over. All keys are one record of the store, sealed with a key of the instance secret.
 */

import { createHash, createPrivateKey, createPublicKey, type KeyObject, randomBytes } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { CommandError } from '../errors.ts'
import { jwksMaxAgeSeconds, keyRetirementSeconds } from '../limits.ts'
import { validatorOf } from '../schema/check.ts'
import { registryVersionKey, signingKeysKey } from '../storage/keys.ts'
import { asBuffer, type Store } from '../storage/store.ts'
import { newVersion } from '../storage/versions.ts'
import { openSealed, seal } from './secrets.ts'

export type SigningKeyState = 'next' | 'active' | 'retired'

export interface SigningKey {
  readonly kid: string
  readonly state: SigningKeyState
  /** Unix seconds: when it came into this state. */
  readonly since: number
  /**
   * The header of its tokens, encoded: exactly these members in this order. A verifier that compares it
   * has no header to be confused by.
   */
  readonly header: string
  /** tweetnacl's form: the seed and then the public key. */
  readonly secretKey: Uint8Array
  /** The same for the runtime. */
  readonly privateKey: KeyObject
  readonly jwk: PublicJwk
}

export interface PublicJwk {
  readonly kty: 'OKP'
  readonly crv: 'Ed25519'
  readonly x: string
  readonly kid: string
  readonly use: 'sig'
  readonly alg: 'EdDSA'
}

export interface KeyRing {
  /** Signs new tokens. */
  readonly active: SigningKey
  /** Newest first: next, active, and the retired ones that may still have tokens. */
  readonly all: readonly SigningKey[]
}

/** One key as it is kept. */
export const SigningKeyRecord = Type.Object(
  {
    seed: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }),
    state: Type.Union([Type.Literal('next'), Type.Literal('active'), Type.Literal('retired')]),
    since: Type.Integer({ minimum: 0 }),
  },
  { additionalProperties: false },
)
export type SigningKeyRecord = Static<typeof SigningKeyRecord>

const recordsShape = validatorOf(Type.Array(SigningKeyRecord, { minItems: 1 }))

/** Throws when none of the records is of an active key. */
export function keyRing(records: readonly SigningKeyRecord[]): KeyRing {
  const all = records.map(signingKey)
  const active = all.find(({ state }) => state === 'active')
  if (active === undefined) throw new Error('a key ring needs an active key')
  return { active, all }
}

/** Does a token of this key count? Nothing was signed with the next one, and nothing lives past retirement. */
export function isAccepted({ state, since }: SigningKey, nowSeconds: number): boolean {
  return state === 'active' || (state === 'retired' && nowSeconds < since + keyRetirementSeconds)
}

/** What verifiers are told (contract 3). */
export function publishedKeys({ all }: KeyRing, nowSeconds: number): PublicJwk[] {
  return all.filter((key) => key.state === 'next' || isAccepted(key, nowSeconds)).map(({ jwk }) => jwk)
}

export function newSigningKeys(nowSeconds: number): SigningKeyRecord[] {
  // Published together, so nobody has a list without the next one: it may sign at once.
  return [newRecord('next', nowSeconds - jwksMaxAgeSeconds), newRecord('active', nowSeconds)]
}

/** The next key signs from now on. Throws CommandError where verifiers may not know it yet. */
export function rotateKeys(records: readonly SigningKeyRecord[], nowSeconds: number): SigningKeyRecord[] {
  const next = records.find(({ state }) => state === 'next')
  if (next === undefined) throw new Error('a key ring needs a next key')
  const wait = next.since + jwksMaxAgeSeconds - nowSeconds
  if (wait > 0) {
    throw new CommandError(
      `the next key was published ${jwksMaxAgeSeconds - wait} s ago, and verifiers may keep an older list for ` +
        `${jwksMaxAgeSeconds} s: try again in ${wait} s`,
    )
  }
  const others = records.filter((record) => record !== next && !isOver(record, nowSeconds))
  return [
    newRecord('next', nowSeconds),
    { ...next, state: 'active', since: nowSeconds },
    ...others.map((record) =>
      record.state === 'active' ? { ...record, state: 'retired' as const, since: nowSeconds } : record,
    ),
  ]
}

/** Without the key: whatever it signed counts no more. Undefined when there is no such key. */
export function removeKey(
  records: readonly SigningKeyRecord[],
  kid: string,
  nowSeconds: number,
): SigningKeyRecord[] | undefined {
  const gone = records.find((record) => signingKey(record).kid === kid)
  if (gone === undefined) return undefined
  const rest = records.filter((record) => record !== gone && !isOver(record, nowSeconds))
  if (gone.state === 'retired') return rest
  // Without the active one, the next one signs at once: that verifiers may not know it yet is the lesser evil.
  const promoted = rest.map((record) =>
    record.state === 'next' && gone.state === 'active'
      ? { ...record, state: 'active' as const, since: nowSeconds }
      : record,
  )
  return [newRecord('next', nowSeconds), ...promoted]
}

function isOver({ state, since }: SigningKeyRecord, nowSeconds: number): boolean {
  return state === 'retired' && nowSeconds >= since + keyRetirementSeconds
}

function newRecord(state: SigningKeyState, since: number): SigningKeyRecord {
  return { seed: randomBytes(32).toString('base64url'), state, since }
}

/** RFC 8410: what stands before the 32 bytes of an Ed25519 private key. */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

function signingKey({ seed, state, since }: SigningKeyRecord): SigningKey {
  const secret = Buffer.from(seed, 'base64url')
  // The runtime's derivation: tweetnacl's holds the process for a millisecond and a half, for each of the retired
  // keys too.
  const privateKey = createPrivateKey({ key: Buffer.concat([pkcs8Prefix, secret]), format: 'der', type: 'pkcs8' })
  const x = createPublicKey(privateKey).export({ format: 'jwk' }).x as string
  // RFC 7638: the required members in lexicographic order, without spaces.
  const kid = createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url')
  return {
    kid,
    state,
    since,
    header: Buffer.from(`{"alg":"EdDSA","typ":"mcp-service+jwt","kid":"${kid}"}`).toString('base64url'),
    secretKey: Buffer.concat([secret, Buffer.from(x, 'base64url')]),
    privateKey,
    jwk: { kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' },
  }
}

/** Throws CommandError when the record cannot be opened with this instance's secret. */
export function readSigningKeys(sealed: Uint8Array, sealingKey: Buffer): SigningKeyRecord[] {
  const text = openSealed(sealingKey, asBuffer(sealed))
  const records: unknown = text === undefined ? undefined : JSON.parse(text)
  if (!recordsShape.isValid(records)) {
    throw new CommandError('the signing keys do not belong to this instance secret: restore both from the same backup')
  }
  return records
}

/** The keys of a store; undefined before its first start. Throws as `readSigningKeys` does. */
export async function readKeyRing(store: Pick<Store, 'get'>, sealingKey: Buffer): Promise<KeyRing | undefined> {
  const sealed = await store.get(signingKeysKey)
  return sealed === undefined ? undefined : keyRing(readSigningKeys(sealed, sealingKey))
}

/**
 * Replaces the signing keys by what `change` makes of them; undefined makes no change. Resolves with what is
 * stored then. A change by another process in between is seen: `change` is asked again.
 */
export async function changeSigningKeys(
  store: Store,
  sealingKey: Buffer,
  change: (records: readonly SigningKeyRecord[] | undefined) => SigningKeyRecord[] | undefined,
): Promise<readonly SigningKeyRecord[] | undefined> {
  for (;;) {
    const stored = await store.get(signingKeysKey)
    const before = stored === undefined ? undefined : readSigningKeys(stored, sealingKey)
    const after = change(before)
    if (after === undefined) return before
    const value = seal(sealingKey, JSON.stringify(after))
    const committed = await store.commit({
      checks: [{ key: signingKeysKey, value: stored ?? null }],
      puts: [{ key: signingKeysKey, value }, newVersion(registryVersionKey)],
      fromReserve: true,
    })
    if (committed.ok) return after
  }
}
