/** Whether the compiled executable runs, or the source. */

/** A file of the executable's own: the runtime has them in a folder, or on a drive, that no file system holds. */
export function isCarried(path: string): boolean {
  return /^(?:\/\$bunfs|B:[\\/]~BUN)[\\/]/.test(path)
}

export const isCompiled = isCarried(Bun.main)

/** The program of a worker, by its path below `src`: bundled in the executable under this path, or the source file. */
export function workerProgram(path: string): string {
  return isCompiled ? `./${path}` : new URL(path, import.meta.url).href
}
