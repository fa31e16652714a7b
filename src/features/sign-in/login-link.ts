/** Login links: an operator gives somebody a link that signs in as the user of an API key, once. */

import type { ExpiringRecords } from '../../auth/expiring-records.ts'
import { loginLinkSeconds } from '../../limits.ts'
import type { Store } from '../../storage/store.ts'

/** The record behind a login link. */
export interface LoginLink {
  readonly keyId: string
}

/** The URL. It opens a page whose button signs in, so that previews of the link do not use it up. */
export async function createLoginLink(
  { store, records, baseUrl }: { readonly store: Store; readonly records: ExpiringRecords; readonly baseUrl: string },
  keyId: string,
): Promise<string> {
  const link: LoginLink = { keyId }
  const { secret, entry } = records.create('login link', link, loginLinkSeconds)
  await store.commit({ puts: [entry], deletes: await records.expired() })
  return `${baseUrl.replace(/\/$/, '')}/signin?link=${secret}`
}
