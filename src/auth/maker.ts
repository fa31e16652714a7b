/**
 * The credential by which somebody made a setup ticket, or began a sign-in. Both outlast its request, and are void when
 * the key or a token is revoked, its user lost access to the namespace, or the namespace has another owner.
 */

import { createdAtOf } from '../model/organization.ts'
import { callerOfKey, canAccessNamespace, isLive, isOrganizationAdmin } from './authenticate.ts'
import type { RequestContext } from './authorizer.ts'
import type { DirectorySnapshot } from './directory.ts'

export interface Maker {
  readonly keyId: string
  /** The ids of the token and of those that it was minted with. */
  readonly tokens: readonly string[]
  /** The organization that the token was minted for; that of an organization's key is looked up. */
  readonly organizationId?: string
  /** When the namespace was made for its owner. Left out if it was there no more. */
  readonly namespaceCreatedAt?: string
}

/** The maker of what is for a connection of this namespace. */
export async function makerOf({ caller, directory }: RequestContext, namespace: string): Promise<Maker> {
  const { keyId, token } = caller
  const tokens = token === undefined ? [] : [...(token.par ?? []), token.jti]
  const record = await directory.namespace(namespace)
  return {
    keyId,
    tokens,
    ...(token?.org !== undefined && { organizationId: token.org }),
    ...(record !== undefined && { namespaceCreatedAt: createdAtOf(record) }),
  }
}

/** Whether the maker could access the namespace now. A token's expiry does not count: a link is for another person. */
export async function isStillGood(maker: Maker, namespace: string, directory: DirectorySnapshot): Promise<boolean> {
  if (await directory.isRevoked(maker.tokens.at(-1) ?? '', maker.tokens.slice(0, -1))) return false
  const [key, record] = [await directory.apiKey(maker.keyId), await directory.namespace(namespace)]
  if (!isLive(key) || record === undefined || createdAtOf(record) !== maker.namespaceCreatedAt) return false
  const { organizationId = key.organizationId } = maker
  if (maker.organizationId !== undefined && !(await isOrganizationAdmin(key, maker.organizationId, directory)))
    return false
  return canAccessNamespace({ ...callerOfKey(key), organizationId }, record, directory)
}
