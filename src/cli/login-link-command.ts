/**
 * `postern login-link`: a link that signs somebody in to the pages as the user of an API key, once.
 *
 * It is for people who should not have to paste a key into a browser, and for those who have none. The key itself is
 * not in the link: the store holds a hash of the link's secret, and the key's id with it.
 */

import { createExpiringRecords } from '../auth/expiring-records.ts'
import { systemClock } from '../clock.ts'
import { CommandError } from '../errors.ts'
import type { LoginLink } from '../features/sign-in/sign-in-handlers.ts'
import { loginLinkSeconds } from '../limits.ts'
import { openExistingDataFolder, type Place } from '../maintenance/data-folder.ts'
import { textOf } from '../storage/bytes.ts'
import { readApiKey } from '../storage/directory-records.ts'
import { keyOf } from '../storage/keys.ts'
import { auditCommand } from './audit.ts'
import type { Terminal } from './terminal.ts'

/** Prints the link. Throws CommandError for an unknown or revoked key, and for a folder that no server ever used. */
export async function loginLink(keyId: string, place: Place, { stdout, stderr }: Terminal): Promise<void> {
  const { data } = place
  await using folder = await openExistingDataFolder(place, stderr)
  const { store, secrets } = folder
  const stored = await store.get(keyOf('apiKey', keyId))
  const key = stored === undefined ? undefined : readApiKey(stored)
  if (key === undefined) throw new CommandError(`there is no key ${JSON.stringify(keyId)}: see \`postern keys list\``)
  if (key.revokedAt !== null) throw new CommandError(`${keyId} is revoked: create a key, or name another one`)
  // The command has no flags of the server: it uses the URL under which the last start served.
  const baseUrl = await store.get(keyOf('baseUrl'))
  if (baseUrl === undefined) throw new CommandError(`no server has used ${data} yet: run \`postern serve\` first`)
  const records = createExpiringRecords(store, secrets.signInKey, systemClock)
  const secret = await records.add('login link', { keyId } satisfies LoginLink, loginLinkSeconds)
  await auditCommand(data, 'signin.link_created', { keyId, userId: key.userId })
  // The link alone on stdout, for `| pbcopy` and scripts. The sentence goes to stderr.
  stdout(`${textOf(baseUrl).replace(/\/$/, '')}/signin?link=${secret}\n`)
  stderr(`It signs in as ${key.userId}, once, within ten minutes.\n`)
}
