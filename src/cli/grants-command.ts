/** `postern grants list | revoke`: what users have allowed clients that signed in. The server may be running. */

import { listApiKeys } from '../auth/api-key.ts'
import { endGrant, listGrants } from '../auth/grants.ts'
import { secondsOf, systemClock } from '../clock.ts'
import { CommandError } from '../errors.ts'
import { openExistingDataFolder, type Place } from '../maintenance/data-folder.ts'
import { auditCommand } from './audit.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

/**
 * Prints all grants that have not expired, as a table: for whom, which client, and what it may access. Tokens are not
 * in it, as the store holds none: a refresh token is computed from its grant and from how often it was replaced.
 */
export async function listGrantsCommand(place: Place, { stdout, stderr }: Terminal): Promise<void> {
  const { store } = await openExistingDataFolder(place, stderr)
  const live = new Set(
    (await listApiKeys(store)).flatMap(({ keyId, revokedAt }) => (revokedAt === null ? [keyId] : [])),
  )
  const all = await listGrants(store, secondsOf(systemClock))
  await store.close()
  // A grant ends when the API key of the user who allowed it is revoked.
  const rows = all
    .filter(({ keyId }) => live.has(keyId))
    .map(({ grantId, userId, client, namespace, connectionId, tools, expires }) => [
      grantId,
      userId,
      client,
      `${namespace}/${connectionId}`,
      tools === undefined ? 'all' : tools.join(','),
      new Date(expires * 1000).toISOString(),
    ])
  stdout(table([['ID', 'USER', 'CLIENT', 'CONNECTION', 'TOOLS', 'EXPIRES'], ...rows]))
}

/**
 * Ends a grant with all its tokens: access tokens are refused by every replica from its next request on, and the
 * refresh token at its next use. The user may allow the same client again. Throws CommandError for an unknown id. */
export async function revokeGrantCommand(grantId: string, place: Place, { stdout, stderr }: Terminal): Promise<void> {
  const { store } = await openExistingDataFolder(place, stderr)
  const found = await endGrant(store, grantId, secondsOf(systemClock))
  await store.close()
  if (!found) throw new CommandError(`there is no grant ${JSON.stringify(grantId)}: see \`postern grants list\``)
  await auditCommand(place.data, 'grant.ended', { grantId, reason: 'revoked by operator' })
  stdout(`${grantId} is revoked, and every token of it\n`)
}
