/** `postern dev`: the platform on a developer's laptop, with fixtures that reload and nothing kept. */

import { rmSync, watch } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ServeConfig } from '../config.ts'
import { CommandError } from '../errors.ts'
import { findFixtureFiles, sourceFile } from '../fixtures/read.ts'
import { sampleSources } from '../fixtures/sample.ts'
import { readAllowedUpstream } from '../upstream/addresses.ts'
import { greeting } from './greeting.ts'
import { type Running, signalled, start } from './serve.ts'
import type { Terminal } from './terminal.ts'

/** A file is written in several steps; they count as one change. */
const settleMs = 100

export async function dev(config: ServeConfig, terminal: Terminal): Promise<number> {
  const data = await temporaryFolder()
  // However this ends, short of a kill.
  process.once('exit', () => rmSync(data, { recursive: true, force: true }))
  const own = config.fixtures.length > 0
  // On a laptop the servers under development are on the same machine.
  const upstream = { ...config.upstream, allowed: [...config.upstream.allowed, ...loopback] }
  const running = await start({ ...config, upstream, fixtures: [] }, data, terminal)
  try {
    const fixtures = await running.load(own ? findFixtureFiles(config.fixtures).map(sourceFile) : sampleSources())
    // A new folder has nothing loaded, so there is something to show.
    const lines =
      fixtures === 'unchanged'
        ? ''
        : greeting(nothingKept, running.url, fixtures, config.operatorKey ?? running.operatorKey)
    const asked = signalled()
    using _watching = own ? reloadOnChange(running, config.fixtures) : undefined
    terminal.stdout(`postern listening on ${running.url}\n${lines}`)
    await asked
  } finally {
    await running.stop()
  }
  return 0
}

const nothingKept = 'Nothing is kept: the data folder goes when this stops.'

async function temporaryFolder(): Promise<string> {
  try {
    return await mkdtemp(join(tmpdir(), 'postern-dev-'))
  } catch (error) {
    const { message } = error as Error
    throw new CommandError(`cannot make a temporary folder: ${message}; name another place with TMPDIR`, 1, {
      cause: error,
    })
  }
}

const loopback = ['127.0.0.0/8', '::1', 'localhost'].flatMap((text) => readAllowedUpstream(text) ?? [])

/** A change that does not check out is told, and what was loaded stays. */
function reloadOnChange(running: Running, folders: readonly string[]): Disposable {
  let timer: ReturnType<typeof setTimeout> | undefined
  const reload = async () => {
    try {
      const loaded = await running.load(findFixtureFiles(folders).map(sourceFile))
      if (loaded === 'unchanged') return
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      running.log.warn('fixtures were not reloaded', { problems: error.message })
    }
  }
  const watchers = folders.map((folder) =>
    watch(folder, () => {
      clearTimeout(timer)
      timer = setTimeout(() => void reload(), settleMs)
    }),
  )
  return {
    [Symbol.dispose]() {
      clearTimeout(timer)
      for (const watcher of watchers) watcher.close()
    },
  }
}
