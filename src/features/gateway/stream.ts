/** Answers of upstreams, whole and as streams, within budgets of bytes and time. */

import { createParser, type EventSourceMessage } from 'eventsource-parser'
import { PlatformError, type RpcId } from '../../errors.ts'
import { mediaType } from '../../http/body.ts'
import { rpcErrorText } from '../../http/error-response.ts'
import {
  eventBytesAtOnce,
  eventLoopSliceMs,
  responsePieceBytes,
  streamBytesMax,
  streamEventBytesMax,
  streamIdleTimeoutMs,
  streamLifetimeMs,
  upstreamBodyTimeoutMs,
} from '../../limits.ts'

/** Of one message, as text. Throws SyntaxError for what is none, and PlatformError. */
export type Rewrite = (data: string) => Promise<string>

export interface StreamOptions {
  /** Looks at each message, and gives another in its place. */
  readonly rewrite?: Rewrite
  /** Called once, however it ends. */
  readonly onEnd: () => void
  /** Given what ends the stream, with a last text for its reader, until what this gives is called. */
  readonly watch?: (end: (lastWords: string) => void) => () => void
}

/** The stream as it comes. It ends early past its budgets, and the upstream with it when the client goes. */
export function relayStream(
  body: ReadableStream<Uint8Array>,
  { rewrite, onEnd, watch }: StreamOptions,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let bytes = 0
  let hasEnded = false
  const end = () => {
    if (hasEnded) return
    hasEnded = true
    clearTimeout(lifetime)
    unwatch?.()
    onEnd()
  }
  const stop = () => {
    void reader.cancel().catch(() => {})
    end()
  }
  // Whether somebody reads or not.
  const lifetime = setTimeout(stop, streamLifetimeMs)
  const events = rewrite === undefined ? undefined : createRewriter(rewrite)
  let lastWords: Uint8Array | undefined
  const unwatch = watch?.((text) => {
    lastWords = Buffer.from(text)
    stop()
  })
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const timer = setTimeout(stop, streamIdleTimeoutMs)
        try {
          for (;;) {
            const { done, value } = await reader.read()
            bytes += value?.length ?? 0
            if (lastWords !== undefined) controller.enqueue(lastWords)
            if (done || bytes > streamBytesMax || lastWords !== undefined) {
              if (!done) stop()
              end()
              controller.close()
              return
            }
            const out = events === undefined ? value : await events(value)
            if (out.length === 0) continue
            controller.enqueue(out)
            return
          }
        } catch {
          // The upstream broke off: what has come is all there is.
          stop()
          controller.close()
        } finally {
          clearTimeout(timer)
        }
      },
      cancel: stop,
    },
    { highWaterMark: 0 },
  )
}

/** Bytes as a stream that is as far as its reader. `onEnd` is called when all was taken, or the reader left. */
export function streamInPieces(bytes: Uint8Array, onEnd: () => void): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream<Uint8Array>(
    {
      pull(controller) {
        controller.enqueue(bytes.subarray(at, at + responsePieceBytes))
        at += responsePieceBytes
        if (at < bytes.length) return
        controller.close()
        onEnd()
      },
      cancel: onEnd,
    },
    { highWaterMark: 0 },
  )
}

/** What cannot be rewritten is an error among the events, for the request of this id; the others go on. */
export function rewriteEvents(rewrite: Rewrite, id: RpcId): Rewrite {
  return async (data) => {
    try {
      return await rewrite(data)
    } catch (error) {
      if (error instanceof PlatformError) return rpcErrorText(error, id)
      throw error
    }
  }
}

/** An answer of our own, with another message in the place of each. */
export async function rewriteResponse(response: Response, rewrite: Rewrite): Promise<Response> {
  const { status, headers, body } = response
  if (body !== null && mediaType(headers.get('content-type')) === 'text/event-stream') {
    return new Response(relayStream(body, { rewrite, onEnd() {} }), { status, headers })
  }
  return new Response(await rewrite(await response.text()), { status, headers })
}

/** Bytes of a stream of events in, bytes of whole events out. Throws for an event that is too large. */
function createRewriter(rewrite: Rewrite): (bytes: Uint8Array) => Promise<Uint8Array> {
  const decoder = new TextDecoder()
  /** Whole events and what is between them, in their order. */
  let parts: (string | EventSourceMessage)[] = []
  let pending = 0
  const parser = createParser({
    onEvent: (event) => void parts.push(event),
    onRetry: (milliseconds) => void parts.push(`retry: ${milliseconds}\n\n`),
    onComment: () => void parts.push(':\n\n'),
  })
  const lines = new Bun.ArrayBufferSink()
  lines.start({ stream: true, asUint8Array: true })

  function hold(bytes: Uint8Array): void {
    pending += bytes.length
    if (pending > streamEventBytesMax) throw new Error('an event is too large')
    lines.write(bytes)
  }

  return async (bytes) => {
    const end = Math.max(bytes.lastIndexOf(0x0a), bytes.lastIndexOf(0x0d)) + 1
    const turn = { from: performance.now() }
    let text = ''
    // Whole lines only: the parser looks through an unfinished one again with every piece of it. A reader that was
    // behind gets megabytes at once, and hundreds of thousands of events may be in them.
    for (let at = 0; at < end; ) {
      const next = lineEndFrom(bytes, at + eventBytesAtOnce, end)
      hold(bytes.subarray(at, next))
      at = next
      parser.feed(decoder.decode(lines.flush() as Uint8Array, { stream: true }))
      const complete = parts
      parts = []
      for (const part of complete) {
        if (typeof part === 'string') text += part
        else {
          pending = 0
          text += eventText(part, await rewrite(part.data))
        }
        if (isOver(turn)) await nextTurn(turn)
      }
      if (isOver(turn)) await nextTurn(turn)
    }
    hold(bytes.subarray(end))
    return Buffer.from(text)
  }
}

/** Past the end of the line that `at` is in; `end` for none. */
function lineEndFrom(bytes: Uint8Array, at: number, end: number): number {
  let next = at
  while (next < end && bytes[next] !== 0x0a && bytes[next] !== 0x0d) next += 1
  return Math.min(next + 1, end)
}

/** Has this stream had its turn of the event loop? Others have theirs then. */
function isOver({ from }: { from: number }): boolean {
  return performance.now() - from >= eventLoopSliceMs
}

async function nextTurn(turn: { from: number }): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve))
  turn.from = performance.now()
}

/** A message as an event of its own. */
export function messageEvent(data: string): string {
  return eventText({ event: 'message', id: undefined, data }, data)
}

function eventText({ event, id }: EventSourceMessage, data: string): string {
  const lines = data.split('\n').map((line) => `data: ${line}\n`)
  return `${event === undefined ? '' : `event: ${event}\n`}${id === undefined ? '' : `id: ${id}\n`}${lines.join('')}\n`
}

/**
 * The messages of an answer, one or a stream of them, until `take` has what it wants; resolves with the characters that
 * were read for it. `read` makes a message of its text, and throws what that throws. Throws PlatformError
 * `upstream_error`.
 */
export async function messagesOf(
  response: Response,
  id: RpcId,
  take: (message: unknown) => boolean,
  read: (text: string) => Promise<unknown>,
): Promise<number> {
  if (response.body === null) return 0
  if (mediaType(response.headers.get('content-type')) !== 'text/event-stream') {
    try {
      const text = await response.text()
      take(await read(text))
      return text.length
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      throw new PlatformError('upstream_error', 'The upstream does not speak MCP', { id })
    }
  }
  let isDone = false
  let characters = 0
  const reader = relayStream(response.body, {
    // What is no JSON ends the stream.
    async rewrite(data) {
      characters += data.length
      if (!isDone && data !== '') isDone = take(await read(data))
      return data
    },
    onEnd() {},
  }).getReader()
  const deadline = setTimeout(() => void reader.cancel().catch(() => {}), upstreamBodyTimeoutMs)
  try {
    while (!isDone) {
      const { done } = await reader.read()
      if (done) break
    }
    return characters
  } finally {
    clearTimeout(deadline)
    await reader.cancel().catch(() => {})
  }
}
