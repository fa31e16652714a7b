/**
 * Requests of three kinds to the executable: made from our own OpenAPI document, good ones with some bytes changed,
 * and bytes of chance. None may be answered 5xx or kept waiting, and what they took is given back.
 */

import { mintToken } from '../api/cases.ts'
import { anonymousMemory, waitedForCore } from '../bench/measure.ts'
import { sendTo, startServer, unlimited, workplace } from '../support/executable.ts'
import { HttpSocket } from '../support/http-socket.ts'
import { type Random, random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { collector, type Trial } from './trial.ts'

/** Milliseconds that a request may wait for its answer. */
const timeoutMs = 1000
const memoryMaxMB = 30
const sockets = 16

export const fuzz: Trial = {
  name: 'fuzz',
  promise:
    'No request hangs or gets 5xx (except 505 for an HTTP version that does not exist), and memory returns to its former size',
  times: { full: 500_000, short: 6000 },
  // A write may wait for seconds while another trial has the disk flushed.
  isTimed: true,

  async run(times, seed) {
    const { broken, expect } = collector()
    using place = workplace()
    await using server = await startServer(place, unlimited)
    const port = Number(new URL(server.url).port)
    const send = sendTo(server)
    const document = (await (await send('/openapi.json', {})).json()) as OpenApi
    const token = await mintToken(send, sampleKeys.ada, { policy: [{ operations: 'read' }] })
    const statuses = new Map<number, number>()
    let slowest = 0
    let sent = 0
    let memoryBefore = 0

    const work = async (chance: Random) => {
      const socket = new HttpSocket(port)
      while (sent < times) {
        const number = sent
        sent += 1
        // What the first fifth takes is what the runtime keeps for itself.
        if (number === Math.floor(times / 5)) memoryBefore = anonymousMemory(server.pid)
        const { bytes, last } = pickRequest(chance, document, token)
        const before = waitedForCore(server.pid, process.pid)
        const answer = await socket.send(bytes, { last, timeoutMs: 60 * timeoutMs })
        const about = () => `request ${number}: ${JSON.stringify(bytes.toString('latin1').slice(0, 600))}`
        // What a busy machine adds is no fault of the server.
        const own =
          (answer?.milliseconds ?? Number.POSITIVE_INFINITY) - (waitedForCore(server.pid, process.pid) - before)
        expect(own <= timeoutMs, () => `hangs: ${about()}`)
        if (answer === undefined) continue
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
        slowest = Math.max(slowest, own)
        // 505 is the runtime's word for a version of HTTP that there is not.
        expect(answer.status < 500 || answer.status === 505, () => `${answer.status} ${answer.body}: ${about()}`)
      }
      socket.close()
    }
    await Promise.all(Array.from({ length: sockets }, (_, i) => work(random(seed * 1000 + i))))
    // The runtime gives memory back a while after the load is over, which is long on a busy machine.
    let grown = Number.POSITIVE_INFINITY
    for (let wait = 0; wait < 400 && grown > memoryMaxMB; wait += 1) {
      await Bun.sleep(250)
      await (await send('/health', {})).arrayBuffer()
      grown = anonymousMemory(server.pid) - memoryBefore
    }
    expect(grown <= memoryMaxMB, () => `memory grew by ${grown.toFixed(0)} MB`)
    const counts = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${status || 'closed'}: ${count}`)
    const figure = `${times} requests (${counts.join(', ')}), slowest ${slowest.toFixed(0)} ms, memory ${grown > 0 ? '+' : ''}${grown.toFixed(0)} MB`
    const answered = [...statuses].reduce((sum, [status, count]) => sum + (status > 0 ? count : 0), 0)
    return { figure, broken, seen: { answers: [answered, times / 2], 'status 200': [statuses.get(200) ?? 0, 1] } }
  },
}

interface OpenApi {
  readonly paths: Record<string, Record<string, { parameters?: { name: string; in: string }[]; requestBody?: unknown }>>
}

interface Made {
  readonly bytes: Buffer
  /** Its end may be anywhere: the connection is done with it. */
  readonly last: boolean
}

function pickRequest(chance: Random, document: OpenApi, token: string): Made {
  const kind = chance.int(10)
  if (kind === 0)
    return { bytes: Buffer.from(Array.from({ length: 1 + chance.int(200) }, () => chance.int(256))), last: true }
  const whole = fromDocument(chance, document, token)
  if (kind < 4) return { bytes: mutated(chance, whole), last: true }
  return { bytes: whole, last: false }
}

function fromDocument(chance: Random, document: OpenApi, token: string): Buffer {
  const [path, operations] = chance.pick(Object.entries(document.paths))
  const [method, operation] = chance.pick(Object.entries(operations))
  const target = path.replace(/\{[^}]*\}/g, () => pickText(chance, 'path'))
  const pairs = (operation.parameters ?? [])
    .filter((parameter) => parameter.in === 'query' && chance.chance(0.3))
    .map(({ name }) => `${name.replace(/[{<].*|KEY.*/, pickText(chance, 'query'))}=${pickText(chance, 'query')}`)
  if (chance.chance(0.1)) pairs.push(`${pickText(chance, 'query')}=${pickText(chance, 'query')}`)
  const query = pairs.length === 0 ? '' : `?${pairs.join('&')}`
  const authorization = chance.pick([
    ...Array<string>(8).fill(`Bearer ${sampleKeys.ada}`),
    ...Array<string>(4).fill(`Bearer ${token}`),
    `Bearer ${token.slice(0, -2)}`,
    'Bearer ',
    `Basic ${token}`,
    `Bearer ${'x'.repeat(chance.int(9000))}`,
  ])
  const isPost = method === 'post' || chance.chance(0.03)
  // Signing holds the process, so most bodies are such as cannot be minted.
  const body = isPost
    ? Buffer.from(chance.chance(0.95) ? pickJson(chance) : '{"policy":[{"operations":"read"}]}')
    : undefined
  const type = chance.pick(['application/json', 'application/json; charset=utf-8', 'text/plain', 'application/xml', ''])
  const lines = [
    `${isPost ? 'POST' : method.toUpperCase()} ${target}${query} HTTP/1.1`,
    `Host: ${chance.chance(0.98) ? 'localhost' : pickText(chance, 'header')}`,
    `Authorization: ${authorization}`,
    ...(chance.chance(0.05)
      ? [`${chance.pick(['If-None-Match', 'Origin', 'X-Request-Id', 'Accept'])}: ${pickText(chance, 'header')}`]
      : []),
    ...(body === undefined
      ? []
      : [`Content-Length: ${body.length}`, ...(type === '' ? [] : [`Content-Type: ${type}`])]),
  ]
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1'), body ?? Buffer.alloc(0)])
}

const hostile = [
  ...['', '.', '..', '%2e%2e', '%00', '%', '%ZZ', '%FF', '%C0%AF', '\\', '..%5c', ';', '%23', '%3F', '%F0%9F%98%80'],
  ...[
    '__proto__',
    'constructor',
    'toString',
    'null',
    'undefined',
    'NaN',
    '-1',
    '0',
    '1e9',
    '9'.repeat(30),
    'true',
    '[]',
    '{}',
  ],
  ...[
    "' OR 1=1",
    '<script>',
    '$(id)',
    '{{7*7}}',
    '../../etc/passwd',
    'a'.repeat(300),
    'metadata.',
    'metadata[]',
    'metadata[a][b]',
  ],
]
const real = [
  'ada',
  'northwind',
  'northwind%2Fcalendar',
  'northwind-ops',
  'crm-ada',
  '100',
  '1',
  'metadata.team',
  'wholesale',
  'limit',
]

function pickText(chance: Random, where: 'path' | 'query' | 'header'): string {
  const text = chance.pick(chance.chance(0.5) ? real : hostile)
  if (where === 'header') return chance.pick([text, 'null', '*', '"x"', 'http://evil.example', 'x'.repeat(200)])
  // Characters that cannot stand in a request line are for the mutations.
  return where === 'path' ? text.replace(/[ ?#]/g, '') || '%20' : text.replace(/[ #&]/g, '+')
}

const fields = [
  'policy',
  'organizationId',
  'namespaces',
  'resources',
  'operations',
  'metadata',
  'ttl',
  'rpcReqMatch',
  '__proto__',
  'x',
]

function pickJson(chance: Random): string {
  const value = (depth: number): unknown => {
    const kind = chance.int(depth > 4 ? 5 : 8)
    if (kind === 0) return chance.pick([null, true, false, 0, -1, 1e308, 3600])
    if (kind < 4)
      return chance.pick([...hostile, ...real, 'read', 'write', '1h', '0s', '(a+)+$', '\\p{L}{900}', '\ud800'])
    if (kind === 4) return chance.int(100_000)
    if (kind === 5) return Array.from({ length: chance.int(4) }, () => value(depth + 1))
    return Object.fromEntries(Array.from({ length: chance.int(4) }, () => [chance.pick(fields), value(depth + 1)]))
  }
  if (chance.chance(0.02)) return '['.repeat(20_000)
  if (chance.chance(0.02)) return `{"policy":[{"metadata":${'{"a":'.repeat(30)}1${'}'.repeat(30)}}]}`
  const text = JSON.stringify({
    policy: value(0),
    ...(chance.chance(0.5) && { organizationId: value(3) }),
    x: value(2),
  })
  return chance.chance(0.8) ? text : mutated(chance, Buffer.from(text)).toString('latin1')
}

function mutated(chance: Random, bytes: Buffer): Buffer {
  let changed = Buffer.from(bytes)
  for (let count = 1 + chance.int(4); count > 0; count -= 1) {
    const at = chance.int(changed.length + 1)
    const end = Math.min(changed.length, at + 1 + chance.int(12))
    const [before, taken, after] = [changed.subarray(0, at), changed.subarray(at, end), changed.subarray(end)]
    const piece = chance.pick([
      Buffer.alloc(0),
      Buffer.from([chance.int(256)]),
      Buffer.concat([taken, taken]),
      Buffer.from(
        chance.pick([
          '\r\n',
          '\n',
          '\0',
          ' ',
          ':',
          '%00',
          '"',
          '{',
          'Content-Length: 5\r\n',
          'Transfer-Encoding: chunked\r\n',
          '\xff',
        ]),
      ),
    ])
    changed = Buffer.concat([before, piece, after])
  }
  return changed
}
