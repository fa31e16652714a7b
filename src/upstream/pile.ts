/**
 * Bytes that came and were not read yet. They are joined as they come: kept one by one, chunks of a byte would take
 * eighty times their length. What they take counts for the share of memory of who asked.
 */

import type { Holder, Shares } from '../http/shares.ts'

export interface Pile {
  /** False, and nothing is kept, where the holder's share is used up. */
  add(chunk: Uint8Array): boolean
  length(): number
  /** All of it; undefined for none. Its share is given back. */
  take(): Uint8Array<ArrayBuffer> | undefined
}

export function createPile(memory: Shares, holder: Holder): Pile {
  /** Of the first chunk nothing is copied: most answers are one. */
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

/** A stream whose reader may be behind; what it has not read is on the pile. */
export interface Ahead {
  readonly readable: ReadableStream<Uint8Array>
  /** Gives the chunk to a reader that waits for one; false where none does. */
  give(chunk: Uint8Array): boolean
  /** There is no more than what is on the pile. */
  end(): void
  fail(error: Error): void
}

/** `onCancel`: nobody reads on. */
export function readAhead(pile: Pile, onCancel: () => void): Ahead {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined
  /** Set while the reader waits. */
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
