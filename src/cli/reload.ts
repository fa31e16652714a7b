/** Reopens the logs, and reloads fixtures whose files have changed, while a server runs. */

import { CommandError } from '../errors.ts'
import { findFixtureFiles, sourceFile } from '../maintenance/seed/source-files.ts'
import { oneAtATime } from '../one-at-a-time.ts'
import type { Log } from '../ops/log.ts'
import type { LoadFixtures } from './fixture-loader.ts'

/**
 * Makes a function that reopens the logs, and reloads the fixture folders if their files have changed. Problems are
 * logged, and the loaded fixtures stay. Calls that come while one runs, by signals or file events, share the next.
 */
export function createReload(logs: readonly ({ reopen(): void } | undefined)[], load: LoadFixtures, log: Log) {
  return oneAtATime(async (folders: readonly string[]) => {
    for (const one of logs) one?.reopen()
    if (folders.length === 0) {
      log.info('the logs were opened again; there are no fixtures to load')
      return
    }
    try {
      const loaded = await load(findFixtureFiles(folders).map(sourceFile))
      if (loaded === 'unchanged') log.info('the fixtures have not changed')
    } catch (error) {
      const { message } = error as Error
      if (error instanceof CommandError) log.warn('the fixtures were not reloaded', { problems: message })
      else log.error('the fixtures were not reloaded', { error: message })
    }
  })
}
