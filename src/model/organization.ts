/** Organizations, namespaces, roles and API keys (contract 2). */

import { type Static, Type } from '@sinclair/typebox'
import { Constraint } from './constraint.ts'
import { OrganizationId, OrganizationUserId, Slug, UserId } from './names.ts'

/** Ours: characters of an organization's name. Past it: 400. */
const organizationNameCharsMax = 200
/** Ours: fits one line of `postern keys list`. Past it: refused by the command. */
const apiKeyNameCharsMax = 64

const closed = { additionalProperties: false } as const

/** Records that were written before postern kept their time have none. */
export function createdAtOf({ createdAt }: { readonly createdAt?: string }): string {
  return createdAt ?? '1970-01-01T00:00:00.000Z'
}

export const Role = Type.Union([Type.Literal('owner'), Type.Literal('admin'), Type.Literal('member')])
export type Role = Static<typeof Role>

export const Organization = Type.Object({ organizationId: OrganizationId, name: Type.String() }, closed)
export type Organization = Static<typeof Organization>

const createdAt = Type.Optional(Type.String({ format: 'date-time' }))

/** The reaction to a change in the definition of a pinned tool; no tool is pinned yet. Left out: `warn`. */
export const Pins = Type.Union([Type.Literal('off'), Type.Literal('warn'), Type.Literal('block')])
export type Pins = Static<typeof Pins>
const pins = Type.Optional(Pins)

/** A namespace is owned by an organization or by a user, never by both. */
export const Namespace = Type.Union([
  Type.Object({ namespace: Slug, organizationId: OrganizationId, createdAt, pins }, closed),
  Type.Object({ namespace: Slug, userId: UserId, createdAt, pins }, closed),
])
export type Namespace = Static<typeof Namespace>

/** In messages. */
export function ownerName(owner: { readonly organizationId: string } | { readonly userId: string }): string {
  return 'organizationId' in owner ? `organization ${owner.organizationId}` : `user ${owner.userId}`
}

export const ApiKeyName = Type.String({
  pattern: `^[^\\u0000-\\u001f\\u007f]{1,${apiKeyNameCharsMax}}$`,
  errorMessage: `must be 1 to ${apiKeyNameCharsMax} characters without control characters`,
})

/** The record of an API key, without its text: the store finds the record by a keyed hash. Times are ISO 8601. */
export const ApiKey = Type.Object(
  {
    keyId: Type.String(),
    name: Type.Union([ApiKeyName, Type.Null()]),
    userId: Type.Union([UserId, OrganizationUserId]),
    /** The organization that the key acts for; then `userId` is `organization:ID`. */
    organizationId: Type.Optional(OrganizationId),
    operator: Type.Boolean(),
    createdAt: Type.String(),
    revokedAt: Type.Union([Type.String(), Type.Null()]),
  },
  closed,
)
export type ApiKey = Static<typeof ApiKey>

// Bodies of requests and responses (door contract, 3)

/** The page of a list that is read by its number. */
export const Pagination = Type.Object(
  { currentPage: Type.Integer(), pageSize: Type.Integer(), totalPages: Type.Integer(), totalCount: Type.Integer() },
  closed,
)
export type Pagination = Static<typeof Pagination>

export const NamespaceItem = Type.Object({ name: Slug }, closed)
export const NamespacePage = Type.Object({ namespaces: Type.Array(NamespaceItem), pagination: Pagination }, closed)
export const NamespaceMade = Type.Object({ name: Slug, createdAt: Type.String() }, closed)
export type NamespaceMade = Static<typeof NamespaceMade>
export const NamespaceDetail = Type.Object({ name: Slug, createdAt: Type.String(), pins: Pins }, closed)
export type NamespaceDetail = Static<typeof NamespaceDetail>
export const NamespaceDeleted = Type.Object({ success: Type.Literal(true), name: Slug }, closed)

/** The owner of a new namespace. Neither: the caller, or the organization that it acts for. */
export const NamespaceWrite = Type.Object(
  { organizationId: Type.Optional(OrganizationId), userId: Type.Optional(UserId) },
  closed,
)
export type NamespaceWrite = Static<typeof NamespaceWrite>
export const NamespaceChange = Type.Object({ pins: Pins }, closed)

export const Member = Type.Object({ userId: UserId, role: Role }, closed)
export type Member = Static<typeof Member>
export const OrganizationDetail = Type.Object(
  { organizationId: OrganizationId, name: Type.String(), members: Type.Array(Member) },
  closed,
)
export type OrganizationDetail = Static<typeof OrganizationDetail>
export const OrganizationWrite = Type.Object(
  { name: Type.Optional(Type.String({ minLength: 1, maxLength: organizationNameCharsMax })), owner: UserId },
  closed,
)
export const MemberWrite = Type.Object({ role: Role }, closed)
export const Done = Type.Object({ success: Type.Literal(true) }, closed)

export const ApiKeyWrite = Type.Object({ name: ApiKeyName }, closed)
const shownKey = { id: Type.String(), name: Type.String(), createdAt: Type.String() }
export const ApiKeyMade = Type.Object({ ...shownKey, key: Type.String() }, closed)
export type ApiKeyMade = Static<typeof ApiKeyMade>
export const ApiKeyList = Type.Object({ apiKeys: Type.Array(Type.Object(shownKey, closed)) }, closed)
export type ApiKeyList = Static<typeof ApiKeyList>

/** The caller, and the operations that it may perform (door contract, 1.4). */
export const Me = Type.Object(
  {
    userId: Type.String(),
    operator: Type.Boolean(),
    organizationId: Type.Union([OrganizationId, Type.Null()]),
    key: Type.Object({ id: Type.String(), name: Type.Union([Type.String(), Type.Null()]) }, closed),
    token: Type.Union([
      Type.Object({ jti: Type.String(), expiresAt: Type.String(), policy: Type.Array(Constraint) }, closed),
      Type.Null(),
    ]),
    organizations: Type.Array(Type.Object({ organizationId: OrganizationId, role: Role }, closed)),
    namespaces: Type.Array(Type.Object({ name: Slug, leads: Type.Boolean(), may: Type.Array(Type.String()) }, closed)),
    /** Whether there are more namespaces than listed. */
    more: Type.Boolean(),
    baseUrl: Type.String(),
    version: Type.String(),
  },
  closed,
)
export type Me = Static<typeof Me>
