/** `postern dev`: the platform on a developer's laptop, with fixtures that reload and nothing kept. */

import { rmSync, watch } from 'node:fs'
import { mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ServeConfig } from '../config.ts'
import { CommandError } from '../errors.ts'
import { type Fixtures, findFixtureFiles, sourceFile } from '../fixtures/read.ts'
import { sampleSources } from '../fixtures/sample.ts'
import { isLoopback } from '../http/guard.ts'
import { readAllowedUpstream } from '../upstream/addresses.ts'
import { type Running, signalled, start } from './serve.ts'
import type { Terminal } from './terminal.ts'

/** A file is written in several steps; they count as one change. */
const settleMs = 100

export async function dev(config: ServeConfig, terminal: Terminal): Promise<number> {
  const data = await mkdtemp(join(tmpdir(), 'postern-dev-'))
  // However this ends, short of a kill.
  process.once('exit', () => rmSync(data, { recursive: true, force: true }))
  const own = config.fixtures.length > 0
  // On a laptop the servers under development are on the same machine.
  const upstream = { ...config.upstream, allowed: [...config.upstream.allowed, ...loopback] }
  const running = await start({ ...config, upstream, fixtures: [] }, data, terminal)
  try {
    const fixtures = await running.load(own ? findFixtureFiles(config.fixtures).map(sourceFile) : sampleSources())
    if (!isLoopback(config.host)) {
      terminal.stderr(`Whoever reaches ${config.host} can use the keys of these fixtures.\n`)
    }
    // A new folder has nothing loaded, so there is something to show.
    const lines = fixtures === 'unchanged' ? '' : greeting(running, fixtures, config)
    terminal.stdout(`postern listening on ${running.url}\n${lines}`)
    using _watching = own ? reloadOnChange(running, config.fixtures) : undefined
    await signalled()
  } finally {
    await running.stop()
  }
  return 0
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

/** Lines to paste: a list with a key of the fixtures, and a token that sees less. */
function greeting({ url, operatorKey }: Running, fixtures: Fixtures, { operatorKey: given }: ServeConfig): string {
  const namespace = fixtures.connections.first?.namespace ?? fixtures.namespaces[0]?.namespace ?? 'NAMESPACE'
  const key = keyThatReaches(namespace, fixtures) ?? given ?? operatorKey ?? 'KEY'
  return [
    '',
    'Nothing is kept: the data folder goes when this stops. Try:',
    '',
    `  curl -s -H 'Authorization: Bearer ${key}' '${url}/connect/${namespace}?limit=2'`,
    '',
    `  curl -s -X POST -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' \\`,
    `    -d '{"policy":[{"namespaces":"${namespace}","operations":"read","ttl":"10m"}]}' '${url}/tokens'`,
    '',
    ...mcpLines(url, fixtures, given ?? operatorKey),
    '',
  ].join('\n')
}

/** How a common MCP client gets to a mocked connection; nothing where there is none, or no key for it. */
function mcpLines(url: string, fixtures: Fixtures, otherKey: string | undefined): string[] {
  const mocked = fixtures.connections.firstMocked
  if (mocked === undefined) return []
  const { namespace, connectionId } = mocked
  const key = keyThatReaches(namespace, fixtures) ?? otherKey
  if (key === undefined) return []
  const mcp = `${url}/connect/${namespace}/${connectionId}`
  const config = {
    mcpServers: { postern: { type: 'http', url: `${mcp}/mcp`, headers: { Authorization: `Bearer ${key}` } } },
  }
  return [
    `The mocked connection ${namespace}/${connectionId} is an MCP server with no network behind it. For a client that reads`,
    'a file (mcp.json, or its own settings):',
    '',
    `  ${JSON.stringify(config)}`,
    '',
    'or without MCP:',
    '',
    `  curl -s -H 'Authorization: Bearer ${key}' '${mcp}/.tools'`,
    '',
  ]
}

function keyThatReaches(name: string, { namespaces, organizations, apiKeys }: Fixtures): string | undefined {
  const namespace = namespaces.find((one) => one.namespace === name)
  if (namespace === undefined) return undefined
  const users =
    'userId' in namespace
      ? [namespace.userId]
      : organizations
          .find(({ organizationId }) => organizationId === namespace.organizationId)
          ?.members.map(({ userId }) => userId)
  const theirs = apiKeys.find(({ userId, operator }) => operator !== true && users?.includes(userId))
  return (theirs ?? apiKeys.find(({ operator }) => operator === true))?.key
}
