/** The lines of a chained file from its end to its beginning: the newest first. */

import type { FileHandle } from 'node:fs/promises'

/** Bytes that are read at once: some 150 lines. Past it: in several reads, and others have their turn. */
const readBytes = 64 * 1024
/** A line of ours has a hundredth of it. Past it: the file is none of ours, and has no further lines. */
const lineBytesMax = 2 ** 20

export interface Line {
  readonly text: string
  /** Where it begins in the file, in bytes: the lines before it end there. */
  readonly start: number
}

/** `end`: where a line ends and the next one begins. Yields the whole lines before it, in batches. */
export async function* linesBefore(file: FileHandle, end: number): AsyncGenerator<Line[]> {
  let at = end
  /** The end of a line whose beginning is not read yet. */
  let rest: Buffer = Buffer.alloc(0)
  while (at > 0 && rest.length < lineBytesMax) {
    const size = Math.min(readBytes, at)
    const { bytesRead, buffer } = await file.read(Buffer.alloc(size), 0, size, at - size)
    // It was cut meanwhile.
    if (bytesRead < size) return
    at -= size
    const bytes = Buffer.concat([buffer, rest])
    const lines: Line[] = []
    let stop = bytes.lastIndexOf('\n')
    while (stop > 0) {
      const before = bytes.lastIndexOf('\n', stop - 1)
      if (before < 0 && at > 0) break
      lines.push({ text: bytes.toString('utf8', before + 1, stop), start: at + before + 1 })
      stop = before
    }
    rest = bytes.subarray(0, stop + 1)
    yield lines
  }
}
