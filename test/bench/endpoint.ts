/** One endpoint for a namespace: lists of twenty connections, calls, search, pins, and a thousand listeners. */

import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { hashingDefinition } from '../../src/features/pins/pinned-definitions.ts'
import { drained } from '../../src/schema/steps.ts'
import { sendTo, startServer, withoutRates, workplace } from '../support/executable.ts'
import type { Report } from './gateway.ts'
import {
  anonymousMemory,
  get,
  median,
  micro,
  post,
  privatePart,
  type Served,
  serve,
  startScript,
  time,
} from './measure.ts'

const connections = 20
const tools = 25
const keys = 64
const listeners = 1000
const bursts = 5
/** Requests that are sent at once: more of one network in one pass of the event loop are refused. */
const atOnceMax = 100
const roundSeconds = 1.5
/** Searches of one client in a second: it would wait for its share of the time if it searched without a pause. */
const searchesPerSecond = 40
/** The runtime goes on compiling a server of this size for some ten seconds of load: a hop takes half as long after that. */
const warmUpSeconds = 12

const tool = (number: number) => ({
  name: `read_record_${number}`,
  description: `Reads the record of kind ${number}, with all that was written about it since the beginning of the year.`,
  inputSchema: {
    type: 'object',
    properties: {
      id: { type: 'string', description: 'The id of the record' },
      fields: { type: 'array', items: { type: 'string' }, description: 'The fields to return' },
      limit: { type: 'integer', minimum: 1, maximum: 100 },
    },
    required: ['id'],
  },
})
const keyOf = (number: number) => `bench-key-of-user-${number}-with-enough-characters`
const headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream' }
const asUser = (number: number) => ({ ...headers, Authorization: `Bearer ${keyOf(number)}` })
const rpc = (method: string, params: object = {}) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })

function writeFixtures(folder: string): void {
  const users = Array.from({ length: keys }, (_, number) => `user-${number}`)
  const list = (number: number) => Array.from({ length: number }, (_, index) => index)
  writeFileSync(
    join(folder, 'bench.json'),
    JSON.stringify({
      organizations: [
        { organizationId: 'bench', name: 'Bench', members: users.map((userId) => ({ userId, role: 'owner' })) },
      ],
      namespaces: [
        { namespace: 'bench', organizationId: 'bench' },
        { namespace: 'other', userId: 'user-0' },
      ],
      apiKeys: users.map((userId, number) => ({ userId, key: keyOf(number) })),
      servers: [
        {
          qualifiedName: 'bench/tools',
          ...{ displayName: 'Tools', description: 'Tools', remote: true },
          connections: [{ type: 'http', deploymentUrl: 'https://tools.example.com/mcp', configSchema: {} }],
          tools: list(tools).map(tool),
        },
      ],
      connections: list(connections).map((number) => ({
        ...{ namespace: 'bench', connectionId: `server-${number}`, server: 'bench/tools' },
        ...{ mcpUrl: 'https://tools.example.com/mcp', mock: { enabled: true } },
      })),
    }),
  )
}

export async function endpoint(report: Report, rounds: number): Promise<void> {
  using place = workplace()
  const fixtures = join(place.folder, 'fixtures')
  await Bun.$`mkdir -p ${fixtures}`
  writeFixtures(fixtures)
  await using ours = await startServer(place, [
    ...['--fixtures', fixtures, ...withoutRates, '--write-rate', '0', '--allow-upstream', '127.0.0.1'],
  ])
  const port = Number(new URL(ours.url).port)
  const upstream = await startScript('mcp-upstream.ts')
  const send = sendTo(ours)
  const made = await send('/connect/other/one', {
    method: 'PUT',
    headers: asUser(0),
    body: JSON.stringify({ mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` }),
  })
  if (made.status !== 201) throw new Error(await made.text())
  const listed = await send('/connect/bench/mcp', { method: 'POST', headers: asUser(0), body: rpc('tools/list') })
  const bytes = await listed.text()
  const count = (JSON.parse(bytes) as { result: { tools: unknown[] } }).result.tools.length
  if (count !== connections * tools) throw new Error(`${count} tools are listed`)
  const file = join(place.folder, 'list.json')
  writeFileSync(file, bytes)
  const plain = await startScript('bare-server.ts', file)

  const called = { name: 'echo', arguments: { text: 'hello' } }
  const subjects = {
    bare: { pid: plain.pid, port: plain.port, requests: [post(plain.port, '/', headers, rpc('tools/list'))] },
    list: { pid: ours.pid, port, requests: [post(port, '/connect/bench/mcp', asUser(0), rpc('tools/list'))] },
    search: {
      ...{ pid: ours.pid, port },
      requests: ['record kind 7', 'written year', 'server-11 fields', 'limit 3'].map((query) => {
        const params = { name: 'search_tools', arguments: { query } }
        return post(port, '/connect/bench/mcp?tools=search', asUser(0), rpc('tools/call', params))
      }),
    },
    single: {
      ...{ pid: ours.pid, port, generate: privatePart(upstream.port) },
      requests: [post(port, '/connect/other/one/mcp', asUser(0), rpc('tools/call', called))],
    },
    joined: {
      ...{ pid: ours.pid, port, generate: privatePart(upstream.port) },
      requests: [post(port, '/connect/other/mcp', asUser(0), rpc('tools/call', { ...called, name: 'one__echo' }))],
    },
  }
  const results = new Map<string, Served[]>()
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, subject] of Object.entries(subjects)) {
      const { pid, requests, generate = undefined } = subject as typeof subject & { generate?: never }
      // One search at a time: what a single one takes.
      const atOnce = name === 'search' ? 1 : name === 'list' || name === 'bare' ? 4 : 32
      const seconds = round === 0 ? warmUpSeconds : roundSeconds
      const pace = name === 'search' && round > 0 ? { perSecond: searchesPerSecond } : {}
      const load = { port: subject.port, seconds, connections: atOnce, requests, ...pace }
      const served = await serve(pid, load, '200', generate)
      if (round > 0) results.set(name, [...(results.get(name) ?? []), served])
    }
  }
  const of = (name: string, figure: 'cpu' | 'p99') => median((results.get(name) ?? []).map((one) => one[figure]))
  const times = of('list', 'cpu') / of('bare', 'cpu')
  report(
    `tools/list of ${connections} connections with ${tools} tools each, from kept lists, compared with a bare server`,
    `${times.toFixed(1)} × (${micro(of('list', 'cpu'))}, ${bytes.length >> 10} kB)`,
    '3 ×',
    times <= 3,
  )
  const more = of('joined', 'cpu') - of('single', 'cpu')
  report(
    'Extra processor time of a call through the endpoint of a namespace, compared with a call through the endpoint of a connection',
    micro(more),
    '15 µs',
    more <= 15,
  )
  const search = of('search', 'p99')
  report(`A search over ${connections * tools} tools, p99`, `${search.toFixed(1)} ms`, '5 ms', search < 5)
  upstream.stop()
  plain.stop()

  const hundred = Array.from({ length: 100 }, (_, number) => tool(number))
  const pinned = await time(rounds, 50, () => hundred.map((one) => drained(hashingDefinition(one))))
  report('An unseen list of 100 tools, hashed for its pins', `${(pinned / 1000).toFixed(2)} ms`, '1 ms', pinned < 1000)
  await changes(report, fixtures)
}

/** A thousand listeners, and a burst of a thousand changes that all of them hear of. */
async function changes(report: Report, fixtures: string): Promise<void> {
  using place = workplace()
  // Garbage of the load before would be counted, or its end.
  await using ours = await startServer(place, ['--fixtures', fixtures, ...withoutRates])
  const port = Number(new URL(ours.url).port)
  const others = { port, connections: 4, requests: [get(port, '/connect/other', asUser(0))] }
  const sessions = await inParts((index) => greet(ours, index % keys))
  const before = await memoryUnderLoad(ours.pid, others)
  const sockets = await inParts((index) => listen(port, index % keys, sessions[index] ?? ''))
  const each = (((await memoryUnderLoad(ours.pid, others)) - before) * 1024) / listeners
  report(
    `Memory of each of ${listeners.toLocaleString('en')} listeners for list changes`,
    `${each.toFixed(0)} kB`,
    '40 kB',
    each < 40,
  )
  const burst = async () => {
    for (let change = 0; change < 1000; change += 20)
      await Promise.all(
        Array.from({ length: 20 }, (_, number) =>
          sendTo(ours)(`/connect/bench/server-${number}`, {
            method: 'PUT',
            headers: asUser(1),
            body: JSON.stringify({ name: `Change ${change}` }),
          }).then((response) => response.text()),
        ),
      )
  }
  const longest = { quiet: [] as number[], burst: [] as number[] }
  for (let round = 0; round < bursts; round += 1) {
    longest.quiet.push((await serve(ours.pid, { ...others, seconds: 2 })).max)
    const [held] = await Promise.all([serve(ours.pid, { ...others, seconds: 2 }), burst()])
    longest.burst.push(held.max)
  }
  const [most, quiet] = [median(longest.burst), median(longest.quiet)]
  const figure = `${most.toFixed(1)} ms (${quiet.toFixed(1)} without the burst)`
  report('Other requests in a burst of 1,000 changes, longest', figure, '20 ms', most <= 20)
  for (const socket of sockets) socket.end()
}

/** MB of the server after some load, at the least: garbage is collected now and then. */
async function memoryUnderLoad(pid: number, load: Parameters<typeof serve>[1]): Promise<number> {
  const sizes: number[] = []
  for (let round = 0; round < 4; round += 1) {
    await serve(pid, { ...load, count: 30_000 })
    sizes.push(anonymousMemory(pid))
  }
  return Math.min(...sizes)
}

/** What each listener needs, for so many of them at once. */
async function inParts<T>(make: (index: number) => Promise<T>): Promise<T[]> {
  const made: T[] = []
  while (made.length < listeners)
    made.push(...(await Promise.all(Array.from({ length: atOnceMax }, (_, index) => make(made.length + index)))))
  return made
}

/** The id of a session of a user. */
async function greet(ours: Awaited<ReturnType<typeof startServer>>, user: number): Promise<string> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1' } }
  const init = { method: 'POST', headers: asUser(user), body: rpc('initialize', params) }
  const greeted = await sendTo(ours)('/connect/bench/mcp', init)
  await greeted.text()
  return greeted.headers.get('mcp-session-id') ?? ''
}

/** A socket with a stream that has begun. */
async function listen(port: number, user: number, session: string) {
  const begun = Promise.withResolvers<void>()
  const socket = await Bun.connect({
    hostname: '127.0.0.1',
    port,
    socket: {
      open: (self) => void self.write(get(port, '/connect/bench/mcp', { ...asUser(user), 'Mcp-Session-Id': session })),
      data(_, chunk) {
        if (chunk.toString('latin1', 0, 12).endsWith('200')) begun.resolve()
        else begun.reject(new Error(chunk.toString()))
      },
    },
  })
  await begun.promise
  return socket
}

if (import.meta.main) {
  await endpoint(
    (what, figure, goal = '', held) => console.log(`${what}: ${figure} (goal: ${goal}) ${held}`),
    Number(process.argv[2] ?? 5),
  )
  process.exit(0)
}
