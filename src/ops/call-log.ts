/**
 * The record of calls, `calls.jsonl`: a line for each `tools/call`, chained as the audit log is. One process writes it,
 * so it needs no lock. Lines of one turn of the event loop are written at once, before the answers of their calls end:
 * a call that was answered is in the file, whatever kills the process after. The file may be moved away at any time.
 */

import { createHmac } from 'node:crypto'
import { dirname } from 'node:path'
import { callLogCheckMs, callRefusalsPerSecond, freeBytesMin } from '../limits.ts'
import { canonicalJson } from '../schema/canonical-json.ts'
import { type freeBytes, requireFreeSpace } from '../storage/free-space.ts'
import { type CallFileOptions, openCallFile } from './call-file.ts'
import { createRefusalCount, type RefusedCaller } from './denial-count.ts'
import { cannotWrite, createLineBatch } from './line-batch.ts'

/**
 * How a call ended. `refused`: it never reached the server. `cancelled`: the answer did not reach the caller, who
 * disconnected, lost the right to it meanwhile, or has no share of memory left for it (`code`: `rate_limited`).
 */
export type CallOutcome = (typeof callOutcomes)[number]
export const callOutcomes = [
  ...(['ok', 'tool_error', 'rpc_error', 'refused'] as const),
  ...(['upstream_error', 'timeout', 'cancelled'] as const),
] as const

/** A line, without time, number and hashes. Times in milliseconds, sizes in bytes. */
export interface CallRecord {
  readonly requestId: string
  readonly userId: string
  readonly keyId: string
  readonly jti?: string
  readonly par?: readonly string[]
  readonly namespace: string
  readonly connectionId: string
  /** The tool's own name. */
  readonly tool: string
  readonly via: 'mcp' | 'tools'
  readonly outcome: CallOutcome
  /** The JSON-RPC code, or the code of the platform's error. */
  readonly code?: number | string
  readonly ms: number
  readonly bytesIn: number
  readonly bytesOut: number
  /** A keyed hash of the arguments: the same for the same arguments. */
  readonly args: string
}

/** HMAC-SHA-256 of the arguments' canonical form (RFC 8785): the same for the same arguments in any order. */
export function argumentsHash(key: Buffer, args: unknown): string {
  return createHmac('sha256', key).update(canonicalJson(args)).digest('base64url')
}

export interface CallLog {
  /**
   * Asked before a call. Throws StoreError `unavailable` if the disk has room for revocations only, and if lines could
   * not be written and still cannot; where they can be again, a line says how many are missing.
   */
  requireWritable(): void
  /** Resolves when the line is in the file. Rejects with StoreError `indeterminate` if it cannot be written. */
  record(call: CallRecord): Promise<void>
  /**
   * Records a refused call, as `record` does. Past a bound of its caller, and one of all, only their number is written,
   * by caller, when the second is over; then no record is made.
   */
  refused(caller: RefusedCaller, makeRecord: () => CallRecord): Promise<void>
  /** Opens the file of this name, if another one was moved there or the file was moved away. */
  reopen(): void
  close(): void
}

export interface CallLogOptions extends CallFileOptions {
  /** Free bytes of the disk of a folder; as the system says by default. */
  readonly free?: typeof freeBytes
  readonly onFailure: (error: unknown) => void
}

const secondMs = 1000
/** In errors. */
const logName = 'the record of calls'

export function openCallLog(path: string, { onFailure, free, ...options }: CallLogOptions): CallLog {
  const file = openCallFile(path, options)
  /** Lines that could not be written. */
  let lost = 0
  const lines = createLineBatch((entries) => file.append(entries))
  /** When the disk had enough room, by the monotonic clock. */
  let roomyAt = Number.NEGATIVE_INFINITY
  let second = 0
  const refusals = createRefusalCount({ perCaller: callRefusalsPerSecond, inAll: callRefusalsPerSecond })
  let countTimer: ReturnType<typeof setTimeout> | undefined

  const add = (event: string, fields: object) =>
    lines.add(event, fields).catch((error: unknown) => {
      lost += 1
      throw cannotWrite(logName, 'indeterminate', error)
    })

  /** Writes the number of refusals that were only counted. */
  function writeCounts(): void {
    clearTimeout(countTimer)
    countTimer = undefined
    for (const { caller, count } of refusals.end())
      add('refusals.unwritten', { userId: caller?.userId, keyId: caller?.keyId, count }).catch(onFailure)
  }

  return {
    requireWritable() {
      if (options.monotonic() - roomyAt >= callLogCheckMs) {
        requireFreeSpace(dirname(path), 0, freeBytesMin, free)
        roomyAt = options.monotonic()
      }
      if (lost === 0) return
      try {
        file.append([{ event: 'calls.lost', fields: { count: lost } }])
        lost = 0
      } catch (error) {
        throw cannotWrite(logName, 'unavailable', error)
      }
    },
    record: (call) => add('call', call),
    async refused(caller, makeRecord) {
      const current = Math.floor(options.monotonic() / secondMs)
      if (current !== second) {
        writeCounts()
        second = current
      }
      if (refusals.isWritten(caller)) return add('call', makeRecord())
      // Without a further refusal, the timer ends the second.
      countTimer ??= setTimeout(writeCounts, secondMs).unref()
    },
    reopen() {
      try {
        file.reopen()
      } catch (error) {
        onFailure(error)
      }
    },
    close() {
      writeCounts()
      lines.flush()
      file.close()
    },
  }
}
