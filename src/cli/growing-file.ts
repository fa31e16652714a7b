/** The lines of a file that another process appends to, and that may be moved away and continued in a new one. */

import { type FileHandle, open } from 'node:fs/promises'

/** Bytes of the record of calls that `postern calls` reads at once. Past it: in several reads. */
const callsReadBytes = 2 ** 20

interface Opened {
  readonly file: FileHandle
  readonly inode: number
  position: number
  /** The beginning of a line whose end is not written yet. */
  rest: string
}

/**
 * Yields the complete lines in batches. Without `pause` it ends at the end of the file; with it, it awaits `pause()`,
 * and looks again unless that was false. A new file under this name is read once it is not empty: its writer has then
 * left the old file, which is read to its end first.
 */
export async function* followLines(path: string, pause?: () => Promise<boolean>): AsyncGenerator<string[]> {
  let current = await openedAt(path)
  try {
    for (;;) {
      if (current !== undefined) yield* newLines(current)
      const next = await successorOf(current, path)
      if (next !== undefined) {
        if (current !== undefined) {
          yield* newLines(current)
          await current.file.close()
        }
        current = next
      } else if (pause === undefined || !(await pause())) return
    }
  } finally {
    await current?.file.close()
  }
}

async function openedAt(path: string): Promise<Opened | undefined> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  return file && { file, inode: (await file.stat()).ino, position: 0, rest: '' }
}

async function* newLines(current: Opened): AsyncGenerator<string[]> {
  const buffer = Buffer.alloc(callsReadBytes)
  // It was emptied: from its beginning.
  if ((await current.file.stat()).size < current.position) Object.assign(current, { position: 0, rest: '' })
  for (;;) {
    const { bytesRead } = await current.file.read(buffer, 0, callsReadBytes, current.position)
    if (bytesRead === 0) return
    current.position += bytesRead
    // A line may be cut within a character.
    const lines = (current.rest + buffer.toString('latin1', 0, bytesRead)).split('\n')
    current.rest = lines.pop() ?? ''
    yield lines.map((line) => Buffer.from(line, 'latin1').toString())
  }
}

/** The file that has taken the place of another, once there is something in it. */
async function successorOf(current: Opened | undefined, path: string): Promise<Opened | undefined> {
  const next = await openedAt(path)
  if (next === undefined) return undefined
  if (current === undefined || (next.inode !== current.inode && (await next.file.stat()).size > 0)) return next
  await next.file.close()
  return undefined
}
