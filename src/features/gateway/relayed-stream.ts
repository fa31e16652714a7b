/** Upstream responses, as event streams or whole, relayed and rewritten within limits on bytes and time. */

import type { ReadableStreamDefaultReader } from 'node:stream/web'
import { createParser, type EventSourceMessage, type EventSourceParser } from 'eventsource-parser'
import { PlatformError, type RpcId } from '../../errors.ts'
import type { Allowance } from '../../fairness/allowance.ts'
import type { Holder } from '../../fairness/owner.ts'
import type { Shares } from '../../fairness/shares.ts'
import { mediaType } from '../../http/body.ts'
import { rpcErrorText } from '../../http/error-response.ts'
import * as limits from '../../limits.ts'
import { notMcp } from '../../model/mcp.ts'
import { nextTurn } from '../../next-turn.ts'
import { lineEndsIn } from '../../upstream/exchange.ts'
import { within } from '../../within.ts'

/**
 * Rewrites the text of one JSON-RPC message. `type`: of its event, if that states one. Rejects with SyntaxError if it is
 * not one, and with PlatformError.
 */
export type Rewrite = (data: string, type?: string) => Promise<string>

interface StreamOptions {
  /** Replaces each message. If left out, the bytes are passed on without parsing. */
  readonly rewrite?: Rewrite
  /**
   * Large events that are rewritten count for its memory; the stream ends where it has no memory for one. Left out for
   * an answer of ours that is counted already. `allowance`: pieces that were waiting are rewritten in its turns, and
   * each event counts for its time.
   */
  readonly owner?:
    | { readonly holder: Holder; readonly memory: Shares; readonly allowance?: Pick<Allowance, 'run' | 'spend'> }
    | undefined
  /** Called once when the stream ends, for whatever reason. */
  readonly onEnd?: () => void
  /** Receives a function that ends the stream after sending `finalEvent`. Returns a function that stops watching. */
  readonly watch?: (end: (finalEvent: string) => void) => () => void
}

/**
 * Relays an upstream's stream, reading only as fast as the client does. The stream ends early after
 * `streamIdleTimeoutMs` without data, after `streamLifetimeMs` or past `streamBytesMax`. If the client disconnects, the
 * upstream's stream is cancelled. It always closes normally, never with an error.
 */
export function relayStream(body: ReadableStream<Uint8Array>, options: StreamOptions): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(new Relay(body, options), { highWaterMark: 0 })
}

class Relay {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #events: Rewriter | undefined
  readonly #onEnd: StreamOptions['onEnd']
  readonly #unwatch: (() => void) | undefined
  // Also runs while the client is not reading, so an abandoned stream cannot hold its slot for ever.
  readonly #lifetime = setTimeout(() => this.cancel(), limits.streamLifetimeMs)
  // One for the whole stream, as it is read in many pieces. It counts while the client waits.
  readonly #silence = setTimeout(() => {
    if (this.#isWaiting) this.cancel()
  }, limits.streamIdleTimeoutMs)
  #isWaiting = false
  #bytes = 0
  #hasEnded = false
  #finalEvent: Uint8Array | undefined

  constructor(body: ReadableStream<Uint8Array>, { rewrite, owner, onEnd, watch }: StreamOptions) {
    this.#reader = body.getReader()
    this.#events = rewrite && new Rewriter(rewrite, owner)
    this.#onEnd = onEnd
    this.#unwatch = watch?.((text) => {
      this.#finalEvent = Buffer.from(text)
      this.cancel()
    })
  }

  async pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#isWaiting = true
    this.#silence.refresh()
    try {
      for (;;) {
        const { done, value } = await this.#reader.read()
        this.#bytes += value?.length ?? 0
        const last = this.#finalEvent ?? (done ? await this.#events?.rewriteLast() : undefined)
        if (last !== undefined && last.length > 0) controller.enqueue(last)
        if (done || this.#bytes > limits.streamBytesMax || this.#finalEvent !== undefined) {
          if (!done) this.cancel()
          this.#end()
          controller.close()
          return
        }
        const out = this.#events === undefined ? value : await this.#events.rewrite(value)
        if (out.length > 0) {
          controller.enqueue(out)
          return
        }
        // A client that was slow may be followed by a thousand pieces that complete no event.
        await nextTurn()
      }
    } catch {
      // The upstream is gone, or an event could not be rewritten. The client keeps the events before that.
      this.cancel()
      controller.close()
    } finally {
      this.#isWaiting = false
    }
  }

  /** Resolves when the upstream's side has ended. */
  cancel(reason?: unknown): Promise<void> {
    this.#end()
    return this.#reader.cancel(reason).catch(() => {})
  }

  #end(): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    clearTimeout(this.#lifetime)
    clearTimeout(this.#silence)
    this.#events?.end()
    this.#unwatch?.()
    this.#onEnd?.()
  }
}

/** Turns a PlatformError or SyntaxError of one event into a JSON-RPC error event for this id; the stream continues. */
export function errorsAsMessages(rewrite: Rewrite, id: RpcId): Rewrite {
  return async (data, type) => {
    try {
      return await rewrite(data, type)
    } catch (error) {
      if (error instanceof SyntaxError) return rpcErrorText(notInMcp(id), id)
      if (error instanceof PlatformError) return rpcErrorText(error, id)
      throw error
    }
  }
}

const notInMcp = (id: RpcId) => new PlatformError('upstream_error', `The MCP server ${notMcp}`, { id })

/** Whether a response is an event stream. */
export function isEventStream(headers: Headers): boolean {
  return mediaType(headers.get('content-type')) === 'text/event-stream'
}

/** Rewrites each message of an answer that we generated (a mock's). */
export async function rewriteAnswer(body: string, headers: Headers, rewrite: Rewrite): Promise<string> {
  if (!isEventStream(headers)) return rewrite(body)
  return new Response(relayStream(new Blob([body]).stream(), { rewrite })).text()
}

/** Bytes of an event that is not counted: most have fewer. Past it: it counts with all that is made of it. */
const uncountedEventBytesMax = 64 * 1024
/** Bytes of memory for a line of an event besides its text, divided by `eventMemoryFactor`. */
const lineBytes = 16
/** An event is there as bytes and as text, and once more rewritten. */
export const eventMemoryFactor = 4

const lineFeed = Buffer.from('\n')

/** Bytes of a piece that may have waited for its client to read. Below it: the piece is read as it arrives. */
export const waitingBytesMin = 4096
/** Milliseconds of an event that is rewritten, besides what its text takes. A server may send a hundred thousand. */
const eventMs = 0.004

/** A whole slice of its owner: what awaits it runs alone in a turn. The first step is small, so it is not refused. */
export function* ownTurn(): Generator<number, void> {
  yield 1
  yield limits.sliceCost
}

class Rewriter {
  readonly #rewrite: Rewrite
  readonly #owner: StreamOptions['owner']
  readonly #decoder = new TextDecoder()
  /** Parsed events, and the retry and comment lines between them, in order. */
  #parts: (string | EventSourceMessage)[] = []
  /** Bytes and ends of lines since the last complete event. */
  #pending = 0
  #lineEnds = 0
  readonly #parser = createParser({
    onEvent: (event) => void this.#parts.push(event),
    onRetry: (milliseconds) => void this.#parts.push(`retry: ${milliseconds}\n\n`),
    onComment: () => void this.#parts.push(':\n\n'),
  })
  /** Bytes not given to the parser yet. */
  readonly #lines = openSink()
  #endsInCarriageReturn = false
  /** Bytes of the owner's memory that are taken. */
  #taken = 0
  #hasEnded = false

  constructor(rewrite: Rewrite, owner: StreamOptions['owner']) {
    this.#rewrite = rewrite
    this.#owner = owner
  }

  /**
   * Takes the bytes of an event stream as they arrive, and returns the bytes of the events that they complete,
   * rewritten. Comments lose their text and keep their place, because they keep a connection alive. Throws for an event
   * larger than `streamEventBytesMax`, and where the owner has no memory for it.
   */
  async rewrite(bytes: Uint8Array): Promise<Uint8Array> {
    // The client has taken the events before.
    this.#takeFor(this.#pending + lineBytes * this.#lineEnds)
    if (bytes.length > 0) this.#endsInCarriageReturn = bytes.at(-1) === 0x0d
    const end = Math.max(bytes.lastIndexOf(0x0a), bytes.lastIndexOf(0x0d)) + 1
    let text = ''
    // Whole lines only: the parser rescans an unfinished line with every piece of it. In steps of `eventBytesAtOnce`: a
    // client that was slow can receive megabytes at once, with hundreds of thousands of events in them.
    for (let at = 0; at < end; ) {
      // One that is small has just arrived.
      if (bytes.length >= waitingBytesMin) await (this.#owner?.allowance?.run(ownTurn()) ?? nextTurn())
      const next = lineEndFrom(bytes, at + limits.eventBytesAtOnce, end)
      this.#hold(bytes.subarray(at, next))
      at = next
      feed(this.#parser, this.#decoder.decode(this.#lines.flush(), { stream: true }))
      const complete = this.#parts
      this.#parts = []
      this.#owner?.allowance?.spend(complete.length * eventMs)
      for (const part of complete) {
        if (typeof part === 'string') text += part
        else {
          this.#pending = 0
          this.#lineEnds = 0
          text += eventText(part, await this.#rewrite(part.data, part.event))
        }
      }
      // An event that is rewritten may be longer, and so may the many errors in place of short ones.
      this.#takeFor(Math.max(text.length, this.#taken / eventMemoryFactor))
    }
    this.#hold(bytes.subarray(end))
    return Buffer.from(text)
  }

  /** The events that the end of the stream completes: after a carriage return, no line feed can follow any more. */
  async rewriteLast(): Promise<Uint8Array | undefined> {
    return this.#endsInCarriageReturn ? this.rewrite(lineFeed) : undefined
  }

  /** Gives back the memory of what is held. A rewrite that is under way then fails. */
  end(): void {
    this.#hasEnded = true
    this.#takeFor(0)
  }

  #takeFor(bytes: number): void {
    const amount = bytes <= uncountedEventBytesMax ? 0 : bytes * eventMemoryFactor
    if (this.#owner === undefined || amount === this.#taken) return
    const { holder, memory } = this.#owner
    if (amount < this.#taken) memory.giveBack(holder, this.#taken - amount)
    else if (!memory.take(holder, amount - this.#taken)) throw new Error('there is no memory for an event')
    this.#taken = amount
  }

  #hold(bytes: Uint8Array): void {
    // Nobody would give back what is taken from now on.
    if (this.#hasEnded) throw new Error('the stream has ended')
    this.#pending += bytes.length
    this.#lineEnds += lineEndsIn(bytes)
    if (this.#pending > limits.streamEventBytesMax) throw new Error('an event is too large')
    this.#takeFor(Math.max(this.#pending + lineBytes * this.#lineEnds, this.#taken / eventMemoryFactor))
    this.#lines.write(bytes)
  }
}

/**
 * The parser makes an error of each line that has a field which it does not know, and would take thirty microseconds
 * for the stack of each: a server may send thousands of such lines.
 */
function feed(parser: EventSourceParser, text: string): void {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = 0
  try {
    parser.feed(text)
  } finally {
    Error.stackTraceLimit = stackTraceLimit
  }
}

/**
 * Collects bytes; `flush` gives them in one piece, and empties it. A list of pieces would take hundreds of bytes for
 * each, of which a server may send one byte at a time, and joining them one by one would be quadratic.
 */
function openSink() {
  const sink = new Bun.ArrayBufferSink()
  sink.start({ stream: true, asUint8Array: true })
  return sink as { write(bytes: Uint8Array): void; flush(): Uint8Array }
}

/** The position after the line that contains `at`; `end` if that line is not complete. */
function lineEndFrom(bytes: Uint8Array, at: number, end: number): number {
  let next = at
  while (next < end && bytes[next] !== 0x0a && bytes[next] !== 0x0d) next += 1
  return Math.min(next + 1, end)
}

/** A JSON-RPC message as a server-sent event. */
export function messageEvent(data: string): string {
  return eventText({ event: 'message', id: undefined, data }, data)
}

function eventText({ event, id }: EventSourceMessage, data: string): string {
  const head = `${event === undefined ? '' : `event: ${event}\n`}${id === undefined ? '' : `id: ${id}\n`}`
  return `${head}data: ${data.replaceAll('\n', '\ndata: ')}\n\n`
}

interface Reading extends Pick<StreamOptions, 'owner'> {
  /** Returns true for the last message that is wanted. */
  readonly take: (message: unknown) => boolean
  /** Parses. */
  readonly read: (text: string) => Promise<unknown>
  /** Milliseconds in which a stream must have the last message that is wanted. */
  readonly timeoutMs?: number
}

/**
 * Parses the messages of a response, whole or a stream, and passes each on until there are enough. The rest of a stream
 * is cancelled. Resolves with the number of characters parsed. A stream ends at an event that is not JSON. Rejects with
 * PlatformError: `upstream_error` for a whole response that is not JSON, and `upstream_timeout` for a late stream.
 */
export async function readMessages(
  response: Response,
  id: RpcId,
  { take, read, owner, timeoutMs = limits.upstreamBodyTimeoutMs }: Reading,
): Promise<number> {
  if (response.body === null) return 0
  if (!isEventStream(response.headers)) {
    try {
      const text = await response.text()
      take(await read(text))
      return text.length
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error
      throw notInMcp(id)
    }
  }
  let isDone = false
  let characters = 0
  const reader = relayStream(response.body, {
    owner,
    // An event that is not JSON throws here, which ends the stream.
    async rewrite(data, type = 'message') {
      characters += data.length
      // Clients leave events of other types alone, and so does the record of calls.
      if (!isDone && data !== '' && type === 'message') isDone = take(await read(data))
      return data
    },
  }).getReader()
  const reading = async () => {
    while (!isDone) if ((await reader.read()).done) break
    return characters
  }
  let late: PlatformError | undefined
  try {
    return await within(timeoutMs, reading(), () => {
      const text = `The MCP server is too slow: no response within ${Math.ceil(timeoutMs / 1000)} s`
      late = new PlatformError('upstream_timeout', text, { id })
      throw late
    })
  } finally {
    // A late call is recorded as late, before the answer.
    await reader.cancel(late).catch(() => {})
  }
}
