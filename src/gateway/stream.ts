/** Answers of upstreams, whole and as streams, within budgets of bytes and time. */

import { createParser } from 'eventsource-parser'
import { mediaType } from '../http/body.ts'
import { streamBytesMax, streamEventBytesMax, streamLifetimeMs, streamSilenceMs, upstreamAnswerMs } from '../limits.ts'
import { RpcError, type RpcId } from './rpc-error.ts'

export interface StreamOptions {
  /** Looks at each message, and gives another in its place. */
  readonly rewrite?: (data: string) => string
  /** Called once, however it ends. */
  readonly onEnd: () => void
}

/** The stream as it comes. It ends early past its budgets, and the upstream with it when the client goes. */
export function streamed(
  body: ReadableStream<Uint8Array>,
  { rewrite, onEnd }: StreamOptions,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let bytes = 0
  let hasEnded = false
  const end = () => {
    if (hasEnded) return
    hasEnded = true
    clearTimeout(lifetime)
    onEnd()
  }
  const stop = () => {
    void reader.cancel().catch(() => {})
    end()
  }
  // Whether somebody reads or not.
  const lifetime = setTimeout(stop, streamLifetimeMs)
  const events = rewrite === undefined ? undefined : createRewriter(rewrite)
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const timer = setTimeout(stop, streamSilenceMs)
        try {
          for (;;) {
            const { done, value } = await reader.read()
            bytes += value?.length ?? 0
            if (done || bytes > streamBytesMax) {
              if (!done) stop()
              end()
              controller.close()
              return
            }
            const out = events === undefined ? value : events(value)
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

/** An answer of our own, with another message in the place of each. */
export async function rewritten(response: Response, rewrite: (data: string) => string): Promise<Response> {
  const { status, headers, body } = response
  if (body !== null && mediaType(headers.get('content-type')) === 'text/event-stream') {
    return new Response(streamed(body, { rewrite, onEnd() {} }), { status, headers })
  }
  return new Response(rewrite(await response.text()), { status, headers })
}

/** Bytes of a stream of events in, bytes of whole events out. Throws for an event that is too large. */
function createRewriter(rewrite: (data: string) => string): (bytes: Uint8Array) => Uint8Array {
  const decoder = new TextDecoder()
  let out = ''
  let pending = 0
  const parser = createParser({
    onEvent({ id, event, data }) {
      pending = 0
      const lines = rewrite(data)
        .split('\n')
        .map((line) => `data: ${line}\n`)
      out += `${event === undefined ? '' : `event: ${event}\n`}${id === undefined ? '' : `id: ${id}\n`}${lines.join('')}\n`
    },
    onRetry: (milliseconds) => {
      out += `retry: ${milliseconds}\n\n`
    },
    onComment: () => {
      out += ':\n\n'
    },
  })
  let held: string[] = []
  return (bytes) => {
    pending += bytes.length
    if (pending > streamEventBytesMax) throw new Error('an event is too large')
    const piece = decoder.decode(bytes, { stream: true })
    const end = Math.max(piece.lastIndexOf('\n'), piece.lastIndexOf('\r')) + 1
    // Whole lines only: the parser looks through an unfinished one again with every piece of it.
    if (end === 0) held.push(piece)
    else {
      parser.feed(held.join('') + piece.slice(0, end))
      held = [piece.slice(end)]
    }
    const text = out
    out = ''
    return Buffer.from(text)
  }
}

/** The messages of an answer, one or a stream of them, until `take` has what it wants. Throws RpcError `upstream_down`. */
export async function messagesOf(response: Response, id: RpcId, take: (message: unknown) => boolean): Promise<void> {
  if (response.body === null) return
  if (mediaType(response.headers.get('content-type')) !== 'text/event-stream') {
    try {
      take(JSON.parse(await response.text()))
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      throw new RpcError('upstream_down', 'The upstream does not speak MCP', { id })
    }
    return
  }
  let isDone = false
  const reader = streamed(response.body, {
    // What is no JSON ends the stream.
    rewrite(data) {
      if (!isDone && data !== '') isDone = take(JSON.parse(data))
      return data
    },
    onEnd() {},
  }).getReader()
  const deadline = setTimeout(() => void reader.cancel().catch(() => {}), upstreamAnswerMs)
  try {
    while (!isDone) {
      const { done } = await reader.read()
      if (done) return
    }
  } finally {
    clearTimeout(deadline)
    await reader.cancel().catch(() => {})
  }
}
