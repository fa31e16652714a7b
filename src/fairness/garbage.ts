/**
 * Gives memory back while the process is busy. The runtime collects garbage in time, but returns the freed memory to
 * the system only when the process is idle for a while: 450 calls of large mocks took 700 MB, of which 170 were in use.
 */

import { readFileSync } from 'node:fs'

/** Ours: memory that the process may gain before garbage is collected and memory returned. Past it: a collection begins beside the other work. */
export const garbageBytesMax = 64 * 1024 * 1024
/** Ours: memory that the process may gain while garbage is collected beside the other work. Past it: if the process has also gained `garbageBytesMax` since the last stop (a quarter of its memory, if that is past 350 MB), and half of that memory or 350 MB since the start, everything stops for 10 to 120 ms (twice that on cores that others use), until the garbage is collected. */
export const garbageUrgentBytes = 300 * 1024 * 1024

/** Bytes that the process may gain; one owner may add 400 MB. Past it: a stop waits for `garbageBytesMax` alone. */
const ownerBytesMax = 350 * 1024 * 1024

/** Milliseconds between two looks at the memory of the process, of 12 microseconds each. Past it: the next look. */
const garbageCheckMs = 20

/**
 * One check. `memory`: bytes of the process, read in 12 microseconds. `collect`: beside the work that goes on, or
 * urgently, which stops everything: for 120 ms with 300 MB in use. While one owner asked for large pages, one request
 * of others in fifty met such a pause. Not `Bun.shrink`: it discards compiled code too, and calls took a third longer.
 */
export function createGarbageCheck(
  memory = anonymousBytes,
  collect: (isUrgent: boolean) => void = (isUrgent) => void Bun.gc(isUrgent),
): () => void {
  /** The least ever, and the least since the last urgent collection. */
  let first = Number.POSITIVE_INFINITY
  let least = Number.POSITIVE_INFINITY
  /** Above so many bytes the next collection begins. */
  let next = Number.POSITIVE_INFINITY
  return () => {
    let bytes: number
    try {
      bytes = memory()
    } catch {
      // No file descriptor is left to read it with.
      return
    }
    first = Math.min(first, bytes)
    least = Math.min(least, bytes)
    if (bytes <= least + garbageBytesMax / 2) next = least + garbageBytesMax
    // A stop takes longer where more memory is in use, and gives none of that back. Then the next one comes later, up
    // to the memory that one owner may add, and later still where even more is in use.
    const later = Math.min(least * 1.5, first + ownerBytesMax)
    const isMoreThanOwners = least > first + ownerBytesMax
    const room = Math.max(garbageBytesMax, isMoreThanOwners ? least / 4 : 0)
    if (bytes > Math.max(first + garbageUrgentBytes, least + room, later)) {
      collect(true)
      least = Number.POSITIVE_INFINITY
    } else if (bytes > next) {
      collect(false)
      next = bytes + garbageBytesMax / 4
    }
  }
}

/**
 * Bytes of the process that no file backs. The pages of the store that were read count as the process's, too, and no
 * collection gives them back: lists over 40,000 connections were held up for 100 ms every two seconds.
 */
function anonymousBytes(): number {
  if (process.platform !== 'linux') return process.memoryUsage.rss()
  const [, kilobytes] = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'latin1')) ?? []
  return kilobytes === undefined ? process.memoryUsage.rss() : Number(kilobytes) * 1024
}

export function watchGarbage(): Disposable {
  const timer = setInterval(createGarbageCheck(), garbageCheckMs)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
