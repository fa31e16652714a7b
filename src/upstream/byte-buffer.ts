/**
 * A buffer of bytes that were received and not read yet. Chunks are joined on arrival, because separate one-byte chunks
 * would take eighty times their length in memory. The bytes count against the holder's share of memory.
 */

import type { Holder } from '../fairness/owner.ts'
import type { Shares } from '../fairness/shares.ts'

export interface ByteBuffer {
  /**
   * Says how many bytes will come, and takes the share for all of them: of many large responses at once the first few
   * are read whole, and not each in part. False if the holder's share is used up.
   */
  expect(bytes: number): boolean
  /** False if the holder's share is used up; then the chunk is not kept. */
  add(chunk: Uint8Array): boolean
  /** In bytes. */
  length(): number
  /** Removes and returns all bytes, and releases their share; undefined if there are none. */
  take(): Uint8Array<ArrayBuffer> | undefined
  /** The same, where nobody wants the bytes. */
  discard(): void
}

/** Bytes of one piece of a buffer whose length is unknown. Past it: another piece, so that little is unused. */
const pieceBytesMax = 1024 * 1024

export function createByteBuffer(memory: Shares, holder: Holder): ByteBuffer {
  /** Full, but for the last. A single chunk is not copied, as most responses are one chunk. */
  let pieces: Uint8Array<ArrayBuffer>[] = []
  /** Bytes that the last piece still has room for. */
  let room = 0
  let length = 0
  let expected = 0
  /** Bytes of the holder's share. */
  let taken = 0

  function takeFor(bytes: number): boolean {
    const more = bytes - taken
    if (more <= 0) return true
    if (!memory.take(holder, more)) return false
    taken += more
    return true
  }

  function copy(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      if (room === 0) {
        // The length that a server announces is bounded before.
        room = expected > length ? expected - length : Math.min(length, pieceBytesMax)
        pieces.push(new Uint8Array(room))
      }
      const piece = pieces.at(-1) as Uint8Array
      const part = chunk.subarray(at, at + room)
      piece.set(part, piece.length - room)
      room -= part.length
      at += part.length
      length += part.length
    }
  }

  function joined(): Uint8Array<ArrayBuffer> {
    const [first] = pieces
    // No second copy of a piece that is nearly full.
    if (pieces.length === 1 && first !== undefined && room < length) return first.subarray(0, length)
    const whole = new Uint8Array(length)
    let at = 0
    for (const piece of pieces) {
      whole.set(piece.subarray(0, length - at), at)
      at += piece.length
    }
    return whole
  }

  function discard(): void {
    if (taken > 0) memory.giveBack(holder, taken)
    pieces = []
    room = 0
    length = 0
    taken = 0
  }

  return {
    expect(bytes) {
      expected = bytes
      return takeFor(bytes)
    },
    add(chunk) {
      if (!takeFor(length + chunk.length)) return false
      if (length > 0 || expected > chunk.length) copy(chunk)
      else {
        pieces.push(chunk as Uint8Array<ArrayBuffer>)
        length = chunk.length
      }
      return true
    },
    length: () => length,
    take() {
      const [first] = pieces
      const bytes = first === undefined || first.length === length ? first : joined()
      discard()
      return bytes
    },
    discard,
  }
}

/** A stream that buffers unread bytes on a pile. */
export interface Ahead {
  readonly readable: ReadableStream<Uint8Array>
  /** Passes the chunk to a reader that is waiting; false if none is, and the chunk must go on the pile. */
  give(chunk: Uint8Array): boolean
  /** Ends the stream once the pile is read. */
  end(): void
  /** Ends the stream with an error at once. */
  fail(error: Error): void
}

/** `onCancel` is called if the reader cancels. */
export function readAhead(pile: ByteBuffer, onCancel: () => void): Ahead {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  /** Resolves the pending `pull`; set while the reader is waiting. */
  let wake: (() => void) | undefined
  let hasEnded = false
  let isOver = false

  function awake(): void {
    wake?.()
    wake = undefined
  }

  const readable = new ReadableStream<Uint8Array>(
    {
      start(opened) {
        controller = opened
      },
      async pull(reading) {
        if (pile.length() === 0 && !hasEnded) {
          const { promise, resolve } = Promise.withResolvers<void>()
          wake = resolve
          await promise
        }
        if (isOver) return
        const bytes = pile.take()
        if (bytes !== undefined) reading.enqueue(bytes)
        else if (hasEnded) {
          isOver = true
          reading.close()
        }
      },
      cancel() {
        isOver = true
        awake()
        onCancel()
      },
    },
    new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
  )

  return {
    readable,
    give(chunk) {
      if (wake === undefined || isOver) return false
      controller?.enqueue(chunk)
      awake()
      return true
    },
    end() {
      hasEnded = true
      awake()
    },
    fail(error) {
      if (isOver) return
      isOver = true
      controller?.error(error)
      awake()
    },
  }
}
