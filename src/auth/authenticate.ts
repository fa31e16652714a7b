/**
 * From a credential to a caller. Roles, memberships and the key's status are looked up at every use, in
 * the registry's current version: a demoted admin's organization token and every token of a revoked key
 * stop working at once (contract 2).
 */

import { LRUCache } from 'lru-cache'
import { rateLimited, unauthorized } from '../errors.ts'
import { readCredential } from '../http/credential.ts'
import { callersCachedMax, credentialsKnownBytesMax } from '../limits.ts'
import type { ApiKey, Namespace } from '../model/registry.ts'
import type { ServiceTokenClaims } from '../model/token.ts'
import type { LogFields } from '../ops/log.ts'
import { type Block, readConstraint } from '../policy/block.ts'
import { apiKeyDigest } from './api-key.ts'
import type { OnRefused, RefusalReason } from './refused-log.ts'
import type { Registry, RegistrySnapshot } from './registry.ts'
import { type TokenRefusal, unverifiedClaims, verifyToken } from './service-token.ts'
import { type KeyRing, keyRing, readSigningKeys } from './signing-keys.ts'

export interface Caller {
  readonly userId: string
  readonly keyId: string
  /** The token that all its relatives were minted from, or the key itself: what tells holders of one key apart. */
  readonly family: string
  /** An operator key reaches everything; so does a plain token that one minted. */
  readonly operator: boolean
  /** Of a token minted with organization context: it reaches that organization's namespaces and no others. */
  readonly organizationId: string | undefined
  /** The token's policy; empty for an API key and for a token without one. */
  readonly blocks: readonly Block[]
  /** What the metadata constraints say, as text: two callers with the same text see the same rows. */
  readonly metadataFingerprint: string
  /** Present when the credential is a service token. */
  readonly token: ServiceTokenClaims | undefined
}

export interface Authenticator {
  /**
   * Whose credential the request brings. Throws `unauthorized`, always with the same words; `rate_limited` after too
   * many of them from one address.
   */
  authenticate(request: Request): Promise<Authenticated>
  /** The keys that sign and verify tokens now. */
  keys(): Promise<KeyRing>
  /** This token was made here: nobody's failures hold it up. */
  minted(token: string): void
}

export interface Authenticated {
  readonly caller: Caller
  readonly registry: RegistrySnapshot
}

export interface AuthenticatorOptions {
  readonly registry: Registry
  readonly pepper: Buffer
  /** Opens the signing keys. */
  readonly sealingKey: Buffer
  readonly issuer: string
  /** Milliseconds since 1970. */
  readonly now: () => number
  /** Credentials that were not accepted, by address. */
  readonly failures: FailureLimit
  readonly addressOf: (request: Request) => string
  /** Told why a credential was not accepted: whoever sent it is not. */
  readonly onRefused?: OnRefused
}

/** Seconds to wait, 0 for none. */
export interface FailureLimit {
  take(address: string): number
  wait(address: string): number
}

export function createAuthenticator(options: AuthenticatorOptions): Authenticator {
  /**
   * Credentials that were accepted or made here, whatever has been written since: they are looked at again and not
   * held up.
   */
  const accepted = new LRUCache<string, true>({
    max: callersCachedMax,
    maxSize: credentialsKnownBytesMax,
    sizeCalculation: (_, credential) => credential.length + 100,
  })

  /** Throws `unauthorized`. */
  function credentialIn(header: string, address: string): string {
    try {
      return readCredential(header)
    } catch (error) {
      options.onRefused?.(header === '' ? 'missing' : 'not_bearer', { address })
      throw error
    }
  }

  return {
    keys: async () => keysOf(await options.registry.current(), options.sealingKey),
    minted: (token) => void accepted.set(token, true),
    async authenticate(request) {
      const address = options.addressOf(request)
      const credential = credentialIn(request.headers.get('authorization') ?? '', address)
      const registry = await options.registry.current()
      const isKnown = accepted.has(credential)
      const nowSeconds = Math.floor(options.now() / 1000)
      const caller = await callerOf(credential, { address, isKnown }, nowSeconds, registry, options)
      if (!('refused' in caller)) {
        accepted.set(credential, true)
        return { caller, registry }
      }
      accepted.delete(credential)
      const { refused, bucket = address, details } = caller
      const wait = options.failures.take(bucket)
      options.onRefused?.(wait > 0 ? 'limit' : refused, { address, ...details })
      if (wait > 0) throw rateLimited('Too many invalid credentials from this address', wait)
      throw unauthorized()
    },
  }
}

/** Does the caller's user or organization reach this namespace at all? Its blocks are asked afterwards. */
export async function canReachNamespace(
  caller: Caller,
  namespace: Namespace,
  registry: RegistrySnapshot,
): Promise<boolean> {
  if (caller.organizationId !== undefined) {
    return 'organizationId' in namespace && namespace.organizationId === caller.organizationId
  }
  if (caller.operator) return true
  if ('userId' in namespace) return namespace.userId === caller.userId
  return (await registry.role(namespace.organizationId, caller.userId)) !== undefined
}

/** Admin or owner; an operator leads every organization that exists (spec 2.1; contract 2). */
export async function isOrganizationAdmin(
  { userId, operator }: Pick<Caller, 'userId' | 'operator'>,
  organizationId: string,
  registry: RegistrySnapshot,
): Promise<boolean> {
  if (operator) return registry.hasOrganization(organizationId)
  const role = await registry.role(organizationId, userId)
  return role === 'owner' || role === 'admin'
}

/** Opened once for each snapshot. */
const keyRings = new WeakMap<RegistrySnapshot, KeyRing>()

async function keysOf(registry: RegistrySnapshot, sealingKey: Buffer): Promise<KeyRing> {
  const kept = keyRings.get(registry)
  if (kept !== undefined) return kept
  const sealed = await registry.signingKeys()
  if (sealed === undefined) throw new Error('the store has no signing keys')
  const keys = keyRing(readSigningKeys(sealed, sealingKey))
  keyRings.set(registry, keys)
  return keys
}

/** A credential that is not accepted, and why. */
interface Refused {
  readonly refused: RefusalReason
  readonly details?: LogFields
  /** Whose failure it is, where that is narrower than the address. */
  readonly bucket?: string
}

interface Sent {
  readonly address: string
  /** It was accepted before, or made here. */
  readonly isKnown: boolean
}

/**
 * What costs a microsecond or two to know is always looked up, however many failures an address has: strangers hold
 * nobody up. A signature costs more than sending one. It is looked at where the token names a live key of ours, which
 * strangers do not know; and who knows one has a limit of their own, for their address and that key.
 */
async function callerOf(
  credential: string,
  sent: Sent,
  nowSeconds: number,
  registry: RegistrySnapshot,
  options: AuthenticatorOptions,
): Promise<Caller | Refused> {
  const byToken = credential.includes('.')
    ? await tokenCaller(credential, sent, nowSeconds, registry, options)
    : undefined
  if (byToken !== undefined && !('refused' in byToken)) return byToken
  // A key that somebody chose may have dots too.
  const byKey = await keyCaller(credential, registry, options)
  return 'refused' in byKey && byKey.refused === 'unknown' ? (byToken ?? byKey) : byKey
}

async function keyCaller(
  credential: string,
  registry: RegistrySnapshot,
  { pepper }: AuthenticatorOptions,
): Promise<Caller | Refused> {
  const key = await registry.apiKeyByDigest(apiKeyDigest(pepper, credential))
  if (key === undefined) return { refused: 'unknown' }
  if (key.revokedAt !== null) return { refused: 'revoked', details: { userId: key.userId, keyId: key.keyId } }
  return {
    userId: key.userId,
    keyId: key.keyId,
    family: key.keyId,
    operator: key.operator,
    organizationId: undefined,
    blocks: [],
    metadataFingerprint: '',
    token: undefined,
  }
}

async function tokenCaller(
  credential: string,
  { address, isKnown }: Sent,
  nowSeconds: number,
  registry: RegistrySnapshot,
  { issuer, sealingKey, failures }: AuthenticatorOptions,
): Promise<Caller | Refused> {
  const claimed = unverifiedClaims(credential)
  const key = claimed && (await registry.apiKey(claimed.key))
  if (key === undefined) return { refused: 'unknown' }
  const bucket = `${address} ${key.keyId}`
  if (!isKnown && failures.wait(bucket) > 0) return { refused: 'limit', bucket }
  const verified = verifyToken(credential, { keys: await keysOf(registry, sealingKey), issuer, nowSeconds })
  if ('refused' in verified) return { ...whyNot(credential, verified.refused, issuer), bucket }
  const { claims } = verified
  const refused = (because: RefusalReason): Refused => ({ refused: because, details: aboutToken(claims) })
  // A child dies with its parent.
  for (const jti of [...(claims.par ?? []), claims.jti]) if (await registry.isRevoked(jti)) return refused('revoked')
  if (!isLive(key) || key.userId !== claims.sub) return refused('revoked')
  if (claims.org !== undefined && !(await isOrganizationAdmin(key, claims.org, registry))) return refused('membership')
  const blocks: Block[] = []
  for (const constraint of claims.policy) {
    const read = readConstraint(constraint)
    // A constraint that is no longer understood restricts to nothing.
    if ('problem' in read) return refused('policy')
    blocks.push(read.block)
  }
  const rowSets = blocks.flatMap(({ metadata }) => (metadata === undefined ? [] : [metadata]))
  return {
    userId: claims.sub,
    keyId: claims.key,
    family: claims.par?.[0] ?? claims.jti,
    operator: key.operator,
    organizationId: claims.org,
    blocks,
    metadataFingerprint: rowSets.length === 0 ? '' : JSON.stringify(rowSets),
    token: claims,
  }
}

/** Of a token that does not verify. What it claims is told where its signature is ours: that is looked at first. */
function whyNot(token: string, why: TokenRefusal, expected: string): Refused {
  if (why !== 'issuer' && why !== 'expired' && why !== 'not_yet') return { refused: 'unknown', details: { token: why } }
  const claims = unverifiedClaims(token)
  const issuers = why === 'issuer' ? { expected, got: claims?.iss } : {}
  return { refused: why, details: { ...issuers, ...aboutToken(claims) } }
}

/** What the log may say of a token: never the token itself. */
function aboutToken(claims: ServiceTokenClaims | undefined): LogFields {
  return { jti: claims?.jti, userId: claims?.sub, keyId: claims?.key }
}

/** Is there such a key, and was it not revoked? */
export function isLive(key: ApiKey | undefined): key is ApiKey {
  return key !== undefined && key.revokedAt === null
}
