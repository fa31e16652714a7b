/**
 * Requests to MCP servers elsewhere: to an address that was looked at, without redirects, within a time, and never
 * unpacked. Not by the runtime's fetch, which lets 256 requests be under way in all, and one stream is one.
 */

import { getCACertificates } from 'node:tls'
import { LRUCache } from 'lru-cache'
import { createShares, type Holder, type Shares } from '../http/shares.ts'
import {
  pendingResponseBytesMax,
  upstreamBodyTimeoutMs,
  upstreamPoolsMax,
  upstreamResponseBytesMax,
} from '../limits.ts'
import { AddressError, type Addresses, type ResolvedAddress } from './addresses.ts'
import { CertificateError } from './certificate-error.ts'
import { type ConnectionPool, createConnectionPool } from './connection-pool.ts'
import { createClock } from './deadline-clock.ts'
import type { Abort, OpenHttpConnection, ResponseHandler } from './http-connection.ts'
import { openByParser } from './parser-client.ts'
import { type Ahead, createPile, readAhead } from './pile.ts'

/**
 * `refused`: we may not go there. `down`: there was no answer that can be used. `late`: none in time. `gone`: the
 * client disconnected. `busy`: the holder's share of memory is used up.
 */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly kind: 'refused' | 'down' | 'late' | 'gone' | 'busy'
  constructor(kind: UpstreamError['kind'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

export interface UpstreamRequest {
  readonly url: string
  readonly method?: 'POST' | 'GET' | 'DELETE'
  /** Names in small letters. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  /** The intermediaries that the request came through, as it says itself. */
  readonly via?: string | undefined
  /** Whose share of memory the answer counts for, as long as it is not whole or not read. */
  readonly holder?: Holder
  /**
   * Tells that the client disconnected. Asked for where the answer takes its time: a request's own is costly to make.
   */
  readonly signal?: () => AbortSignal
  /** Milliseconds to the head of the answer, the look-up of the name included. */
  readonly timeoutMs: number
}

export interface UpstreamResponse {
  readonly status: number
  /** Names in small letters. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /**
   * An event stream as it comes, anything else whole and within its bounds; undefined for none, and for what nobody
   * can use.
   */
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | undefined
}

export interface Upstream {
  /**
   * The answer. A redirect is one; of redirects, faults and what is compressed the body is not read. Throws
   * UpstreamError.
   */
  send(request: UpstreamRequest): Promise<UpstreamResponse>
}

/** For whoever reads as the platform's own fetch would give it. */
export function toResponse({ status, headers, body }: UpstreamResponse): Response {
  return new Response(body ?? null, { status, headers: headers as Record<string, string> })
}

/** Told of each request how it ended, in seconds to the head of the answer: the status, or the kind of the error. */
export type ObserveUpstream = (outcome: string, seconds: number) => void

export interface UpstreamOptions {
  /** Certificates, in PEM, of authorities that are trusted beside those of the machine. */
  readonly authorities?: readonly string[]
  /** What we add to the intermediaries (RFC 9110, 7.6.3), so that a loop is known. */
  readonly pseudonym?: string
  /** Of memory, in bytes: what answers under way may take together. */
  readonly memory?: Shares
  readonly observe?: ObserveUpstream | undefined
  /** The HTTP/1.1 client; `parser` where it is left out. */
  readonly open?: OpenHttpConnection
}

export function createUpstream(
  addresses: Addresses,
  {
    memory = createShares(pendingResponseBytesMax),
    observe,
    pseudonym = 'postern',
    authorities = [],
    open = openByParser,
  }: UpstreamOptions = {},
): Upstream {
  const upstream = createPooledUpstream(addresses, { memory, pseudonym, authorities, open })
  if (observe === undefined) return upstream
  return {
    async send(request) {
      const from = performance.now()
      const note = (outcome: string) => observe(outcome, (performance.now() - from) / 1000)
      try {
        const answer = await upstream.send(request)
        note(String(answer.status))
        return answer
      } catch (error) {
        note(error instanceof UpstreamError ? error.kind : 'down')
        throw error
      }
    },
  }
}

function createPooledUpstream(
  addresses: Addresses,
  { memory, pseudonym, authorities, open }: Required<Omit<UpstreamOptions, 'observe'>>,
): Upstream {
  /** Given ones take the place of the machine's, so those are given too. */
  const trusted = authorities.length === 0 ? undefined : [...getCACertificates('default'), ...authorities]
  const kept = new LRUCache<string, ConnectionPool>({ max: upstreamPoolsMax, dispose: (sockets) => sockets.close() })
  const routes = new LRUCache<string, UpstreamRoute>({ max: upstreamPoolsMax })

  /** To this address, under this name. */
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

  async function find({ url, timeoutMs, holder = nobody }: UpstreamRequest): Promise<UpstreamRoute> {
    const target = new URL(url)
    const { host, hostname, pathname, search } = target
    try {
      const destination = await addresses.destinationOf(target, { holder, timeoutMs })
      const { until } = destination
      const route = { sockets: socketsTo(target, destination), host, path: pathname + search, until }
      routes.set(url, route)
      return route
    } catch (error) {
      if (!(error instanceof AddressError)) throw error
      throw new UpstreamError(error.kind === 'refused' ? 'refused' : 'down', `${hostname} ${error.message}`)
    }
  }

  async function findAndSend(request: UpstreamRequest): Promise<UpstreamResponse> {
    const from = performance.now()
    const route = await find(request)
    const timeoutMs = request.timeoutMs - (performance.now() - from)
    return sendVia(route, { ...request, timeoutMs: Math.max(timeoutMs, 0) })
  }

  function sendVia({ sockets, host, path }: UpstreamRoute, request: UpstreamRequest): Promise<UpstreamResponse> {
    const { method = 'POST', body, via } = request
    const own = `1.1 ${pseudonym}`
    // Ours is the last word, whatever a connection has among its headers: without it a loop would not be known.
    const headers = { ...request.headers, via: via === undefined ? own : `${via}, ${own}` }
    const outgoing = { method, path, host, headers, body }
    return receiveResponse((receiver) => sockets.send(outgoing, receiver), request, memory)
  }

  return {
    send(request) {
      const known = routes.get(request.url)
      if (known !== undefined && known.until > performance.now()) return sendVia(known, request)
      return findAndSend(request)
    },
  }
}

const nobody: Holder = { keyId: '', family: '' }

/** How a URL is reached, as long as its address holds. */
interface UpstreamRoute {
  readonly sockets: ConnectionPool
  readonly host: string
  readonly path: string
  readonly until: number
}

const clock = createClock()

/**
 * Makes an answer of what a receiver is told, within `timeoutMs`, the bounds of an answer and the holder's share of
 * memory.
 */
function receiveResponse(
  begin: (receiver: ResponseHandler) => Abort,
  { timeoutMs, signal: signalOf, holder = nobody }: UpstreamRequest,
  memory: Shares,
): Promise<UpstreamResponse> {
  const { promise: answer, resolve, reject } = Promise.withResolvers<UpstreamResponse>()
  let breakOff: Abort | undefined
  let signal: AbortSignal | undefined
  let lateAt = performance.now() + timeoutMs
  let lateText = `no response within ${Math.ceil(timeoutMs / 1000)} s`
  const watch = clock.watch((now) => {
    if (now >= lateAt) stop(new UpstreamError('late', lateText))
    else if (signal === undefined && signalOf !== undefined) listen(signalOf())
    else if (stream !== undefined) watch.end()
  })
  let status = 0
  let headers: UpstreamResponse['headers'] = {}
  let stream: Ahead | undefined
  const body = createPile(memory, holder)

  const gone = () => stop(new UpstreamError('gone', 'the client disconnected'))
  function listen(given: AbortSignal): void {
    signal = given
    if (signal.aborted) gone()
    else signal.addEventListener('abort', gone, { once: true })
  }

  function over(): void {
    watch.end()
    signal?.removeEventListener('abort', gone)
  }

  /** Ends the exchange, whatever stage it is at. */
  function stop(error: UpstreamError): void {
    over()
    breakOff?.()
    body.take()
    // Of an answer that was given already, this changes nothing but its stream.
    reject(error)
    stream?.fail(error)
  }

  const receiver: ResponseHandler = {
    onHead(given, names) {
      lateAt = Number.POSITIVE_INFINITY
      if (given > 599) return stop(new UpstreamError('down', `it answered ${given}`))
      status = given
      headers = names
      const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers
      const isUsable = (status < 300 || status >= 400) && status < 500 && status !== 401 && encoding === 'identity'
      if (!isUsable) {
        resolve({ status, headers, body: undefined })
        return stop(new UpstreamError('down', 'nobody reads on'))
      }
      // Only an answer that is one goes on for long; what is refused is read whole, within its bounds.
      if (status < 300 && /^text\/event-stream\b/i.test(type)) {
        stream = readAhead(body, () => stop(new UpstreamError('down', 'nobody reads on')))
        return resolve({ status, headers, body: stream.readable })
      }
      lateAt = performance.now() + upstreamBodyTimeoutMs
      lateText = 'it did not finish its response in time'
    },
    onData(chunk) {
      if (stream?.give(chunk) === true) return
      if (!body.add(chunk))
        return stop(new UpstreamError('busy', 'too many bytes of this caller’s other responses are pending'))
      if (body.length() <= upstreamResponseBytesMax) return
      const what =
        stream === undefined ? 'its response is larger than' : 'its stream is ahead of the client by more than'
      stop(new UpstreamError('down', `${what} ${upstreamResponseBytesMax} bytes`))
    },
    onEnd() {
      over()
      if (stream !== undefined) return stream.end()
      resolve({ status, headers, body: body.take() })
    },
    onError: (cause) => stop(new UpstreamError('down', problemOf(cause), { cause })),
  }

  try {
    breakOff = begin(receiver)
  } catch (error) {
    receiver.onError(error as Error)
  }
  return answer
}

function problemOf(cause: Error): string {
  return cause instanceof CertificateError ? cause.message : 'connection refused or reset'
}
