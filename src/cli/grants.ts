/** `postern grants list | revoke`: what users have allowed clients that signed in. The server may be running. */

import { CommandError } from '../errors.ts'
import { endGrant, listGrants } from '../features/authorization/grants.ts'
import { openExistingDataFolder } from '../maintenance/data-folder.ts'
import { auditCommand } from './audit.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

/** Prints all grants that have not expired, as a table. */
export async function listGrantsCommand(
  { data }: { readonly data: string },
  now: Date,
  { stdout, stderr }: Terminal,
): Promise<void> {
  const { store } = await openExistingDataFolder(data, stderr)
  const grants = await listGrants(store, now.getTime() / 1000)
  await store.close()
  const rows = grants.map(({ grantId, userId, client, namespace, connectionId, tools, expires }) => [
    grantId,
    userId,
    client,
    `${namespace}/${connectionId}`,
    tools === undefined ? 'all' : tools.join(','),
    new Date(expires * 1000).toISOString(),
  ])
  stdout(table([['ID', 'USER', 'CLIENT', 'CONNECTION', 'TOOLS', 'EXPIRES'], ...rows]))
}

/** Ends a grant with all its tokens. Throws CommandError for an unknown id. */
export async function revokeGrantCommand(
  grantId: string,
  { data }: { readonly data: string },
  now: Date,
  { stdout, stderr }: Terminal,
): Promise<void> {
  const { store } = await openExistingDataFolder(data, stderr)
  const found = await endGrant(store, grantId, Math.floor(now.getTime() / 1000))
  await store.close()
  if (!found) throw new CommandError(`there is no grant ${JSON.stringify(grantId)}: see \`postern grants list\``)
  await auditCommand(data, 'grant.ended', { grantId, reason: 'revoked by operator' })
  stdout(`${grantId} is revoked, and every token of it\n`)
}
