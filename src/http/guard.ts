/**
 * Who may speak to us through a browser (contract 1). A page of another site can make a browser send
 * requests here, under a name of its own that points to this machine; so a request's `Host` must be one
 * of ours and its `Origin` absent or allowed.
 */

import { PlatformError } from '../errors.ts'

export interface Guard {
  /**
   * The CORS headers of the answer, or undefined for a request without an `Origin`. Throws `forbidden` with the flag
   * to use.
   */
  check(headers: Headers): Record<string, string> | undefined
  /** The answer to a preflight, or undefined for any other request; `corsHeaders` as `check` gave them. */
  preflight(request: Request, corsHeaders: Record<string, string>): Response | undefined
}

export interface GuardOptions {
  /** The address we listen on. */
  readonly host: string
  readonly baseUrl: string
  /** Origins that may call from a browser; none by default. */
  readonly corsOrigins: readonly string[]
  /** The addresses of this machine: they are bound too when `host` is the wildcard address. */
  readonly localAddresses: readonly string[]
}

const allowedHeaders = /^(?:authorization|content-type|accept|last-event-id|mcp-[a-z0-9-]+|x-stainless-[a-z0-9-]+)$/
const exposedHeaders = 'etag, mcp-session-id, retry-after, www-authenticate, x-request-id'

export function createGuard({ host, baseUrl, corsOrigins, localAddresses }: GuardOptions): Guard {
  const names = new Set(['localhost', bareHost(host), new URL(baseUrl).hostname].map(bareHost))
  if (host === '0.0.0.0' || host === '::') for (const address of localAddresses) names.add(bareHost(address))
  const origins = new Set([...corsOrigins, new URL(baseUrl).origin])
  /** Header values that have passed: the same few come with every request. */
  const passed = new Set<string>()

  function isSelf(hostHeader: string): boolean {
    const name = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::\d{1,5})?$/i.exec(hostHeader)?.[1]?.toLowerCase()
    return name !== undefined && (names.has(bareHost(name)) || isLoopback(bareHost(name)))
  }

  return {
    check(headers) {
      const hostHeader = headers.get('host') ?? ''
      if (!passed.has(hostHeader)) {
        if (!isSelf(hostHeader)) {
          throw new PlatformError('forbidden', 'Host: not a name of this server; to allow it, set it with --base-url')
        }
        if (passed.size < 100) passed.add(hostHeader)
      }
      const origin = headers.get('origin')
      if (origin === null) return undefined
      if (!origins.has(origin)) {
        throw new PlatformError(
          'forbidden',
          'Origin: not allowed to call this server; to allow it, add it with --cors-origin',
        )
      }
      if (!corsOrigins.includes(origin)) return {}
      return {
        'access-control-allow-origin': origin,
        'access-control-expose-headers': exposedHeaders,
        vary: 'origin',
      }
    },
    preflight(request, corsHeaders) {
      if (request.method !== 'OPTIONS' || !request.headers.has('access-control-request-method')) return undefined
      const wanted = (request.headers.get('access-control-request-headers') ?? '').toLowerCase().split(',')
      return new Response(null, {
        status: 204,
        headers: {
          ...corsHeaders,
          'access-control-allow-methods': 'GET, POST, PUT, DELETE',
          'access-control-allow-headers': wanted
            .map((name) => name.trim())
            .filter((name) => allowedHeaders.test(name))
            .join(', '),
          'access-control-max-age': '600',
        },
      })
    },
  }
}

function bareHost(host: string): string {
  return host.replace(/^\[|\]$/g, '').toLowerCase()
}

/** Of a name without brackets. */
export function isLoopback(name: string): boolean {
  return name === 'localhost' || name === '::1' || /^127(?:\.\d{1,3}){3}$/.test(name)
}
