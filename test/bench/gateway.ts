/** Calls through connections: one hop, a mocked one, and many streams held open. */

import { join } from 'node:path'
import { mintToken } from '../api/cases.ts'
import { type Server as PosternServer, sendTo, startServer, unlimited, workplace } from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'
import {
  anonymousMemory,
  type Generator,
  get,
  median,
  micro,
  post,
  privatePart,
  type Served,
  serve,
  startScript,
} from './measure.ts'
import { startMcpProxy, startNginx } from './peers.ts'

export type Report = (what: string, figure: string, goal?: string, held?: boolean) => void

const roundSeconds = 1.5
/** The runtime goes on compiling a server of this size for some ten seconds of load: a hop takes half as long after that. */
const warmUpSeconds = 12
const streams = 1000

const call = (name: string, given: object = {}, id = 1) =>
  JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: given } })
const headers = {
  'Content-Type': 'application/json',
  Accept: 'application/json, text/event-stream',
  'MCP-Protocol-Version': '2025-06-18',
}

async function connect(ours: PosternServer, upstreamPort: number): Promise<void> {
  const made = await sendTo(ours)('/connect/ada/bench', {
    method: 'PUT',
    headers: { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' },
    body: JSON.stringify({ mcpUrl: `http://127.0.0.1:${upstreamPort}/mcp` }),
  })
  if (made.status !== 201) throw new Error(await made.text())
}

export async function gateway(report: Report, rounds: number): Promise<void> {
  using place = workplace()
  await using ours = await startServer(place, [...unlimited, '--allow-upstream', '127.0.0.1'])
  const port = Number(new URL(ours.url).port)
  const upstream = await startScript('mcp-upstream.ts')
  using proxy = await startMcpProxy([process.execPath, join(import.meta.dir, 'mcp-upstream.ts'), 'stdio'])
  using nginx = await startNginx(place.folder, upstream.port)
  await connect(ours, upstream.port)
  const policy = [{ operations: 'execute', rpcReqMatch: { 'params.name': '^(?:echo|hold|get_.*)$' } }]
  const token = await mintToken(sendTo(ours), sampleKeys.ada, { policy })
  const authorized = { ...headers, Authorization: `Bearer ${token}` }

  const hop = [post(port, '/connect/ada/bench/mcp', authorized, call('echo', { text: 'hello' }))]
  const subjects: Record<string, { pid: number; port: number; requests: string[]; generate?: Generator }> = {
    direct: {
      pid: upstream.pid,
      port: upstream.port,
      requests: [post(upstream.port, '/mcp', headers, call('echo', { text: 'hello' }))],
    },
    // An upstream with a process of its own would share the server's core, and take it away once a call.
    hop: { pid: ours.pid, port, requests: hop, generate: privatePart(upstream.port) },
    // As mcp-proxy has it, whose upstream is its child.
    'hop, upstream apart': { pid: ours.pid, port, requests: hop },
    ...(nginx && {
      nginx: {
        pid: nginx.pid,
        port: nginx.port,
        requests: [post(nginx.port, '/mcp', headers, call('echo', { text: 'hello' }))],
        generate: privatePart(upstream.port),
      },
    }),
    mocked: {
      pid: ours.pid,
      port,
      requests: [
        post(
          port,
          '/connect/northwind/weather-ada/mcp',
          authorized,
          call('get_current_conditions', { latitude: 45.1, longitude: -122 }),
        ),
      ],
    },
    'mcp-proxy': {
      pid: proxy.pid,
      port: proxy.port,
      // Ids of one session must differ as long as they are under way.
      requests: Array.from({ length: 1000 }, (_, id) =>
        post(proxy.port, '/mcp', { ...headers, 'Mcp-Session-Id': proxy.session }, call('echo', { text: 'hello' }, id)),
      ),
    },
  }
  const results = new Map<string, Served[]>()
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, { pid, port, requests, generate }] of Object.entries(subjects)) {
      const seconds = round === 0 ? warmUpSeconds : roundSeconds
      const served = await serve(pid, { port, seconds, connections: 32, requests }, '200', generate)
      if (round > 0) results.set(name, [...(results.get(name) ?? []), served])
    }
  }
  const cpu = (name: string) => median((results.get(name) ?? []).map((one) => one.cpu))
  const perSecond = (name: string) => median((results.get(name) ?? []).map((one) => one.perSecond))
  for (const name of results.keys()) {
    console.log(
      `  ${name}: ${micro(cpu(name))} of processor time, ${Math.round(perSecond(name)).toLocaleString('en')} a second`,
    )
  }
  report('Processor time that a hop adds to a tools/call', micro(cpu('hop')), '80 µs', cpu('hop') < 80)
  const toNginx = nginx && `${(cpu('hop') / cpu('nginx')).toFixed(1)} × (${micro(cpu('nginx'))})`
  report('Of a hop, to nginx as a reverse proxy, which checks nothing', toNginx ?? 'nginx is not installed')
  const calls = perSecond('hop, upstream apart')
  const times = calls / perSecond('mcp-proxy')
  report(
    'Calls a second through postern, compared with mcp-proxy',
    `${times.toFixed(1)} × (${Math.round(calls).toLocaleString('en')} to ${Math.round(perSecond('mcp-proxy')).toLocaleString('en')})`,
    '4 ×',
    times >= 4,
  )
  report('A mocked tools/call', micro(cpu('mocked')), '60 µs', cpu('mocked') < 60)

  await heldStreams(report, upstream.port)
  upstream.stop()
}

/** On a server that has answered a little and holds nothing else: garbage of a load before would be counted, or its end. */
async function heldStreams(report: Report, upstreamPort: number): Promise<void> {
  using place = workplace()
  await using ours = await startServer(place, [...unlimited, '--allow-upstream', '127.0.0.1'])
  const port = Number(new URL(ours.url).port)
  await connect(ours, upstreamPort)
  const authorized = { ...headers, Authorization: `Bearer ${sampleKeys.ada}` }
  const load = { port, connections: 4, requests: [get(port, '/connect/ada', authorized)] }
  await serve(ours.pid, { ...load, count: 2000 })
  const before = anonymousMemory(ours.pid)
  const held = await hold(port, post(port, '/connect/ada/bench/mcp', authorized, call('hold')))
  const each = ((anonymousMemory(ours.pid) - before) * 1024) / streams
  report(
    `Memory of each of ${streams.toLocaleString('en')} streams held open`,
    `${each.toFixed(0)} kB`,
    '40 kB',
    each < 40,
  )
  const others = await serve(ours.pid, { ...load, seconds: roundSeconds })
  report('Other requests while these streams are open, p99', `${others.p99.toFixed(1)} ms`, '20 ms', others.p99 < 20)
  for (const socket of held) socket.end()
}

/** So many sockets, each with a stream that has begun. */
async function hold(port: number, request: string): Promise<Bun.Socket<undefined>[]> {
  return Promise.all(
    Array.from({ length: streams }, async () => {
      const begun = Promise.withResolvers<void>()
      const socket = await Bun.connect({
        hostname: '127.0.0.1',
        port,
        socket: {
          open: (self) => void self.write(request),
          data(_, chunk) {
            if (chunk.includes(': held')) begun.resolve()
            else if (!chunk.toString('latin1', 0, 12).endsWith('200')) begun.reject(new Error(chunk.toString()))
          },
        },
      })
      await begun.promise
      return socket
    }),
  )
}

if (import.meta.main) {
  await gateway(
    (what, figure, goal = '', held) => console.log(`${what}: ${figure} (goal: ${goal}) ${held}`),
    Number(process.argv[2] ?? 5),
  )
  process.exit(0)
}
