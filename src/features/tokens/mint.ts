/**
 * Makes a token whole: its claims (specification 4.1; contract, 3.1), its signature, and its line in the audit log. A
 * child token inherits its parent's policy and never outlives it.
 */

import { type Authenticated, type Authenticator, requireMayActFor } from '../../auth/authenticate.ts'
import { signingInput } from '../../auth/service-token.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { newTokenId } from '../../auth/token-id.ts'
import { secondsOf } from '../../clock.ts'
import { invalidRequest, PlatformError } from '../../errors.ts'
import { tokenCharsMax, tokenLifetimeDefaultSeconds } from '../../limits.ts'
import { CreateTokenRequest, type CreateTokenResponse, type ServiceTokenClaims } from '../../model/token.ts'
import type { AuditFields } from '../../ops/audit-log.ts'
import { type Block, compiling, policyPatternProblem, readPolicy } from '../../policy/block.ts'
import { problemText, validatorOf } from '../../schema/check.ts'
import type { Signers } from './signers.ts'

/** Ours: ancestors of a token: the token that it was minted with, the token that this one was minted with, and so on. Every line about a token names its ancestors. Past it: 400 `policy_too_large`. */
export const tokenAncestorsMax = 16

const requestShape = validatorOf(CreateTokenRequest)

interface MinterDeps extends Pick<SharedParts, 'audit' | 'issuer' | 'clock' | 'tokenIdKey'> {
  readonly authenticator: Pick<Authenticator, 'keys'>
  readonly signers: Pick<Signers, 'sign'>
  readonly observer: { minted(): void } | undefined
}

/**
 * Mints a token of the caller, for the body of `POST /tokens`; undefined for an empty one. Signing may wait:
 * `requireAllowed` then says, by throwing, that the caller's credential has ended meanwhile. Throws `invalid_request`,
 * `policy_too_large`, `forbidden`, and `unavailable` if too many wait for a signature or the audit log has no room.
 */
export type Mint = ReturnType<typeof createMint>

export function createMint({ authenticator, signers, audit, clock, observer, ...deps }: MinterDeps) {
  return async (body: unknown, { caller, directory }: Authenticated, requireAllowed: () => Promise<unknown>) => {
    audit.requireRoom() // 503
    const { active } = await authenticator.keys()
    const claims = await claimsFor(body, { caller, directory }, deps, secondsOf(clock))
    const text = signingInput(claims, active)
    const token = `${text}.${await signers.sign(text, active, caller)}`
    requireFits(token.length)
    await requireAllowed()
    // Before the response, so that every token that exists outside is in the audit log.
    await audit.record('token.minted', mintedFields(claims, active.kid))
    observer?.minted()
    return { token, expiresAt: new Date(claims.exp * 1000).toISOString() } satisfies CreateTokenResponse
  }
}

export type ClaimsDeps = Pick<SharedParts, 'authenticator' | 'issuer' | 'tokenIdKey' | 'clock'>

/** The claims of a token that the caller could mint. Throws what `Mint` throws for them; nothing is signed. */
export async function claimsToMint(
  body: unknown,
  caller: Authenticated,
  deps: ClaimsDeps,
): Promise<ServiceTokenClaims> {
  const claims = await claimsFor(body, caller, deps, secondsOf(deps.clock))
  const { active } = await deps.authenticator.keys()
  requireFits(signingInput(claims, active).length + signatureChars)
  return claims
}

/** The claims of a new token. `nowSeconds`: Unix seconds. No clock, and no I/O except directory look-ups. */
export async function claimsFor(
  body: unknown,
  { caller, directory }: Authenticated,
  { issuer, tokenIdKey }: Pick<SharedParts, 'issuer' | 'tokenIdKey'>,
  nowSeconds: number,
): Promise<ServiceTokenClaims> {
  const { policy = [], organizationId } = readCreateTokenRequest(body)
  const parent = caller.token
  const whole = [...(parent?.policy ?? []), ...policy]
  if ((parent?.par?.length ?? 0) >= tokenAncestorsMax) {
    const message = `this token comes from a chain of ${tokenAncestorsMax} others, the most that are allowed: mint with one of those`
    throw new PlatformError('policy_too_large', message)
  }
  // A lower bound of the token's size: base64url of the policy alone. Checked before patterns are compiled or anything
  // is signed, so that a policy that cannot fit costs nothing.
  const atLeast = Math.ceil((Buffer.byteLength(JSON.stringify(whole)) * 4) / 3)
  if (atLeast > tokenCharsMax) throw tooLarge(atLeast)
  const blocks = readBlocks(policy, caller.blocks)
  const org = organizationId ?? caller.organizationId
  if (organizationId !== undefined) await requireMayActFor(organizationId, { caller, directory })
  const ttls = blocks.flatMap(({ ttlSeconds }) => (ttlSeconds === undefined ? [] : [ttlSeconds]))
  const lifetime = ttls.length > 0 ? Math.min(...ttls) : tokenLifetimeDefaultSeconds
  return {
    iss: issuer,
    aud: issuer,
    sub: caller.userId,
    key: caller.keyId,
    ...(org !== undefined && { org }),
    jti: newTokenId(tokenIdKey, caller.userId),
    ...(parent !== undefined && { par: [...(parent.par ?? []), parent.jti] }),
    iat: nowSeconds,
    // A child never outlives its parent.
    exp: Math.min(nowSeconds + lifetime, parent?.exp ?? Number.POSITIVE_INFINITY),
    policy: whole,
  }
}

/** Characters of a signature of Ed25519 in base64url, with the dot before it. */
const signatureChars = 87

/** Throws `policy_too_large` if a token of so many characters is longer than a request header may be. */
function requireFits(chars: number): void {
  if (chars > tokenCharsMax) throw tooLarge(chars)
}

function tooLarge(chars: number): PlatformError {
  const message = `policy: the token would have ${chars} characters or more; at most ${tokenCharsMax} fit a request header`
  return new PlatformError('policy_too_large', message)
}

/** Compiles the patterns of a request in steps, so that `mint` finds them compiled. One that cannot fit costs nothing. */
export function* compilingPatterns(body: unknown): Generator<number, void> {
  if (body === undefined || body === null || !requestShape.isValid(body)) return
  const { policy = [] } = body
  if (policy.length === 0 || JSON.stringify(policy).length > tokenCharsMax) return
  const read = readPolicy(policy)
  if ('problem' in read) return
  // If something is wrong with one, `mint` says so, with its place.
  yield* compiling(read.blocks)
}

/** An empty body, `{}` and `null` mean "no policy"; the official client sends `null` (contract, 3.5). */
function readCreateTokenRequest(body: unknown): CreateTokenRequest {
  if (body === undefined || body === null) return {}
  if (!requestShape.isValid(body)) {
    const problem = requestShape.firstProblem(body)
    throw invalidRequest(problem.place === '' ? `the body: ${problem.message}` : problemText(problem))
  }
  return body
}

/** `inherited`: the parent's blocks, because the limits on patterns apply to all of them together. */
function readBlocks(policy: CreateTokenRequest['policy'] & object, inherited: readonly Block[]) {
  if (policy.length === 0) return []
  const read = readPolicy(policy)
  if ('problem' in read) throw invalidRequest(problemText(read.problem))
  const problem = policyPatternProblem(inherited, read.blocks)
  if (problem !== undefined) throw invalidRequest(problemText(problem))
  return read.blocks
}

/** The policy may contain confidential values, so only its hash is logged; it shows whether two policies are equal. */
function mintedFields({ jti, par, sub, key, org, exp, policy }: ServiceTokenClaims, kid: string): AuditFields {
  const policyHash = Bun.SHA256.hash(JSON.stringify(policy), 'hex')
  return { jti, par, userId: sub, keyId: key, organizationId: org, exp, kid, constraints: policy.length, policyHash }
}
