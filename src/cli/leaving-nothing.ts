/** Work that makes a data folder: it is there when the work is done, and nothing of it is when the work fails. */

import { existsSync, readdirSync, rmSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'

/** What `work` throws is thrown on. A folder that held something before stays as `work` left it. */
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

/** Folders above it may have to be made too. */
function uppermostMissing(folder: string): string {
  const above = dirname(folder)
  return existsSync(above) ? folder : uppermostMissing(above)
}
