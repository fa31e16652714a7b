/** Cleans up after a command that creates a data folder and fails. */

import { existsSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** Runs `work`. If it fails, removes what it made: the folder, or its content if it was empty. Rethrows the error. */
export async function leavingNothing<T>(folder: string, work: () => Promise<T>): Promise<T> {
  const wasThere = existsSync(folder)
  const wasEmpty = wasThere && readdirSync(folder).length === 0
  const uppermost = uppermostMissing(resolve(folder))
  try {
    return await work()
  } catch (error) {
    if (!wasThere) rmSync(uppermost, { recursive: true, force: true })
    if (wasEmpty) for (const name of readdirSync(folder)) rmSync(join(folder, name), { recursive: true })
    throw error
  }
}

/** The topmost folder that `work` would have to create to create `folder`. */
function uppermostMissing(folder: string): string {
  const above = dirname(folder)
  return existsSync(above) ? folder : uppermostMissing(above)
}
