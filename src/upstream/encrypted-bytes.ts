/**
 * The bytes of a TLS connection after its handshake. The runtime reads session tickets and other records that carry
 * nothing, and tells nobody: three thousand of them take six milliseconds.
 */

import type { ResponseHandler } from './http-connection.ts'

/** Ours: encrypted bytes on a connection that carry no data; ordinary session tickets have one thousand bytes. Past it: postern closes the connection. */
export const emptyBytesMax = 64 * 1024
/** Each byte may come in a record of its own. */
const recordBytesPerByte = 24
/** Milliseconds that a megabyte of session tickets takes. Counted as the owner's time. Past it: the owner waits. */
const emptyMsPerMegabyte = 10

export class EncryptedBytes {
  /** Of the chunk that arrived last, and what it carried. */
  #received = 0
  #carried = 0
  #empty = 0

  /** Counts a chunk before it is decrypted. False if too many bytes before it carried nothing. */
  receive(bytes: number, receiver: Pick<ResponseHandler, 'spend'> | undefined): boolean {
    receiver?.spend(((this.#received - this.#carried) / 2 ** 20) * emptyMsPerMegabyte)
    this.#empty = Math.max(0, this.#empty + this.#received - this.#carried * recordBytesPerByte)
    this.#received = bytes
    this.#carried = 0
    return this.#empty <= emptyBytesMax
  }

  /** Counts bytes that were in the chunk. */
  carry(bytes: number): void {
    this.#carried += bytes
  }
}
