/** Loads fixtures for a server: reads, checks and stores them, with progress and log lines. */

import { CommandError } from '../errors.ts'
import { createGarbageCheck } from '../fairness/garbage.ts'
import { isLoopback } from '../http/guard.ts'
import type { DataFolder } from '../maintenance/data-folder.ts'
import { isLoaded, loadFixtures } from '../maintenance/seed/load-fixtures.ts'
import { type Fixtures, readFixtures } from '../maintenance/seed/read-fixtures.ts'
import { acceptsKnownKey, hasSampleKey } from '../maintenance/seed/sample-keys.ts'
import { digestOf, type SourceFile } from '../maintenance/seed/source-files.ts'
import { Spool } from '../maintenance/spool.ts'
import type { Audit } from '../ops/audit-log.ts'
import type { Log } from '../ops/log.ts'
import { check, fixtureProblemsText } from './check-command.ts'
import type { ServeConfig } from './config.ts'
import { hasStarted } from './first-start.ts'
import { createProgress } from './progress.ts'
import type { Terminal } from './terminal.ts'

/** Loads fixtures; 'unchanged': they are loaded already. Throws CommandError for problems; then nothing has changed. */
export type LoadFixtures = (sources: readonly SourceFile[]) => Promise<Fixtures | 'unchanged'>

/** A loader for an open data folder. The audit log has a line for each load after the first start. */
export function fixtureLoader(
  folder: DataFolder,
  config: ServeConfig,
  { log, audit }: { readonly log: Log; readonly audit: Pick<Audit, 'recordDone'> },
): LoadFixtures {
  const { store, database, secrets, path } = folder
  const load: LoadFixtures = async (sources) => {
    const digest = digestOf(sources)
    if (await isLoaded(store, digest)) return 'unchanged' as const
    const isReload = await hasStarted(store)
    const progress = createProgress(log)
    // Nothing else collects garbage meanwhile. The event loop is held, so no collection runs beside it.
    const collect = createGarbageCheck(undefined, (isUrgent) => isUrgent && Bun.gc(true))
    const onProgress = (stage: string, done: number, total?: number) => {
      progress.step(stage, done, total)
      collect()
    }
    using spool = new Spool(path)
    const { fixtures, problems } = await readFixtures(sources, (done) => onProgress('reading fixtures', done), spool)
    if (problems.length > 0) throw new CommandError(fixtureProblemsText(problems))
    if (hasSampleKey(fixtures.apiKeys)) requireSampleKeysAllowed(config)
    const options = { pepper: secrets.apiKeyPepper, now: new Date(), log, folder: path, onProgress }
    const loaded = await loadFixtures(store, fixtures, digest, options)
    progress.end()
    // Before the first start nobody had a right. The audit log writes later what it cannot write now, and the log says
    // so.
    if (isReload) await audit.recordDone('fixtures.loaded', { ...loaded, digest }).catch(() => {})
    log.info('fixtures loaded', { ...loaded })
    // Later, because the caller still uses the fixtures.
    if (fixtures.connections.length >= connectionsCollected) setTimeout(() => Bun.gc(true), collectedAfterMs).unref()
    return fixtures
  }
  // Of replicas that start together, one loads, and the others find that it is done.
  return database === undefined ? load : (sources) => database.exclusively(() => load(sources))
}

/** So many connections leave some hundred megabytes of garbage. */
const connectionsCollected = 100_000
const collectedAfterMs = 500

/** `serve --check`: checks what can be checked without a start. Throws CommandError. */
export async function checkServe(config: ServeConfig, terminal: Terminal): Promise<void> {
  if (config.fixtures.length > 0) {
    const { apiKeys } = await check(config.fixtures, {}, terminal)
    if (hasSampleKey(apiKeys)) requireSampleKeysAllowed(config)
  }
  terminal.stdout('the settings can be read; the data folder and the addresses were not tried\n')
}

/** Throws CommandError if known keys are not allowed and in the store, where an earlier load may have brought them. */
export async function checkSampleKeys({ store, secrets }: DataFolder, config: ServeConfig, log: Log): Promise<void> {
  if (isLoopback(config.host) || !(await acceptsKnownKey(store, secrets.apiKeyPepper))) return
  requireSampleKeysAllowed(config)
  log.warn('the publicly known keys of the sample fixtures are accepted', { host: config.host })
}

/** Throws CommandError if other machines can reach the server and the operator has not allowed the known keys. */
function requireSampleKeysAllowed({ host, areSampleKeysAllowed }: ServeConfig): void {
  if (isLoopback(host) || areSampleKeysAllowed) return
  throw new CommandError(
    `anyone who can reach ${host} could use the publicly known keys of the sample fixtures, or of an example in the ` +
      'documentation: load your own fixtures and revoke those keys (postern keys revoke), or allow them with ' +
      '--allow-sample-keys',
  )
}
