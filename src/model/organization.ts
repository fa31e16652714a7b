/** Organizations, namespaces, roles and API keys (contract, 2.1 and 2.3). */

import { type Static, Type } from '@sinclair/typebox'
import { closedObject, nullable, oneOf } from '../schema/shapes.ts'
import { Constraint } from './constraint.ts'
import { OrganizationId, OrganizationUserId, Slug, UserId } from './names.ts'
import { PinsSetting } from './pins.ts'
import { ownTexts } from './view.ts'

/** Ours: characters of an organization's name. Past it: 400. */
const organizationNameCharsMax = 200
/** Ours: characters of an API key's name, so that the name fits one line of `postern keys list`. Past it: refused by the command. */
const apiKeyNameCharsMax = 64

/** Records that were written before postern kept their time have none. */
export function createdAtOf({ createdAt }: { readonly createdAt?: string }): string {
  return createdAt ?? '1970-01-01T00:00:00.000Z'
}

export const Role = oneOf(['owner', 'admin', 'member'])
export type Role = Static<typeof Role>

export const Organization = closedObject({ organizationId: OrganizationId, name: Type.String() })
export type Organization = Static<typeof Organization>

const createdAt = Type.Optional(Type.String({ format: 'date-time' }))

const pins = Type.Optional(PinsSetting)

/** The readers of a namespace's registry, which leads editors to its endpoint. Left out: `off`. */
export const Registry = oneOf(['off', 'public', 'members'])
const settings = { pins, registry: Type.Optional(Registry), ...Type.Partial(Type.Object(ownTexts)).properties }
/** The members of a namespace that its managers change. */
export const namespaceSettings = ['pins', 'registry', 'title', 'description', 'instructions'] as const

/** A namespace is owned by an organization or by a user, never by both. */
export const Namespace = Type.Union([
  closedObject({ namespace: Slug, organizationId: OrganizationId, createdAt, ...settings }),
  closedObject({ namespace: Slug, userId: UserId, createdAt, ...settings }),
])
export type Namespace = Static<typeof Namespace>

export function ownerName(owner: { readonly organizationId: string } | { readonly userId: string }): string {
  return 'organizationId' in owner ? `organization ${owner.organizationId}` : `user ${owner.userId}`
}

export const ApiKeyName = Type.String({
  pattern: `^[^\\u0000-\\u001f\\u007f]{1,${apiKeyNameCharsMax}}$`,
  errorMessage: `must be 1 to ${apiKeyNameCharsMax} characters without control characters`,
})

/** The record of an API key, without its text: the store finds the record by a keyed hash. Times are ISO 8601. */
export const ApiKey = closedObject({
  keyId: Type.String(),
  name: nullable(ApiKeyName),
  userId: Type.Union([UserId, OrganizationUserId]),
  /** The organization that the key acts for; then `userId` is `organization:ID`. */
  organizationId: Type.Optional(OrganizationId),
  operator: Type.Boolean(),
  createdAt: Type.String(),
  revokedAt: nullable(Type.String()),
})
export type ApiKey = Static<typeof ApiKey>

// Bodies of requests and responses (contract, 10)

export const Pagination = closedObject({
  currentPage: Type.Integer(),
  pageSize: Type.Integer(),
  totalPages: Type.Integer(),
  totalCount: Type.Integer(),
})
export type Pagination = Static<typeof Pagination>

export const NamespaceItem = closedObject({ name: Slug })
export const NamespacePage = closedObject({ namespaces: Type.Array(NamespaceItem), pagination: Pagination })
export const NamespaceMade = closedObject({ name: Slug, createdAt: Type.String() })
export type NamespaceMade = Static<typeof NamespaceMade>
export const NamespaceDetail = closedObject({
  ...{ name: Slug, createdAt: Type.String(), pins: PinsSetting, registry: Registry },
  ...ownTexts,
})
export type NamespaceDetail = Static<typeof NamespaceDetail>
export const NamespaceDeleted = closedObject({ success: Type.Literal(true), name: Slug })

/** The owner of a new namespace. Neither: the caller, or the organization that it acts for. */
export const NamespaceWrite = closedObject({
  organizationId: Type.Optional(OrganizationId),
  userId: Type.Optional(UserId),
})
export type NamespaceWrite = Static<typeof NamespaceWrite>
export const NamespaceChange = Type.Object(settings, { additionalProperties: false, minProperties: 1 })

export const Member = closedObject({ userId: UserId, role: Role })
export type Member = Static<typeof Member>
export const OrganizationDetail = closedObject({
  organizationId: OrganizationId,
  name: Type.String(),
  members: Type.Array(Member),
})
export type OrganizationDetail = Static<typeof OrganizationDetail>
export const OrganizationWrite = closedObject({
  name: Type.Optional(Type.String({ minLength: 1, maxLength: organizationNameCharsMax })),
  owner: UserId,
})
export const MemberWrite = closedObject({ role: Role })
export const Done = closedObject({ success: Type.Literal(true) })

export const ApiKeyWrite = closedObject({ name: ApiKeyName })
const shownKey = { id: Type.String(), name: Type.String(), createdAt: Type.String() }
export const ApiKeyMade = closedObject({ ...shownKey, key: Type.String() })
export type ApiKeyMade = Static<typeof ApiKeyMade>
export const ApiKeyList = closedObject({ apiKeys: Type.Array(closedObject(shownKey)) })
export type ApiKeyList = Static<typeof ApiKeyList>
/** `name`: a note for people. */
export const AnyApiKeyWrite = closedObject({
  userId: UserId,
  name: Type.Optional(ApiKeyName),
  operator: Type.Optional(Type.Boolean()),
})
const anyKey = { ...shownKey, userId: Type.String(), operator: Type.Boolean(), revokedAt: nullable(Type.String()) }
export const ApiKeyPage = closedObject({ apiKeys: Type.Array(closedObject(anyKey)), pagination: Pagination })
export type ApiKeyPage = Static<typeof ApiKeyPage>
/** The permission that a user gave a client. `tools`: null for all. */
const shownGrant = closedObject({
  ...{ id: Type.String(), userId: Type.String(), client: Type.String() },
  namespace: Type.String(),
  /** Null for the endpoint of the namespace, or of a view. */
  connectionId: nullable(Type.String()),
  view: nullable(Type.String()),
  tools: nullable(Type.Array(Type.String())),
  ...{ createdAt: Type.String(), expiresAt: Type.String() },
})
export const GrantPage = closedObject({ grants: Type.Array(shownGrant), pagination: Pagination })
export type GrantPage = Static<typeof GrantPage>

/** The caller, and the operations that it may perform (contract, 2.7). */
export const Me = closedObject({
  userId: Type.String(),
  operator: Type.Boolean(),
  organizationId: nullable(OrganizationId),
  key: closedObject({ id: Type.String(), name: nullable(Type.String()) }),
  token: nullable(closedObject({ jti: Type.String(), expiresAt: Type.String(), policy: Type.Array(Constraint) })),
  organizations: Type.Array(closedObject({ organizationId: OrganizationId, role: Role })),
  namespaces: Type.Array(closedObject({ name: Slug, leads: Type.Boolean(), may: Type.Array(Type.String()) })),
  /** Whether there are more namespaces than listed. */
  more: Type.Boolean(),
  baseUrl: Type.String(),
  /** Whether there is a console at the base URL. */
  console: Type.Boolean(),
  version: Type.String(),
})
export type Me = Static<typeof Me>
