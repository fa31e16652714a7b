/** The file of the record of calls, to which one process appends: it has the end of the chain in memory. */

import { callLogCheckMs } from '../limits.ts'
import { ChainedFile, type Entry, type FileEnd } from './chained-file.ts'

/** All methods are synchronous, and throw what the file system throws. After `close` the others throw. */
export interface CallFile {
  /** Appends the entries, one a line; in another file than before, after a line that says what it continues. */
  append(entries: readonly Entry[]): void
  /** Opens the file under its name, if another one is open. */
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

export function openCallFile(path: string, { now, monotonic, replica }: CallFileOptions): CallFile {
  const file = new ChainedFile(path)
  const first = file.end()
  /** Undefined after a write that failed: some of its lines may be in the file. */
  let known: FileEnd | undefined = first
  let last = first.end
  let checkedAt = monotonic()
  let isClosed = false

  function append(entries: readonly Entry[]): void {
    const before = findEnd()
    known = undefined
    last = file.append(entries, before, { time: now().toISOString(), ...(replica && { replica }) })
    known = { end: last, isWhole: true }
  }

  function findEnd(): FileEnd {
    if (known !== undefined) return known
    const found = file.end()
    if (found.end.seq > 0) last = found.end
    return { end: last, isWhole: found.isWhole }
  }

  function reopen(): void {
    if (isClosed) throw new Error('the record of calls is closed')
    checkedAt = monotonic()
    if (file.isStillNamed()) return
    const { end } = findEnd()
    file.reopen()
    known = { end, isWhole: file.end().isWhole }
    append([{ event: 'log.continued', fields: {} }])
  }

  return {
    append(entries) {
      if (isClosed || monotonic() - checkedAt >= callLogCheckMs) reopen()
      append(entries)
    },
    reopen,
    close() {
      isClosed = true
      file.close()
    },
  }
}
