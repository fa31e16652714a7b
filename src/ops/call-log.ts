/**
 * The record of calls, `calls.jsonl`: a line for each `tools/call`, chained as the audit log is. One process writes it,
 * so it needs no lock. Lines of one turn of the event loop are written at once, before the answers of their calls end:
 * a call that was answered is in the file, whatever kills the process after. The file may be moved away at any time.
 */

import { dirname } from 'node:path'
import type { Clock } from '../clock.ts'
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

/**
 * Bytes of lines for which the disk is asked once: asking costs as much as writing a line. Past it: it is asked again.
 * Another program may fill the disk meanwhile: revocations then have so much less of what `deletionBytesMin` leaves.
 */
const bytesPerLookMax = 256 * 1024

/** HMAC-SHA-256 of the arguments' canonical form (RFC 8785): the same for the same arguments in any order. */
export function argumentsHash(key: Buffer, args: unknown): string {
  return drained(hashingArguments(key, args))
}

/** The same, as work in steps. */
export function* hashingArguments(key: Buffer, args: unknown): Generator<number, string> {
  return new Bun.CryptoHasher('sha256', key).update(yield* writingCanonical(args)).digest('base64url')
}

/** A tool's name as a line has it: a long one as its beginning and a part of its hash, which tells it from others. */
export function recordedTool(name: string): string {
  let text = cutText(name, recordedToolCharsMax)
  // A character has six at most, so this ends soon.
  while (JSON.stringify(text).length - 2 > recordedToolCharsMax) text = text.slice(0, -Math.ceil(text.length / 6))
  return text === name ? name : `${text}…${Bun.SHA256.hash(name, 'hex').slice(0, 8)}`
}

/** The record of calls, opened for one process alone. */
export class CallLog {
  readonly path: string
  readonly #clock: Clock
  readonly #log: ChainedLog
  readonly #free: LogOptions['free']
  /** When the disk had enough room. */
  #roomyAt = Number.NEGATIVE_INFINITY
  /** Bytes of lines for which it had room, and that are not written. */
  #room = 0
  /** Lines that could not be written, and that no line has told of yet. */
  #lost = 0
  /** Calls that have begun and are not recorded. */
  #open = 0
  #whenRecorded = () => {}

  constructor(path: string, options: LogOptions) {
    this.path = path
    this.#clock = options.clock
    this.#free = options.free
    this.#log = new ChainedLog({
      ...options,
      folder: dirname(path),
      path,
      name: 'the record of calls',
      lookMs: callLogCheckMs,
      requireRoom: (bytes) => this.#requireRoom(bytes),
      refusals: { perCaller: callRefusalsPerSecond, inAll: callRefusalsPerSecond },
    })
  }

  /** Begins a call, which `end` ends once. Throws as `requireWritable`. */
  begin(): void {
    this.requireWritable()
    this.#open += 1
  }

  /**
   * Throws StoreError `unavailable` if the disk has room for revocations only, and while lines that could not be
   * written still cannot; where they can be again, a line says how many are missing.
   */
  requireWritable(): void {
    const now = this.#clock.monotonic()
    if (now - this.#roomyAt >= callLogCheckMs) {
      this.#log.requireRoom()
      this.#roomyAt = now
    }
    this.#tellLost()
  }

  /** Thousands of calls in progress may end at once, after somebody else has filled the disk. */
  #requireRoom(bytes: number): void {
    if (bytes > this.#room) {
      const free = requireFreeSpace(dirname(this.path), bytes, deletionBytesMin, this.#free)
      this.#room = bytes + Math.min(free - deletionBytesMin, bytesPerLookMax)
    }
    this.#room -= bytes
  }

  #tellLost(): void {
    if (this.#lost > 0) this.#log.write([{ event: 'calls.lost', fields: { count: this.#lost } }])
    this.#lost = 0
  }

  end(): void {
    this.#open -= 1
    if (this.#open === 0) this.#whenRecorded()
  }

  /** Resolves with the number of calls that are not recorded after so many milliseconds. */
  async recorded(milliseconds: number): Promise<number> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#whenRecorded = resolve
    if (this.#open > 0) await within(milliseconds, promise, () => {})
    return this.#open
  }

  /**
   * Resolves when the line is in the file. Rejects with StoreError `indeterminate` if it cannot be written, and if it
   * would take the room that is left for deletions and revocations.
   */
  record(call: CallRecord): Promise<void> {
    return this.#log.add('call', call).catch((error: unknown) => {
      this.#lost += 1
      throw this.#log.error('indeterminate', error)
    })
  }

  /** Records a refused call. Past a bound of its caller, or of all, their number alone is written after the second. */
  async refused(caller: RefusedCaller, makeRecord: () => Promise<CallRecord>): Promise<void> {
    if (this.#log.isWritten(caller)) await this.record(await makeRecord())
  }

  /** Opens the file of this name, if another one was moved there or the file was moved away. */
  reopen(): void {
    this.#log.reopen(() => this.#tellLost())
  }

  close(): void {
    this.#log.close(() => this.#tellLost())
  }
}
