/**
 * The file of the record of calls: appends lines to the end of the chain, also after a write that failed, and in a new
 * file after it was moved away.
 */

import { closeSync, constants, fstatSync, lstatSync, openSync, writeSync } from 'node:fs'
import { callLogCheckMs } from '../limits.ts'
import { type ChainEnd, firstHash, formatLine } from './audit-chain.ts'
import { endOf } from './audit-file.ts'

/** A line to be written, without what links it to the others. */
export interface Line {
  readonly event: string
  readonly fields: object
}
/** All methods are synchronous, and throw what the file system throws. */
export interface CallFile {
  /** Opens the file of its name first, if another one is there. Throws if the lines were not written whole. */
  append(lines: readonly Line[]): void
  /** Opens the file of its name. */
  reopen(): void
  close(): void
}

export interface CallFileOptions {
  readonly now: () => Date
  /** A monotonic clock, in milliseconds. */
  readonly monotonic: () => number
  /** Added to each line, if the store is shared with others that have logs of their own. */
  readonly replica?: string
}

/** Like 'a+', but does not follow a symbolic link. */
const appending = constants.O_RDWR | constants.O_APPEND | constants.O_CREAT | (constants.O_NOFOLLOW ?? 0)

export function openCallFile(path: string, { now, monotonic, replica }: CallFileOptions): CallFile {
  let file = openSync(path, appending, 0o600)
  let { isWhole, end } = endIn(file, { seq: 0, hash: firstHash })
  let isEndUnknown = false
  let checkedAt = monotonic()

  /** Opens the file anew, and says at its beginning what it continues. */
  function reopen(): void {
    findEnd()
    const next = openSync(path, appending, 0o600)
    closeSync(file)
    file = next
    isWhole = endOf(file, fstatSync(file).size).isWhole
    checkedAt = monotonic()
    append([{ event: 'log.continued', fields: {} }])
  }

  function isMoved(): boolean {
    if (monotonic() - checkedAt < callLogCheckMs) return false
    checkedAt = monotonic()
    const named = lstatSync(path, { throwIfNoEntry: false })
    const { ino, dev } = fstatSync(file)
    return named?.ino !== ino || named.dev !== dev
  }

  /** After a write that failed: some of its lines may be in the file. */
  function findEnd(): void {
    if (isEndUnknown) ({ isWhole, end } = endIn(file, end))
    isEndUnknown = false
  }

  function append(entries: readonly Line[]): void {
    findEnd()
    const time = now().toISOString()
    let { seq, hash } = end
    // A line truncated by a crash stays as it is; `audit verify` reports it.
    let text = isWhole ? '' : '\n'
    for (const { event, fields } of entries) {
      seq += 1
      const line = formatLine({ seq, time, event, ...fields, ...(replica && { replica }), prev: hash })
      hash = line.hash
      text += `${line.text}\n`
    }
    const bytes = Buffer.from(text)
    // On a full disk, some lines may be written and others not.
    isEndUnknown = true
    if (writeSync(file, bytes) !== bytes.length) throw new Error('the record of calls was not written whole')
    isEndUnknown = false
    isWhole = true
    end = { seq, hash }
  }

  return {
    append(lines) {
      if (isMoved()) reopen()
      append(lines)
    },
    reopen,
    close: () => closeSync(file),
  }
}

/** Where the chain goes on: after the last whole line of the file, or after `before` if there is none. */
function endIn(file: number, before: ChainEnd): { readonly isWhole: boolean; readonly end: ChainEnd } {
  const { isWhole, seq, hash } = endOf(file, fstatSync(file).size)
  return { isWhole, end: seq > 0 ? { seq, hash } : before }
}
