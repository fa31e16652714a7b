/**
 * Sends requests to MCP servers over connections that are kept for a while. It does not use the runtime's fetch, which
 * allows 256 concurrent requests in all, open streams included.
 */

import { getCACertificates } from 'node:tls'
import { LRUCache } from 'lru-cache'
import { createFairness } from '../fairness/fairness.ts'
import type { DestinationOf, ResolvedAddress } from './addresses.ts'
import { type ConnectionPool, createConnectionPool } from './connection-pool.ts'
import { DeadlineClock } from './deadline-clock.ts'
import { Exchange, type UpstreamFairness } from './exchange.ts'
import type { openConnection } from './open-connection.ts'
import { type Upstream, UpstreamError, type UpstreamRequest, type UpstreamResponse } from './upstream.ts'

/** Upstreams whose pool of connections is kept, for seconds. Past it: the least recently used pool is evicted. */
const upstreamPoolsMax = 1000

/** Called for each request with its outcome (the status, or the kind of the error) and the seconds until then. */
export type ObserveUpstream = (outcome: string, seconds: number) => void

export interface UpstreamOptions {
  /** Certificate authorities, in PEM, that are trusted in addition to the machine's. */
  readonly authorities?: readonly string[]
  /** Our name in `Via` (RFC 9110, 7.6.3), by which loops are detected. */
  readonly pseudonym?: string
  /** Responses in memory and requests in progress are counted against this. */
  readonly fairness?: UpstreamFairness
  readonly observe?: ObserveUpstream | undefined
  /** For tests, which have no network. */
  readonly open?: typeof openConnection
}

/** Requests as described above, with `observe` called for each. */
export function createUpstream(destinationOf: DestinationOf, options: UpstreamOptions = {}): Upstream {
  const { fairness = createFairness(), observe, pseudonym = 'postern', authorities = [], open } = options
  /** The TLS option replaces the machine's authorities, so they are included. */
  const trusted = authorities.length === 0 ? undefined : [...getCACertificates('default'), ...authorities]
  const kept = new LRUCache<string, ConnectionPool>({ max: upstreamPoolsMax, dispose: (sockets) => sockets.close() })
  /** By URL: most requests repeat one, and skip parsing it and checking its address while the route is valid. */
  const routes = new LRUCache<string, UpstreamRoute>({ max: upstreamPoolsMax })
  const clock = new DeadlineClock()
  const own = `1.1 ${pseudonym}`

  /** The pool for an origin at one address. Separate per origin, because the certificate is checked for its name. */
  function socketsTo({ protocol, origin, port }: URL, { host, address }: ResolvedAddress): ConnectionPool {
    const name = `${origin} ${address}`
    const known = kept.get(name)
    if (known !== undefined) return known
    const isTls = protocol === 'https:'
    const to = {
      address,
      port: Number(port || (isTls ? 443 : 80)),
      certified: isTls ? host : undefined,
      authorities: trusted,
    }
    const sockets = createConnectionPool(to, open)
    kept.set(name, sockets)
    return sockets
  }

  async function findAndSend(request: UpstreamRequest, from: number): Promise<UpstreamResponse> {
    const target = new URL(request.url)
    const destination = await destinationOf(target, request)
    const sockets = socketsTo(target, destination)
    const route = { sockets, host: target.host, path: target.pathname + target.search, until: destination.until }
    routes.set(request.url, route)
    return sendVia(route, request, from)
  }

  function sendVia({ sockets, host, path }: UpstreamRoute, request: UpstreamRequest, from: number) {
    const { method = 'POST', headers, body, via } = request
    const outgoing = { method, path, host, headers, via: via === undefined ? own : `${via}, ${own}`, body }
    return new Exchange(request, fairness, clock, from).run(sockets, outgoing)
  }

  function send(request: UpstreamRequest): Promise<UpstreamResponse> {
    const from = performance.now()
    const known = routes.get(request.url)
    return known !== undefined && known.until > from ? sendVia(known, request, from) : findAndSend(request, from)
  }

  return { send: observe === undefined ? send : observed(send, observe) }
}

function observed(send: Upstream['send'], observe: ObserveUpstream): Upstream['send'] {
  return async (request) => {
    const from = performance.now()
    const note = (outcome: string) => observe(outcome, (performance.now() - from) / 1000)
    try {
      const answer = await send(request)
      note(String(answer.status))
      return answer
    } catch (error) {
      note(error instanceof UpstreamError ? error.kind : 'down')
      throw error
    }
  }
}

/** How to reach a URL; valid until `until`, by `performance.now()`. */
interface UpstreamRoute {
  readonly sockets: ConnectionPool
  readonly host: string
  readonly path: string
  readonly until: number
}
