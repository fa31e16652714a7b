/**
 * Encodes and verifies service tokens: compact JWS with the caller, the policy and the expiry (contract, 3). No I/O, no
 * clock. `verifyToken` checks the token itself; authenticate.ts then checks, at every use, that neither it nor its API
 * key was revoked.
 */

import { sign, timingSafeEqual } from 'node:crypto'
import { clockSkewMaxSeconds, tokenCharsMax } from '../limits.ts'
import { ServiceTokenClaims } from '../model/token.ts'
import { canonicalBytes } from '../schema/base64.ts'
import { validatorOf } from '../schema/check.ts'
import { isAccepted, type KeyRing, type SigningKey } from './signing-keys.ts'

/** The signing input of JWS: the encoded header and payload. */
export function signingInput(claims: ServiceTokenClaims, { header }: Pick<SigningKey, 'header'>): string {
  return `${header}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}`
}

export type Verified = { readonly claims: ServiceTokenClaims } | { readonly refused: TokenRefusal }

/** A valid signature, of claims that are not good here and now. */
type ClaimsRefusal = 'issuer' | 'audience' | 'not_yet' | 'expired'

/** In the order in which they are checked. */
export type TokenRefusal = 'not_a_token' | 'header' | 'encoding' | 'signature' | 'claims' | ClaimsRefusal

export interface VerifyOptions {
  readonly keys: KeyRing
  /** `iss` must equal this exactly; see `isGoodAt` for `aud`. */
  readonly issuer: string
  /** The path of the request. Undefined: it does not matter where the token is good. */
  readonly path: string | undefined
  /** Unix seconds. */
  readonly nowSeconds: number
}

const claimsShape = validatorOf(ServiceTokenClaims)

/** The claims of a valid token, or the first check that failed. */
export function verifyToken(token: string, { keys, issuer, path, nowSeconds }: VerifyOptions): Verified {
  if (token.length > tokenCharsMax) return { refused: 'not_a_token' }
  const parts = token.split('.')
  const [header, payload, signature] = parts
  if (parts.length !== 3 || header === undefined || payload === undefined || signature === undefined) {
    return { refused: 'not_a_token' }
  }
  const key = keys.all.find((one) => one.header === header && isAccepted(one, nowSeconds))
  if (key === undefined) return { refused: 'header' }
  const payloadBytes = canonicalBytes(payload)
  if (payloadBytes === undefined) return { refused: 'encoding' }
  if (!isSignature(signature, `${header}.${payload}`, key)) return { refused: 'signature' }
  const claims = parse(payloadBytes)
  // A valid signature with unknown claims: minted by a later version, so the claims must not be interpreted.
  if (!claimsShape.isValid(claims)) return { refused: 'claims' }
  if (claims.iss !== issuer) return { refused: 'issuer' }
  if (path !== undefined && !isGoodAt(claims, path)) return { refused: 'audience' }
  const clock = clockRefusal(claims, nowSeconds)
  return clock === undefined ? { claims } : { refused: clock }
}

/**
 * Verifies by signing again and comparing: Ed25519 is deterministic, and we have the private key. The runtime signs in
 * a third of the time that it verifies, and no variant of a signature or of its encoding can pass. The comparison takes
 * constant time, since its duration would otherwise reveal the correct signature piece by piece.
 */
function isSignature(given: string, signed: string, { privateKey }: SigningKey): boolean {
  const right = Buffer.from(sign(null, Buffer.from(signed), privateKey).toString('base64url'))
  const bytes = Buffer.from(given)
  return bytes.length === right.length && timingSafeEqual(bytes, right)
}

/**
 * Whether a token is good at a path of this server. Tokens for services have the issuer as audience and are good
 * everywhere; those of clients that signed in have the URL of one connection's MCP endpoint.
 */
export function isGoodAt({ iss, aud }: Pick<ServiceTokenClaims, 'iss' | 'aud'>, path: string): boolean {
  return aud === iss || aud === `${iss.replace(/\/$/, '')}${path}`
}

/** The checks that depend on time; repeated at every use of a cached token. */
export function clockRefusal(claims: ServiceTokenClaims, nowSeconds: number): 'not_yet' | 'expired' | undefined {
  if (claims.iat > nowSeconds + clockSkewMaxSeconds) return 'not_yet'
  return claims.exp <= nowSeconds ? 'expired' : undefined
}

/**
 * The claims without verification: for `postern token explain`, and to find the API key that a token names before its
 * signature is checked.
 */
export function unverifiedClaims(token: string): ServiceTokenClaims | undefined {
  const claims = parse(canonicalBytes(token.split('.')[1] ?? '') ?? Buffer.alloc(0))
  return claimsShape.isValid(claims) ? claims : undefined
}

function parse(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch {
    return undefined
  }
}
