/**
 * Authenticates a credential as a caller. Roles, memberships and the key's status are looked up in the current version
 * of the directory at every use. So a demoted admin's organization token, and every token of a revoked key, stop
 * working at once (contract, 2.4).
 */

import { type Clock, secondsOf } from '../clock.ts'
import { PlatformError } from '../errors.ts'
import { readCredential } from '../http/credential.ts'
import { pathOf } from '../http/path.ts'
import { organizationUserId } from '../model/names.ts'
import type { ApiKey, Namespace } from '../model/organization.ts'
import type { ServiceTokenClaims } from '../model/token.ts'
import type { AuditFields } from '../ops/audit-log.ts'
import type { LogFields } from '../ops/log.ts'
import { PerRequest } from '../per-request.ts'
import { type Block, readConstraint } from '../policy/block.ts'
import { apiKeyDigest } from './api-key.ts'
import type { Directory, DirectorySnapshot } from './directory.ts'
import type { RefusalReason, Refuse, Refused } from './failed-credentials.ts'
import { clockRefusal, isStillSigned, issuedClaims, type RefusedToken, verifyToken } from './service-token.ts'
import type { KeyRing } from './signing-keys.ts'

export interface Caller {
  readonly userId: string
  readonly keyId: string
  /** The id of the first token of its family, or of the key if used directly. Distinguishes holders within a key. */
  readonly family: string
  /** Whether the API key is an operator's: it, and its tokens without organization, may access every namespace. */
  readonly operator: boolean
  /** The organization that the token was minted for, or the key acts for: access is to its namespaces only. */
  readonly organizationId: string | undefined
  /** The token's policy; empty for an API key and for a token without one. */
  readonly blocks: readonly Block[]
  /** The metadata constraints as text: callers with the same text see the same rows. */
  readonly metadataFingerprint: string
  /** The claims, if the credential is a service token. */
  readonly token: ServiceTokenClaims | undefined
}

/** The id of the credential that was sent: of the token, or of the API key used directly. */
export const credentialIdOf = ({ token, keyId }: Pick<Caller, 'token' | 'keyId'>): string => token?.jti ?? keyId

/** The caller of a request, and the directory as that request has it. */
export interface Authenticated {
  readonly caller: Caller
  readonly directory: DirectorySnapshot
}

interface AuthenticatorOptions {
  readonly directory: Directory
  readonly pepper: Buffer
  /** Opens the signing keys. */
  readonly sealingKey: Buffer
  /** The base URL: `iss` and `aud` of tokens. */
  readonly issuer: string
  readonly clock: Clock
  readonly refuse: Refuse
  /** The caller of a request without `Authorization`, by its cookie; undefined without one. Throws 401. */
  readonly cookieCaller?: (request: Request) => Promise<Authenticated | undefined>
}

/** Finds the caller of a request by its credential. Refused credentials are counted and logged (`Refuse`). */
export class Authenticator {
  readonly #options: AuthenticatorOptions
  /** Of requests with a token: thousands of open streams are authenticated again each second. */
  readonly #before = new PerRequest<Authenticated>()

  constructor(options: AuthenticatorOptions) {
    this.#options = options
  }

  async keys(): Promise<KeyRing> {
    return this.#keysOf(await this.#options.directory.current())
  }

  /** The claims of a token that was signed here, expired or not, wherever it is good. */
  async claimsOf(token: string): Promise<ServiceTokenClaims | undefined> {
    return issuedClaims(token, { keys: await this.keys(), issuer: this.#options.issuer })
  }

  /** The caller of an API key that a person typed; tokens are refused. Throws and counts failures as `authenticate`. */
  async authenticateKey(typed: string, request: Request): Promise<Caller> {
    const { directory, refuse } = this.#options
    const caller = await this.#byKey(typed, await directory.current())
    if ('refused' in caller) throw refuse(request, caller)
    return caller
  }

  /**
   * The caller of a request. Throws `unauthorized`, always with the same message, and `rate_limited` after too many
   * failures from one address. `isRepeated`: the request was authenticated before and is checked once more, as an open
   * stream is. If that fails, the client has sent nothing wrong, so it does not count as a failure.
   */
  async authenticate(request: Request, isRepeated = false): Promise<Authenticated> {
    const { cookieCaller, refuse } = this.#options
    const header = request.headers.get('authorization')
    const byCookie = header === null ? await cookieCaller?.(request) : undefined
    if (byCookie !== undefined) return byCookie
    const credential = readCredential(header ?? '')
    if (credential === undefined) throw refuse(request, { refused: header ? 'not_bearer' : 'missing' }, false)
    const directory = await this.#options.directory.current()
    const known = isRepeated ? this.#before.get(request) : undefined
    const again = known && (await this.#again(credential, known, directory))
    const caller = again ?? (await this.#byCredential(credential, request, directory))
    if ('refused' in caller) throw refuse(request, caller, !isRepeated)
    const authenticated = { caller, directory }
    if (caller.token !== undefined) this.#before.set(request, authenticated)
    return authenticated
  }

  /**
   * Refusing all credentials of an address after too many failures would let strangers block others behind the same
   * address. So each is looked up, which takes a microsecond or two, or its signature is checked, which takes fifteen.
   */
  async #byCredential(credential: string, request: Request, directory: DirectorySnapshot): Promise<Caller | Refused> {
    const byToken = credential.includes('.') ? await this.#byToken(credential, request, directory) : undefined
    if (byToken !== undefined && !('refused' in byToken)) return byToken
    // A key that a user chose may contain dots too.
    const byKey = await this.#byKey(credential, directory)
    return 'refused' in byKey && byKey.refused === 'unknown' ? (byToken ?? byKey) : byKey
  }

  async #byKey(credential: string, directory: DirectorySnapshot): Promise<Caller | Refused> {
    const key = await directory.apiKeyByDigest(apiKeyDigest(this.#options.pepper, credential))
    if (key === undefined) return { refused: 'unknown' }
    if (key.revokedAt !== null) return { refused: 'revoked', details: { userId: key.userId, keyId: key.keyId } }
    return callerOfKey(key)
  }

  async #byToken(credential: string, { url }: Request, directory: DirectorySnapshot): Promise<Caller | Refused> {
    const { issuer, clock } = this.#options
    const keys = await this.#keysOf(directory)
    const verified = verifyToken(credential, { keys, issuer, path: pathOf(url), nowSeconds: secondsOf(clock) })
    if ('refused' in verified) return denialReason(verified, issuer)
    const { claims } = verified
    const key = await directory.apiKey(claims.key)
    if (key === undefined) return { refused: 'unknown' }
    const refused = (because: RefusalReason): Refused => ({ refused: because, details: aboutToken(claims) })
    const ended = await endedBy(claims, key, directory)
    return ended === undefined ? (callerOfToken(claims, key) ?? refused('policy')) : refused(ended)
  }

  /**
   * The caller of a request whose token was verified for the same request before: neither its signature nor its claims
   * are another since. Undefined where it is not good any more, or cannot be told so.
   */
  async #again(credential: string, before: Authenticated, directory: DirectorySnapshot): Promise<Caller | undefined> {
    const { caller } = before
    const { token } = caller
    const nowSeconds = secondsOf(this.#options.clock)
    if (token === undefined || clockRefusal(token, nowSeconds) !== undefined) return undefined
    if (!isStillSigned(credential, await this.#keysOf(directory), nowSeconds)) return undefined
    if (directory.version === before.directory.version && directory.version !== '') return caller
    const key = await directory.apiKey(token.key)
    if (key === undefined || (await endedBy(token, key, directory)) !== undefined) return undefined
    return { ...caller, operator: key.operator, organizationId: token.org ?? key.organizationId }
  }

  async #keysOf(directory: DirectorySnapshot): Promise<KeyRing> {
    const keys = await directory.signingKeys(this.#options.sealingKey)
    if (keys === undefined) throw new Error('the store has no signing keys')
    return keys
  }
}

/** Whether the caller's user or organization may access this namespace; its blocks are evaluated separately. */
export async function canAccessNamespace(caller: Caller, namespace: Namespace, directory: DirectorySnapshot) {
  if (caller.organizationId !== undefined) {
    return 'organizationId' in namespace && namespace.organizationId === caller.organizationId
  }
  if (caller.operator) return true
  if ('userId' in namespace) return namespace.userId === caller.userId
  return (await directory.role(namespace.organizationId, caller.userId)) !== undefined
}

/** Whether the caller is an admin or owner, as operators and the organization's own keys are (contract, 2.1). */
export async function isOrganizationAdmin(
  { userId, operator }: Pick<Caller, 'userId' | 'operator'>,
  organizationId: string,
  directory: DirectorySnapshot,
): Promise<boolean> {
  if (operator || userId === organizationUserId(organizationId)) return directory.hasOrganization(organizationId)
  const role = await directory.role(organizationId, userId)
  return role === 'owner' || role === 'admin'
}

/** Throws the same 403 for an organization that does not exist, and one that the caller does not manage. */
export async function requireMayActFor(organizationId: string, { caller, directory }: Authenticated): Promise<void> {
  const isOther = caller.organizationId !== undefined && caller.organizationId !== organizationId
  if (!isOther && (await isOrganizationAdmin(caller, organizationId, directory))) return
  const text = 'organizationId: there is no such organization, or you are not an owner or admin of it'
  throw new PlatformError('forbidden', text)
}

/** The caller that a key stands for now. Undefined if there is none, or it was revoked. */
export async function liveCaller(current: Directory, keyId: string): Promise<Authenticated | undefined> {
  const directory = await current.current()
  const key = await directory.apiKey(keyId)
  return isLive(key) ? { caller: callerOfKey(key), directory } : undefined
}

export function callerOfKey({ userId, keyId, operator, organizationId }: ApiKey): Caller {
  const unrestricted = { blocks: [], metadataFingerprint: '', token: undefined }
  return { userId, keyId, family: keyId, operator, organizationId, ...unrestricted }
}

/** Why a token is not good any more although it was signed here and has not expired; undefined if it is good. */
export async function endedBy(
  { par = [], jti, sub, org }: ServiceTokenClaims,
  key: ApiKey,
  directory: DirectorySnapshot,
): Promise<'revoked' | 'membership' | undefined> {
  // Revoking a token revokes its children.
  if (await directory.isRevoked(jti, par)) return 'revoked'
  if (!isLive(key) || key.userId !== sub) return 'revoked'
  return org === undefined || (await isOrganizationAdmin(key, org, directory)) ? undefined : 'membership'
}

/** The caller that a good token stands for. Undefined if this version cannot read a constraint: none is skipped. */
export function callerOfToken(claims: ServiceTokenClaims, key: ApiKey): Caller | undefined {
  const blocks: Block[] = []
  for (const constraint of claims.policy) {
    const read = readConstraint(constraint)
    if ('problem' in read) return undefined
    blocks.push(read.block)
  }
  const rowSets = blocks.flatMap(({ metadata }) => (metadata === undefined ? [] : [metadata]))
  return {
    userId: claims.sub,
    keyId: claims.key,
    family: claims.par?.[0] ?? claims.jti,
    operator: key.operator,
    organizationId: claims.org ?? key.organizationId,
    blocks,
    metadataFingerprint: rowSets.length === 0 ? '' : JSON.stringify(rowSets),
    token: claims,
  }
}

/** The reason for a token that does not verify. Its claims are logged only if its signature was valid. */
function denialReason({ refused, signed }: RefusedToken, expected: string): Refused {
  if (signed === undefined) return { refused: 'unknown', details: { token: refused } }
  const issuers = refused === 'issuer' ? { expected, got: signed.iss } : {}
  return { refused, details: { ...issuers, ...aboutToken(signed) } }
}

function aboutToken({ jti, sub, key }: ServiceTokenClaims): LogFields {
  return { jti, userId: sub, keyId: key }
}

export function isLive(key: ApiKey | undefined): key is ApiKey {
  return key !== undefined && key.revokedAt === null
}

/** The caller of a request, as the audit log names it. */
export function auditedCaller({ userId, keyId, token }: Caller): AuditFields {
  return { userId, keyId, jti: token?.jti }
}
