/** Which redirect URIs a client may have, and whether a request's is one of them (contract, 13.4). */

import { clientUrlCharsMax } from '../../limits.ts'
import { isUrl } from '../../schema/url-host.ts'

/** Schemes of well-known clients whose redirect URIs have no domain in them. */
const knownSchemes = ['cursor', 'vscode', 'vscode-insiders']

/** The problem with a redirect URI; undefined if a client may have it. `schemes`: from `--redirect-scheme`. */
export function redirectUriProblem(uri: string, schemes: readonly string[]): string | undefined {
  if (uri.length > clientUrlCharsMax) return `has more than ${clientUrlCharsMax} characters`
  // A browser would remove or rewrite these, and so go elsewhere than the text says.
  if (!/^[\x21-\x7e]+$/.test(uri) || uri.includes('\\') || !isUrl(uri)) return 'is not a URL of ASCII characters'
  const { protocol, username, password, hostname, searchParams } = new URL(uri)
  if (uri.includes('#')) return 'must have no fragment'
  if (username !== '' || password !== '' || /^[a-z+.-]+:\/\/[^/?]*@/i.test(uri)) return 'must have no user'
  for (const name of ['code', 'state', 'iss', 'error']) {
    if (searchParams.has(name)) return `must not have the parameter ${name}, which postern adds`
  }
  const scheme = protocol.slice(0, -1)
  // Written out: browsers also accept forms without slashes, and resolve them elsewhere.
  const isWeb = scheme === 'https' || scheme === 'http'
  if (isWeb && !/^https?:\/\/(?:[A-Za-z0-9.-]+|\[::1\])(?::\d{1,5})?(?:[/?]|$)/.test(uri))
    return 'must have a host of letters, digits, dots and hyphens, or [::1]'
  if (scheme === 'https') return undefined
  if (scheme === 'http') {
    // As written: `127.1` is the same address, and not what people read.
    return isLoopbackHost(hostname) && uri.toLowerCase().startsWith(`http://${hostname}`)
      ? undefined
      : 'must be https, except on 127.0.0.1, [::1] and localhost'
  }
  if (scheme.includes('.') || knownSchemes.includes(scheme) || schemes.includes(scheme)) return undefined
  return `has the scheme ${scheme}, which is not allowed here; the operator can allow it with --redirect-scheme`
}

/** Equal to the letter; for loopback addresses the port may differ (RFC 8252, 7.3). */
export function isRegistered(uri: string, registered: readonly string[]): boolean {
  if (!isUrl(uri)) return false
  return registered.some((one) => one === uri || (isLoopbackUri(one) && withoutPort(one) === withoutPort(uri)))
}

/** Whether the redirect leads to a program on the user's own machine, which can be any program. */
export function isLoopbackUri(uri: string): boolean {
  if (!isUrl(uri)) return false
  const { protocol, hostname } = new URL(uri)
  return protocol === 'http:' && isLoopbackHost(hostname)
}

function isLoopbackHost(hostname: string): boolean {
  return hostname === '127.0.0.1' || hostname === '[::1]' || hostname === 'localhost'
}

/** The text without the port, so that the rest is still compared to the letter. */
function withoutPort(uri: string): string {
  return uri.replace(/^(http:\/\/(?:\[[^\]]*\]|[^/?:]*)):\d{1,5}(?=[/?]|$)/, '$1')
}

export function withParameters(uri: string, parameters: Readonly<Record<string, string>>): string {
  return `${uri}${uri.includes('?') ? '&' : '?'}${new URLSearchParams(parameters)}`
}

/** The source for `form-action`, which browsers also apply to redirects: the origin, or the scheme. */
export function formTarget(uri: string): string {
  const { protocol, origin } = new URL(uri)
  return protocol === 'https:' || protocol === 'http:' ? origin : protocol
}
