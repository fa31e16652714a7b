/**
 * A buffer of bytes that were received and not read yet. Chunks are joined on arrival, because separate one-byte chunks
 * would take eighty times their length in memory. They are copied, because the runtime reads up to half a megabyte at
 * once, all of which a chunk would keep in memory. The bytes count against the holder's share of memory.
 */

import type { Holder } from '../fairness/owner.ts'
import type { Shares } from '../fairness/shares.ts'

/**
 * Bytes of one piece of a buffer whose length is unknown, and that a stream passes on at once: until its client reads
 * them, the runtime keeps them, and nobody counts them. Past it: another piece.
 */
const pieceBytesMax = 16 * 1024

export class ByteBuffer {
  readonly #memory: Shares
  readonly #holder: Holder
  /** Full, but for the last. Most responses are one chunk, and one piece. */
  #pieces: Uint8Array<ArrayBuffer>[] = []
  /** Bytes that the last piece still has room for. */
  #room = 0
  #expected = 0
  /** Bytes of the holder's share: of those that were received or are expected, and of the room for more. */
  #taken = 0
  /** In bytes. */
  length = 0

  constructor(memory: Shares, holder: Holder) {
    this.#memory = memory
    this.#holder = holder
  }

  /**
   * Says how many bytes will come, and takes the share for all of them: of many large responses at once the first few
   * are read whole, and not each in part. False if the holder's share is used up.
   */
  expect(bytes: number): boolean {
    this.#expected = bytes
    return this.#takeFor(bytes)
  }

  /** False if the holder's share is used up; then the rest of the chunk is not kept. */
  add(chunk: Buffer): boolean {
    for (let at = 0; at < chunk.length; ) {
      if (this.#room === 0) {
        // The length that a server announces is bounded before.
        const whole = Math.max(this.#expected, chunk.length)
        const room = this.length === 0 ? whole : Math.min(this.length, pieceBytesMax)
        if (!this.#takeFor(this.length + room)) return false
        this.#pieces.push(new Uint8Array(room))
        this.#room = room
      }
      const piece = this.#pieces.at(-1) as Uint8Array
      const copied = chunk.copy(piece, piece.length - this.#room, at)
      this.#room -= copied
      this.length += copied
      at += copied
    }
    return true
  }

  /** Removes and returns all bytes, and releases their share; undefined if there are none. */
  take(): Uint8Array<ArrayBuffer> | undefined {
    const [first] = this.#pieces
    const isWhole = first === undefined || first.length === this.length
    const bytes = isWhole ? first : Bun.concatArrayBuffers(this.#pieces, this.length, true)
    if (!isWhole) this.#free()
    this.#forget()
    return bytes
  }

  /** Removes and returns the first piece, and releases its share; undefined if there is none. */
  takePiece(): Uint8Array<ArrayBuffer> | undefined {
    if (this.#pieces.length < 2) return this.take()
    const piece = this.#pieces.shift() as Uint8Array<ArrayBuffer>
    this.#memory.giveBack(this.#holder, piece.length)
    this.#taken -= piece.length
    this.length -= piece.length
    return piece
  }

  /** The same, where nobody wants the bytes. */
  discard(): void {
    this.#free()
    this.#forget()
  }

  /** Gives the memory of pieces back before they are collected: of large responses that may be a hundred megabytes. */
  #free(): void {
    for (const { buffer } of this.#pieces) buffer.transfer(0)
  }

  #forget(): void {
    if (this.#taken > 0) this.#memory.giveBack(this.#holder, this.#taken)
    this.#pieces = []
    this.#room = 0
    this.#taken = 0
    this.length = 0
  }

  #takeFor(bytes: number): boolean {
    const more = bytes - this.#taken
    if (more <= 0) return true
    if (!this.#memory.take(this.#holder, more)) return false
    this.#taken = bytes
    return true
  }
}

/** A stream, and the functions that feed and end it. */
export type Ahead = ReturnType<typeof readAhead>

/** A stream that buffers unread bytes on a pile. `onCancel` is called if the reader cancels. */
export function readAhead(pile: ByteBuffer, onCancel: () => void) {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  /** The reader has read all that there is, and waits for more. */
  let isWaiting = false
  let hasEnded = false
  let isOver = false

  /** Passes the chunk to a reader that is waiting; false if none is, and the chunk must go on the pile. */
  function give(chunk: Uint8Array): boolean {
    if (!isWaiting) return false
    isWaiting = false
    controller?.enqueue(new Uint8Array(chunk))
    return true
  }

  /** Ends the stream once the pile is read; with an error at once. */
  function end(error?: Error): void {
    hasEnded = true
    if (isOver || (error === undefined && !isWaiting)) return
    isOver = true
    isWaiting = false
    if (error === undefined) controller?.close()
    else controller?.error(error)
  }

  const readable = new ReadableStream<Uint8Array>(
    {
      start(opened) {
        controller = opened
      },
      pull(reading) {
        const bytes = pile.takePiece()
        if (bytes !== undefined) reading.enqueue(bytes)
        else {
          isWaiting = true
          if (hasEnded) end()
        }
      },
      cancel() {
        isOver = true
        isWaiting = false
        onCancel()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
  )
  return { readable, give, end }
}
