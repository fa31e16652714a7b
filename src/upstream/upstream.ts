/**
 * Sends requests to MCP servers: only to addresses that were checked, without following redirects or decompressing, and
 * within time and memory limits. It does not use the runtime's fetch, which allows 256 concurrent requests in all, open
 * streams included.
 */

import { getCACertificates } from 'node:tls'
import { LRUCache } from 'lru-cache'
import { PlatformError } from '../errors.ts'
import { createFairness, type Fairness } from '../fairness/fairness.ts'
import { type Holder, ownerOf } from '../fairness/owner.ts'
import { upstreamBodyTimeoutMs, upstreamResponseBytesMax } from '../limits.ts'
import type { DestinationOf, ResolvedAddress } from './addresses.ts'
import { type Ahead, ByteBuffer, readAhead } from './byte-buffer.ts'
import { CertificateError } from './certificate-error.ts'
import { type ConnectionPool, createConnectionPool } from './connection-pool.ts'
import { DeadlineClock } from './deadline-clock.ts'
import type { OutgoingRequest } from './head.ts'
import type { Abort, OpenHttpConnection, ResponseHandler } from './http-connection.ts'
import { AddressError } from './name-lookup.ts'
import { openConnection } from './open-connection.ts'

/**
 * Milliseconds that a line of an event stream takes until it is passed on, at worst. Counted against
 * `ownerTimeShare`. Past it: the owner waits.
 */
const streamLineMs = 0.0015
/**
 * Milliseconds that a megabyte of a response takes later, when the memory of its chunks is collected. Counted as
 * `streamLineMs`.
 */
const receiveMsPerMegabyte = 1
/**
 * Upstreams for which a pool of connections is kept, for a few seconds. Past it: the least recently used pool is
 * evicted.
 */
const upstreamPoolsMax = 1000

/**
 * `refused`: the address must not be connected to. `down`: no usable response. `late`: a timeout. `gone`: the client
 * disconnected. `busy`: the holder's share of memory is used up.
 */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly kind: 'refused' | 'down' | 'late' | 'gone' | 'busy'
  /** Whether nothing was sent. */
  readonly isUnsent: boolean
  constructor(kind: UpstreamError['kind'], message: string, options: ErrorOptions & { isUnsent?: boolean } = {}) {
    super(message, options)
    this.kind = kind
    this.isUnsent = options.isUnsent ?? false
  }
}

export interface UpstreamRequest {
  readonly url: string
  /** `POST` by default. */
  readonly method?: 'POST' | 'GET' | 'DELETE'
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  /** The `Via` header of the client's request. */
  readonly via?: string | undefined
  /**
   * The holder that causes the request: the look-up of the name, and the response while it is incomplete or unread,
   * count against this holder's shares.
   */
  readonly holder: Holder
  /** Aborts when the client disconnects. A function, called only for slow responses: the signal is costly to create. */
  readonly signal?: (() => AbortSignal) | undefined
  /** Milliseconds until the response head must have arrived, name look-up included. */
  readonly timeoutMs: number
  /**
   * For small documents: the body is read whole, whatever status and type the response has, up to this many bytes, and
   * `timeoutMs` holds until its end.
   */
  readonly bodyBytesMax?: number
}

export interface UpstreamResponse {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /**
   * A ReadableStream for a 2xx event stream; any other body whole, up to `upstreamResponseBytesMax`. Undefined if it is
   * empty or would not be used: for 3xx, 401, 5xx and compressed responses.
   */
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | undefined
}

export interface Upstream {
  /** Resolves with any HTTP response, up to status 599. Rejects with UpstreamError. */
  send(request: UpstreamRequest): Promise<UpstreamResponse>
}

/** As the standard `Response`, for code that expects one. */
export function toResponse({ status, headers, body }: UpstreamResponse): Response {
  return new Response(body ?? null, { status, headers: headers as Record<string, string> })
}

export type UpstreamFairness = Pick<Fairness, 'memory' | 'requests' | 'time' | 'handshakes'>

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
  readonly open?: OpenHttpConnection
}

/** Requests as described above, with `observe` called for each. */
export function createUpstream(
  destinationOf: DestinationOf,
  {
    fairness = createFairness(),
    observe,
    pseudonym = 'postern',
    authorities = [],
    open = openConnection,
  }: UpstreamOptions = {},
): Upstream {
  const upstream = createPooledUpstream(destinationOf, { fairness, pseudonym, authorities, open })
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
  destinationOf: DestinationOf,
  { fairness, pseudonym, authorities, open }: Required<Omit<UpstreamOptions, 'observe'>>,
): Upstream {
  /** The TLS option replaces the machine's authorities, so they are included. */
  const trusted = authorities.length === 0 ? undefined : [...getCACertificates('default'), ...authorities]
  const kept = new LRUCache<string, ConnectionPool>({ max: upstreamPoolsMax, dispose: (sockets) => sockets.close() })
  /** By URL: most requests repeat one, and skip parsing it and checking its address while the route is valid. */
  const routes = new LRUCache<string, UpstreamRoute>({ max: upstreamPoolsMax })
  const parts = { fairness, clock: new DeadlineClock() }
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

  async function find({ url, timeoutMs, holder }: UpstreamRequest): Promise<UpstreamRoute> {
    const target = new URL(url)
    const { host, hostname, pathname, search } = target
    try {
      const destination = await destinationOf(target, { holder, timeoutMs })
      const { until } = destination
      const route = { sockets: socketsTo(target, destination), host, path: pathname + search, until }
      routes.set(url, route)
      return route
    } catch (error) {
      if (!(error instanceof AddressError)) throw error
      const kind = error.kind === 'refused' ? 'refused' : 'down'
      throw new UpstreamError(kind, `${hostname} ${error.message}`, { isUnsent: true })
    }
  }

  async function findAndSend(request: UpstreamRequest): Promise<UpstreamResponse> {
    const from = performance.now()
    const route = await find(request)
    return sendVia(route, request, from)
  }

  function sendVia(
    { sockets, host, path }: UpstreamRoute,
    request: UpstreamRequest,
    from = performance.now(),
  ): Promise<UpstreamResponse> {
    const { method = 'POST', headers, body, via } = request
    const outgoing = { method, path, host, headers, via: via === undefined ? own : `${via}, ${own}`, body }
    return new Exchange(request, parts, from).run(sockets, outgoing)
  }

  return {
    send(request) {
      const known = routes.get(request.url)
      if (known !== undefined && known.until > performance.now()) return sendVia(known, request)
      return findAndSend(request)
    },
  }
}

/** How to reach a URL; valid until `until`, by `performance.now()`. */
interface UpstreamRoute {
  readonly sockets: ConnectionPool
  readonly host: string
  readonly path: string
  readonly until: number
}

interface ExchangeParts {
  readonly fairness: UpstreamFairness
  readonly clock: DeadlineClock
}

/** One request and its response, within time limits, limits on the response and the holder's shares. */
class Exchange implements ResponseHandler {
  readonly #request: UpstreamRequest
  readonly #parts: ExchangeParts
  readonly #owner: string
  readonly #body: ByteBuffer
  readonly #bytesMax: number
  readonly #answer = Promise.withResolvers<UpstreamResponse>()
  #lateAt: number
  #signal: AbortSignal | undefined
  #breakOff: Abort | undefined
  #status = 0
  #headers: UpstreamResponse['headers'] = {}
  #stream: Ahead | undefined
  #isOver = false

  /** `from`: when the request's time began, by `performance.now()`: before the look-up of its name. */
  constructor(request: UpstreamRequest, parts: ExchangeParts, from: number) {
    this.#request = request
    this.#parts = parts
    this.#owner = ownerOf(request.holder)
    this.#body = new ByteBuffer(parts.fairness.memory, request.holder)
    this.#bytesMax = request.bodyBytesMax ?? upstreamResponseBytesMax
    this.#lateAt = from + request.timeoutMs
  }

  /** Resolves at the head for an event stream or an unused body, and at the end otherwise. */
  run(sockets: Pick<ConnectionPool, 'send'>, outgoing: OutgoingRequest): Promise<UpstreamResponse> {
    if (!this.#parts.fairness.requests.take(this.#request.holder, 1)) return Promise.reject(tooManyRequests())
    this.#parts.clock.watch(this)
    try {
      this.#breakOff = sockets.send(outgoing, this)
    } catch (error) {
      this.onError(error as Error)
    }
    return this.#answer.promise
  }

  /** At each tick of the clock. */
  look(now: number): void {
    const { signal, timeoutMs } = this.#request
    if (now >= this.#lateAt) {
      const head = `no response within ${Math.ceil(timeoutMs / 1000)} s`
      this.#stop(new UpstreamError('late', this.#status === 0 ? head : 'it did not finish its response in time'))
    } else if (this.#signal === undefined && signal !== undefined) this.#listen(signal())
    else if (this.#stream !== undefined) this.#parts.clock.end(this)
  }

  #listen(signal: AbortSignal): void {
    this.#signal = signal
    if (signal.aborted) this.handleEvent()
    else signal.addEventListener('abort', this, { once: true })
  }

  /** The client has disconnected. */
  handleEvent(): void {
    this.#stop(new UpstreamError('gone', 'the client disconnected'))
  }

  wait(): number {
    return this.#parts.fairness.time.wait(this.#owner)
  }

  spend(milliseconds: number): void {
    this.#parts.fairness.time.spend(this.#owner, milliseconds)
  }

  async enterHandshake(): Promise<() => void> {
    const { time, handshakes } = this.#parts.fairness
    await time.pause(this.#owner)
    return handshakes.enter(this.#request.holder)
  }

  onHead(status: number, headers: UpstreamResponse['headers']) {
    const isSmall = this.#request.bodyBytesMax !== undefined
    if (status > 599) return this.#stop(new UpstreamError('down', `it answered ${status}`))
    this.#status = status
    this.#headers = headers
    const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers
    if ((!isSmall && !isBodyUsed(status)) || encoding !== 'identity') {
      this.#answer.resolve({ status, headers, body: undefined })
      return this.#stop(new UpstreamError('down', 'nobody reads on'))
    }
    // Only a 2xx may be a long stream. The body of an error is read whole, whatever its type.
    if (!isSmall && status < 300 && /^text\/event-stream\b/i.test(type)) {
      this.#lateAt = Number.POSITIVE_INFINITY
      this.#stream = readAhead(this.#body, () => this.#stop(new UpstreamError('down', 'nobody reads on')))
      return this.#answer.resolve({ status, headers, body: this.#stream.readable })
    }
    if (!isSmall) this.#lateAt = performance.now() + upstreamBodyTimeoutMs
    const length = Number(headers['content-length'] ?? 0)
    if (length > this.#bytesMax) return this.#stop(tooLarge('its response is larger than', this.#bytesMax))
    if (!this.#body.expect(length)) this.#stop(tooManyBytes())
  }

  onData(chunk: Buffer<ArrayBuffer>) {
    // The lines of a stream are looked at one by one when they are passed on.
    const lines = this.#stream === undefined ? 0 : lineEndsIn(chunk)
    this.spend((chunk.length / 2 ** 20) * receiveMsPerMegabyte + lines * streamLineMs)
    if (this.#stream?.give(chunk) === true) return
    if (!this.#body.add(chunk)) return this.#stop(tooManyBytes())
    if (this.#body.length <= this.#bytesMax) return
    const isStream = this.#stream !== undefined
    const what = isStream ? 'its stream is ahead of the client by more than' : 'its response is larger than'
    this.#stop(tooLarge(what, this.#bytesMax))
  }

  onEnd(): void {
    this.#over()
    if (this.#stream !== undefined) this.#stream.end()
    else this.#answer.resolve({ status: this.#status, headers: this.#headers, body: this.#body.take() })
  }

  onError(cause: Error): void {
    const isRefusedHere = cause instanceof PlatformError
    this.#stop(isRefusedHere ? tooManyRequests() : new UpstreamError('down', problemOf(cause), { cause }))
  }

  /** Ends the exchange at any stage. If the promise is resolved already, only the stream fails. */
  #stop(error: UpstreamError): void {
    this.#over()
    this.#breakOff?.()
    this.#body.discard()
    this.#answer.reject(error)
    this.#stream?.end(error)
  }

  #over(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#parts.fairness.requests.giveBack(this.#request.holder, 1)
    this.#parts.clock.end(this)
    this.#signal?.removeEventListener('abort', this)
  }
}

/** Whether anybody reads the body of a response with this status, unless it is a small document. */
function isBodyUsed(status: number): boolean {
  return (status < 300 || status >= 400) && status < 500 && status !== 401
}

function tooManyRequests(): UpstreamError {
  const text = 'too many requests of this caller to other servers are in progress'
  return new UpstreamError('busy', text, { isUnsent: true })
}

function tooManyBytes(): UpstreamError {
  return new UpstreamError('busy', 'too many bytes of this caller’s other responses are pending')
}

function tooLarge(what: string, bytesMax: number): UpstreamError {
  return new UpstreamError('down', `${what} ${bytesMax} bytes`)
}

/** Lines end in LF, CR or both. */
function lineEndsIn(bytes: Uint8Array): number {
  let count = 0
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) count += 1
  for (let at = bytes.indexOf(0x0d); at >= 0; at = bytes.indexOf(0x0d, at + 1)) if (bytes[at + 1] !== 0x0a) count += 1
  return count
}

function problemOf(cause: Error): string {
  return cause instanceof CertificateError ? cause.message : 'connection refused or reset'
}
