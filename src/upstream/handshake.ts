/**
 * A TLS handshake in turns, and the error for one that fails. The runtime verifies certificates in one piece, while
 * nothing else runs, and holds each name of one to each name that those above it exclude: 16 kilobytes took 80 ms, and
 * ten take 30. So few bytes are read, in a place of the owner's, and the time that they took counts as the owner's.
 */

import type { ResponseHandler } from './http-connection.ts'

/** Ours: bytes that a server sends until its certificate is verified; most send three to six thousand. Past it: 502. */
export const handshakeBytesMax = 10 * 1024
/** Milliseconds that a handshake keeps its place. Past it: others have their turn, and then it has one again. */
const placeMs = 100

export class Handshake {
  #bytes = 0
  #isOver = false
  #wake = () => {}
  /** When the bytes arrived that are being verified, and what counts the time if nothing else does. */
  #verifying: { readonly from: number; readonly timer: NodeJS.Immediate } | undefined

  /** Reads from the socket while the handshake has a place. Rejects if too many of the owner's wait for one. */
  async takeTurns(socket: Bun.Socket, receiver: Pick<ResponseHandler, 'enterHandshake'>): Promise<void> {
    socket.pause()
    while (!this.#isOver) {
      const leave = await receiver.enterHandshake()
      if (!this.#isOver) {
        const { promise: isUp, resolve } = Promise.withResolvers<void>()
        const timer = setTimeout(resolve, placeMs)
        this.#wake = resolve
        socket.resume()
        await isUp
        clearTimeout(timer)
        if (!this.#isOver) socket.pause()
      }
      leave()
    }
  }

  /** Counts bytes that have arrived and are verified next. False if they are too many to be. */
  count(bytes: number, receiver: Pick<ResponseHandler, 'spend'>): boolean {
    this.#bytes += bytes
    if (this.#bytes > handshakeBytesMax) return false
    this.#verifying ??= { from: performance.now(), timer: setImmediate(() => this.#verified(receiver)) }
    return true
  }

  /** The certificate is verified or refused, or the connection closed. */
  end(receiver?: ResponseHandler): void {
    this.#verified(receiver)
    this.#isOver = true
    this.#wake()
  }

  #verified(receiver: Pick<ResponseHandler, 'spend'> | undefined): void {
    if (this.#verifying === undefined) return
    clearImmediate(this.#verifying.timer)
    receiver?.spend(performance.now() - this.#verifying.from)
    this.#verifying = undefined
  }
}

const privateAuthority =
  'its certificate is signed by an authority that this machine does not trust: if it is a private one, start postern with --upstream-ca FILE'
const certificateProblems: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  EPROTO: 'it does not speak TLS there, or has no certificate for this name',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: privateAuthority,
  SELF_SIGNED_CERT_IN_CHAIN: privateAuthority,
  UNABLE_TO_GET_ISSUER_CERT: privateAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: privateAuthority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: privateAuthority,
  TOO_MANY_BYTES: `it sends more than ${handshakeBytesMax} bytes of certificates: shorten its chain`,
}

/** The error for a server whose TLS certificate was not accepted, with the reason in words. */
export class CertificateError extends Error {
  constructor(problem: Error | { readonly code: string } | null) {
    const { code = '' } = (problem ?? {}) as { code?: string }
    super(certificateProblems[code] ?? `its certificate was not accepted (${code || 'the TLS handshake failed'})`)
  }
}
