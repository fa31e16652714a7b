/** Whether the compiled executable runs, or the source. */

/** A file of the executable's own: the runtime has them in a folder, or on a drive, that no file system holds. */
export function isCarried(path: string): boolean {
  return /^(?:\/\$bunfs|B:[\\/]~BUN)[\\/]/.test(path)
}

export const isCompiled = isCarried(Bun.main)
