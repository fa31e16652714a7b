/**
 * Records calls of tools: who called which tool, how it ended, never with what (door contract, 9). An answer is given
 * when its line is written; an event stream is ended when it is.
 */

import { createHmac } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import type { AuthorizedConnection, RequestContext } from '../../auth/authorize.ts'
import { PlatformError } from '../../errors.ts'
import { asPlatformError } from '../../http/error-response.ts'
import { knownBody } from '../../http/known-body.ts'
import { callHashesKeptMax, callOutcomeBytesMax } from '../../limits.ts'
import type { CallLog, CallOutcome, CallRecord } from '../../ops/call-log.ts'
import { canonicalJson } from '../../schema/canonical-json.ts'
import type { Message } from './message.ts'

export interface CallRecorder {
  /** Runs a call, and records how it ended before its answer ends. Throws what `send` throws. */
  record(call: RecordedCall, message: Message, send: () => Promise<Response>): Promise<Response>
}

export interface CallRecorderOptions {
  readonly log: CallLog
  /** The key that arguments are hashed with. */
  readonly key: Buffer
  /** Receives each outcome, for metrics. */
  readonly observe: ((outcome: CallOutcome, namespace: string, connectionId: string) => void) | undefined
  readonly requestId: (request: Request) => string
  /** A monotonic clock, in milliseconds. */
  readonly monotonic: () => number
}

/** The request that calls, and the connection that it calls. */
interface RecordedCall {
  readonly context: RequestContext
  readonly connection: AuthorizedConnection
}

interface Ending {
  readonly outcome: CallOutcome
  readonly code?: number | string
  readonly bytesOut: number
}

export function createCallRecorder(options: CallRecorderOptions): CallRecorder {
  const { log, key, observe, requestId, monotonic } = options
  const hashes = new LRUCache<string, string>({
    max: callHashesKeptMax,
    maxEntrySize: 4096,
    maxSize: 4096 * 100,
    sizeCalculation: (_, text) => text.length + 1,
  })

  /** HMAC-SHA-256 of the canonical form (RFC 8785): the same for the same arguments in any order. */
  function hashOf(args: unknown): string {
    const text = JSON.stringify(args) ?? 'null'
    const kept = hashes.get(text)
    if (kept !== undefined) return kept
    const hash = createHmac('sha256', key).update(canonicalJson(args)).digest('base64url')
    hashes.set(text, hash)
    return hash
  }

  return {
    async record(call, message, send) {
      const started = monotonic()
      const { caller, request } = call.context
      const { name, arguments: args = {} } = (message.body['params'] ?? {}) as { name?: unknown; arguments?: unknown }
      const line = ({ outcome, code, bytesOut }: Ending): CallRecord => ({
        requestId: requestId(request),
        userId: caller.userId,
        keyId: caller.keyId,
        ...(caller.token && { jti: caller.token.jti, ...(caller.token.par && { par: caller.token.par }) }),
        namespace: call.connection.namespace,
        connectionId: call.connection.connectionId,
        tool: typeof name === 'string' ? name.slice(0, 256) : '',
        via: request.url.includes('/.tools/') ? 'tools' : 'mcp',
        outcome,
        ...(code !== undefined && { code }),
        ms: Math.round((monotonic() - started) * 10) / 10,
        bytesIn: message.bytes.length,
        bytesOut,
        args: hashOf(args),
      })
      const end = (ending: Ending) => {
        observe?.(ending.outcome, call.connection.namespace, call.connection.connectionId)
        return log.record(line(ending))
      }
      let response: Response
      try {
        response = await send()
      } catch (thrown) {
        const ending = endingOf(thrown, request)
        if (ending.outcome === 'refused') {
          observe?.('refused', call.connection.namespace, call.connection.connectionId)
          log.refused(line(ending))
        } else await end(ending)
        throw thrown
      }
      const body = knownBody(response)
      if (body !== undefined || response.body === null) {
        await end(outcomeOf(body ?? ''))
        return response
      }
      return new Response(recorded(response.body, request, end), { status: response.status, headers: response.headers })
    },
  }
}

/** How a call ended that was answered with an error. */
function endingOf(thrown: unknown, request: Request): Ending {
  const { code } = asPlatformError(thrown)
  if (request.signal.aborted) return { outcome: 'cancelled', code, bytesOut: 0 }
  if (code === 'upstream_timeout') return { outcome: 'timeout', code, bytesOut: 0 }
  const isUpstreams = code.startsWith('upstream_') || code === 'session_not_found' || code === 'internal'
  const isOurs = !isUpstreams || !(thrown instanceof PlatformError)
  return { outcome: isOurs && code !== 'internal' ? 'refused' : 'upstream_error', code, bytesOut: 0 }
}

/** The outcome that a JSON-RPC response states. It is parsed only if it may be an error. */
function outcomeOf(body: Uint8Array | string): Ending {
  const bytesOut = typeof body === 'string' ? Buffer.byteLength(body) : body.length
  const whole = typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  if (bytesOut > callOutcomeBytesMax || !(whole.includes('"error"') || whole.includes('"isError"'))) {
    return { outcome: 'ok', bytesOut }
  }
  return { ...statedIn(whole.toString()), bytesOut }
}

function statedIn(text: string): Omit<Ending, 'bytesOut'> {
  try {
    const { error, result } = JSON.parse(text) as { error?: { code?: unknown } | null; result?: { isError?: unknown } }
    if (error !== undefined && error !== null) {
      const { code } = error
      return { outcome: 'rpc_error', ...(typeof code === 'number' && { code }) }
    }
    return { outcome: result?.isError === true ? 'tool_error' : 'ok' }
  } catch {
    return { outcome: 'upstream_error' }
  }
}

/**
 * The stream, which ends when the call is recorded. The last event is looked at: the response to the request. A client
 * that disconnects has cancelled the call.
 */
function recorded(
  body: ReadableStream<Uint8Array>,
  request: Request,
  end: (ending: Ending) => Promise<void>,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let bytesOut = 0
  let tail = Buffer.alloc(0)
  let isOver = false
  const finish = async (ending: Omit<Ending, 'bytesOut'>) => {
    if (isOver) return
    isOver = true
    await end({ ...ending, bytesOut })
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) {
          bytesOut += value.length
          // A whole response fits; of a larger one the end does not say how it began, and counts as ok.
          tail = Buffer.concat([tail, value]).subarray(-callOutcomeBytesMax)
          controller.enqueue(value)
          return
        }
        await finish(lastStated(tail))
        controller.close()
      } catch (error) {
        await finish({ outcome: request.signal.aborted ? 'cancelled' : 'upstream_error' }).catch(() => {})
        controller.error(error)
      }
    },
    async cancel(reason) {
      await Promise.allSettled([finish({ outcome: 'cancelled' }), reader.cancel(reason)])
    },
  })
}

/** The outcome that the last message of a stream, or a body in pieces, states. */
function lastStated(tail: Buffer): Omit<Ending, 'bytesOut'> {
  if (!(tail.includes('"error"') || tail.includes('"isError"'))) return { outcome: 'ok' }
  const text = tail.toString()
  if (text.trimStart().startsWith('{')) return statedIn(text)
  const data = text
    .split(/\r?\n\r?\n/)
    .filter((event) => event.trim() !== '')
    .at(-1)
    ?.split(/\r?\n/)
    .flatMap((line) => (line.startsWith('data:') ? [line.slice(5)] : []))
    .join('\n')
  return data === undefined || data === '' ? { outcome: 'ok' } : statedIn(data)
}
