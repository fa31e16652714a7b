/** A link that opens the console as the user of a key, once: for the sample, and for `postern dev`. */

import { apiKeyDigest } from '../auth/api-key.ts'
import { createDirectory } from '../auth/directory.ts'
import { createExpiringRecords } from '../auth/expiring-records.ts'
import { systemClock } from '../clock.ts'
import type { LoginLink } from '../features/sign-in/sign-in-handlers.ts'
import { isSecureUrl } from '../http/guard.ts'
import { loginLinkSeconds } from '../limits.ts'
import type { DataFolder } from '../maintenance/data-folder.ts'

interface Linked {
  readonly url: string
  readonly folder: Pick<DataFolder, 'store' | 'secrets'>
  readonly hasConsole: boolean
}

/**
 * Undefined where there is no console, or none over this URL, or no such key. The audit log has the sign-in and not the
 * link: the keys of the sample are public.
 */
export async function consoleLink(
  { url, folder: { store, secrets }, hasConsole }: Linked,
  key: string | undefined,
): Promise<string | undefined> {
  if (key === undefined || !hasConsole || !isSecureUrl(url)) return undefined
  const directory = await createDirectory(store).current()
  const record = await directory.apiKeyByDigest(apiKeyDigest(secrets.apiKeyPepper, key))
  if (record === undefined || record.revokedAt !== null) return undefined
  const records = createExpiringRecords(store, secrets.signInKey, systemClock)
  const secret = await records.add('login link', { keyId: record.keyId } satisfies LoginLink, loginLinkSeconds)
  return `${url}/signin?link=${secret}`
}
