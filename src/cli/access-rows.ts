/** Keys, grants and signing keys as rows of a table, whether they were read from the store or over HTTP. */

import { isOrganizationUser } from '../model/names.ts'
import type { ApiKeyPage, GrantPage } from '../model/organization.ts'
import type { SigningKeyList } from '../model/token.ts'

export const keyHeading = ['ID', 'USER', 'KIND', 'CREATED', 'STATE', 'NAME']

type ShownKey = ApiKeyPage['apiKeys'][number]

export function keyRow({ id, userId, operator, createdAt, revokedAt, name }: ShownKey): string[] {
  const kind = operator ? 'operator' : isOrganizationUser(userId) ? 'organization' : 'user'
  return [id, userId, kind, createdAt, revokedAt === null ? 'active' : `revoked ${revokedAt}`, name]
}

export const grantHeading = ['ID', 'USER', 'CLIENT', 'ENDPOINT', 'TOOLS', 'EXPIRES']

export function grantRow(grant: GrantPage['grants'][number]): string[] {
  const { id, userId, client, namespace, connectionId, view, tools, expiresAt } = grant
  const endpoint = [namespace, connectionId ?? 'mcp', view].filter((part) => part !== null).join('/')
  return [id, userId, client, endpoint, tools === null ? 'all' : tools.join(','), expiresAt]
}

export const signingKeyHeading = ['KID', 'STATE', 'SINCE', '']

export function signingKeyRow({ kid, state, since, acceptedUntil }: SigningKeyList['keys'][number]): string[] {
  const ending = acceptedUntil === null ? 'over' : `accepted until ${acceptedUntil}`
  return [kid, state, since, state === 'retired' ? ending : '']
}
