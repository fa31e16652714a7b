/**
 * Records tool calls: who called which tool and how it ended, never the arguments (contract, 18.1). An answer is given
 * when its line is written; an event stream is ended when it is.
 */

import type { Clock } from '../../clock.ts'
import { PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { inSlices } from '../../fairness/turns.ts'
import { asPlatformError } from '../../http/error-response.ts'
import type { CallOutcome, CallRecord } from '../../model/recorded-call.ts'
import { argumentsHash, type CallLog, hashingArguments, recordedTool } from '../../ops/call-log.ts'
import { StoreError } from '../../storage/store.ts'
import type { AuthorizedCall } from './authorized-call.ts'
import { createOutcomeReader, type OutcomeReader, statedIn, unanswered } from './call-outcome.ts'
import type { Message } from './message.ts'
import type { Stated } from './outcome-search.ts'
import type { CallProgress } from './upstream-call.ts'

/** Bytes of a message whose arguments are hashed at once, in some 40 microseconds. Past it: in slices. */
const argumentsAtOnceBytesMax = 4096

/** Runs a call, and records how it ended. */
export type RecordCall = ReturnType<typeof createCallRecorder>

export interface CallRecorderOptions {
  /** Undefined if calls are counted only. */
  readonly log: CallLog | undefined
  /** The key that arguments are hashed with. */
  readonly key: Buffer
  /** Receives each outcome, for metrics. */
  readonly observe: ((outcome: CallOutcome, namespace: string, connectionId: string) => void) | undefined
  /** Receives each call that the record has. */
  readonly onRecorded: (call: CallRecord) => void
  readonly requestId: (request: Request) => string
  readonly clock: Clock
}

interface Ending {
  readonly outcome: CallOutcome
  readonly code?: number | string
  readonly constraint?: string
  readonly bytesOut: number
}

type CalledConnection = Pick<AuthorizedCall, 'context' | 'connection' | 'endpoint'>

/** Records a call before its answer ends. The recorder throws what `send` throws; `send` notes how far it has come. */
export function createCallRecorder({ log, key, observe, onRecorded, requestId, clock }: CallRecorderOptions) {
  return async (
    call: CalledConnection,
    message: Message,
    send: (progress: CallProgress) => Promise<Response>,
  ): Promise<Response> => {
    log?.begin() // 503
    const started = clock.monotonic()
    const { caller, request } = call.context
    const { namespace, connectionId } = call.connection
    const end = async (ending: Ending) => {
      let recorded: CallRecord | undefined
      const make = async () => {
        const ms = Math.round((clock.monotonic() - started) * 10) / 10
        const args = await hashOf(key, paramsOf(message).arguments ?? {}, message.bytes.length)
        recorded = recordOf(call, message, ending, { requestId: requestId(request), ms, args })
        return recorded
      }
      try {
        observe?.(ending.outcome, namespace, connectionId)
        if (ending.outcome === 'refused') await log?.refused(caller, make)
        else if (log !== undefined) await log.record(await make())
        if (recorded !== undefined) onRecorded(recorded)
      } finally {
        log?.end()
      }
    }
    let response: Response
    const progress: CallProgress = { isSent: false, isAnswered: false }
    try {
      response = await send(progress)
    } catch (thrown) {
      await end(endingOf(thrown, progress, request.signal.aborted))
      throw thrown
    }
    const { body } = progress
    if (body !== undefined || response.body === null) {
      const bytesOut = typeof body === 'string' ? Buffer.byteLength(body) : (body?.length ?? 0)
      // A notification that is accepted has no answer.
      const isAccepted = message.body['id'] === undefined && response.status < 300 && bytesOut === 0
      await end({
        ...(isAccepted ? { outcome: 'ok' } : await statedIn(allowanceOf(request), body ?? '', message.id)),
        bytesOut,
      })
      return response
    }
    const { status, headers } = response
    const answer = createOutcomeReader(message.id, headers.get('content-type'), allowanceOf(request))
    return new Response(recorded(response.body, answer, { request, progress }, end), { status, headers })
  }
}

const paramsOf = ({ body }: Message) => (body['params'] ?? {}) as { name?: unknown; arguments?: unknown }

function recordOf(
  { context: { caller, request }, connection: { namespace, connectionId }, endpoint }: CalledConnection,
  message: Message,
  { outcome, code, constraint, bytesOut }: Ending,
  { requestId, ms, args }: Pick<CallRecord, 'requestId' | 'ms' | 'args'>,
): CallRecord {
  const { token } = caller
  const { name } = paramsOf(message)
  return {
    requestId,
    userId: caller.userId,
    keyId: caller.keyId,
    ...(token && { jti: token.jti, ...(token.par && { par: token.par }) }),
    namespace,
    connectionId,
    tool: typeof name === 'string' ? recordedTool(name) : '',
    via: endpoint?.via ?? (request.url.includes('/.tools/') ? 'tools' : 'mcp'),
    ...(endpoint?.view !== undefined && { view: endpoint.view.name }),
    outcome,
    ...(code !== undefined && { code }),
    ...(constraint !== undefined && { constraint }),
    ms,
    bytesIn: message.bytes.length,
    bytesOut,
    args,
  }
}

/** Hashes arguments, of a message of so many bytes. */
function hashOf(key: Buffer, args: unknown, bytes: number): Promise<string> | string {
  // Tens of milliseconds for the most values; not in turns of its owner, where it could be refused.
  return bytes > argumentsAtOnceBytesMax ? inSlices(hashingArguments(key, args)) : argumentsHash(key, args)
}

const cancelled: Stated = { outcome: 'cancelled' }

/** How a call ended whose answer nobody waits for any more: its client, or the platform, for which it came too late. */
const cancelledFor = (reason: unknown): Omit<Ending, 'bytesOut'> =>
  reason instanceof PlatformError && reason.code === 'upstream_timeout'
    ? { outcome: 'timeout', code: reason.code }
    : cancelled

/** How a call ended whose stream is over without an answer. */
const endedBy = ({ endedBy: error }: CallProgress): Omit<Ending, 'bytesOut'> =>
  error === undefined ? unanswered : { outcome: 'cancelled', code: error.code }

/** How a call ended that was answered with an error. `isGone`: the caller has disconnected. */
function endingOf(thrown: unknown, { isSent, isAnswered }: CallProgress, isGone: boolean): Ending {
  const error = thrown instanceof StoreError ? new PlatformError('unavailable', thrown.message) : thrown
  const { code, options } = asPlatformError(error)
  // No server has it. A caller that disconnects at once neither hides its refusal nor escapes the limit of such lines.
  if (!isSent && !isAnswered && !isOfUpstream(code)) {
    const { constraint } = options
    return { outcome: 'refused', code, ...(constraint !== undefined && { constraint }), bytesOut: 0 }
  }
  // The server may have executed it: then it was not refused, whatever became of its answer.
  if (isAnswered || isGone || !isOfUpstream(code)) return { outcome: 'cancelled', code, bytesOut: 0 }
  return { outcome: code === 'upstream_timeout' ? 'timeout' : 'upstream_error', code, bytesOut: 0 }
}

function isOfUpstream(code: string): boolean {
  return code.startsWith('upstream_') || code === 'session_not_found' || code === 'internal'
}

/** The stream; its answer is passed on when the call is recorded. A client that goes before has cancelled the call. */
function recorded(
  body: ReadableStream<Uint8Array>,
  answer: OutcomeReader,
  { request, progress }: { readonly request: Request; readonly progress: CallProgress },
  end: (ending: Ending) => Promise<void>,
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  let bytesOut = 0
  let isOver = false
  const finish = async (ending: Omit<Ending, 'bytesOut'>) => {
    if (isOver) return
    isOver = true
    // A client that goes, or silence, may end a thousand streams in one.
    await allowanceOf(request).pass('end')
    await end({ ...ending, bytesOut })
  }
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (!done) {
          bytesOut += value.length
          // The event that says why the platform ended the stream is no answer of the server.
          if (progress.endedBy === undefined) await answer.add(value)
          // A server may keep the stream open for an hour after the answer.
          if (answer.found !== undefined) await finish(answer.found)
          controller.enqueue(value)
          return
        }
        await finish(answer.stated() ?? endedBy(progress))
        controller.close()
      } catch (error) {
        await finish(request.signal.aborted ? cancelled : unanswered).catch(() => {})
        controller.error(error)
      }
    },
    async cancel(reason) {
      // A whole answer that was not read to its end was not had.
      await Promise.allSettled([finish(answer.found ?? cancelledFor(reason)), reader.cancel(reason)])
    },
  })
}
