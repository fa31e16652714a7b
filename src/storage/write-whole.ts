/** A write that is whole: to a file, or to a pipe that may not wait for its reader. */

import { writeSync } from 'node:fs'

/** All of it, however slowly it is read. */
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
