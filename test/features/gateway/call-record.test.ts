/** The record of calls (contract, 18.1): every call of a tool, how it ended, and never with what. */

import { heapStats } from 'bun:jsc'
import { beforeEach, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createFairness } from '../../../src/fairness/fairness.ts'
import { createOwnerPasses, ownerRequestsPerPassMax } from '../../../src/fairness/passes.ts'
import { Shares } from '../../../src/fairness/shares.ts'
import type { Work } from '../../../src/fairness/turns.ts'
import { createOutcomeReader, statedIn } from '../../../src/features/gateway/call-outcome.ts'
import { eventBytesAtOnce } from '../../../src/limits.ts'
import { AuditVerifier } from '../../../src/ops/audit-verifier.ts'
import { CallLog } from '../../../src/ops/call-log.ts'
import { writingCanonical } from '../../../src/schema/canonical-json.ts'
import { drained } from '../../../src/schema/steps.ts'
import { type Store, StoreError } from '../../../src/storage/store.ts'
import { type Upstream, UpstreamError } from '../../../src/upstream/upstream.ts'
import { mintToken } from '../../api/cases.ts'
import { type Api, apiOf } from '../../support/api.ts'
import { createTestPlatform, startOfTime, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { until } from '../../support/until.ts'

const folder = mkdtempSync(join(tmpdir(), 'postern-test-calls-'))
process.on('exit', () => rmSync(folder, { recursive: true, force: true }))
let files = 0
let path = ''
let log: CallLog
let clock = 0
const open = () =>
  new CallLog(path, {
    clock: { now: () => startOfTime, monotonic: () => clock },
    onFailure: (error) => failures.push(error),
  })
const failures: unknown[] = []
const linesOf = (file = path) =>
  readFileSync(file, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line))
const lines = linesOf
function problemsOf(...paths: string[]): readonly string[] {
  const chain = new AuditVerifier()
  for (const file of paths) for (const line of readFileSync(file, 'utf8').trimEnd().split('\n')) chain.push(line, file)
  return chain.report().problems
}

/** What the server answers to `tools/call`; a text of events is a stream. */
let answer: string | ((asked: string) => string) = ''
const upstream: Upstream = {
  async send({ body: asked = '', progress }) {
    const text = typeof answer === 'string' ? answer : answer(Buffer.from(asked).toString())
    if (progress !== undefined) progress.isSent = true
    const bytes = new TextEncoder().encode(text)
    if (text.startsWith('{')) return { status: 200, headers: { 'content-type': 'application/json' }, body: bytes }
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        // In small pieces.
        for (let at = 0; at < bytes.length; at += 7) controller.enqueue(bytes.slice(at, at + 7))
        controller.close()
      },
    })
    return { status: 200, headers: { 'content-type': 'text/event-stream' }, body }
  },
}

let platform: TestPlatform
let ada: Api
const atOnce = { spend: () => {}, run: <T>(work: Work<T>) => drained(work) }
beforeEach(async () => {
  files += 1
  path = join(folder, `${files}.jsonl`)
  clock = 0
  log = open()
  platform = await createTestPlatform({ callLog: log, upstream })
  ada = apiOf(platform.fetch, sampleKeys.ada)
  // The greeting is not answered.
  answer = () => {
    throw new UpstreamError('down', 'it is')
  }
  await ada('PUT /connect/ada/up', { mcpUrl: 'https://up.example.com/mcp' })
  answer = '{"jsonrpc":"2.0","id":1,"result":{}}'
})
const message = (name: unknown, args?: object, method = 'tools/call') => ({
  jsonrpc: '2.0',
  id: 1,
  method,
  params: { name, ...(args && { arguments: args }) },
})
/** The answer to a call, as it comes. */
const begun = (on = platform) =>
  on.fetch('/connect/ada/up/mcp', {
    method: 'POST',
    headers: {
      authorization: `Bearer ${sampleKeys.ada}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify(message('do')),
  })

async function call(connection: string, name: unknown, args?: object, credential: string = sampleKeys.ada) {
  const response = await platform.fetch(`/connect/${connection}/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${credential}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'x-request-id': 'mine',
    },
    body: JSON.stringify(message(name, args)),
  })
  return { status: response.status, text: await response.text() }
}

/** A platform whose server answers calls with this stream, however long that stays open. */
async function answeringCalls(body: ReadableStream<Uint8Array>, upstreamTimeoutMs = 60_000): Promise<TestPlatform> {
  // The greeting is not answered.
  let isMade = false
  const held = await createTestPlatform({
    callLog: log,
    upstreamTimeoutMs,
    upstream: {
      async send(request) {
        if (!isMade) throw new UpstreamError('down', 'it is')
        return Buffer.from(request.body ?? '').includes('tools/call')
          ? { status: 200, headers: { 'content-type': 'text/event-stream' }, body }
          : upstream.send(request)
      },
    },
  })
  await apiOf(held.fetch, sampleKeys.ada)('PUT /connect/ada/up', { mcpUrl: 'https://up.example.com/mcp' })
  isMade = true
  return held
}

test('a call is a line, with who and what and how, and without its arguments', async () => {
  const args = { latitude: 45.3, longitude: -121.7 }
  await call('northwind/weather-ada', 'get_current_conditions', args)
  const [line] = lines()
  expect(line).toEqual({
    seq: 1,
    time: '2026-03-02T09:00:00.000Z',
    event: 'call',
    requestId: 'mine',
    userId: 'ada',
    keyId: expect.stringMatching(/^key_/),
    namespace: 'northwind',
    connectionId: 'weather-ada',
    tool: 'get_current_conditions',
    via: 'mcp',
    outcome: 'ok',
    ms: 0,
    bytesIn: expect.any(Number),
    bytesOut: expect.any(Number),
    args: expect.stringMatching(/^[\w-]{43}$/),
    prev: '0'.repeat(64),
    hash: expect.any(String),
  })
  // In another order they are the same arguments.
  await call('northwind/weather-ada', 'get_current_conditions', { longitude: -121.7, latitude: 45.3 })
  await call('northwind/weather-ada', 'get_current_conditions', { longitude: -121.7, latitude: 45.4 })
  const [first, second, third] = lines()
  expect([second.args === first.args, third.args === first.args]).toEqual([true, false])
  expect(readFileSync(path, 'utf8')).not.toContain('121.7')
  expect(problemsOf(path)).toEqual([])
})

test('a token is named with its ancestors, and the path by which it came', async () => {
  const parent = await mintToken(platform.fetch, sampleKeys.ada, {})
  const child = await mintToken(platform.fetch, parent, {})
  await ada.as(child)('POST /connect/northwind/weather-ada/.tools/list_alerts', {})
  const jti = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).jti
  expect(lines()).toMatchObject([{ via: 'tools', tool: 'list_alerts', jti: jti(child), par: [jti(parent)] }])
})

describe('the outcome of a call', () => {
  const stream = (data: object) =>
    `event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress"}\n\nevent: message\ndata: ${JSON.stringify(data)}\n\n`
  const result = (value: object) => ({ jsonrpc: '2.0', id: 1, result: value })
  const progress = { jsonrpc: '2.0', method: 'notifications/progress' }
  const large = (after: object, before: object = {}) =>
    JSON.stringify(result({ ...before, content: 'x'.repeat(300_000), ...after }))
  const error = { jsonrpc: '2.0', id: 1, error: { code: -32_602, message: 'no' } }
  const down = (kind: 'down' | 'late') => () => {
    throw new UpstreamError(kind, 'it is')
  }
  for (const [name, given, expected] of [
    ['a result', JSON.stringify(result({ content: [] })), { outcome: 'ok' }],
    ['a result that says it failed', JSON.stringify(result({ isError: true })), { outcome: 'tool_error' }],
    [
      'a result about errors',
      JSON.stringify(result({ structuredContent: { isError: true, error: 1 } })),
      { outcome: 'ok' },
    ],
    ['an error', JSON.stringify(error), { outcome: 'rpc_error', code: -32_602 }],
    ['a stream with a result', stream(result({})), { outcome: 'ok' }],
    ['a stream with a failed result', stream(result({ isError: true })), { outcome: 'tool_error' }],
    ['a stream with carriage returns', stream(result({})).replaceAll('\n', '\r'), { outcome: 'ok' }],
    ['a stream with an error', stream(error), { outcome: 'rpc_error', code: -32_602 }],
    [
      'a failed result before other events',
      stream(result({ isError: true })) + stream(progress),
      { outcome: 'tool_error' },
    ],
    [
      'a result before an error of another request',
      stream(result({})) + stream({ ...error, id: 2 }),
      { outcome: 'ok' },
    ],
    ["another request's result alone", stream({ ...result({}), id: 2 }), { outcome: 'upstream_error' }],
    ['a stream without an answer', stream(progress), { outcome: 'upstream_error' }],
    ['a stream that breaks off in its answer', stream(result({})).slice(0, -9), { outcome: 'upstream_error' }],
    ['an empty stream', '', { outcome: 'upstream_error' }],
    [
      'an escaped isError',
      String.raw`{"jsonrpc":"2.0","id":1,"result":{"\u0069sError":true}}`,
      { outcome: 'tool_error' },
    ],
    ['an answer without a result', '{"jsonrpc":"2.0","id":1}', { outcome: 'upstream_error' }],
    ['a large result that failed', large({ isError: true }), { outcome: 'tool_error' }],
    ['a large result that says first that it failed', large({}, { isError: true }), { outcome: 'tool_error' }],
    ['a large result with such a text', large({ text: '{"isError":true}' }), { outcome: 'ok' }],
    ['a large result with such a member deep within', large({ a: { isError: true, error: {} } }), { outcome: 'ok' }],
    [
      'a large stream with such a member',
      stream(JSON.parse(large({ isError: [{ isError: true }] }))),
      { outcome: 'ok' },
    ],
    [
      'a large error with a result in it',
      JSON.stringify({ ...error, more: JSON.parse(large({})) }),
      { outcome: 'rpc_error' },
    ],
    [
      'a large answer to another request',
      JSON.stringify({ ...JSON.parse(large({})), id: 2 }),
      { outcome: 'upstream_error' },
    ],
    ['an answer to another request', JSON.stringify({ ...result({}), id: 2 }), { outcome: 'upstream_error' }],
    ['an answer to the same id as text', JSON.stringify({ ...result({}), id: '1' }), { outcome: 'ok' }],
    ['an error without an id', JSON.stringify({ ...error, id: null }), { outcome: 'rpc_error', code: -32_602 }],
    [
      'a large answer to another request before a small one',
      stream({ ...JSON.parse(large({ isError: true })), id: 2 }) + stream(result({})),
      { outcome: 'ok' },
    ],
    [
      'a large notification with a result before an error',
      stream({ ...JSON.parse(large({})), method: 'notifications/x', id: 1 }) + stream(error),
      { outcome: 'rpc_error' },
    ],
    ['a large stream that failed', stream(JSON.parse(large({ isError: true }))), { outcome: 'tool_error' }],
    ['a large error', JSON.stringify({ ...error, more: 'x'.repeat(300_000) }), { outcome: 'rpc_error' }],
    ['a server that is down', down('down'), { outcome: 'upstream_error', code: 'upstream_error' }],
    ['a server that is late', down('late'), { outcome: 'timeout', code: 'upstream_timeout' }],
  ] as const)
    test(name, async () => {
      answer = given
      const { text } = await call('ada/up', 'do')
      const [line, ...more] = lines()
      expect({ line, more }).toMatchObject({ line: { tool: 'do', connectionId: 'up', ...expected }, more: [] })
      if (typeof given === 'string')
        // Of a stream, until its answer.
        expect({ text, isWithin: line.bytesOut <= given.length }).toEqual({ text: given, isWithin: true })
    })

  for (const [name, given] of [
    ['a result that breaks off', '{"jsonrpc":"2.0","id":1,"result":{"content":['],
    ['a large result that breaks off', large({}).slice(0, -2)],
    ['a request with a result in it', '{"jsonrpc":"2.0","id":1,"method":"x","params":{"result":1}}'],
    ['a result with something after it', `${JSON.stringify(result({}))} more`],
    ['two results', JSON.stringify(result({})).repeat(2)],
    ['two large results', large({}).repeat(2)],
  ] as const)
    test(`is none in ${name}`, async () => {
      for (const begin of ['', ' ']) {
        answer = begin + given
        await call('ada/up', 'do')
        expect(lines().at(-1)).toMatchObject({ tool: 'do', outcome: 'upstream_error' })
        expect(await statedIn(atOnce, answer, 1)).toEqual({ outcome: 'upstream_error' })
      }
    })

  test('is found in a stream however it is cut, and whatever ends its lines', async () => {
    const text = `: hello\nretry: 5\n\nevent: message\ndata: ${JSON.stringify(progress)}\n\nid: 7\ndata:{"jsonrpc":"2.0",\ndata: "id":1,"result":{"isError":true,"text":"é🏕"}}\n\n`
    for (const lineEnd of ['\n', '\r\n', '\r']) {
      // After a carriage return alone, only the next byte says whether the line was empty.
      const bytes = Buffer.from(`${text.replaceAll('\n', lineEnd)}: bye${lineEnd}`)
      for (let size = 1; size <= bytes.length; size += 1) {
        const reader = createOutcomeReader(1, 'text/event-stream; charset=utf-8', atOnce)
        for (let at = 0; at < bytes.length; at += size) await reader.add(bytes.subarray(at, at + size))
        expect({ lineEnd, size, stated: reader.stated() }).toEqual({
          lineEnd,
          size,
          stated: { outcome: 'tool_error' },
        })
      }
    }
  })

  test('is found in an answer that is too large to be parsed, in pieces', async () => {
    const bytes = Buffer.from(`data: ${large({ isError: true })}\n\n`)
    for (const size of [7, 1000, 65_536]) {
      const events = createOutcomeReader(1, 'text/event-stream', atOnce)
      const whole = createOutcomeReader(1, 'application/json', atOnce)
      for (let at = 0; at < bytes.length; at += size) await events.add(bytes.subarray(at, at + size))
      for (let at = 6; at < bytes.length; at += size) await whole.add(bytes.subarray(at, at + size))
      expect([events.stated(), whole.stated()]).toEqual([{ outcome: 'tool_error' }, { outcome: 'tool_error' }])
    }
  })

  test('is late where a stream has no answer in time, and is answered whole', async () => {
    const held = await answeringCalls(new ReadableStream(), 1)
    const late = await apiOf(held.fetch, sampleKeys.ada)('POST /connect/ada/up/.tools/do', {})
    expect(late).toMatchObject({ status: 504, body: { error: 'upstream_timeout' } })
    expect(lines().at(-1)).toMatchObject({ tool: 'do', outcome: 'timeout', code: 'upstream_timeout' })
  })

  test('is recorded before its answer is passed on, however long its server keeps the stream open', async () => {
    const open = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from(stream(result({})))),
    })
    const held = await answeringCalls(open)
    const reader = (await begun(held)).body?.getReader()
    for (let text = ''; !text.includes('"result"'); )
      text += Buffer.from((await reader?.read())?.value ?? []).toString()
    expect(lines()).toMatchObject([{ tool: 'do', outcome: 'ok' }])
    await reader?.cancel()
    expect(lines()).toHaveLength(1)
  })

  test('of one without an id is what its server says of it', async () => {
    const notify = () =>
      ada('POST /connect/ada/up/mcp', { jsonrpc: '2.0', method: 'tools/call', params: { name: 'do', arguments: {} } })
    await notify()
    answer = JSON.stringify(error)
    await notify()
    expect(lines().map(({ outcome, code }) => [outcome, code])).toEqual([
      ['ok', undefined],
      ['rpc_error', -32_602],
    ])
  })

  test('is found in a large event of several lines, cut at their ends', async () => {
    const [first, second] = [large({}).slice(0, -2), ',"isError":true}}']
    const reader = createOutcomeReader(1, 'text/event-stream', atOnce)
    for (const piece of [`data: ${first}`, '\n', `data: ${second}`, '\n', '\n']) await reader.add(Buffer.from(piece))
    expect(reader.stated()).toEqual({ outcome: 'tool_error' })
  })

  test('of one that the policy refuses, which never reaches the server', async () => {
    const token = await mintToken(platform.fetch, sampleKeys.ada, {
      policy: [{ rpcReqMatch: { 'params.name': '^get' } }],
    })
    expect((await call('ada/up', 'drop', {}, token)).status).toBe(403)
    await call('ada/up', 'get', {}, token)
    expect(lines()).toMatchObject([
      { tool: 'drop', outcome: 'refused', code: 'forbidden', constraint: 'policy[0].rpcReqMatch.params.name' },
      { tool: 'get', outcome: 'ok' },
    ])
  })

  test('of one that the policy refuses, though its caller disconnects at once', async () => {
    const token = await mintToken(platform.fetch, sampleKeys.ada, {
      policy: [{ rpcReqMatch: { 'params.name': '^get' } }],
    })
    await platform.fetch('/connect/ada/up/mcp', {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', accept: 'application/json' },
      body: JSON.stringify(message('drop')),
      signal: AbortSignal.abort(),
    })
    expect(lines()).toMatchObject([
      { tool: 'drop', outcome: 'refused', code: 'forbidden', constraint: 'policy[0].rpcReqMatch.params.name' },
    ])
  })

  test('of one whose answer its caller may not have any more, or perhaps not', async () => {
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ ttl: '10s' }] })
    expect((await call('ada/up', 'do', {}, token)).status).toBe(200)
    answer = () => {
      platform.now += 11_000.26
      return JSON.stringify(result({ secret: 1 }))
    }
    expect((await call('ada/up', 'do', {}, token)).status).toBe(401)
    expect(lines().at(-1)).toMatchObject({ outcome: 'cancelled', code: 'unauthorized', ms: 11_000.3, bytesOut: 0 })
    let isAway = false
    const get: Store['get'] = async (key) => {
      if (isAway) throw new StoreError('unavailable', 'it is away')
      return platform.store.get(key)
    }
    const store = { ...platform.store, get }
    const later = await createTestPlatform({ callLog: log, upstream, store, fastLane: false })
    // Opens the session.
    await apiOf(later.fetch, sampleKeys.ada)('POST /connect/ada/up/.tools/do', {})
    answer = () => {
      later.now += 11_000
      isAway = true
      return JSON.stringify(result({ secret: 1 }))
    }
    const path = 'POST /connect/ada/up/.tools/do'
    expect(await apiOf(later.fetch, sampleKeys.ada)(path, {})).toMatchObject({ status: 503 })
    expect(lines().at(-1)).toMatchObject({ outcome: 'cancelled', code: 'unavailable', bytesOut: 0 })
  })

  test('that has lost the right while a session was opened for it, and is not sent', async () => {
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ ttl: '10s' }] })
    let asked = 0
    answer = () => {
      asked += 1
      platform.now += 11_000
      return JSON.stringify(result({}))
    }
    expect((await call('ada/up', 'do', {}, token)).status).toBe(401)
    expect([asked, lines().at(-1)]).toMatchObject([1, { outcome: 'refused', code: 'unauthorized' }])
  })

  test('of a client that goes away', async () => {
    answer = stream(result({}))
    const reader = (await begun()).body?.getReader()
    await reader?.read()
    await reader?.cancel()
    expect(lines()).toMatchObject([{ tool: 'do', outcome: 'cancelled' }])
  })

  test('of a client that leaves a large answer before its end, wherever that says that it failed', async () => {
    const text = large({ isError: true })
    const bytes = Buffer.from(text)
    const slow = new ReadableStream<Uint8Array>({ start: (controller) => controller.enqueue(bytes.subarray(0, -20)) })
    const held = await answeringCalls(slow)
    const whole = createOutcomeReader(1, 'application/json', atOnce)
    await whole.add(bytes.subarray(0, -20))
    expect([whole.found, whole.stated()]).toEqual([undefined, { outcome: 'upstream_error' }])
    const reader = (await begun(held)).body?.getReader()
    await reader?.cancel()
    expect(lines()).toMatchObject([{ tool: 'do', outcome: 'cancelled' }])
  })

  test('of many whose client goes at the same moment, a few in each pass of the event loop', async () => {
    const passes: (() => void)[] = []
    const endPass = () => {
      for (const run of passes.splice(0)) run()
    }
    const fairness = { ...createFairness(), passes: createOwnerPasses((run) => void passes.push(run)) }
    const busy = await createTestPlatform({ callLog: log, upstream, fairness, store: platform.store, fastLane: false })
    // None is answered: that would be recorded before its client goes.
    answer = stream(progress).repeat(100)
    const streams: ReadableStream[] = []
    for (let i = 0; i < 3 * ownerRequestsPerPassMax; i += 1) {
      const response = await busy.fetch('/connect/ada/up/mcp', {
        method: 'POST',
        headers: { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json', accept: '*/*' },
        body: JSON.stringify(message('do')),
      })
      streams.push(response.body as ReadableStream)
      // Those of the requests.
      while (passes.length > 0) endPass()
    }
    // A new pass: of a busy machine a late body has taken a part of the last one.
    fairness.passes = createOwnerPasses((run) => void passes.push(run))
    // Their key has no memory left: the end of a call is recorded all the same.
    fairness.memory.take = () => false
    const ends = streams.map((one) => one.cancel())
    const counts: number[] = []
    for (let pass = 0; pass < 3; pass += 1) {
      await until(() => lines().length >= (pass + 1) * ownerRequestsPerPassMax)
      counts.push(lines().length)
      endPass()
    }
    await Promise.all(ends)
    expect(counts).toEqual([1, 2, 3].map((part) => part * ownerRequestsPerPassMax))
  })

  for (const [what, said, expected] of [
    ['before its answer', ': nothing yet\n\n', { outcome: 'cancelled', code: 'unauthorized' }],
    [
      'after its answer, which says the same',
      'data: {"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"no"}}\n\n',
      { outcome: 'rpc_error', code: -32001 },
    ],
  ] as const)
    test(`of a stream that the platform ends ${what}`, async () => {
      const ticks: (() => void)[] = []
      const every = (_: number, act: () => void) => {
        ticks.push(act)
        return () => {}
      }
      const open: Upstream = {
        async send(request) {
          if (!Buffer.from(request.body ?? []).includes('tools/call')) return upstream.send(request)
          if (request.progress !== undefined) request.progress.isSent = true
          const body = new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from(said)) })
          return { status: 200, headers: { 'content-type': 'text/event-stream' }, body }
        },
      }
      const store = platform.store
      const streaming = await createTestPlatform({ callLog: log, upstream: open, store, every, fastLane: false })
      const token = await mintToken(streaming.fetch, sampleKeys.ada, { policy: [{ ttl: '10s' }] })
      const response = await streaming.fetch('/connect/ada/up/mcp', {
        method: 'POST',
        headers: {
          authorization: `Bearer ${token}`,
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
        },
        body: JSON.stringify(message('do')),
      })
      const reader = response.body?.getReader()
      await reader?.read()
      streaming.now += 11_000
      for (const tick of ticks) tick()
      const last = await reader?.read()
      expect(Buffer.from(last?.value ?? []).toString()).toContain('-32001')
      await reader?.read()
      expect(lines()).toMatchObject([{ tool: 'do', ...expected }])
    })
})

test('other methods are not recorded', async () => {
  await ada('GET /connect/northwind/weather-ada/.tools')
  expect(lines()).toEqual([])
})

test('an answer whose call cannot be recorded is not given', async () => {
  log.close()
  const { status, text } = await call('northwind/weather-ada', 'list_alerts')
  expect({ status, text }).toMatchObject({ status: 503, text: expect.stringContaining('It is not known') })
})

test('a refusal is answered when its line is written', async () => {
  const { promise, resolve } = Promise.withResolvers<void>()
  const slow = Object.assign(log, { refused: () => promise })
  platform = await createTestPlatform({ callLog: slow, upstream, store: platform.store })
  const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ rpcReqMatch: { method: '^ping$' } }] })
  let isAnswered = false
  const answered = call('ada/up', 'drop', {}, token).then(({ status }) => {
    isAnswered = true
    return status
  })
  for (let turn = 0; turn < 20; turn += 1) await new Promise((next) => setImmediate(next))
  expect(isAnswered).toBe(false)
  resolve()
  expect(await answered).toBe(403)
})

test('past a hundred refusals a second only their number is written', async () => {
  const token = await mintToken(platform.fetch, sampleKeys.ada, {
    policy: [{ rpcReqMatch: { 'params.name': '^get' } }],
  })
  await Promise.all(Array.from({ length: 150 }, () => call('ada/up', 'drop', {}, token)))
  clock += 1000
  await call('ada/up', 'drop', {}, token)
  await call('ada/up', 'get', {}, token)
  const events = lines().map(({ event, count }) => count ?? event)
  expect([events.filter((event) => event === 'call').length, events.filter((event) => event !== 'call')]).toEqual([
    102,
    [50],
  ])
})

test('what was sent to a server was not refused, whatever became of its answer', async () => {
  let executed = 0
  const large = `{"jsonrpc":"2.0","id":1,"result":{"content":"${'x'.repeat(300_000)}"}}`
  answer = (asked) => {
    if (!asked.includes('tools/call')) return '{"jsonrpc":"2.0","id":1,"result":{}}'
    executed += 1
    return large
  }
  // The answers have no room, be it one by one or in a flood.
  const fairness = { ...createFairness(), memory: new Shares(800_000) }
  platform = await createTestPlatform({ store: platform.store, callLog: log, upstream, fairness })
  executed = 0
  // As many at once as do not wait for a pass of the event loop: those that do need memory, too.
  for (let sent = 0; sent < 160; sent += ownerRequestsPerPassMax) {
    const answers = await Promise.all(Array.from({ length: ownerRequestsPerPassMax }, () => call('ada/up', 'drop')))
    expect([...new Set(answers.map(({ status }) => status))]).toEqual([429])
  }
  const recorded = lines().filter(({ event }) => event === 'call')
  expect(recorded).toHaveLength(160)
  expect(new Set(recorded.map(({ outcome, code }) => `${outcome} ${code}`))).toEqual(
    new Set(['cancelled rate_limited']),
  )
  expect(executed).toBeGreaterThanOrEqual(160)
  // One whose address is refused was never sent.
  answer = () => {
    throw new UpstreamError('busy', 'too many requests of this caller')
  }
  await call('ada/up', 'never')
  expect(lines().at(-1)).toMatchObject({ tool: 'never', outcome: 'refused', code: 'rate_limited' })
})

test('a name of control characters makes no longer line than others', async () => {
  await call('ada/up', '\u0001'.repeat(10_000))
  await call('ada/up', 'a'.repeat(10_000))
  await call('ada/up', `${'a'.repeat(256)}b`)
  await call('ada/up', 'a'.repeat(256))
  const [first, second, third, fourth] = lines().slice(-4)
  expect(JSON.stringify(first.tool).length).toBeLessThanOrEqual(267)
  expect(first.tool.length).toBeGreaterThan(30)
  // Names that begin alike are told apart.
  expect([second.tool, third.tool]).toEqual(Array(2).fill(expect.stringMatching(/^a{256}…[0-9a-f]{8}$/)))
  expect(second.tool).not.toBe(third.tool)
  expect(fourth.tool).toBe('a'.repeat(256))
})

describe('the file', () => {
  test('continues in a new one where it was moved away, and is checked over both', async () => {
    await call('ada/up', 'one')
    renameSync(path, `${path}.1`)
    await call('ada/up', 'two')
    clock += 1000
    await call('ada/up', 'three')
    expect(linesOf(`${path}.1`).map(({ tool }) => tool)).toEqual(['one', 'two'])
    expect(lines().map(({ event, tool, seq }) => [tool ?? event, seq])).toEqual([
      ['log.continued', 3],
      ['three', 4],
    ])
    expect(problemsOf(`${path}.1`, path)).toEqual([])
    expect(problemsOf(path, `${path}.1`)).not.toEqual([])
  })

  test('is opened anew on demand', async () => {
    await call('ada/up', 'one')
    renameSync(path, `${path}.1`)
    log.reopen()
    await call('ada/up', 'two')
    expect(lines().map(({ event, tool }) => tool ?? event)).toEqual(['log.continued', 'two'])
    expect(problemsOf(`${path}.1`, path)).toEqual([])
  })

  test('is continued by the next process, after a line that a crash cut off too', async () => {
    await call('ada/up', 'one')
    log.close()
    writeFileSync(path, '{"seq":2,"time":"2026', { flag: 'a' })
    log = open()
    platform = await createTestPlatform({ callLog: log, store: platform.store, upstream })
    await call('ada/up', 'two')
    expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(4)
    expect(problemsOf(path)).toEqual([])
  })
})

test('a key that calls too fast is told to wait, with all its tokens', async () => {
  platform = await createTestPlatform({ callLog: log, upstream, rates: { calls: 0.1 }, store: platform.store })
  const token = await mintToken(platform.fetch, sampleKeys.ada, {})
  const answers = [await call('ada/up', 'one'), await call('ada/up', 'two', {}, token), await call('ada/up', 'three')]
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 429])
  expect(JSON.parse(answers[2]?.text ?? '').error).toMatchObject({ code: -32_029 })
  expect(await apiOf(platform.fetch, sampleKeys.ada)('POST /connect/ada/up/.tools/one', {})).toMatchObject({
    status: 429,
    body: { error: 'rate_limited', message: expect.stringContaining('calling tools too fast') },
  })
  platform.now += 10_000
  expect((await call('ada/up', 'four')).status).toBe(200)
  const refused = { outcome: 'refused', code: 'call_rate' }
  expect(lines().slice(-3)).toMatchObject([refused, refused, { tool: 'four', outcome: 'ok' }])
})

test('calls that the policy refuses do not count against the rate of the key', async () => {
  platform = await createTestPlatform({ callLog: log, upstream, rates: { calls: 0.1 }, store: platform.store })
  const policy = [{ rpcReqMatch: { 'params.name': '^nothing$' } }]
  const token = await mintToken(platform.fetch, sampleKeys.ada, { policy })
  for (let i = 0; i < 20; i += 1) expect((await call('ada/up', 'one', {}, token)).status).toBe(403)
  expect((await call('ada/up', 'one')).status).toBe(200)
})

test('canonical JSON is that of RFC 8785', () => {
  for (const [value, text] of [
    [{ b: 1, a: [2, { d: null, c: 'é\u0001' }] }, '{"a":[2,{"c":"é\\u0001","d":null}],"b":1}'],
    [
      { '\u20ac': 1, '\r': 2, '\ufb33': 3, '1': 4, '\ud83d\ude00': 5, '\u0080': 6, ö: 7 },
      '{"\\r":2,"1":4,"\u0080":6,"ö":7,"\u20ac":1,"\ud83d\ude00":5,"\ufb33":3}',
    ],
    [[333333333.3333333, 1e30, 4.5, 2e-3, 1e-27, -0], '[333333333.3333333,1e+30,4.5,0.002,1e-27,0]'],
  ] as const)
    expect(drained(writingCanonical(value))).toBe(text)
})

test('a stream may begin with a byte order mark', async () => {
  const reader = createOutcomeReader(1, 'text/event-stream', atOnce)
  await reader.add(Buffer.from('\ufeffdata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'))
  expect(reader.stated()).toEqual({ outcome: 'ok' })
  // Later it is a part of a field that nobody knows.
  const other = createOutcomeReader(1, 'text/event-stream', atOnce)
  await other.add(Buffer.from('data: {"jsonrpc":"2.0","method":"ping"}\n\n'))
  await other.add(Buffer.from('\ufeffdata: {"jsonrpc":"2.0","id":1,"result":{}}\n\n'))
  expect(other.stated()).toBeUndefined()
})

test('an answer whose id is a text of the number is one, as clients take it', async () => {
  for (const [id, isHeard] of [
    ['"1"', true],
    ['1', true],
    ['"01"', false],
    ['[1]', false],
    ['null', false],
  ] as const) {
    const reader = createOutcomeReader(1, 'text/event-stream', atOnce)
    await reader.add(Buffer.from(`data: {"jsonrpc":"2.0","id":${id},"result":{}}\n\n`))
    expect([id, reader.stated()]).toEqual([id, isHeard ? { outcome: 'ok' } : undefined])
  }
})

test('an event of another type than message is left alone, as clients do, be it small or large', async () => {
  const message = (member: object) => `{"jsonrpc":"2.0","id":1,${JSON.stringify(member).slice(1)}`
  const padding = { padding: 'x'.repeat(80_000) }
  const error = message({ error: { code: -32000, message: 'no' } })
  for (const result of [message({ result: {} }), message({ result: padding })])
    for (const [other, isHeard] of [
      [`event: other\ndata: ${result}\n\n`, false],
      [`data: ${result}\nevent: other\n\n`, false],
      [`data: ${result}\nevent: ${'o'.repeat(5000)}\n\n`, false],
      [`event: message \ndata: ${result}\n\n`, false],
      [`event: other\nevent: message\ndata: ${result}\n\n`, true],
      [`event:message\ndata: ${result}\n\n`, true],
      [`event: other\nevent\ndata: ${result}\n\n`, true],
      // Not at the beginning of a line it is text.
      [`data: ${result.replace('xxx', 'event: other')}\n\n`, true],
    ] as const)
      for (const size of [1000, 4096, 65_536, 1_000_000]) {
        const reader = createOutcomeReader(1, 'text/event-stream', atOnce)
        const bytes = Buffer.from(`${other}event: message\ndata: ${error}\n\n`)
        for (let at = 0; at < bytes.length; at += size) await reader.add(bytes.subarray(at, at + size))
        const { outcome } = reader.stated() ?? {}
        expect([other.slice(0, 40), size, outcome]).toEqual([other.slice(0, 40), size, isHeard ? 'ok' : 'rpc_error'])
      }
})

test('bytes that come one at a time take no memory of their own', async () => {
  const reader = createOutcomeReader(1, 'text/event-stream', atOnce)
  const whole = createOutcomeReader(1, 'application/json', atOnce)
  const pieces = () => {
    Bun.gc(true)
    return heapStats().objectTypeCounts['Uint8Array'] ?? 0
  }
  const before = pieces()
  for (let i = 0; i < 20_000; i += 1) {
    await reader.add(Uint8Array.of(0x61))
    await whole.add(Uint8Array.of(0x61))
  }
  expect(pieces() - before).toBeLessThan(1000)
  expect([reader.stated(), whole.stated()]).toEqual([undefined, { outcome: 'upstream_error' }])
})

test('answers are searched, which counts for their owner and waits for nothing of it', async () => {
  let spent = 0
  const counted = {
    ...atOnce,
    spend(milliseconds: number) {
      spent += milliseconds
    },
  }
  const events = createOutcomeReader(1, 'text/event-stream', counted)
  const other = JSON.stringify({ jsonrpc: '2.0', id: 2, result: {} })
  for (let i = 0; i < 10; i += 1) await events.add(Buffer.from(`data: ${other}\n\n`))
  expect([spent < 0.01, events.stated()]).toEqual([true, undefined])
  const large = Buffer.from(`data: {"jsonrpc":"2.0","id":1,"result":{"text":"${'x'.repeat(2 ** 20)}"}}\n\n`)
  await events.add(large)
  const ofEvents = spent
  const whole = createOutcomeReader(1, 'application/json', counted)
  for (let at = 6; at < large.length; at += 10_000) await whole.add(large.subarray(at, at + 10_000))
  expect([ofEvents > 3, spent - ofEvents > 3, events.stated()]).toEqual([true, true, { outcome: 'ok' }])
  const padded = JSON.stringify({ jsonrpc: '2.0', id: 1, error: { code: -32_602, message: 'x'.repeat(10_000) } })
  expect(await statedIn(counted, padded, 1)).toEqual({ outcome: 'rpc_error', code: -32_602 })
})

test('what may have waited for its client is searched in turns of its owner', async () => {
  let turns = 0
  const counted = {
    ...atOnce,
    run<T>(work: Work<T>) {
      turns += 1
      return drained(work)
    },
  }
  const events = 'data:"error"\n\n'.repeat(Math.ceil(eventBytesAtOnce / 14))
  for (const type of ['text/event-stream', 'application/json']) {
    turns = 0
    const reader = createOutcomeReader(1, type, counted)
    // As the pile of a slow reader gives them, and as they arrive.
    for (let i = 0; i < 10; i += 1) await reader.add(Buffer.from(events).subarray(0, eventBytesAtOnce))
    expect(turns).toBe(10)
    for (let i = 0; i < 10; i += 1) await reader.add(Buffer.from('data:"error"\n\n'))
    expect(turns).toBe(10)
  }
})
