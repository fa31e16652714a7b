/** Names and ids: their syntax (contract, 2.5), and how a qualifiedName is split. */

import { type Static, type TString, Type } from '@sinclair/typebox'
import { connectionIdCharsMax, slugCharsMax } from '../limits.ts'

/** Ours: characters of an organization's id; a key of the store holds the ids of an organization and a user, and may have 1,024 bytes. Past it: a problem of the fixtures, 400 in a body. */
export const organizationIdCharsMax = 128
/** Ours: characters of a user's id; a key of the store holds the ids of an organization and a user, and may have 1,024 bytes. Past it: refused by the command, or a problem of the fixtures. */
export const userIdCharsMax = 128

const slugPattern = `[A-Za-z0-9](?:[A-Za-z0-9._-]{0,${slugCharsMax - 2}}[A-Za-z0-9])?`
const slugWords = `1 to ${slugCharsMax} letters, digits, ".", "_" or "-", beginning and ending with a letter or digit`

/** A namespace, or the server part of a qualifiedName. */
export const Slug = Type.String({ pattern: `^${slugPattern}$`, errorMessage: `must be ${slugWords}` })

/** Spec 2.7: `<namespace>/<server>`, or `<namespace>` alone for a namespace-only server. */
export const QualifiedName = Type.String({
  pattern: `^${slugPattern}(?:/${slugPattern})?$`,
  errorMessage: `must be <namespace>/<server> or <namespace>, each ${slugWords}`,
})
export type QualifiedName = Static<typeof QualifiedName>

/** `mcp` is no id: it is the endpoint of the namespace (contract, 20.1). */
export const ConnectionId = Type.String({
  pattern: `^(?!mcp$)[A-Za-z0-9_-][A-Za-z0-9._-]{0,${connectionIdCharsMax - 1}}$`,
  errorMessage: `must be 1 to ${connectionIdCharsMax} letters, digits, ".", "_" or "-", not beginning with ".", and not "mcp"`,
})

export const OrganizationId = Type.String({
  pattern: `^[A-Za-z0-9][A-Za-z0-9._-]{0,${organizationIdCharsMax - 1}}$`,
  errorMessage: `must be 1 to ${organizationIdCharsMax} letters, digits, ".", "_" or "-", beginning with a letter or digit`,
})

/**
 * The operator chooses user ids. Control characters are excluded, because they could break a storage key or a log, and
 * what begins like the user of an organization's API key.
 */
export const UserId = Type.String({
  pattern: `^(?!organization:)[^\\u0000-\\u001f\\u007f]{1,${userIdCharsMax}}$`,
  errorMessage: `must be 1 to ${userIdCharsMax} characters without control characters, not beginning with "organization:"`,
})

/** The user that an organization's API keys act for (`sub` of their tokens): no person. */
export const OrganizationUserId = Type.String({
  pattern: `^organization:[A-Za-z0-9][A-Za-z0-9._-]{0,${organizationIdCharsMax - 1}}$`,
})

export function organizationUserId(organizationId: string): string {
  return `organization:${organizationId}`
}

export function isOrganizationUser(userId: string): boolean {
  return userId.startsWith('organization:')
}

export function matcherOf({ pattern = '' }: TString): (text: string) => boolean {
  const shape = new RegExp(pattern)
  return (text) => shape.test(text)
}

export const isSlug = matcherOf(Slug)
export const isQualifiedName = matcherOf(QualifiedName)
export const isConnectionId = matcherOf(ConnectionId)

/** The part before `/`, or the whole name for a namespace-only server (contract, 4.2). */
export function namespaceOf(name: QualifiedName): string {
  const slash = name.indexOf('/')
  return slash < 0 ? name : name.slice(0, slash)
}
