/** `postern dev`: serves fixtures from a temporary data folder, and reloads them when they change. */

import { watch } from 'node:fs'
import { sampleSources } from '../maintenance/seed/sample.ts'
import { findFixtureFiles, sourceFile } from '../maintenance/seed/source-files.ts'
import type { Log } from '../ops/log.ts'
import { readAllowedUpstream } from '../upstream/addresses.ts'
import { adviceOn } from './check-command.ts'
import type { ServeConfig } from './config.ts'
import { greeting } from './greeting.ts'
import { type Running, sampleFixtures, start, trafficOf } from './serve.ts'
import { ignoredHangUp, stopSignal } from './stop-signals.ts'
import { temporaryFolder } from './temporary-folder.ts'
import type { Terminal } from './terminal.ts'

/** Milliseconds without a change before a reload. An editor saves a file in several steps. */
const settleMs = 100

/** Serves until a signal. Throws CommandError or StoreError if it cannot start. */
export async function dev(config: ServeConfig, terminal: Terminal): Promise<void> {
  const data = temporaryFolder('postern-dev-')
  // On every exit. A process killed by an unhandled signal leaves the folder behind.
  process.once('exit', data.remove)
  const own = config.fixtures.length > 0
  // Allow loopback: servers under development run on the same machine.
  const allowedUpstreams = [...config.allowedUpstreams, ...loopback]
  const hangUp = ignoredHangUp()
  const running = await start({ ...config, allowedUpstreams, fixtures: [] }, data.path, terminal)
  let endTraffic: Awaited<ReturnType<typeof trafficOf>>
  try {
    const fixtures = await running.load(own ? findFixtureFiles(config.fixtures).map(sourceFile) : sampleSources())
    const greeted = { ...running, first: nothingKept, hasConsole: config.hasConsole }
    // Never 'unchanged' with a new folder.
    const lines =
      fixtures === 'unchanged' ? '' : await greeting(greeted, fixtures, config.operatorKey ?? running.operatorKey)
    // Those that are loaded are spent.
    const sample = config.hasSampleTraffic && !own ? await sampleFixtures() : undefined
    endTraffic = await trafficOf(config, running, sample)
    hangUp.work = () => running.reload(config.fixtures)
    using watchers = new DisposableStack()
    if (own) reloadOnChange(running, config.fixtures, watchers)
    if (own) await advise(running.log, config.fixtures)
    const asked = stopSignal()
    terminal.stdout(`postern listening on ${running.url}\n${lines}`)
    await asked
  } finally {
    await endTraffic?.()
    await running.stop()
  }
  data.remove()
  terminal.stdout('Stopped. The temporary store is deleted.\n')
}

const nothingKept = 'The store is temporary: it is deleted when you stop postern. Your fixture files stay.'

const loopback = ['127.0.0.0/8', '::1', 'localhost'].flatMap((text) => readAllowedUpstream(text) ?? [])

/** Logs the advice of `postern fixtures check` on fixtures that were loaded. The log says already why others were not. */
async function advise(log: Log, folders: readonly string[]): Promise<void> {
  const { wrong, warnings } = await adviceOn(folders).catch(() => ({ wrong: [], warnings: [] }))
  const lines = [...wrong, ...warnings]
  if (lines.length > 0)
    log.warn(`the fixtures have mistakes: run \`postern fixtures check ${folders.join(' ')}\``, {
      problems: lines.join('\n'),
    })
}

/** Reloads all folders when a file in one of them changes, until `watchers` is disposed. */
function reloadOnChange(running: Running, folders: readonly string[], watchers: DisposableStack): void {
  let timer: ReturnType<typeof setTimeout> | undefined
  const reload = async () => {
    await running.reload(folders)
    await advise(running.log, folders)
  }
  const changed = () => {
    clearTimeout(timer)
    timer = setTimeout(() => void reload(), settleMs)
  }
  watchers.defer(() => clearTimeout(timer))
  for (const folder of folders) watchers.adopt(watch(folder, changed), (watcher) => watcher.close())
}
