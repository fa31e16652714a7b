/** `postern login-link` and `postern grants list | revoke`: signing people in, and what they have allowed clients. */

import { listApiKeys } from '../auth/api-key.ts'
import { createExpiringRecords } from '../auth/expiring-records.ts'
import { endGrant, listGrants, shownGrant } from '../auth/grants.ts'
import { secondsOf, systemClock } from '../clock.ts'
import { CommandError } from '../errors.ts'
import type { LoginLink } from '../features/sign-in/sign-in-handlers.ts'
import { loginLinkSeconds } from '../limits.ts'
import { openExistingDataFolder, type Place } from '../maintenance/data-folder.ts'
import { readApiKey } from '../storage/directory-records.ts'
import { keyOf } from '../storage/keys.ts'
import { grantHeading, grantRow } from './access-rows.ts'
import { auditCommand } from './audit.ts'
import { storedBaseUrl } from './first-start.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

/**
 * Prints a link that signs somebody in as the user of an API key, once: for people who should not have to paste a key
 * into a browser, and for those who have none. The key itself is not in it: the store has a hash of the link's secret,
 * and the key's id. Throws CommandError for an unknown or revoked key, and for a folder that no server ever used.
 */
export async function loginLink(keyId: string, place: Place, { stdout, stderr }: Terminal): Promise<void> {
  const { data } = place
  await using folder = await openExistingDataFolder(place, stderr)
  const { store, secrets } = folder
  const stored = await store.get(keyOf('apiKey', keyId))
  const key = stored === undefined ? undefined : readApiKey(stored)
  if (key === undefined) throw new CommandError(`there is no key ${JSON.stringify(keyId)}: see \`postern keys list\``)
  if (key.revokedAt !== null) throw new CommandError(`${keyId} is revoked: create a key, or name another one`)
  // The command has no flags of the server: it uses the URL under which the last start served.
  const baseUrl = await storedBaseUrl(store)
  if (baseUrl === undefined) throw new CommandError(`postern has not served ${data} yet: run \`postern serve\` first`)
  const records = createExpiringRecords(store, secrets.signInKey, systemClock)
  const secret = await records.add('login link', { keyId } satisfies LoginLink, loginLinkSeconds)
  await auditCommand(data, 'signin.link_created', { keyId, userId: key.userId })
  // The link alone on stdout, for `| pbcopy` and scripts. The sentence goes to stderr.
  stdout(`${baseUrl.replace(/\/$/, '')}/signin?link=${secret}\n`)
  stderr(`It signs in as ${key.userId}, once, within ten minutes.\n`)
}

/** Prints all grants that have not expired, as a table. Their tokens are not in it, as the store holds none. */
export async function listGrantsCommand(place: Place, { stdout, stderr }: Terminal): Promise<void> {
  const { store } = await openExistingDataFolder(place, stderr)
  const live = new Set(
    (await listApiKeys(store)).flatMap(({ keyId, revokedAt }) => (revokedAt === null ? [keyId] : [])),
  )
  const all = await listGrants(store, secondsOf(systemClock))
  await store.close()
  // A grant ends when the API key of the user who allowed it is revoked.
  const rows = all.filter(({ keyId }) => live.has(keyId)).map((grant) => grantRow(shownGrant(grant)))
  stdout(table([grantHeading, ...rows]))
}

/** Ends a grant with all its tokens. The user may allow the client again. Throws CommandError for an unknown id. */
export async function revokeGrantCommand(place: Place, { stdout, stderr }: Terminal, grantId: string): Promise<void> {
  const { store } = await openExistingDataFolder(place, stderr)
  const found = await endGrant(store, grantId, secondsOf(systemClock))
  await store.close()
  if (!found) throw new CommandError(`there is no grant ${JSON.stringify(grantId)}: see \`postern grants list\``)
  await auditCommand(place.data, 'grant.ended', { grantId, reason: 'revoked by operator' })
  stdout(`${grantId} is revoked, and every token of it\n`)
}
