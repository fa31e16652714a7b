/** stdout and stderr. A pipe takes 64 kB at a time; the rest is in a buffer, which is lost if the process exits. */

import { setTimeout } from 'node:timers/promises'

/** The last write to each stream. Writes complete in order, so the others are then complete too. */
let last: { readonly stdout: Promise<Error | undefined>; readonly stderr: Promise<Error | undefined> } = {
  stdout: Promise.resolve(undefined),
  stderr: Promise.resolve(undefined),
}

// A failed write calls its callback. Without a listener too, the process would end with a stack trace.
for (const name of ['stdout', 'stderr'] as const) process[name].on('error', () => {})

let isClosed = false

/** Whether the reader of stdout has closed it, as `head` does when it has enough. */
export const isStdoutClosed = () => isClosed

/** Starts a write. Failures are reported by `drained`. */
export function write(name: 'stdout' | 'stderr', text: string): void {
  if (text === '') return
  const written = new Promise<Error | undefined>((resolve) => {
    const ended = (error?: Error | null) => {
      if (name === 'stdout' && isPipeError(error)) isClosed = true
      resolve(error ?? undefined)
    }
    process[name].write(text, ended)
  })
  last = { ...last, [name]: written }
}

function isPipeError(error: Error | null | undefined): boolean {
  return (error as NodeJS.ErrnoException | undefined)?.code === 'EPIPE'
}

/**
 * Resolves when everything is written, or after `timeoutMs`. The result is the error message if a write failed, except
 * for a pipe closed by its reader (EPIPE).
 */
export async function drained(timeoutMs: number): Promise<string | undefined> {
  const late = new AbortController()
  const waited = setTimeout(timeoutMs, [], { signal: late.signal }).catch(() => [])
  const errors = await Promise.race([Promise.all([last.stdout, last.stderr]), waited])
  late.abort()
  return errors.find((error) => error !== undefined && !isPipeError(error))?.message
}
