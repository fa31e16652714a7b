/** The Ed25519 keys that sign service tokens, and how others find their public half (RFC 7517, RFC 7638). */

import { createHash, createPublicKey, type KeyObject, randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { type Static, Type } from '@sinclair/typebox'
import nacl from 'tweetnacl'
import { CommandError } from '../errors.ts'
import { shapeOf } from '../model/check.ts'
import { readOrCreate } from './secrets.ts'

export interface SigningKey {
  readonly kid: string
  /**
   * The header of its tokens, encoded: exactly these members in this order. A verifier that compares it
   * has no header to be confused by.
   */
  readonly header: string
  /** tweetnacl's form: the seed and then the public key. */
  readonly secretKey: Uint8Array
  readonly publicKey: KeyObject
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
  /** Verify tokens, by kid. The active one is among them. */
  readonly verifying: ReadonlyMap<string, SigningKey>
}

const SigningKeysFile = Type.Object(
  { keys: Type.Array(Type.Object({ seed: Type.String({ pattern: '^[A-Za-z0-9_-]{43}$' }) }), { minItems: 1 }) },
  { additionalProperties: false },
)
const fileShape = shapeOf(SigningKeysFile)

/** Reads the signing keys of a data folder, making the first when there is none. Throws CommandError. */
export function openKeyRing(folder: string): KeyRing {
  const path = join(folder, 'signing-keys.json')
  const text = readOrCreate(path, () => {
    const first: Static<typeof SigningKeysFile> = { keys: [{ seed: randomBytes(32).toString('base64url') }] }
    return JSON.stringify(first)
  })
  let file: unknown
  try {
    file = JSON.parse(text)
  } catch {
    file = undefined
  }
  if (!fileShape.accepts(file)) throw new CommandError(`${path} is damaged: restore it from a backup`)
  return keyRing(file.keys.map(({ seed }) => Buffer.from(seed, 'base64url')))
}

/** The first seed is the active key's. */
export function keyRing(seeds: readonly Uint8Array[]): KeyRing {
  const keys = seeds.map(signingKey)
  const [active] = keys
  if (active === undefined) throw new Error('a key ring needs a key')
  return { active, verifying: new Map(keys.map((key) => [key.kid, key])) }
}

function signingKey(seed: Uint8Array): SigningKey {
  const { publicKey, secretKey } = nacl.sign.keyPair.fromSeed(seed)
  const x = Buffer.from(publicKey).toString('base64url')
  // RFC 7638: the required members in lexicographic order, without spaces.
  const kid = createHash('sha256').update(`{"crv":"Ed25519","kty":"OKP","x":"${x}"}`).digest('base64url')
  return {
    kid,
    header: Buffer.from(`{"alg":"EdDSA","typ":"mcp-service+jwt","kid":"${kid}"}`).toString('base64url'),
    secretKey,
    publicKey: createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' }),
    jwk: { kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' },
  }
}
