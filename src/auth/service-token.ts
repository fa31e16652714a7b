/**
 * Service tokens as bytes: a compact JWS that says who may do what until when (contract 3). No I/O, no
 * clock. `verify` answers what the bytes are worth; whether the key behind them still stands is asked
 * afterwards (`authenticate.ts`), at every use.
 */

import { sign, timingSafeEqual } from 'node:crypto'
import { clockSkewMaxSeconds, tokenCharsMax } from '../limits.ts'
import { ServiceTokenClaims } from '../model/token.ts'
import { validatorOf } from '../schema/check.ts'
import { signatureOf } from './signature.ts'
import { isAccepted, type KeyRing, type SigningKey } from './signing-keys.ts'

/** What is signed: the token without its signature. */
export function signingInput(claims: ServiceTokenClaims, { header }: Pick<SigningKey, 'header'>): string {
  return `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
}

/** The whole token, signed on this thread; the server has others for it (`features/tokens/signers.ts`). */
export function signToken(claims: ServiceTokenClaims, key: SigningKey): string {
  const text = signingInput(claims, key)
  return `${text}.${signatureOf(text, key.secretKey)}`
}

export type Verified = { readonly claims: ServiceTokenClaims } | { readonly refused: TokenRefusal }

/** In the order in which they are looked at. */
export type TokenRefusal =
  | 'not_a_token'
  | 'header'
  | 'encoding'
  | 'signature'
  | 'claims'
  | 'issuer'
  | 'not_yet'
  | 'expired'

export interface VerifyOptions {
  readonly keys: KeyRing
  /** `iss` and `aud` must both be this, to the letter. */
  readonly issuer: string
  readonly nowSeconds: number
}

const claimsShape = validatorOf(ServiceTokenClaims)

export function verifyToken(token: string, { keys, issuer, nowSeconds }: VerifyOptions): Verified {
  if (token.length > tokenCharsMax) return { refused: 'not_a_token' }
  const parts = token.split('.')
  const [header, payload, signature] = parts
  if (parts.length !== 3 || header === undefined || payload === undefined || signature === undefined) {
    return { refused: 'not_a_token' }
  }
  const key = keys.all.find((one) => one.header === header && isAccepted(one, nowSeconds))
  if (key === undefined) return { refused: 'header' }
  const payloadBytes = canonical(payload)
  if (payloadBytes === undefined) return { refused: 'encoding' }
  if (!isSignature(signature, `${header}.${payload}`, key)) return { refused: 'signature' }
  const claims = parse(payloadBytes)
  // Signed by us and yet not understood: a later version's token, so not one to guess about.
  if (!claimsShape.isValid(claims)) return { refused: 'claims' }
  if (claims.iss !== issuer || claims.aud !== issuer) return { refused: 'issuer' }
  const clock = clockRefusal(claims, nowSeconds)
  return clock === undefined ? { claims } : { refused: clock }
}

/**
 * Ed25519 has one signature for a text and a key, and the key is ours: a token is signed again, and the two are
 * compared. The runtime signs in a third of the time that it verifies; and of the other signatures and spellings that
 * a verifier might let pass, none can. Compared in constant time: whoever could measure how far one is right could
 * make one.
 */
function isSignature(given: string, signed: string, { privateKey }: SigningKey): boolean {
  const right = Buffer.from(sign(null, Buffer.from(signed), privateKey).toString('base64url'))
  const bytes = Buffer.from(given)
  return bytes.length === right.length && timingSafeEqual(bytes, right)
}

/** Asked again at every use of a remembered token. */
export function clockRefusal(claims: ServiceTokenClaims, nowSeconds: number): 'not_yet' | 'expired' | undefined {
  if (claims.iat > nowSeconds + clockSkewMaxSeconds) return 'not_yet'
  return claims.exp <= nowSeconds ? 'expired' : undefined
}

/** Its claims, unproven: for `postern token explain`, which also says whether they verify. */
export function unverifiedClaims(token: string): ServiceTokenClaims | undefined {
  const claims = parse(canonical(token.split('.')[1] ?? '') ?? Buffer.alloc(0))
  return claimsShape.isValid(claims) ? claims : undefined
}

/** Of the many spellings of the same bytes in base64url, one is accepted. */
function canonical(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64url')
  return bytes.toString('base64url') === text ? bytes : undefined
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}
