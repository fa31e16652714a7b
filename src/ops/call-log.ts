/**
 * The record of calls, `calls.jsonl`: a line for each `tools/call`, chained as the audit log is. One process writes it,
 * so it needs no lock. Lines of one turn of the event loop are written at once, before the answers of their calls end:
 * a call that was answered is in the file, whatever kills the process after. The file may be moved away at any time.
 */

import { createHmac } from 'node:crypto'
import { dirname } from 'node:path'
import { deletionBytesMin } from '../limits.ts'
import type { CallRecord } from '../model/recorded-call.ts'
import { writingCanonical } from '../schema/canonical-json.ts'
import { cutText } from '../schema/cut-text.ts'
import { drained } from '../schema/steps.ts'
import { requireFreeSpace } from '../storage/free-space.ts'
import { within } from '../within.ts'
import { ChainedLog, type LogOptions } from './chained-log.ts'
import type { RefusedCaller } from './denial-count.ts'

/** Contract 18.2: least milliseconds between two checks whether somebody has moved the record of calls away, and whether the disk has room for it. Within it: postern still writes lines to the moved file. */
export const callLogCheckMs = 500
/** Ours: characters of a tool's name in the record of calls, written as JSON, where a control character takes six. Past it: the line has the beginning of the name, “…” and eight digits of the name's SHA-256. */
const recordedToolCharsMax = 256
/** Contract 18.1: refused calls a second that postern records one by one, beyond the first of each caller. Past it: the record has only the number of further refused calls of each caller. */
const callRefusalsPerSecond = 100

/** HMAC-SHA-256 of the arguments' canonical form (RFC 8785): the same for the same arguments in any order. */
export function argumentsHash(key: Buffer, args: unknown): string {
  return drained(hashingArguments(key, args))
}

/** The same, as work in steps. */
export function* hashingArguments(key: Buffer, args: unknown): Generator<number, string> {
  return createHmac('sha256', key)
    .update(yield* writingCanonical(args))
    .digest('base64url')
}

/** A tool's name as a line has it: a long one as its beginning and a part of its hash, which tells it from others. */
export function recordedTool(name: string): string {
  let text = cutText(name, recordedToolCharsMax)
  // A character has six at most, so this ends soon.
  while (JSON.stringify(text).length - 2 > recordedToolCharsMax) text = text.slice(0, -Math.ceil(text.length / 6))
  return text === name ? name : `${text}…${Bun.SHA256.hash(name, 'hex').slice(0, 8)}`
}

export type CallLog = ReturnType<typeof openCallLog>

/** Opens the record of calls, for one process alone. */
export function openCallLog(path: string, options: LogOptions) {
  const { clock } = options
  const log = new ChainedLog({
    ...options,
    folder: dirname(path),
    path,
    name: 'the record of calls',
    lookMs: callLogCheckMs,
    // Thousands of calls in progress may end at once, after somebody else has filled the disk.
    requireRoom: (bytes) => requireFreeSpace(dirname(path), bytes, deletionBytesMin, options.free),
    refusals: { perCaller: callRefusalsPerSecond, inAll: callRefusalsPerSecond },
  })
  /** When the disk had enough room. */
  let roomyAt = Number.NEGATIVE_INFINITY
  /** Lines that could not be written. */
  let lost = 0
  /** Calls that have begun and are not recorded. */
  let open = 0
  let whenRecorded = () => {}

  /**
   * Resolves when the line is in the file. Rejects with StoreError `indeterminate` if it cannot be written, and if it
   * would take the room that is left for deletions and revocations.
   */
  const record = (call: CallRecord) =>
    log.add('call', call).catch((error: unknown) => {
      lost += 1
      throw log.error('indeterminate', error)
    })

  return {
    path,
    /**
     * Begins a call, which `end` ends once. Throws StoreError `unavailable` if the disk has room for revocations only, and
     * while lines that could not be written still cannot; where they can be again, a line says how many are missing.
     */
    begin() {
      if (clock.monotonic() - roomyAt >= callLogCheckMs) {
        log.requireRoom()
        roomyAt = clock.monotonic()
      }
      if (lost > 0) log.write([{ event: 'calls.lost', fields: { count: lost } }])
      lost = 0
      open += 1
    },
    end() {
      open -= 1
      if (open === 0) whenRecorded()
    },
    /** Resolves with the number of calls that are not recorded after so many milliseconds. */
    async recorded(milliseconds: number): Promise<number> {
      const { promise, resolve } = Promise.withResolvers<void>()
      whenRecorded = resolve
      if (open > 0) await within(milliseconds, promise, () => {})
      return open
    },
    record,
    /**
     * Records a refused call, as `record` does. Past a bound of its caller, and one of all, only their number is
     * written, by caller, when the second is over; then no record is made.
     */
    refused: async (caller: RefusedCaller, makeRecord: () => Promise<CallRecord>) =>
      log.isWritten(caller) ? record(await makeRecord()) : undefined,
    /** Opens the file of this name, if another one was moved there or the file was moved away. */
    reopen: () => log.reopen(),
    close: () => log.close(),
  }
}
