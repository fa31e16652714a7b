/**
 * The scheduling priority of a thread of this process: normal, or only when a core would otherwise be idle. Works on
 * Linux with glibc; on other systems, and in a sandbox that forbids it, nothing changes.
 */

import { dlopen } from 'bun:ffi'
import { readlinkSync } from 'node:fs'

/** `SCHED_OTHER` and `SCHED_IDLE` of Linux (sched(7)). */
const policies = { normal: 0, idle: 5 } as const
/** A `struct sched_param`. Its only field, the priority, must be 0 for both policies. */
const parameters = new Uint8Array(4)

/** Loaded when the first thread starts to sign: most processes never need it. Null where there is none. */
let library: ReturnType<typeof openLibrary> | undefined

function openLibrary() {
  if (process.platform !== 'linux') return null
  try {
    return dlopen('libc.so.6', { sched_setscheduler: { args: ['i32', 'i32', 'ptr'], returns: 'i32' } })
  } catch {
    // With musl there is no such library, and its sched_setscheduler is not implemented.
    return null
  }
}

/** The operating system's id of the calling thread. Undefined without `/proc`. */
export function threadNumber(): number | undefined {
  try {
    return Number(readlinkSync('/proc/thread-self').split('/').at(-1))
  } catch {
    return undefined
  }
}

/** Best effort: errors are ignored, because signing works at any priority. */
export function setThreadPriority(thread: number | undefined, priority: keyof typeof policies): void {
  if (thread === undefined) return
  if (library === undefined) library = openLibrary()
  library?.symbols.sched_setscheduler(thread, policies[priority], parameters)
}
