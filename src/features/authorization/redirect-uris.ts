/** Which redirect URIs a client may have, and whether a request's is one of them (sign-in contract, 3.4). */

import { isLoopback } from '../../http/guard.ts'
import { clientUrlCharsMax } from '../../limits.ts'

/** Schemes of well-known clients whose redirect URIs have no domain in them. */
const knownSchemes = ['cursor', 'vscode', 'vscode-insiders']

/** What is wrong with a redirect URI; undefined if a client may have it. `schemes`: from `--redirect-scheme`. */
export function redirectUriProblem(uri: string, schemes: readonly string[]): string | undefined {
  if (uri.length > clientUrlCharsMax) return `has more than ${clientUrlCharsMax} characters`
  // A browser would remove or rewrite these, and so go elsewhere than the text says.
  if (/[\s\\\p{Cc}]/u.test(uri) || !URL.canParse(uri)) return 'is not a URL'
  const { protocol, username, password, hostname } = new URL(uri)
  if (uri.includes('#')) return 'must have no fragment'
  if (username !== '' || password !== '' || /^[a-z+.-]+:\/\/[^/?]*@/i.test(uri)) return 'must have no user'
  const scheme = protocol.slice(0, -1)
  if (scheme === 'https') return undefined
  if (scheme === 'http') {
    return isLoopbackHost(hostname) ? undefined : 'must be https, except on 127.0.0.1, [::1] and localhost'
  }
  if (scheme.includes('.') || knownSchemes.includes(scheme) || schemes.includes(scheme)) return undefined
  return `has the scheme ${scheme}, which is not allowed here; the operator can allow it with --redirect-scheme`
}

/** Equal to the letter; for loopback addresses the port may differ (RFC 8252, 7.3). */
export function isRegistered(uri: string, registered: readonly string[]): boolean {
  return registered.some((one) => one === uri || (isLoopbackUri(one) && withoutPort(one) === withoutPort(uri)))
}

/** Whether the redirect leads to a program on the user's own machine, which can be any program. */
export function isLoopbackUri(uri: string): boolean {
  if (!URL.canParse(uri)) return false
  const { protocol, hostname } = new URL(uri)
  return protocol === 'http:' && isLoopbackHost(hostname)
}

function isLoopbackHost(hostname: string): boolean {
  return isLoopback(hostname.replace(/^\[|\]$/g, ''))
}

/** The text without the port, so that the rest is still compared to the letter. */
function withoutPort(uri: string): string {
  return uri.replace(/^(http:\/\/(?:\[[^\]]*\]|[^/?:]*)):\d{1,5}(?=[/?]|$)/, '$1')
}

/** The redirect URI with these parameters added to its own. */
export function withParameters(uri: string, parameters: Readonly<Record<string, string | undefined>>): string {
  const added = new URLSearchParams(
    Object.entries(parameters).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, value] as [string, string]],
    ),
  )
  return `${uri}${uri.includes('?') ? '&' : '?'}${added}`
}

/** The source for `form-action`, which browsers also apply to redirects: the origin, or the scheme. */
export function formTarget(uri: string): string {
  const { protocol, origin } = new URL(uri)
  return protocol === 'https:' || protocol === 'http:' ? origin : protocol
}
