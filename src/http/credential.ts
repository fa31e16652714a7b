/**
 * Reads the credential from the `Authorization` header, strictly (contract, 2.2). The framework's bearer plugin is too
 * lenient for this: it also accepts `?access_token=` and `Bearerabc`, and only one spelling of the scheme.
 */

/**
 * RFC 6750: the scheme in any case, spaces, one token. Two headers arrive joined by a comma, which is not a token
 * character, so they do not match.
 */
const credentialShape = /^bearer +([A-Za-z0-9._~+/-]+=*)$/i

/** The API key or token; undefined if the header has none. */
export function readCredential(header: string): string | undefined {
  return credentialShape.exec(header)?.[1]
}

/** Whether the bearer plugin, which parses more leniently, found another credential in the header. */
export function contradictsBearer(header: string | null, bearer: string | undefined): boolean {
  if (header?.startsWith('Bearer ') !== true) return false
  const credential = readCredential(header)
  return credential !== undefined && bearer?.trimStart() !== credential
}
