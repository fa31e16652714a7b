/**
 * The parser of HTTP/1.1 that the runtime has from Node, llhttp. No module that is documented gives it, so it is
 * asked for when it is wanted, and tried before it is trusted: a later runtime may not have it, or have it otherwise.
 */

export interface HTTPParser {
  0: () => void
  /** Pairs that did not fit the first call, and trailers. */
  1: (headers: string[]) => void
  /** Gives 0: there is a body, if the head says so. Without `headers` they have all come before. */
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

  /** `headBytesMax`: names and values together; 16 kB where it is left out. */
  initialize(type: number, resource: object, headBytesMax?: number): void
  /** The number of bytes that were read. */
  execute(chunk: Buffer): number | Error
  /** There will be no more. */
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

/** Undefined where this runtime has none that works as we know it. */
export function findParser(findModule: FindModule = process.getBuiltinModule): ParserClass | undefined {
  try {
    const { HTTPParser } = findModule('node:_http_common') as { HTTPParser: ParserClass }
    return isAsKnown(HTTPParser) ? HTTPParser : undefined
  } catch {
    return undefined
  }
}

/** Reads one response, cut in its body, and refuses one with two lengths. */
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
