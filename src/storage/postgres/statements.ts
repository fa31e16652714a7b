/** Sends statements to the primary: a read until it is answered, a commit until it is certain (contract, 16.8). */

import type { Clock } from '../../clock.ts'
import { storeOutcomeMs, storePoolReserved, storeReadMs } from '../../limits.ts'
import { type Committed, StoreError, type Write } from '../store.ts'
import { type Run, StatementError } from './database-client.ts'
import type { PrimaryWatch } from './primary.ts'
import { refusals } from './schema.ts'
import { createSlots } from './slots.ts'
import { type CommitRow, commitCall, outcomeOf } from './write.ts'

export type Statements = ReturnType<typeof createStatements>

/** `wantsStandby`: no write without a synchronous standby. `connections`: for all statements but transactions. */
export function createStatements(primary: PrimaryWatch, wantsStandby: boolean, connections: number, clock: Clock) {
  // One connection is left to small reads, which everybody needs.
  const apart = createSlots(Math.max(1, connections - 1), clock)
  const commits = createSlots(Math.max(1, connections - storePoolReserved), clock, apart)
  const largeReads = createSlots(Math.max(1, Math.floor(connections / 2)), clock, apart)
  let isClosed = false

  function requireOpen(): void {
    if (isClosed) throw new StoreError('fatal', 'the store is closed')
  }

  /** The rows of a statement that only reads. `since`: when it was asked for. Throws StoreError `unavailable`. */
  async function read<Row>(statement: string, values: readonly unknown[] = [], since = clock.monotonic()) {
    requireOpen()
    const until = since + storeReadMs
    for (;;) {
      const client = await primary.current(until)
      try {
        return await client.query<Row>(statement, values, until)
      } catch (error) {
        requireOpen()
        if (!isLost(error) || clock.monotonic() >= until) throw unavailable(error)
        await primary.lookAgain()
      }
    }
  }

  return {
    read,

    /** As `read`, for rows that may weigh much. Such statements leave half of the connections to others. */
    async readLarge<Row>(statement: string, values?: readonly unknown[]): Promise<readonly Row[]> {
      requireOpen()
      const since = clock.monotonic()
      // Half of the time is left for the statement: one that is sent too late costs as much, and answers nobody.
      if (!(await largeReads.take(since + storeReadMs / 2)))
        throw new StoreError('unavailable', 'too many reads are waiting: try again')
      try {
        return await read<Row>(statement, values, since)
      } finally {
        largeReads.giveBack()
      }
    },

    /**
     * A small write. Throws StoreError `unavailable`, `indeterminate` and `too_large`. A commit that was sent is never
     * taken back: the database may do it at any time. So it is sent again with its id.
     */
    async commit(write: Write): Promise<Committed> {
      requireOpen()
      const sentAt = clock.monotonic()
      const until = sentAt + storeOutcomeMs
      const { statement, values } = commitCall(wantsStandby, write)
      // Not sent yet, so surely not done.
      if (!(await commits.take(sentAt + storeReadMs)))
        throw new StoreError('unavailable', 'too many writes wait: try again')
      let mayBeDone = false
      try {
        for (;;) {
          try {
            const client = await primary.current(mayBeDone ? until : sentAt + storeReadMs)
            const rows = await client.query<CommitRow>(statement, values, until)
            // Done by an earlier sending, whose acknowledgement may have been cut short before the standbys had it.
            if (rows[0]?.kind === 'found') await primary.acknowledged(until)
            return outcomeOf(rows)
          } catch (error) {
            mayBeDone ||= error instanceof StatementError && error.wasSent
            const isOver = isClosed || clock.monotonic() >= (mayBeDone ? until : sentAt + storeReadMs)
            // A refusal of the server now says nothing about what it did before.
            if (isOver || !isWorthAnotherTry(error)) throw mayBeDone ? indeterminate(error) : unavailable(error)
            await primary.lookAgain()
          }
        }
      } finally {
        commits.giveBack()
      }
    },

    /** Runs `work` without a deadline. Throws what it throws, and StoreError `unavailable` or `indeterminate`. */
    async transaction<T>(begin: string, work: (run: Run) => Promise<T>): Promise<T> {
      requireOpen()
      const client = await primary.current(clock.monotonic() + storeReadMs)
      try {
        return await client.transaction(begin, work)
      } catch (error) {
        if (!(error instanceof StatementError)) throw error
        throw error.wasSent ? indeterminate(error) : unavailable(error)
      }
    },

    /** From now on all fail with StoreError `fatal`. */
    close(): void {
      isClosed = true
    },
  }
}

/** The connection was lost, or the answer was late. */
function isLost(error: unknown): boolean {
  return error instanceof StatementError && error.sqlState === undefined
}

/** Also where the host is no longer the primary (SQLSTATE 25006, read only). */
function isWorthAnotherTry(error: unknown): boolean {
  return isLost(error) || (error instanceof StatementError && error.sqlState === '25006')
}

function unavailable(error: unknown): unknown {
  if (!(error instanceof StatementError)) return error
  const isAlone = error.sqlState === refusals.noStandby
  const reason = isAlone ? 'no synchronous standby is configured (--store-sync)' : error.message
  return new StoreError('unavailable', `the store is unavailable: ${reason}`, { cause: error })
}

function indeterminate(error: unknown): StoreError {
  const { message } = error as Error
  const text = `it is not known whether this was written; read before you repeat it (${message})`
  return new StoreError('indeterminate', text, { cause: error })
}
