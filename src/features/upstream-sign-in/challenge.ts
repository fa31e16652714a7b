/** Reads what a server's challenge asks for (RFC 9110, 11.6.1; RFC 6750, 3; RFC 9728, 5.1). */

import { hasShortHost } from '../../schema/url-host.ts'

/** Ours: characters of the `WWW-Authenticate` header of a server; ordinary ones have some hundred. Past it: the server asks for nothing in particular. */
export const challengeCharsMax = 4096

/** Reads a `WWW-Authenticate` header, whose challenges may be of several schemes. */
export async function readChallenge(header: string) {
  const { extractWWWAuthenticateParams } = await import('@modelcontextprotocol/client')
  const bearer = header.length > challengeCharsMax ? '' : bearerIn(header)
  // The package makes a URL of it.
  const bounded = bearer.replace(/(resource_metadata\s*=\s*"?)([^",\s]*)/gi, (whole, name: string, url: string) =>
    hasShortHost(url) ? whole : name,
  )
  const response = new Response(null, { status: 401, headers: { 'www-authenticate': bounded } })
  const { resourceMetadataUrl, scope, error } = extractWWWAuthenticateParams(response)
  return { metadataUrl: resourceMetadataUrl?.href, scope, error }
}

/** The Bearer challenge alone, because the package reads only the first one. '' if there is none. */
export function bearerIn(header: string): string {
  // The header at its commas, but for those in quotes.
  const split = header.match(/(?:[^,"]|"(?:[^"\\]|\\.)*"?)+/g) ?? []
  const parts = split.map((part) => part.trim()).filter((part) => part !== '')
  const start = parts.findIndex((part) => /^bearer(?:\s|$)/i.test(part))
  if (start < 0) return ''
  // Parameters have no space before their `=`; a scheme has no `=`, or one after a space.
  const end = parts.findIndex((part, index) => index > start && !/^[^\s=]+\s*=/.test(part))
  return parts.slice(start, end < 0 ? undefined : end).join(', ')
}
