/** A folder for temporary files in TMPDIR, or /tmp. Neither needs to exist, for example in a container from scratch. */

import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { CommandError } from '../errors.ts'

/** Creates a folder. It is removed when it is disposed, at the latest. Throws CommandError. */
export function temporaryFolder(prefix: string): Disposable & { readonly path: string; readonly remove: () => void } {
  try {
    const path = mkdtempSync(join(tmpdir(), prefix))
    const remove = () => rmSync(path, { recursive: true, force: true })
    return { path, remove, [Symbol.dispose]: remove }
  } catch (error) {
    const { message } = error as Error
    throw new CommandError(`cannot create a temporary folder: ${message}; name another place with TMPDIR`, 1, {
      cause: error,
    })
  }
}
