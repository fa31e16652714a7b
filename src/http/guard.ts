/**
 * Protects against requests that another site makes a browser send here (contract, 1.9), among them DNS rebinding: a
 * name of that site that resolves to this machine. A request's `Host` must be one of our names, and its `Origin` absent
 * or allowed.
 */

import { PlatformError } from '../errors.ts'

export const notOurName = 'Host: not a name of this server; to allow it, set it with --base-url'
const notOurOrigin = 'Origin: not allowed to call this server; to allow it, add it with --cors-origin'

export type Guard = ReturnType<typeof createGuard>

export interface GuardOptions {
  /** The address that the server listens on. */
  readonly host: string
  readonly baseUrl: string
  /** Origins that may call from a browser; none by default. */
  readonly corsOrigins: readonly string[]
  /** This machine's addresses, which are all listened on if `host` is the wildcard address. */
  readonly localAddresses: readonly string[]
  /** Whether what has this URL is public, so that pages of any origin may read it. None by default. */
  readonly isPublic?: (url: string) => boolean
}

const allowedHeaders = /^(?:authorization|content-type|accept|last-event-id|mcp-[a-z0-9-]+|x-stainless-[a-z0-9-]+)$/
const exposedHeaders = 'etag, mcp-session-id, retry-after, www-authenticate, x-request-id'

export function createGuard({ host, baseUrl, corsOrigins, localAddresses, isPublic }: GuardOptions) {
  const names = new Set(['localhost', bareHost(host), new URL(baseUrl).hostname].map(bareHost))
  if (host === '0.0.0.0' || host === '::') for (const address of localAddresses) names.add(bareHost(address))
  const origins = new Set([...corsOrigins, new URL(baseUrl).origin])
  /** Host header values that were accepted, a hundred at most: the same few come with every request. */
  const passed = new Set<string>()

  function isSelf(hostHeader: string): boolean {
    const [, host, port = '0'] = /^(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(?::(\d{1,5}))?$/i.exec(hostHeader) ?? []
    const name = host?.toLowerCase()
    return name !== undefined && Number(port) <= 65_535 && (names.has(bareHost(name)) || isLoopback(bareHost(name)))
  }

  return {
    /** The CORS headers; undefined without `Origin`. `url`: of the request. Throws `forbidden`, naming the flag. */
    check(headers: Headers, url = ''): Record<string, string> | undefined {
      const hostHeader = headers.get('host') ?? ''
      if (!passed.has(hostHeader)) {
        if (!isSelf(hostHeader)) throw new PlatformError('forbidden', notOurName)
        if (passed.size < 100) passed.add(hostHeader)
      }
      const origin = headers.get('origin')
      if (origin === null) return undefined
      if (isPublic?.(url) === true) return { 'access-control-allow-origin': '*' }
      if (!origins.has(origin)) throw new PlatformError('forbidden', notOurOrigin)
      if (!corsOrigins.includes(origin)) return {}
      return {
        'access-control-allow-origin': origin,
        'access-control-expose-headers': exposedHeaders,
        vary: 'origin',
      }
    },
  }
}

/** Ours: headers that a preflight asks for. Past it: the others are not allowed. */
const preflightHeadersMax = 100

/** The response to a CORS preflight; undefined for any other request. `corsHeaders`: from the guard's `check`. */
export function preflight(request: Request, corsHeaders: Record<string, string>): Response | undefined {
  // A public URL answers any OPTIONS.
  const isAsked = request.headers.has('access-control-request-method')
  const isPublic = corsHeaders['access-control-allow-origin'] === '*'
  if (request.method !== 'OPTIONS' || !(isAsked || isPublic)) return undefined
  const wanted = (request.headers.get('access-control-request-headers') ?? '')
    .toLowerCase()
    .split(',', preflightHeadersMax)
  const allowed = wanted.map((name) => name.trim()).filter((name) => allowedHeaders.test(name))
  return new Response(null, {
    status: 204,
    headers: {
      ...corsHeaders,
      // A public URL is a registry's.
      'access-control-allow-methods': isPublic ? 'GET' : 'GET, POST, PUT, PATCH, DELETE',
      // Contract 20.13 wants an `ETag` of OPTIONS, too, whose answer never changes.
      ...(isPublic && { 'referrer-policy': 'no-referrer', etag: '"options"' }),
      'access-control-allow-headers': allowed.join(', '),
      'access-control-max-age': '600',
    },
  })
}

function bareHost(host: string): string {
  return host.replace(/^\[|\]$/g, '').toLowerCase()
}

/** Whether nobody can listen in on the way to a URL: https, or this machine. */
export function isSecureUrl(url: string): boolean {
  const { protocol } = new URL(url)
  return protocol === 'https:' || (protocol === 'http:' && isLocalUrl(url))
}

/** Whether the host of a URL is a loopback address of this machine. */
export function isLocalUrl(url: string): boolean {
  return isLoopback(bareHost(new URL(url).hostname))
}

/** `name`: without brackets. */
export function isLoopback(name: string): boolean {
  return name === 'localhost' || name === '::1' || /^127(?:\.\d{1,3}){3}$/.test(name)
}
