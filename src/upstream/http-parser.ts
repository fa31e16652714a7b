/**
 * Access to llhttp, the runtime's HTTP/1.1 parser. Only an undocumented module exports it, and a later runtime may lack
 * it or change it. The executable brings its runtime, and a test of the parser fails a build with another one.
 */

/** The callbacks have numbers for names: see the constants of `ParserClass`. */
export interface HTTPParser {
  0: () => void
  /** Headers beyond those that fit one call, and trailers; alternating names and values. */
  1: (headers: string[]) => void
  /**
   * Must return 0: the response has a body if its head says so. `headers` is undefined if all of them were passed
   * to `kOnHeaders`.
   */
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

export interface ParserClass {
  new (): HTTPParser
  readonly RESPONSE: number
  readonly kOnMessageBegin: 0
  readonly kOnHeaders: 1
  readonly kOnHeadersComplete: 2
  readonly kOnBody: 3
  readonly kOnMessageComplete: 4
}

/** Loaded at the first connection. */
export function httpParser(): ParserClass {
  return (process.getBuiltinModule('node:_http_common') as unknown as { HTTPParser: ParserClass }).HTTPParser
}
