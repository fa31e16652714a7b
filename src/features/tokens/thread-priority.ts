/**
 * When the system runs a thread of this process: before others, or only where nobody else wants the processor. Linux
 * with glibc; elsewhere, and where a sandbox forbids it, nothing changes.
 */

import { dlopen } from 'bun:ffi'
import { readlinkSync } from 'node:fs'

/** Linux's `SCHED_OTHER` and `SCHED_IDLE` (sched(7)). */
const policies = { normal: 0, idle: 5 } as const
/** A `struct sched_param`: its one field is 0 for both policies. */
const parameters = new Uint8Array(4)

const library = process.platform === 'linux' ? open() : undefined

function open() {
  try {
    return dlopen('libc.so.6', { sched_setscheduler: { args: ['i32', 'i32', 'ptr'], returns: 'i32' } })
  } catch {
    // musl has no such library, and no such call either.
    return undefined
  }
}

/** The system's number of the thread that asks; undefined where it has none that we can read. */
export function threadNumber(): number | undefined {
  try {
    return Number(readlinkSync('/proc/thread-self').split('/').at(-1))
  } catch {
    return undefined
  }
}

/** Never fails: a priority is a courtesy. */
export function setThreadPriority(thread: number | undefined, priority: keyof typeof policies): void {
  if (thread !== undefined) library?.symbols.sched_setscheduler(thread, policies[priority], parameters)
}
