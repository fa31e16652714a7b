/** A folder for temporary files in TMPDIR, or /tmp. Neither needs to exist, for example in a container from scratch. */

import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CommandError } from '../errors.ts'

/** Creates a folder that the caller must remove. Throws CommandError. */
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
