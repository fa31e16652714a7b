/**
 * The ids of tokens (`jti`). Tokens are not stored, so an id itself has to show whose token it names: it ends with a
 * mark that only this instance can make, for the user (`sub`). By it a user may revoke a token whose text is lost.
 */

import { createHmac, randomBytes } from 'node:crypto'
import { canonicalBytes } from '../schema/base64.ts'

/** Random bytes of an id: two ids among a billion are alike once in a million instances. */
const randomPart = 10
/** Bytes of the mark. A guess is right once in 2^48, and each id has one mark alone for each user. */
const markPart = 6

/** `tok_` and 16 bytes in base64url; see `tokenIdShape`. `key`: `tokenIdKey` of the secrets. */
export function newTokenId(key: Buffer, userId: string): string {
  const random = randomBytes(randomPart)
  return `tok_${Buffer.concat([random, markOf(key, random, userId)]).toString('base64url')}`
}

/** Whether this instance made the id for a token of the user. */
export function isTokenIdOf(key: Buffer, tokenId: string, userId: string): boolean {
  const bytes = canonicalBytes(tokenId.slice('tok_'.length))
  if (bytes?.length !== randomPart + markPart) return false
  return markOf(key, bytes.subarray(0, randomPart), userId).equals(bytes.subarray(randomPart))
}

function markOf(key: Buffer, random: Buffer, userId: string): Buffer {
  return createHmac('sha256', key).update(random).update(userId).digest().subarray(0, markPart)
}
