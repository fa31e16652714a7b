/** Organizations, namespaces, roles and API keys (contract 2). */

import { type Static, Type } from '@sinclair/typebox'
import { apiKeyNameCharsMax } from '../limits.ts'
import { OrganizationId, Slug, UserId } from './names.ts'

const closed = { additionalProperties: false } as const

export const Role = Type.Union([Type.Literal('owner'), Type.Literal('admin'), Type.Literal('member')])
export type Role = Static<typeof Role>

export const Organization = Type.Object({ organizationId: OrganizationId, name: Type.String() }, closed)
export type Organization = Static<typeof Organization>

/** A namespace is owned by an organization or by a user, never by both. */
export const Namespace = Type.Union([
  Type.Object({ namespace: Slug, organizationId: OrganizationId }, closed),
  Type.Object({ namespace: Slug, userId: UserId }, closed),
])
export type Namespace = Static<typeof Namespace>

export const ApiKeyName = Type.String({
  pattern: `^[^\\u0000-\\u001f\\u007f]{1,${apiKeyNameCharsMax}}$`,
  errorMessage: `must be 1 to ${apiKeyNameCharsMax} characters without control characters`,
})

/** The record of an API key, without its text: the store finds the record by a keyed hash. Times are ISO 8601. */
export const ApiKey = Type.Object(
  {
    keyId: Type.String(),
    name: Type.Union([ApiKeyName, Type.Null()]),
    userId: UserId,
    operator: Type.Boolean(),
    createdAt: Type.String(),
    revokedAt: Type.Union([Type.String(), Type.Null()]),
  },
  closed,
)
export type ApiKey = Static<typeof ApiKey>
