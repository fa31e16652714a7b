/**
 * The credential of a request. The bearer plugin hands over what follows the scheme; what it lets through
 * besides is settled here: it also reads `?access_token=`, takes `Bearerabc`, and knows one spelling of
 * the scheme. The header alone counts (contract 2).
 */

import { unauthorized } from '../errors.ts'

/** RFC 6750: the scheme in any case, spaces, one token. Two headers arrive joined by a comma, which is no token character. */
const credentialShape = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i

/** Throws `unauthorized`. `bearer` is the plugin's reading, undefined where it has none. */
export function readCredential(header: string | null, bearer: string | undefined): string {
  const match = header === null ? null : credentialShape.exec(header)
  const credential = match?.[1]
  if (credential === undefined) throw unauthorized()
  // Where both read the header, they must agree; a disagreement means the header is not what it seems.
  if (bearer !== undefined && header?.startsWith('Bearer ') && bearer.trimStart() !== credential) throw unauthorized()
  return credential
}
