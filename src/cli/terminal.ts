/** Where a command writes: stdout and stderr. */

import { escapeControlCharactersInLines } from '../ops/escape-control.ts'
import { within } from '../within.ts'

/** Results go to stdout, everything about the work to stderr. */
export type Terminal = Pick<StandardOutput, 'stdout' | 'stderr' | 'isStdoutClosed'>

/** A pipe takes 64 kB at a time, and an exit loses the rest. Control characters in names and arguments are escaped. */
export class StandardOutput {
  /** The last write to each stream. Writes complete in order, so the others are then complete too. */
  readonly #last: Record<'stdout' | 'stderr', Promise<Error | undefined>> = {
    stdout: Promise.resolve(undefined),
    stderr: Promise.resolve(undefined),
  }

  #isStdoutClosed = false

  constructor() {
    // A failed write calls its callback. Without a listener too, the process would end with a stack trace.
    for (const name of ['stdout', 'stderr'] as const) process[name].on('error', () => {})
  }

  readonly stdout = (text: string) => this.#write('stdout', text)
  readonly stderr = (text: string) => this.#write('stderr', text)
  /** Whether the reader of stdout has closed it. */
  readonly isStdoutClosed = () => this.#isStdoutClosed

  /** Starts a write. Failures are reported by `drained`. */
  #write(name: 'stdout' | 'stderr', text: string): void {
    if (text === '') return
    this.#last[name] = new Promise((resolve) => {
      process[name].write(escapeControlCharactersInLines(text), (error) => {
        if (name === 'stdout' && isPipeError(error)) this.#isStdoutClosed = true
        resolve(error ?? undefined)
      })
    })
  }

  /** Resolves when all is written, or after `timeoutMs`; with an error's message, except of a closed pipe (EPIPE). */
  async drained(timeoutMs: number): Promise<string | undefined> {
    const errors = await within(timeoutMs, Promise.all(Object.values(this.#last)), () => [])
    return errors.find((error) => error !== undefined && !isPipeError(error))?.message
  }
}

function isPipeError(error: Error | null | undefined): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === 'EPIPE'
}
