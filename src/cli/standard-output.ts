/**
 * stdout and stderr, of which a pipe takes 64 kB at a time: the rest waits for its reader, and dies with the process.
 */

import { setTimeout } from 'node:timers/promises'

/** What was written last, which comes after all the rest. */
let last: { readonly stdout: Promise<Error | undefined>; readonly stderr: Promise<Error | undefined> } = {
  stdout: Promise.resolve(undefined),
  stderr: Promise.resolve(undefined),
}

export function write(name: 'stdout' | 'stderr', text: string): void {
  if (text === '') return
  const drained = new Promise<Error | undefined>((resolve) => {
    process[name].write(text, (error) => resolve(error ?? undefined))
  })
  last = { ...last, [name]: drained }
}

/**
 * Resolves when all of it is written, or after `timeoutMs` milliseconds; with why it could not be, unless the reader
 * of a pipe had enough.
 */
export async function drained(timeoutMs: number): Promise<string | undefined> {
  const late = new AbortController()
  const waited = setTimeout(timeoutMs, [], { signal: late.signal }).catch(() => [])
  const errors = await Promise.race([Promise.all([last.stdout, last.stderr]), waited])
  late.abort()
  return errors.find((error) => error !== undefined && (error as NodeJS.ErrnoException).code !== 'EPIPE')?.message
}
