/**
 * Three replicas, and clients that a balancer sends anywhere: sessions, cursors, tokens, setup links and sign-ins begin
 * at one and go on at another. On a data folder, the same across a restart.
 */

import { copyFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { mintToken } from '../api/cases.ts'
import { type Server, sampleFolder, sendTo, startServer, withoutRates, workplace } from '../support/executable.ts'
import { isPostgresInstalled, startPostgres } from '../support/postgres.ts'
import { random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { collector, type Trial } from './trial.ts'

/** Calls in each session, each at a replica of its own. */
const callsInSession = 3
/** Sessions at once. */
const atOnce = 32
const baseUrl = 'http://127.0.0.1:1'
const ada = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
const mcp = { ...ada, accept: 'application/json, text/event-stream' }

export const anyReplica: Trial = {
  name: 'any-replica',
  promise: 'Every replica accepts the tokens and sessions of every other replica, also after a restart',
  times: { full: 10_000, short: 12 },

  async run(times, seed) {
    if (!isPostgresInstalled) return { figure: '', broken: [], seen: {}, missing: 'PostgreSQL is not installed' }
    const { broken, expect } = collector()
    const chance = random(seed)
    using place = workplace()
    using upstream = keepsSessions()
    const database = await startPostgres()
    const store = await database.newDatabase()
    const secret = join(place.folder, 'secret')
    const flags = ['--allow-upstream', `127.0.0.1:${upstream.port}`, ...withoutRates]
    const starting = (at: number) =>
      startServer(place, [
        ...['--data', join(place.folder, `r${at}`), '--store', store, '--base-url', baseUrl, '--replica', `r${at}`],
        ...['--instance-secret-file', secret, '--fixtures', sampleFolder, ...flags],
      ])
    const replicas: Server[] = [await starting(0)]
    replicas.push(...(await Promise.all([starting(1), starting(2)])))
    try {
      await connect(replicas[0] as Server, upstream.port)
      const any = () => chance.pick(replicas)
      await inParallel(times, atOnce, () => session(any, expect))
      for (let time = 0; time < Math.min(times, 100); time += 1) {
        await wander(any, expect)
        const token = await mintToken(sendTo(any()), sampleKeys.ada, { policy: [{ ttl: '1h' }] })
        const headers = { authorization: `Bearer ${token}` }
        const { status } = await sendTo(any())('/connect/northwind?limit=1', { headers })
        expect(status === 200, () => `a token of another replica got ${status}`)
      }
    } finally {
      for (const replica of replicas) await replica.kill('SIGTERM')
      await database.stop()
    }
    await restarted(expect)
    const figure = `${times} sessions, ${upstream.calls()} calls, each at one of three replicas at random: ${broken.length} failed`
    return { figure, broken, seen: { calls: [upstream.calls(), times * callsInSession] } }

    /** The same on a data folder, where the server is another one after its restart. */
    async function restarted(check: typeof expect): Promise<void> {
      const data = join(place.folder, 'folder')
      mkdirSync(data, { mode: 0o700 })
      copyFileSync(secret, join(data, 'instance-secret'))
      const begin = () =>
        startServer(place, ['--data', data, '--base-url', baseUrl, '--fixtures', sampleFolder, ...flags])
      const before = await begin()
      await connect(before, upstream.port)
      const id = await initialize(before)
      await before.kill('SIGTERM')
      await using after = await begin()
      const status = await call(after, id)
      check(status === 200, () => `after a restart a session got ${status}`)
    }
  },
}

type Expect = (holds: boolean, what: () => string) => void

async function connect(server: Server, port: number): Promise<void> {
  const body = JSON.stringify({ mcpUrl: `http://127.0.0.1:${port}/mcp`, name: 'keeps sessions' })
  const { status } = await sendTo(server)('/connect/ada/sessions', { method: 'PUT', headers: ada, body })
  if (status >= 300) throw new Error(`the connection could not be made: ${status}`)
}

/** Opens a session. Resolves with its id. */
async function initialize(server: Server): Promise<string> {
  const params = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'torture', version: '1' } }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'initialize', params })
  const response = await sendTo(server)('/connect/ada/sessions/mcp', { method: 'POST', headers: mcp, body })
  await response.text()
  return response.headers.get('mcp-session-id') ?? ''
}

async function call(server: Server, id: string): Promise<number> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 2, method: 'tools/call', params: { name: 'echo', arguments: {} } })
  const headers = { ...mcp, 'mcp-session-id': id, 'mcp-protocol-version': '2025-06-18' }
  const response = await sendTo(server)('/connect/ada/sessions/mcp', { method: 'POST', headers, body })
  await response.text()
  return response.status
}

async function session(any: () => Server, expect: Expect): Promise<void> {
  const id = await initialize(any())
  expect(id.length > 0 && id.length <= 1024, () => `a session id of ${id.length} characters`)
  for (let time = 0; time < callsInSession; time += 1) {
    const status = await call(any(), id)
    expect(status === 200, () => `a call in a session of another replica got ${status}`)
  }
}

/** Reads a list to its end, each page at any replica: every row once, in order. */
async function wander(any: () => Server, expect: Expect): Promise<void> {
  const ids: string[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const from = cursor === '' ? '' : `&cursor=${encodeURIComponent(cursor)}`
    const response = await sendTo(any())(`/connect/northwind?limit=7${from}`, { headers: ada })
    const page = (await response.json()) as { connections?: { connectionId: string }[]; nextCursor?: string | null }
    if (page.connections === undefined) return expect(false, () => `a page got ${response.status}`)
    ids.push(...page.connections.map(({ connectionId }) => connectionId))
    cursor = page.nextCursor ?? null
  }
  const isInOrder = ids.every((id, index) => index === 0 || (ids[index - 1] as string) < id)
  expect(isInOrder && ids.length > 7, () => `a list read at several replicas has ${ids.length} rows, or out of order`)
}

async function inParallel(times: number, atOnceMax: number, act: () => Promise<void>): Promise<void> {
  let left = times
  const worker = async () => {
    while (left > 0) {
      left -= 1
      await act()
    }
  }
  await Promise.all(Array.from({ length: atOnceMax }, worker))
}

/** A server that answers a call only in a session that it opened itself. */
function keepsSessions(): Disposable & { readonly port: number; readonly calls: () => number } {
  const sessions = new Set<string>()
  let calls = 0
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    async fetch(request) {
      if (request.method !== 'POST') return new Response(null, { status: 405 })
      const { id, method } = (await request.json()) as { id?: number; method: string }
      if (id === undefined) return new Response(null, { status: 202 })
      if (method === 'initialize') {
        const session = crypto.randomUUID()
        sessions.add(session)
        const serverInfo = { name: 'keeps-sessions', version: '1' }
        const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo }
        return Response.json({ jsonrpc: '2.0', id, result }, { headers: { 'mcp-session-id': session } })
      }
      if (!sessions.has(request.headers.get('mcp-session-id') ?? '')) return new Response(null, { status: 404 })
      calls += 1
      const result = method === 'tools/list' ? { tools: [] } : { content: [{ type: 'text', text: 'ok' }] }
      return Response.json({ jsonrpc: '2.0', id, result })
    },
  })
  return { port: server.port ?? 0, calls: () => calls, [Symbol.dispose]: () => void server.stop(true) }
}
