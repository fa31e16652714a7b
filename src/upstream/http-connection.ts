/**
 * What every HTTP/1.1 client of ours keeps to. A wire is one connection to one address, with one exchange at a time;
 * the pool (sockets.ts) decides which wire serves a request and for how long an unused one is kept.
 */

export interface Endpoint {
  /** Without brackets. */
  readonly address: string
  readonly port: number
  /** With TLS: the name that the certificate must bear, or the address itself. Undefined for plain HTTP. */
  readonly certified: string | undefined
  /** Who may vouch for it, in PEM; those that the machine trusts where it is left out. */
  readonly authorities?: readonly string[] | undefined
}

/** As it is written, byte for byte. */
export interface HttpRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  /** Names and values in turn: every field line there is, and all of them can be sent. */
  readonly fields: readonly string[]
  readonly content: Uint8Array | undefined
}

/** Told of the response, in this order; after `onEnd` or `onError` nothing more. */
export interface ResponseHandler {
  /** Names in small letters; what came several times is joined by commas. */
  onHead(status: number, headers: Readonly<Record<string, string>>): void
  onData(chunk: Buffer<ArrayBuffer>): void
  onEnd(): void
  onError(error: Error): void
}

/** What breaks an exchange off; its receiver is told nothing more. */
export type Abort = () => void

export interface HttpConnection {
  /** Once at a time: the next one after `onEnd`. With TLS nothing is written before the certificate was accepted. */
  start(request: HttpRequest, receiver: ResponseHandler): Abort
  close(): void
}

/** Who keeps wires between exchanges. */
export interface PoolEvents {
  /** Told once of each wire, whether it succeeded or not. */
  connected(): void
  /**
   * Keeps it for so many milliseconds; false where nothing is kept any more. Given only wires on which the response was
   * the last thing that came: what comes unasked would be taken for the next response.
   */
  keep(wire: HttpConnection, milliseconds: number): boolean
  /** It is closed, kept or not. */
  leave(wire: HttpConnection): void
}

/** Opens wires. The response is read strictly (RFC 9112): what two readers could understand differently is an error. */
export type OpenHttpConnection = (origin: Endpoint, keeper: PoolEvents) => HttpConnection
