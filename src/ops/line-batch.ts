/** Entries of one turn of the event loop, which are written to a log together. */

import { StoreError } from '../storage/store.ts'
import type { Entry } from './chained-file.ts'

export interface LineBatch {
  /** Resolves when the entry is in the file. Rejects with what `write` throws. */
  add(event: string, fields: object): Promise<void>
  /** Writes what is waiting now. */
  flush(): void
}

interface Pending extends Entry {
  readonly done: () => void
  readonly failed: (error: unknown) => void
}

/** `write`: synchronous; all of its entries are in the file, or it throws. */
export function createLineBatch(write: (entries: readonly Entry[]) => void): LineBatch {
  let pending: Pending[] = []

  function flush(): void {
    const batch = pending
    pending = []
    if (batch.length === 0) return
    try {
      write(batch)
      for (const { done } of batch) done()
    } catch (error) {
      for (const { failed } of batch) failed(error)
    }
  }

  return {
    add: (event, fields) =>
      new Promise((done, failed) => {
        if (pending.length === 0) setImmediate(flush)
        pending.push({ event, fields, done, failed })
      }),
    flush,
  }
}

/** `what`: the log. `unavailable`: nothing was done yet; `indeterminate`: what the line tells of was done. */
export function cannotWrite(what: string, kind: 'unavailable' | 'indeterminate', cause: unknown): StoreError {
  return new StoreError(kind, `${what} cannot be written: ${(cause as Error).message}`, { cause })
}
