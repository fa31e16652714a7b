/**
 * Access to llhttp, the runtime's HTTP/1.1 parser. Only an undocumented module exports it, so it is looked up on first
 * use and tested before it is used: a later runtime may lack it or change it.
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

type FindModule = (name: string) => unknown

/** Undefined if this runtime has no parser that passes the test. */
export function findParser(findModule: FindModule = process.getBuiltinModule): ParserClass | undefined {
  try {
    const { HTTPParser } = findModule('node:_http_common') as { HTTPParser: ParserClass }
    return isAsKnown(HTTPParser) ? HTTPParser : undefined
  } catch {
    return undefined
  }
}

/** Tests a parser: it must parse a response that is split within the body, and refuse one with two lengths. */
function isAsKnown(Parser: ParserClass): boolean {
  const told: unknown[] = []
  const parser = new Parser()
  parser.initialize(Parser.RESPONSE, {})
  parser[Parser.kOnMessageBegin] = () => told.push('begin')
  parser[Parser.kOnHeadersComplete] = (version, _, headers, __, ___, status, ____, isUpgrade, keepsAlive) => {
    told.push(version, ...(headers ?? []), status, isUpgrade, keepsAlive)
    return 0
  }
  parser[Parser.kOnBody] = (chunk) => told.push(chunk.toString())
  parser[Parser.kOnMessageComplete] = () => told.push('end')
  const head = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n'
  const read = [`${head}\r\no`, 'k'].map((part) => parser.execute(Buffer.from(part)))
  const refused = new Parser()
  refused.initialize(Parser.RESPONSE, {})
  const isRefused = refused.execute(Buffer.from(`${head}content-length: 3\r\n\r\n`)) instanceof Error
  const asKnown = ['begin', 1, 'Content-Length', '2', 200, false, true, 'o', 'k', 'end']
  return isRefused && read.join() === `${head.length + 3},1` && told.join() === asKnown.join()
}
