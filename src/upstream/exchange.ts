/** One request to a server and its response, within time limits, limits on the response and shares of its holder. */

import { isUtf8 } from 'node:buffer'
import { PlatformError } from '../errors.ts'
import type { Fairness } from '../fairness/fairness.ts'
import { ownerOf } from '../fairness/owner.ts'
import { upstreamBodyTimeoutMs, upstreamResponseBytesMax } from '../limits.ts'
import { type Ahead, ByteBuffer, readAhead } from './byte-buffer.ts'
import type { ConnectionPool } from './connection-pool.ts'
import type { DeadlineClock } from './deadline-clock.ts'
import { CertificateError } from './handshake.ts'
import type { OutgoingRequest } from './head.ts'
import type { Abort, ResponseHandler } from './http-connection.ts'
import { UpstreamError, type UpstreamRequest, type UpstreamResponse } from './upstream.ts'

/** Milliseconds to pass on a line of a stream, at worst. Counted against `ownerTimeShare`. Past it: the owner waits. */
const streamLineMs = 0.0015
/** Milliseconds to collect the memory of a megabyte of a response later. Counted as `streamLineMs`. */
const receiveMsPerMegabyte = 4
/** The same for a response that is parsed and checked here, and for its request: a page of fifty tools takes 0.9 ms. */
const documentMs = 0.5
const documentMsPerMegabyte = 200
/** The same for the parts of a stream's lines, which are counted as they arrive. */
const partsMsPerMegabyte = 50
/** The same for a line of a stream that is parsed here, which may be an event that is wrong. */
const documentLineMs = 0.02
/** The same for a stream, whose bytes are passed on in small pieces and copied twice. Counted as `streamLineMs`. */
const streamMsPerMegabyte = 4
/** Everything that requests to other servers share. */
export type UpstreamFairness = Pick<Fairness, 'memory' | 'requests' | 'time' | 'handshakes' | 'passes'>

export class Exchange implements ResponseHandler {
  readonly #request: UpstreamRequest
  readonly #fairness: UpstreamFairness
  readonly #clock: DeadlineClock
  readonly #owner: string
  readonly #body: ByteBuffer
  readonly #bytesMax: number
  /** Counted as `documentMs`. */
  readonly #isParsed: boolean
  readonly #answer = Promise.withResolvers<UpstreamResponse>()
  #lateAt: number
  #signal: AbortSignal | undefined
  #breakOff: Abort | undefined
  #status = 0
  #headers: UpstreamResponse['headers'] = {}
  #stream: Ahead | undefined
  /** Bytes of a response that is parsed here, for whose parsing the owner has not paid. */
  #unparsed = 0
  /** The response has arrived, and waits for the time or the pass of its owner. */
  #isWhole = false
  /** It ends in a pass that its owner waits for. */
  #isEnding = false
  #isOver = false

  /** `from`: when the request's time began, by `performance.now()`: before the look-up of its name. */
  constructor(request: UpstreamRequest, fairness: UpstreamFairness, clock: DeadlineClock, from: number) {
    this.#request = request
    this.#fairness = fairness
    this.#clock = clock
    this.#owner = ownerOf(request.holder)
    this.#body = new ByteBuffer(fairness.memory, request.holder)
    this.#bytesMax = request.bodyBytesMax ?? upstreamResponseBytesMax
    this.#isParsed = request.isParsed ?? request.bodyBytesMax !== undefined
    this.#lateAt = from + request.timeoutMs
  }

  /** Resolves at the head for an event stream or an unused body, and at the end otherwise. */
  run(sockets: Pick<ConnectionPool, 'send'>, outgoing: OutgoingRequest): Promise<UpstreamResponse> {
    if (!this.#fairness.requests.take(this.#request.holder, 1)) return Promise.reject(tooManyRequests())
    this.#clock.watch(this)
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
    if (now >= this.#lateAt && this.#isWhole) void this.#stopInPass(tooManyBytes())
    else if (now >= this.#lateAt) {
      const head = `no response within ${Math.ceil(timeoutMs / 1000)} s`
      const problem = this.#status === 0 ? head : 'it did not finish its response in time'
      void this.#stopInPass(new UpstreamError('late', problem))
    } else if (this.#signal === undefined && signal !== undefined) this.#listen(signal())
    else if (this.#stream !== undefined) this.#clock.end(this)
  }

  #listen(signal: AbortSignal): void {
    this.#signal = signal
    if (signal.aborted) this.handleEvent()
    else signal.addEventListener('abort', this, { once: true })
  }

  /** The client has disconnected. */
  handleEvent(): void {
    void this.#stopInPass(new UpstreamError('gone', 'the client disconnected'))
  }

  #stopInPass(error: UpstreamError): Promise<void> {
    return this.#inPass(() => this.#stop(error))
  }

  /**
   * Ends the exchange in a pass of the event loop in which its owner has room: a client or a server that goes, or the
   * clock, may end a thousand exchanges in one, each of which closes a connection and records a call.
   */
  async #inPass(end: () => void): Promise<void> {
    if (this.#isEnding) return
    this.#isEnding = true
    const pass = this.#fairness.passes.enter(this.#request.holder)
    if (pass !== undefined) await pass
    if (!this.#isOver) end()
  }

  wait(): number {
    return this.#fairness.time.wait(this.#owner)
  }

  spend(milliseconds: number): void {
    this.#fairness.time.spend(this.#owner, milliseconds)
  }

  hold(bytes: number): boolean {
    if (this.#fairness.memory.take(this.#request.holder, bytes)) return true
    this.#stop(tooManyBytes())
    return false
  }

  release(bytes: number): void {
    this.#fairness.memory.giveBack(this.#request.holder, bytes)
  }

  async enterHandshake(): Promise<() => void> {
    const { time, handshakes } = this.#fairness
    await time.pause(this.#owner)
    return handshakes.enter(this.#request.holder)
  }

  onWrite(): void {
    const { progress } = this.#request
    if (progress !== undefined) progress.isSent = true
  }

  mayBegin(): Promise<void> | undefined {
    return this.#request.requireAccess?.()
  }

  onHead(status: number, headers: UpstreamResponse['headers']) {
    const isSmall = this.#request.bodyBytesMax !== undefined
    if (status > 599) return this.#stop(new UpstreamError('down', `it answered ${status}`))
    this.#status = status
    this.#headers = headers
    if (this.#isParsed) this.spend(documentMs)
    const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers
    // Nobody reads the body of another response, unless it is a small document.
    const isRead = isSmall || ((status < 300 || status >= 400) && status < 500 && status !== 401)
    if (!isRead || encoding !== 'identity') {
      this.#answer.resolve({ status, headers, body: undefined })
      return this.#stop(new UpstreamError('down', 'postern stopped reading the response'))
    }
    // Only a 2xx may be a long stream. The body of an error is read whole, whatever its type.
    if (!isSmall && status < 300 && /^text\/event-stream\b/i.test(type)) {
      this.#lateAt = Number.POSITIVE_INFINITY
      this.#stream = readAhead(
        this.#body,
        () => void this.#stopInPass(new UpstreamError('down', 'postern stopped reading the response')),
      )
      return this.#answer.resolve({ status, headers, body: this.#stream.readable })
    }
    if (!isSmall) this.#lateAt = performance.now() + upstreamBodyTimeoutMs
    const length = Number(headers['content-length'] ?? 0)
    if (length > this.#bytesMax) return this.#stop(tooLarge('its response is larger than', this.#bytesMax))
    if (!this.#body.expect(length)) this.#stop(tooManyBytes())
  }

  onData(chunk: Buffer<ArrayBuffer>) {
    const megabytes = chunk.length / 2 ** 20
    // The lines of a stream are looked at one by one when they are passed on.
    if (this.#isParsed) this.#count(chunk)
    else if (this.#stream === undefined) this.spend(megabytes * receiveMsPerMegabyte)
    else this.spend(megabytes * streamMsPerMegabyte + lineEndsIn(chunk) * streamLineMs)
    if (this.#stream?.give(chunk) === true) return
    if (!this.#body.add(chunk)) return this.#stop(tooManyBytes())
    if (this.#body.length <= this.#bytesMax) return
    const isStream = this.#stream !== undefined
    const what = isStream ? 'its stream is ahead of the client by more than' : 'its response is larger than'
    this.#stop(tooLarge(what, this.#bytesMax))
  }

  onEnd(): void {
    // The connection may be another exchange's by now.
    this.#breakOff = undefined
    this.#isWhole = true
    const stream = this.#stream
    if (stream === undefined) void this.#give()
    else
      void this.#inPass(() => {
        this.#over()
        stream.end()
      })
  }

  /** Until the response is given, it counts for its owner, and its client and its time may end the exchange. */
  async #give(): Promise<void> {
    // Only now: a server that keeps the last byte of many responses back would have them parsed one after the other.
    // Others of the owner may have paid while it waited.
    while (this.#unparsed > 0 && this.wait() > 0) await this.#fairness.time.pause(this.#owner)
    if (this.#isOver) return
    if (this.#unparsed > 0) this.#pay(0)
    this.#over()
    const body = this.#body.take()
    // Decoding bytes that are no text takes fifteen times as long, and JSON is UTF-8 (RFC 8259, 8.1).
    const isText = body === undefined || isUtf8(body)
    this.#answer.resolve({ status: this.#status, headers: this.#headers, body: isText ? body : undefined })
  }

  /** Counts bytes that are parsed here: when they are, which is at the end of a line, or of a whole response. */
  #count(chunk: Buffer): void {
    this.#unparsed += chunk.length
    if (this.#stream !== undefined) this.spend((chunk.length / 2 ** 20) * partsMsPerMegabyte)
    const lines = this.#stream === undefined ? 0 : lineEndsIn(chunk)
    if (lines > 0) this.#pay(lines)
  }

  #pay(lines: number): void {
    this.spend((this.#unparsed / 2 ** 20) * documentMsPerMegabyte + lines * documentLineMs)
    this.#unparsed = 0
  }

  onError(cause: Error) {
    if (cause instanceof PlatformError) return this.#stop(cause.code === 'rate_limited' ? tooManyRequests() : cause)
    const problem = cause instanceof CertificateError ? cause.message : 'connection refused or reset'
    void this.#stopInPass(new UpstreamError('down', problem, { cause }))
  }

  /** Ends the exchange at any stage. If the promise is resolved already, only the stream fails. */
  #stop(error: UpstreamError | PlatformError): void {
    this.#over()
    this.#breakOff?.()
    this.#body.discard()
    this.#answer.reject(error)
    this.#stream?.end(error)
  }

  #over(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#fairness.requests.giveBack(this.#request.holder, 1)
    this.#clock.end(this)
    this.#signal?.removeEventListener('abort', this)
  }
}

function tooManyRequests(): UpstreamError {
  return new UpstreamError('busy', 'too many requests of this caller to other servers are in progress')
}

function tooManyBytes(): UpstreamError {
  return new UpstreamError('busy', 'this caller has too many unread responses open')
}

function tooLarge(what: string, bytesMax: number): UpstreamError {
  return new UpstreamError('down', `${what} ${bytesMax} bytes`)
}

/** Lines end in LF, CR or both. */
export function lineEndsIn(bytes: Uint8Array): number {
  let count = 0
  for (let at = bytes.indexOf(0x0a); at >= 0; at = bytes.indexOf(0x0a, at + 1)) count += 1
  for (let at = bytes.indexOf(0x0d); at >= 0; at = bytes.indexOf(0x0d, at + 1)) if (bytes[at + 1] !== 0x0a) count += 1
  return count
}
