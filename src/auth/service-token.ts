/**
 * Encodes and verifies service tokens: compact JWS with the caller, the policy and the expiry (contract, 3). No I/O, no
 * clock. authenticate.ts then checks, at every use, that neither token nor API key was revoked.
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

/** A text that is no token of ours. In the order in which it is checked. */
type TextRefusal = 'not_a_token' | 'header' | 'encoding' | 'signature' | 'claims'

/** A token of ours that is not good here and now. In the order in which it is checked. */
type ClaimsRefusal = 'issuer' | 'audience' | 'not_yet' | 'expired'

export type Verified = { readonly claims: ServiceTokenClaims } | RefusedToken

/** `signed`: its claims, if its signature is valid. */
export type RefusedToken =
  | { readonly refused: TextRefusal; readonly signed?: never }
  | { readonly refused: ClaimsRefusal; readonly signed: ServiceTokenClaims }

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
  const read = signedClaims(token, keys, (key) => isAccepted(key, nowSeconds))
  if ('refused' in read) return read
  const { claims } = read
  if (claims.iss !== issuer) return { refused: 'issuer', signed: claims }
  if (path !== undefined && !isGoodAt(claims, path)) return { refused: 'audience', signed: claims }
  const clock = clockRefusal(claims, nowSeconds)
  return clock === undefined ? { claims } : { refused: clock, signed: claims }
}

/** Whether a token whose signature was found to be ours is still signed with a key that is accepted. */
export function isStillSigned(token: string, { all }: KeyRing, nowSeconds: number): boolean {
  return all.some((key) => signs(key, token) && isAccepted(key, nowSeconds))
}

/** The claims of a token that was valid when it was minted here, expired or not, wherever it is good. */
export function issuedClaims(
  token: string,
  { keys, issuer }: Pick<VerifyOptions, 'keys' | 'issuer'>,
): ServiceTokenClaims | undefined {
  const read = signedClaims(token, keys, () => true)
  if ('refused' in read || read.claims.iss !== issuer) return undefined
  return keys.all.some((key) => signs(key, token) && isAccepted(key, read.claims.iat)) ? read.claims : undefined
}

const signs = ({ header }: SigningKey, token: string) => token.startsWith(`${header}.`)

/** Nothing is parsed before its signature is known to be ours: strangers choose how dear their text is to parse. */
function signedClaims(token: string, { all }: KeyRing, mayUse: (key: SigningKey) => boolean) {
  if (token.length > tokenCharsMax || token.split('.').length !== 3) return { refused: 'not_a_token' } as const
  const key = all.find((one) => signs(one, token) && mayUse(one))
  if (key === undefined) return { refused: 'header' } as const
  const [, payload = '', signature = ''] = token.split('.')
  const payloadBytes = canonicalBytes(payload)
  if (payloadBytes === undefined) return { refused: 'encoding' } as const
  if (!isSignature(signature, `${key.header}.${payload}`, key)) return { refused: 'signature' } as const
  const claims = parse(payloadBytes)
  // A valid signature with unknown claims: minted by a later version, so the claims must not be interpreted.
  return claimsShape.isValid(claims) ? { claims } : ({ refused: 'claims' } as const)
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

/** The claims without verification: for commands, whose user has the token. */
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
