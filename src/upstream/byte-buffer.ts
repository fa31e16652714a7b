/**
 * A buffer of bytes that were received and not read yet. Chunks are joined on arrival, because separate one-byte chunks
 * would take eighty times their length in memory. The bytes count against the holder's share of memory.
 */

import type { Holder } from '../fairness/owner.ts'
import type { Shares } from '../fairness/shares.ts'

export interface ByteBuffer {
  /** False if the holder's share is used up; then the chunk is not kept. */
  add(chunk: Uint8Array): boolean
  /** In bytes. */
  length(): number
  /** Removes and returns all bytes, and releases their share; undefined if there are none. */
  take(): Uint8Array<ArrayBuffer> | undefined
}

export function createByteBuffer(memory: Shares, holder: Holder): ByteBuffer {
  /** A single chunk is not copied, as most responses are one chunk. */
  let first: Uint8Array<ArrayBuffer> | undefined
  let joined: Bun.ArrayBufferSink | undefined
  let length = 0
  return {
    add(chunk) {
      if (!memory.take(holder, chunk.length)) return false
      length += chunk.length
      if (first === undefined && joined === undefined) first = chunk as Uint8Array<ArrayBuffer>
      else {
        joined ??= openSink(first)
        first = undefined
        joined.write(chunk)
      }
      return true
    },
    length: () => length,
    take() {
      const bytes = first ?? (joined?.end() as Uint8Array<ArrayBuffer> | undefined)
      if (length > 0) memory.giveBack(holder, length)
      first = undefined
      joined = undefined
      length = 0
      return bytes
    },
  }
}

function openSink(first: Uint8Array | undefined): Bun.ArrayBufferSink {
  const sink = new Bun.ArrayBufferSink()
  sink.start({ asUint8Array: true })
  if (first !== undefined) sink.write(first)
  return sink
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
