/**
 * Access to llhttp, the runtime's HTTP/1.1 parser. Only an undocumented module exports it, so it is tested before its
 * first use: a later runtime may lack it or change it. The executable brings its runtime, so that its build notices.
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

let tested: ParserClass | undefined

/** Throws Error if this runtime has no parser that passes the test. */
export function httpParser(): ParserClass {
  tested ??= testedParser(process.getBuiltinModule('node:_http_common'))
  return tested
}

/** The parser of a module, tested. Throws Error. */
export function testedParser(module: unknown): ParserClass {
  const { HTTPParser } = (module ?? {}) as { HTTPParser?: ParserClass }
  if (HTTPParser === undefined || !isAsKnown(HTTPParser))
    throw new Error('this runtime has no HTTP parser that we know')
  return HTTPParser
}

/** Tests a parser: it must parse a response that is split within the body, and refuse one with two lengths. */
function isAsKnown(Parser: ParserClass): boolean {
  const seen: unknown[] = []
  const parser = new Parser()
  parser.initialize(Parser.RESPONSE, {})
  parser[Parser.kOnMessageBegin] = () => seen.push('begin')
  parser[Parser.kOnHeadersComplete] = (version, _, headers, __, ___, status, ____, isUpgrade, keepsAlive) => {
    seen.push(version, ...(headers ?? []), status, isUpgrade, keepsAlive)
    return 0
  }
  parser[Parser.kOnBody] = (chunk) => seen.push(chunk.toString())
  parser[Parser.kOnMessageComplete] = () => seen.push('end')
  const head = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n'
  const read = [`${head}\r\no`, 'k'].map((part) => parser.execute(Buffer.from(part)))
  const refused = new Parser()
  refused.initialize(Parser.RESPONSE, {})
  const isRefused = refused.execute(Buffer.from(`${head}content-length: 3\r\n\r\n`)) instanceof Error
  const asKnown = ['begin', 1, 'Content-Length', '2', 200, false, true, 'o', 'k', 'end']
  return isRefused && read.join() === `${head.length + 3},1` && seen.join() === asKnown.join()
}
