/**
 * Determines the claims of a new token (specification 4.1; contract 3). A child token inherits its parent's policy and
 * never outlives it. No clock, and no I/O except directory look-ups and `sign`.
 */

import { randomBytes } from 'node:crypto'
import { type Caller, isOrganizationAdmin } from '../../auth/authenticate.ts'
import type { DirectorySnapshot } from '../../auth/directory.ts'
import { invalidRequest, PlatformError } from '../../errors.ts'
import { tokenCharsMax, tokenLifetimeDefaultSeconds } from '../../limits.ts'
import { CreateTokenRequest, type ServiceTokenClaims } from '../../model/token.ts'
import { type Block, policyPatternProblem, readPolicy } from '../../policy/block.ts'
import { problemText, validatorOf } from '../../schema/check.ts'
import { costToCompile, patternProblem } from '../../schema/patterns.ts'

const requestShape = validatorOf(CreateTokenRequest)

export interface MintOptions {
  readonly caller: Caller
  readonly directory: DirectorySnapshot
  /** `iss` and `aud` of the token. */
  readonly issuer: string
  /** Unix seconds. */
  readonly nowSeconds: number
  /** Signs the claims into a token. */
  readonly sign: (claims: ServiceTokenClaims) => Promise<string>
}

/**
 * `body` is undefined for an empty request body. `expiresAt` is ISO 8601. Throws `invalid_request`, `policy_too_large`,
 * `forbidden`, and what `sign` throws.
 */
export async function mint(body: unknown, { caller, directory, issuer, nowSeconds, sign }: MintOptions) {
  const { policy = [], organizationId } = readCreateTokenRequest(body)
  const parent = caller.token
  const whole = [...(parent?.policy ?? []), ...policy]
  // A lower bound of the token's size: base64url of the policy alone. Checked before patterns are compiled or anything
  // is signed, so that a policy that cannot fit costs nothing.
  const atLeast = Math.ceil((Buffer.byteLength(JSON.stringify(whole)) * 4) / 3)
  if (atLeast > tokenCharsMax) throw tooLarge(atLeast)
  const blocks = readBlocks(policy, caller.blocks)
  const org = organizationId ?? caller.organizationId
  if (organizationId !== undefined && !(await mayScopeTo(organizationId, caller, directory))) {
    throw new PlatformError('forbidden', 'organizationId: the caller is not an owner or admin of such an organization')
  }
  const ttls = blocks.flatMap(({ ttlSeconds }) => (ttlSeconds === undefined ? [] : [ttlSeconds]))
  const lifetime = ttls.length > 0 ? Math.min(...ttls) : tokenLifetimeDefaultSeconds
  // A child never outlives its parent.
  const exp = Math.min(nowSeconds + lifetime, parent?.exp ?? Number.POSITIVE_INFINITY)
  const claims: ServiceTokenClaims = {
    iss: issuer,
    aud: issuer,
    sub: caller.userId,
    key: caller.keyId,
    ...(org !== undefined && { org }),
    jti: `tok_${randomBytes(16).toString('base64url')}`,
    ...(parent !== undefined && { par: [...(parent.par ?? []), parent.jti] }),
    iat: nowSeconds,
    exp,
    policy: whole,
  }
  const token = await sign(claims)
  if (token.length > tokenCharsMax) throw tooLarge(token.length)
  return { claims, token, expiresAt: new Date(exp * 1000).toISOString() }
}

function tooLarge(chars: number): PlatformError {
  const message = `policy: the token would have ${chars} characters or more; at most ${tokenCharsMax} fit a request header`
  return new PlatformError('policy_too_large', message)
}

/** False for an organization that the caller does not manage and for one that does not exist, alike. */
async function mayScopeTo(organizationId: string, caller: Caller, directory: DirectorySnapshot): Promise<boolean> {
  if (caller.organizationId !== undefined && caller.organizationId !== organizationId) return false
  return isOrganizationAdmin(caller, organizationId, directory)
}

/** Compiles the patterns of a request in steps, so that `mint` finds them compiled. One that cannot fit costs nothing. */
export function* compilingPatterns(body: unknown): Generator<number, void> {
  if (body === undefined || body === null || !requestShape.isValid(body)) return
  const { policy = [] } = body
  if (policy.length === 0 || JSON.stringify(policy).length > tokenCharsMax) return
  const read = readPolicy(policy)
  if ('problem' in read) return
  for (const { rpc = [] } of read.blocks)
    for (const { pattern } of rpc) {
      yield costToCompile(pattern)
      // If something is wrong with it, `mint` says so, with its place.
      patternProblem(pattern)
    }
}

/** An empty body, `{}` and `null` mean "no policy"; the official client sends `null` (contract 3). */
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
