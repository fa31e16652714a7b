/**
 * The Ed25519 keys that sign service tokens, and their public form (RFC 7517, RFC 7638).
 *
 * A key is `next` at first: published, so that verifiers that cache the list know it before it signs. Then it is
 * `active`: it signs. Then it is `retired`: it signs no more, and is published and accepted until its last token has
 * expired. All keys are one record in the store, sealed with a key derived from the instance secret.
 */

import { createPrivateKey, createPublicKey, randomBytes } from 'node:crypto'
import { type Static, Type } from '@sinclair/typebox'
import { CommandError } from '../errors.ts'
import { jwksMaxAgeSeconds, keyRetirementSeconds } from '../limits.ts'
import type { SigningKeyList } from '../model/token.ts'
import { validatorOf } from '../schema/check.ts'
import { closedObject, oneOf } from '../schema/shapes.ts'
import { asBuffer } from '../storage/bytes.ts'
import { decideAgain } from '../storage/decide-again.ts'
import { directoryVersionKey, signingKeysKey } from '../storage/keys.ts'
import type { Store } from '../storage/store.ts'
import { newVersion } from '../storage/versions.ts'
import { openSealed, seal } from './secrets.ts'

export type SigningKey = Readonly<ReturnType<typeof signingKey>>

export type KeyRing = Readonly<ReturnType<typeof keyRing>>

/** The stored form of one key. `since`: when it entered its state, in Unix seconds. */
export const SigningKeyRecord = closedObject({
  seed: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }),
  state: oneOf(['next', 'active', 'retired']),
  since: Type.Integer({ minimum: 0 }),
})
export type SigningKeyRecord = Static<typeof SigningKeyRecord>

const recordsShape = validatorOf(Type.Array(SigningKeyRecord, { minItems: 1 }))

/** Throws Error if none of the records is an active key. */
export function keyRing(records: readonly SigningKeyRecord[]) {
  /** Newest first: next, active, and the retired ones that may still have tokens. */
  const all: readonly SigningKey[] = records.map(signingKey)
  const active = all.find(({ state }) => state === 'active')
  if (active === undefined) throw new Error('a key ring needs an active key')
  return { active, all }
}

/** Whether tokens of this key are accepted: of the active key, and of a retired one until the last has expired. */
export function isAccepted({ state, since }: Pick<SigningKey, 'state' | 'since'>, nowSeconds: number): boolean {
  return state === 'active' || (state === 'retired' && nowSeconds < since + keyRetirementSeconds)
}

/** The keys as people are shown them, at a time in Unix seconds. */
export function shownKeys(all: readonly SigningKey[], nowSeconds: number): SigningKeyList['keys'] {
  const time = (seconds: number) => new Date(seconds * 1000).toISOString()
  return all.map((key) => {
    const { kid, state, since } = key
    const isKept = state === 'retired' && isAccepted(key, nowSeconds)
    return { kid, state, since: time(since), acceptedUntil: isKept ? time(since + keyRetirementSeconds) : null }
  })
}

/** The public keys for verifiers (contract, 3.1). */
export function publishedKeys({ all }: KeyRing, nowSeconds: number): SigningKey['jwk'][] {
  return all.filter((key) => key.state === 'next' || isAccepted(key, nowSeconds)).map(({ jwk }) => jwk)
}

export function newSigningKeys(nowSeconds: number): SigningKeyRecord[] {
  // Both are published from the start, so every cached list has the next key, and it may be activated at once.
  return [newRecord('next', nowSeconds - jwksMaxAgeSeconds), newRecord('active', nowSeconds)]
}

/** Activates the next key. Throws CommandError while verifiers may still have a list without it. */
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

/** Removes a key, which invalidates all tokens that it signed. Undefined if there is no such key. */
export function removeKey(
  records: readonly SigningKeyRecord[],
  kid: string,
  nowSeconds: number,
): SigningKeyRecord[] | undefined {
  const gone = records.find((record) => signingKey(record).kid === kid)
  if (gone === undefined) return undefined
  const rest = records.filter((record) => record !== gone && !isOver(record, nowSeconds))
  if (gone.state === 'retired') return rest
  // If the active key is removed, the next one is activated at once, even if some verifiers may not know it yet.
  const promoted = rest.map((record) =>
    record.state === 'next' && gone.state === 'active'
      ? { ...record, state: 'active' as const, since: nowSeconds }
      : record,
  )
  return [newRecord('next', nowSeconds), ...promoted]
}

const isOver = (key: SigningKeyRecord, nowSeconds: number) => key.state === 'retired' && !isAccepted(key, nowSeconds)

function newRecord(state: SigningKeyRecord['state'], since: number): SigningKeyRecord {
  return { seed: randomBytes(32).toString('base64url'), state, since }
}

/** The PKCS #8 prefix of a 32-byte Ed25519 private key (RFC 8410). */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')

/** A stored key, ready to sign and to be published. */
function signingKey({ seed, state, since }: SigningKeyRecord) {
  const secret = Buffer.from(seed, 'base64url')
  // Derived by the runtime: tweetnacl would block the event loop for 1.5 ms per key, retired keys included.
  const privateKey = createPrivateKey({ key: Buffer.concat([pkcs8Prefix, secret]), format: 'der', type: 'pkcs8' })
  const x = createPublicKey(privateKey).export({ format: 'jwk' }).x as string
  // RFC 7638: the required members in lexicographic order, without spaces.
  const kid = Bun.SHA256.hash(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`, 'base64url')
  return {
    kid,
    state,
    since,
    /** The encoded JWS header of its tokens. Verifying compares it as text, so no other header is ever parsed. */
    header: Buffer.from(`{"alg":"EdDSA","typ":"mcp-service+jwt","kid":"${kid}"}`).toString('base64url'),
    /** The seed and then the public key, as tweetnacl has it. */
    secretKey: Buffer.concat([secret, Buffer.from(x, 'base64url')]) as Uint8Array,
    /** The same key for the runtime's crypto. */
    privateKey,
    jwk: { kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' },
  }
}

/** Opens the stored record. Throws CommandError if it was sealed with another instance secret. */
export function readSigningKeys(sealed: Uint8Array, sealingKey: Buffer): SigningKeyRecord[] {
  const text = openSealed(sealingKey, asBuffer(sealed))
  const records: unknown = text === undefined ? undefined : JSON.parse(text)
  if (!recordsShape.isValid(records)) {
    throw new CommandError(
      'the signing keys do not belong to this instance secret: put back the secret that this folder had, or restore both from the same backup',
    )
  }
  return records
}

/** The keys of a store; undefined before its first start. Rejects with what `readSigningKeys` throws. */
export async function readKeyRing(store: Pick<Store, 'get'>, sealingKey: Buffer): Promise<KeyRing | undefined> {
  const sealed = await store.get(signingKeysKey)
  return sealed === undefined ? undefined : keyRing(readSigningKeys(sealed, sealingKey))
}

/**
 * Replaces the signing keys with the result of `change`; undefined means no change. Resolves with the stored keys. If
 * another process changes them in the meantime, `change` is called again.
 */
export async function changeSigningKeys(
  store: Store,
  sealingKey: Buffer,
  change: (records: readonly SigningKeyRecord[] | undefined) => SigningKeyRecord[] | undefined,
): Promise<readonly SigningKeyRecord[] | undefined> {
  return decideAgain('the record of signing keys', async () => {
    const stored = await store.get(signingKeysKey)
    const before = stored === undefined ? undefined : readSigningKeys(stored, sealingKey)
    const after = change(before)
    if (after === undefined) return before
    const value = seal(sealingKey, JSON.stringify(after))
    const committed = await store.commit({
      checks: [{ key: signingKeysKey, value: stored ?? null }],
      puts: [{ key: signingKeysKey, value }, newVersion(directoryVersionKey)],
      fromReserve: 'revocation',
    })
    return committed.ok ? after : 'again'
  })
}
