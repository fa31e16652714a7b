/**
 * The parts of a connection that the pool needs. A wire is one connection to one address, with one exchange at a time.
 * The pool (connection-pool.ts) chooses the wire for a request, and decides how long an unused one is kept.
 */

export interface Endpoint {
  /** An IP address, without brackets. */
  readonly address: string
  readonly port: number
  /** The name or address that the TLS certificate must be for. Undefined for plain HTTP. */
  readonly certified: string | undefined
  /** The trusted certificate authorities, in PEM, in place of the machine's. */
  readonly authorities?: readonly string[] | undefined
}

/** Receives a response: `onHead`, `onData` any number of times, `onEnd`; or `onError` at any point, as the last. */
export interface ResponseHandler {
  /** Milliseconds until its next bytes may be read; 0 for now. */
  wait(): number
  /** Counts milliseconds that its bytes took. */
  spend(milliseconds: number): void
  /** Takes memory for bytes that have arrived and wait. False if there is none: then it has aborted the exchange. */
  hold(bytes: number): boolean
  /** Gives the memory back. */
  release(bytes: number): void
  /** Waits for a place to verify certificates; resolves with a function that leaves it. Rejects if too many wait. */
  enterHandshake(): Promise<() => void>
  /** Asks, when the connection is open, whether the request may still be sent. Undefined if so; rejects if not. */
  mayBegin(): Promise<void> | undefined
  /** The request is about to be written. */
  onWrite(): void
  /** Names in lower case; repeated headers are joined by commas. */
  onHead(status: number, headers: Readonly<Record<string, string>>): void
  onData(chunk: Buffer<ArrayBuffer>): void
  onEnd(): void
  onError(error: Error): void
}

/** Aborts an exchange. Its receiver gets no further calls. */
export type Abort = () => void

export interface HttpConnection {
  /**
   * Starts an exchange; the next one only after `onEnd`. With TLS nothing is sent before the certificate is verified.
   * `request`: a complete one; nothing is added to it.
   */
  start(request: Buffer, receiver: ResponseHandler): Abort
  close(): void
}

/** The pool's side of a wire. */
export interface PoolEvents {
  /** Called once per wire when its connection attempt has ended, successfully or not. */
  connected(): void
  /**
   * Keeps an unused wire for `milliseconds`. False if the pool is closed. Only for wires on which nothing followed the
   * response: extra bytes would be read as the next response.
   */
  keep(wire: HttpConnection, milliseconds: number): boolean
  /** The wire is closed, whether it was kept or in use. */
  leave(wire: HttpConnection): void
}
