/** A folder for temporary files, which a machine may not have: TMPDIR, or /tmp. */

import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CommandError } from '../errors.ts'

/** Whoever makes it removes it. */
export function temporaryFolder(prefix: string): string {
  try {
    return mkdtempSync(join(tmpdir(), prefix))
  } catch (error) {
    const { message } = error as Error
    throw new CommandError(`cannot make a temporary folder: ${message}; name another place with TMPDIR`, 1, {
      cause: error,
    })
  }
}
