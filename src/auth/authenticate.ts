/**
 * Authenticates a credential as a caller. Roles, memberships and the key's status are looked up in the current version
 * of the directory at every use. So a demoted admin's organization token, and every token of a revoked key, stop
 * working at once (contract, 2.4).
 */

import { LRUCache } from 'lru-cache'
import { type Clock, secondsOf } from '../clock.ts'
import type { ClientSockets } from '../http/client-sockets.ts'
import { readCredential } from '../http/credential.ts'
import { pathOf } from '../http/path.ts'
import { callersCachedMax } from '../limits.ts'
import { organizationUserId } from '../model/names.ts'
import type { ApiKey, Namespace } from '../model/organization.ts'
import type { ServiceTokenClaims } from '../model/token.ts'
import type { AuditFields } from '../ops/audit-log.ts'
import type { LogFields } from '../ops/log.ts'
import { type Block, readConstraint } from '../policy/block.ts'
import { apiKeyDigest } from './api-key.ts'
import type { Directory, DirectorySnapshot } from './directory.ts'
import { type CountedFailures, type RefusalReason, type Refused, refusal } from './failed-credentials.ts'
import { type TokenRefusal, unverifiedClaims, verifyToken } from './service-token.ts'
import type { KeyRing } from './signing-keys.ts'

/**
 * Tokens that were accepted or minted here, recognized by their text. Past it: a new token can be delayed by the
 * failures of its key.
 */
const credentialsKnownBytesMax = 16 * 2 ** 20

export interface Caller {
  readonly userId: string
  readonly keyId: string
  /** The id of the first token of its family, or of the key if used directly. Distinguishes holders within a key. */
  readonly family: string
  /**
   * Whether the API key is an operator key, which may access every namespace; so do its tokens without organization.
   */
  readonly operator: boolean
  /**
   * The organization of a token that was minted for one, or of an organization's key: such a caller may access only
   * that organization's namespaces.
   */
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

export type Authenticator = ReturnType<typeof createAuthenticator>

/** The caller of a request, and the directory as that request has it. */
export interface Authenticated {
  readonly caller: Caller
  readonly directory: DirectorySnapshot
}

export interface AuthenticatorOptions extends CountedFailures {
  readonly directory: Directory
  readonly pepper: Buffer
  /** Opens the signing keys. */
  readonly sealingKey: Buffer
  /** The base URL: `iss` and `aud` of tokens. */
  readonly issuer: string
  readonly clock: Clock
  readonly sockets: Pick<ClientSockets, 'addressOf'>
  /**
   * The caller of a request without `Authorization`, by its cookie; undefined if it has none. Throws `unauthorized`.
   */
  readonly cookieCaller?: (request: Request) => Promise<Authenticated | undefined>
}

interface Parts extends AuthenticatorOptions {
  /** Known credentials: they are verified at every use like all others, but failures of their key do not block them. */
  readonly accepted: LRUCache<string, true>
}

/** Failures are counted, and logged, by reason: `failed-credentials.ts`. */
export function createAuthenticator(options: AuthenticatorOptions) {
  const accepted: Parts['accepted'] = new LRUCache({
    max: callersCachedMax,
    maxSize: credentialsKnownBytesMax,
    sizeCalculation: (_, credential) => credential.length + 100,
  })
  const parts: Parts = { ...options, accepted }
  const { directory, issuer, sockets } = options

  return {
    /** The current signing keys. */
    keys: async () => keysOf(await directory.current(), parts),
    /** Marks a new token as known, so that it is exempt from the failure limit of its key (see `callerOf`). */
    minted: (token: string) => void accepted.set(token, true),
    /** The claims of a token that was signed here, expired or not, wherever it is good. */
    async claimsOf(token: string): Promise<ServiceTokenClaims | undefined> {
      const claimed = unverifiedClaims(token)
      if (claimed === undefined) return undefined
      const keys = await keysOf(await directory.current(), parts)
      // As of the time of its issue: whether it has expired does not matter.
      const verified = verifyToken(token, { keys, issuer, path: undefined, nowSeconds: claimed.iat })
      return 'claims' in verified ? verified.claims : undefined
    },
    /**
     * The caller of an API key that a person typed; no token is accepted. Throws what `authenticate` throws, and counts
     * failures alike.
     */
    async authenticateKey(typed: string, request: Request): Promise<Caller> {
      const caller = await keyCaller(typed, await directory.current(), options)
      if ('refused' in caller) throw refusal(options, caller, sockets.addressOf(request))
      return caller
    },
    /**
     * The caller of a request. Throws `unauthorized`, always with the same message, and `rate_limited` after too many
     * failures from one address. `isRepeated`: the request was authenticated before and is checked once more, as an
     * open stream is. If that fails, the client has sent nothing wrong, so it does not count as a failure.
     */
    async authenticate(request: Request, isRepeated = false): Promise<Authenticated> {
      const address = sockets.addressOf(request)
      const header = request.headers.get('authorization')
      const byCookie = header === null ? await options.cookieCaller?.(request) : undefined
      if (byCookie !== undefined) return byCookie
      const credential = credentialIn(parts, header ?? '', address)
      const current = await directory.current()
      const caller = await callerOf({ credential, address, path: pathOf(request.url) }, current, parts)
      if (!('refused' in caller)) {
        accepted.set(credential, true)
        return { caller, directory: current }
      }
      accepted.delete(credential)
      throw refusal(options, caller, address, isRepeated)
    },
  }
}

/** The credential in the header. Throws `unauthorized`. */
function credentialIn({ onRefused }: Parts, header: string, address: string): string {
  try {
    return readCredential(header)
  } catch (error) {
    onRefused?.(header === '' ? 'missing' : 'not_bearer', { address })
    throw error
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

/**
 * Whether the user is an admin or owner; an operator is one of every organization (specification 2.1; contract, 2.1),
 * and an organization's key of its own.
 */
export async function isOrganizationAdmin(
  { userId, operator }: Pick<Caller, 'userId' | 'operator'>,
  organizationId: string,
  directory: DirectorySnapshot,
): Promise<boolean> {
  if (operator || userId === organizationUserId(organizationId)) return directory.hasOrganization(organizationId)
  const role = await directory.role(organizationId, userId)
  return role === 'owner' || role === 'admin'
}

async function keysOf(directory: DirectorySnapshot, { sealingKey }: Parts): Promise<KeyRing> {
  const keys = await directory.signingKeys(sealingKey)
  if (keys === undefined) throw new Error('the store has no signing keys')
  return keys
}

interface Sent {
  readonly credential: string
  readonly address: string
  /** The path of the request. */
  readonly path: string
}

/**
 * Refusing all credentials of an address after too many failures would let strangers block others behind the same
 * address. So look-ups, which cost a microsecond or two, are always done. Verifying a signature costs more than sending
 * one; it is done only if the token names an existing API key, which strangers do not know. A client that does know one
 * has its own failure limit, for its address and that key.
 */
async function callerOf(sent: Sent, directory: DirectorySnapshot, options: Parts): Promise<Caller | Refused> {
  const { credential } = sent
  const byToken = credential.includes('.') ? await tokenCaller(sent, directory, options) : undefined
  if (byToken !== undefined && !('refused' in byToken)) return byToken
  // A key that a user chose may contain dots too.
  const byKey = await keyCaller(credential, directory, options)
  return 'refused' in byKey && byKey.refused === 'unknown' ? (byToken ?? byKey) : byKey
}

async function keyCaller(
  credential: string,
  directory: DirectorySnapshot,
  { pepper }: AuthenticatorOptions,
): Promise<Caller | Refused> {
  const key = await directory.apiKeyByDigest(apiKeyDigest(pepper, credential))
  if (key === undefined) return { refused: 'unknown' }
  if (key.revokedAt !== null) return { refused: 'revoked', details: { userId: key.userId, keyId: key.keyId } }
  return callerOfKey(key)
}

/** The caller that a key stands for now. Undefined if there is none, or it was revoked. */
export async function liveCaller(current: Directory, keyId: string): Promise<Authenticated | undefined> {
  const directory = await current.current()
  const key = await directory.apiKey(keyId)
  return isLive(key) ? { caller: callerOfKey(key), directory } : undefined
}

/** The caller that a live API key stands for. */
export function callerOfKey({ userId, keyId, operator, organizationId }: ApiKey): Caller {
  const unrestricted = { blocks: [], metadataFingerprint: '', token: undefined }
  return { userId, keyId, family: keyId, operator, organizationId, ...unrestricted }
}

async function tokenCaller(
  { credential, address, path }: Sent,
  directory: DirectorySnapshot,
  parts: Parts,
): Promise<Caller | Refused> {
  const { issuer, failures, accepted, clock } = parts
  const claimed = unverifiedClaims(credential)
  const key = claimed && (await directory.apiKey(claimed.key))
  if (key === undefined) return { refused: 'unknown' }
  const bucket = `${address} ${key.keyId}`
  if (!accepted.has(credential) && failures.wait(bucket) > 0) return { refused: 'limit', bucket }
  const keys = await keysOf(directory, parts)
  const verified = verifyToken(credential, { keys, issuer, path, nowSeconds: secondsOf(clock) })
  if ('refused' in verified) return { ...denialReason(claimed, verified.refused, issuer), bucket }
  const { claims } = verified
  const refused = (because: RefusalReason): Refused => ({ refused: because, details: aboutToken(claims) })
  const ended = await endedBy(claims, key, directory)
  return ended === undefined ? (callerOfToken(claims, key) ?? refused('policy')) : refused(ended)
}

/** Why a token is not good any more although it was signed here and has not expired; undefined if it is good. */
export async function endedBy(
  { par = [], jti, sub, org }: ServiceTokenClaims,
  key: ApiKey,
  directory: DirectorySnapshot,
): Promise<'revoked' | 'membership' | undefined> {
  // Revoking a token revokes its children.
  for (const id of [...par, jti]) if (await directory.isRevoked(id)) return 'revoked'
  if (!isLive(key) || key.userId !== sub) return 'revoked'
  return org === undefined || (await isOrganizationAdmin(key, org, directory)) ? undefined : 'membership'
}

/**
 * The caller that a token stands for while it is good. Undefined where this version cannot read a constraint: it must
 * not be ignored.
 */
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
function denialReason(claims: ServiceTokenClaims | undefined, why: TokenRefusal, expected: string): Refused {
  if (why !== 'issuer' && why !== 'audience' && why !== 'expired' && why !== 'not_yet') {
    return { refused: 'unknown', details: { token: why } }
  }
  const issuers = why === 'issuer' ? { expected, got: claims?.iss } : {}
  return { refused: why, details: { ...issuers, ...aboutToken(claims) } }
}

/** The claims of a token that may be logged. */
function aboutToken(claims: ServiceTokenClaims | undefined): LogFields {
  return { jti: claims?.jti, userId: claims?.sub, keyId: claims?.key }
}

/** Whether the key exists and is not revoked. */
export function isLive(key: ApiKey | undefined): key is ApiKey {
  return key !== undefined && key.revokedAt === null
}

/** The caller of a request, as the audit log names it. */
export function auditedCaller({ userId, keyId, token }: Caller): AuditFields {
  return { userId, keyId, jti: token?.jti }
}
