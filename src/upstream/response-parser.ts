/** Parses the responses of one connection by the runtime's llhttp, one response at a time. */

import { socketIdleMs, upstreamHeadBytesMax } from '../limits.ts'
import { headersOf, keepMsOf } from './head.ts'
import type { ResponseHandler } from './http-connection.ts'

/** Ours: headers of an MCP server's response; each takes some hundred bytes of memory until the head is complete. Past it: 502. */
export const upstreamHeadersMax = 200

/** Ours: bytes of a chunked body that carry nothing: extensions of chunks, zeros before their sizes, trailers. Past it: 502. */
export const emptyChunkBytesMax = 64 * 1024
/** Each byte may come in a chunk of its own. */
const chunkBytesPerByte = 12

/** Parses one response of a connection after the other. */
export class ResponseParser {
  readonly #onHead: ResponseHandler['onHead']
  readonly #onData: ResponseHandler['onData']
  readonly #parser: HTTPParser
  #rawHeaders: string[] = []
  /** Bytes received before the head was complete. */
  #headBytes = 0
  /** Of a body: bytes that the last chunk carried, and bytes so far that carried nothing. */
  #carriedBytes = 0
  #emptyBytes = 0
  #hasHead = false
  #isWhole = false
  /** Whether the server allows keep-alive, and has sent nothing after the response. */
  isReusable = false
  /** How long the server keeps an unused connection, in milliseconds. */
  keepMs = socketIdleMs

  constructor({ onHead, onData }: Pick<ResponseHandler, 'onHead' | 'onData'>) {
    this.#onHead = onHead
    this.#onData = onData
    this.#parser = this.#open()
  }

  /** Prepares for the response to the next request. */
  restart(): void {
    this.#headBytes = 0
    this.#emptyBytes = 0
    this.#hasHead = false
    this.#isWhole = false
    this.isReusable = false
  }

  /** Parses a chunk. `whole`: the response is complete. An Error: it is not one, or parsers could differ on it. */
  read(chunk: Buffer): 'partial' | 'whole' | Error {
    let read: number | Error
    const isBody = this.#hasHead
    this.#carriedBytes = 0
    try {
      read = this.#parser.execute(chunk)
    } catch (thrown) {
      read = thrown as Error
    }
    if (!this.#hasHead) this.#headBytes += chunk.length
    if (this.#headBytes > upstreamHeadBytesMax) return new Error('its head is too long')
    if (isBody) this.#emptyBytes = Math.max(0, this.#emptyBytes + chunk.length - this.#carriedBytes * chunkBytesPerByte)
    if (this.#emptyBytes > emptyChunkBytesMax) return new Error('it sends too many bytes without content')
    if (!this.#isWhole) return typeof read === 'number' ? 'partial' : read
    if (read !== chunk.length) this.isReusable = false
    return 'whole'
  }

  /** Whether the end of the connection completes the response, as it does for a response without a length. */
  isWholeAtEnd(): boolean {
    return this.#parser.finish() === undefined && this.#isWhole
  }

  #open(): HTTPParser {
    const HTTPParser = httpParser()
    const parser = new HTTPParser()
    parser.initialize(HTTPParser.RESPONSE, {}, upstreamHeadBytesMax)
    // A second message begins after the response.
    parser[HTTPParser.kOnMessageBegin] = () => {
      if (this.#isWhole) this.isReusable = false
    }
    parser[HTTPParser.kOnHeaders] = (more) => {
      if (!this.#hasHead) this.#rawHeaders.push(...more)
      if (this.#rawHeaders.length > 2 * upstreamHeadersMax) throw new Error('its head has too many headers')
    }
    parser[HTTPParser.kOnHeadersComplete] = (version, _, last = [], __, ___, status, ____, isUpgrade, keepsAlive) => {
      const headers = headersOf(this.#rawHeaders.length === 0 ? last : [...this.#rawHeaders, ...last])
      this.#rawHeaders = []
      if (isUpgrade || status === 101 || version !== 1) throw new Error('it speaks another protocol')
      // Informational responses (1xx) precede the final one.
      if (this.#isWhole || status < 200) return 0
      this.#hasHead = true
      this.isReusable = keepsAlive
      this.keepMs = keepMsOf(headers)
      this.#onHead(status, headers)
      return 0
    }
    parser[HTTPParser.kOnBody] = (chunk) => {
      this.#carriedBytes += chunk.length
      if (!this.#isWhole) this.#onData(chunk)
    }
    parser[HTTPParser.kOnMessageComplete] = () => {
      if (this.#hasHead) this.#isWhole = true
    }
    return parser
  }
}

/** The callbacks have numbers for names: see the constants of `ParserClass`. */
interface HTTPParser {
  0: () => void
  /** Headers beyond those that fit one call, and trailers; alternating names and values. */
  1: (headers: string[]) => void
  /** Must return 0: the head says whether there is a body. `headers`: undefined if `kOnHeaders` got all of them. */
  2: (
    major: number,
    minor: number,
    headers: string[] | undefined,
    method: undefined,
    url: string,
    status: number,
    reason: string,
    isUpgrade: boolean,
    keepsAlive: boolean,
  ) => number
  3: (chunk: Buffer<ArrayBuffer>) => void
  4: () => void

  /** `headBytesMax`: the limit on names and values together; 16 kB by default. */
  initialize(type: number, resource: object, headBytesMax?: number): void
  /** Parses a chunk. Returns the number of bytes read, or the error. */
  execute(chunk: Buffer): number | Error
  /** Signals the end of the input. Returns an error if the message is incomplete. */
  finish(): Error | undefined
}

interface ParserClass {
  new (): HTTPParser
  readonly RESPONSE: number
  readonly kOnMessageBegin: 0
  readonly kOnHeaders: 1
  readonly kOnHeadersComplete: 2
  readonly kOnBody: 3
  readonly kOnMessageComplete: 4
}

/**
 * Loads llhttp, the runtime's HTTP/1.1 parser, at the first connection. Only an undocumented module exports it, and a
 * later runtime may lack it or change it. The executable brings its runtime, and a test of the parser fails a build
 * with another one.
 */
export function httpParser(): ParserClass {
  return (process.getBuiltinModule('node:_http_common') as unknown as { HTTPParser: ParserClass }).HTTPParser
}
