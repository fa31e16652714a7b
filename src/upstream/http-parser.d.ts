/** The parser of HTTP/1.1 that the runtime has from Node, llhttp: no module that is documented gives it. */
declare module 'node:_http_common' {
  class HTTPParser {
    static readonly RESPONSE: number
    static readonly kOnMessageBegin: 0
    static readonly kOnHeaders: 1
    static readonly kOnHeadersComplete: 2
    static readonly kOnBody: 3
    static readonly kOnMessageComplete: 4

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

    initialize(type: number, resource: object): void
    /** The number of bytes that were read. */
    execute(chunk: Buffer): number | Error
    /** There will be no more. */
    finish(): Error | undefined
  }

  export { HTTPParser }
}
