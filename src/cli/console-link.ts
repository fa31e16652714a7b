/** A link that opens the console as the user of a key, once: for the sample, and for `postern dev`. */

import { apiKeyDigest } from '../auth/api-key.ts'
import { createDirectory } from '../auth/directory.ts'
import { createExpiringRecords } from '../auth/expiring-records.ts'
import { systemClock } from '../clock.ts'
import type { LoginLink } from '../features/sign-in/sign-in-handlers.ts'
import { isSecureUrl } from '../http/guard.ts'
import { loginLinkSeconds } from '../limits.ts'
import type { DataFolder } from '../maintenance/data-folder.ts'
import { auditCommand } from './audit.ts'

interface Linked {
  readonly url: string
  readonly folder: Pick<DataFolder, 'store' | 'secrets'>
  readonly dataPath: string
  readonly hasConsole: boolean
}

/** Undefined where there is no console, or none over this URL, or no such key. */
export async function consoleLink(
  { url, folder: { store, secrets }, dataPath, hasConsole }: Linked,
  key: string | undefined,
): Promise<string | undefined> {
  if (key === undefined || !hasConsole || !isSecureUrl(url)) return undefined
  const directory = await createDirectory(store).current()
  const record = await directory.apiKeyByDigest(apiKeyDigest(secrets.apiKeyPepper, key))
  if (record === undefined || record.revokedAt !== null) return undefined
  const { keyId, userId } = record
  const records = createExpiringRecords(store, secrets.signInKey, systemClock)
  const secret = await records.add('login link', { keyId } satisfies LoginLink, loginLinkSeconds)
  await auditCommand(dataPath, 'signin.link_created', { keyId, userId })
  return `${url}/signin?link=${secret}`
}
