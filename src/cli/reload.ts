/** Reopens the logs, and reloads fixtures whose files have changed, while a server runs. */

import { CommandError } from '../errors.ts'
import { findFixtureFiles, sourceFile } from '../maintenance/seed/source-files.ts'
import { oneAtATime } from '../one-at-a-time.ts'
import type { AuditLog } from '../ops/audit-log.ts'
import type { CallLog } from '../ops/call-log.ts'
import type { Log } from '../ops/log.ts'
import type { LoadFixtures } from './fixture-loader.ts'

interface Reloaded {
  readonly audit: AuditLog
  readonly callLog: CallLog | undefined
  readonly load: LoadFixtures
  readonly log: Log
}

/**
 * For `Running.reload` of `serve.ts`. Reloads run one at a time: file events and signals may overlap. Those that come
 * while one runs share the next. Problems are logged, and the loaded fixtures stay.
 */
export function createReload({ audit, callLog, load, log }: Reloaded): (folders: readonly string[]) => Promise<void> {
  const reload = async (folders: readonly string[]) => {
    audit.reopen()
    callLog?.reopen()
    if (folders.length === 0) {
      log.info('the logs were opened anew; there are no fixtures to load')
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
  }
  return oneAtATime(reload)
}
