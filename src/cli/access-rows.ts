/** Keys and grants as rows of a table, whether they were read from the store or over HTTP. */

import { isOrganizationUser } from '../model/names.ts'

export const keyHeading = ['ID', 'USER', 'KIND', 'CREATED', 'STATE', 'NAME']

interface ShownKey {
  readonly id: string
  readonly userId: string
  readonly operator: boolean
  readonly createdAt: string
  readonly revokedAt: string | null
  readonly name: string
}

export function keyRow({ id, userId, operator, createdAt, revokedAt, name }: ShownKey): string[] {
  const kind = operator ? 'operator' : isOrganizationUser(userId) ? 'organization' : 'user'
  return [id, userId, kind, createdAt, revokedAt === null ? 'active' : `revoked ${revokedAt}`, name]
}

export const grantHeading = ['ID', 'USER', 'CLIENT', 'ENDPOINT', 'TOOLS', 'EXPIRES']

interface ShownGrant {
  readonly id: string
  readonly userId: string
  readonly client: string
  readonly namespace: string
  /** Null for the endpoint of the namespace, or of a view. */
  readonly connectionId: string | null
  readonly view: string | null
  /** Null for all. */
  readonly tools: readonly string[] | null
  readonly expiresAt: string
}

export function grantRow(grant: ShownGrant): string[] {
  const { id, userId, client, namespace, connectionId, view, tools, expiresAt } = grant
  const endpoint = [namespace, connectionId ?? 'mcp', view].filter((part) => part !== null).join('/')
  return [id, userId, client, endpoint, tools === null ? 'all' : tools.join(','), expiresAt]
}
