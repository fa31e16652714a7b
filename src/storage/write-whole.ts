/** A complete write to a file, or to a pipe that is in non-blocking mode. */

import { writeSync } from 'node:fs'

/** Writes all bytes, and blocks until the reader of a full pipe has made room. Throws on every other error. */
export function writeWhole(descriptor: number, bytes: Uint8Array): void {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += writeSync(descriptor, bytes, at)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') throw error
      Bun.sleepSync(5)
    }
  }
}
