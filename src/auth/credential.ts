/**
 * The credential of a request: what the `Authorization` header says, read strictly (contract 2). The bearer
 * plugin alone would also read `?access_token=`, take `Bearerabc`, and know one spelling of the scheme.
 */

import { unauthorized } from '../errors.ts'

/** RFC 6750: the scheme in any case, spaces, one token. Two headers arrive joined by a comma, which is no token character. */
const credentialShape = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i

/** Throws `unauthorized`. */
export function readCredential(header: string | null): string {
  const credential = header === null ? undefined : credentialShape.exec(header)?.[1]
  if (credential === undefined) throw unauthorized()
  return credential
}

/** Where the bearer plugin has read the request too, the two readings must agree. Throws `unauthorized`. */
export function confirmCredential(header: string | null, bearer: string | undefined): void {
  const credential = readCredential(header)
  if (header?.startsWith('Bearer ') && bearer?.trimStart() !== credential) throw unauthorized()
}
