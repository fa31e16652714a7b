/**
 * The credential of a request: what the `Authorization` header says, read strictly (contract 2). The bearer
 * plugin alone would also read `?access_token=`, take `Bearerabc`, and know one spelling of the scheme.
 */

import { unauthorized } from '../errors.ts'

/**
 * RFC 6750: the scheme in any case, spaces, one token. Two headers arrive joined by a comma, which is no token
 * character.
 */
const credentialShape = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i

/** Throws `unauthorized`. */
export function readCredential(header: string | null): string {
  const credential = header === null ? undefined : credentialShape.exec(header)?.[1]
  if (credential === undefined) throw unauthorized()
  return credential
}

/** The bearer plugin has read the header too, and more leniently: does it come to another credential? */
export function contradictsBearer(header: string | null, bearer: string | undefined): boolean {
  if (header?.startsWith('Bearer ') !== true) return false
  const credential = credentialShape.exec(header)?.[1]
  return credential !== undefined && bearer?.trimStart() !== credential
}
