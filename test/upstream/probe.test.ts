/** The first contact with a server that is told what to answer. */

import { expect, test } from 'bun:test'
import { initializeServer, probeRequestsMax, probeResponseBytesMax, probeServer } from '../../src/upstream/probe.ts'
import { UpstreamError, type UpstreamRequest, type UpstreamResponse } from '../../src/upstream/upstream.ts'
import { until } from '../support/until.ts'

const holder = { keyId: 'key', family: 'key' }
const json = { 'content-type': 'application/json' }
const answer = (status: number, body = '', headers: Record<string, string> = json): UpstreamResponse => ({
  status,
  headers,
  body: new TextEncoder().encode(body),
})

async function probed(
  respond: (message: { method?: string; id?: unknown }, request: UpstreamRequest) => UpstreamResponse,
) {
  const sent: UpstreamRequest[] = []
  const upstream = {
    async send(request: UpstreamRequest) {
      sent.push(request)
      const { body, method } = request
      return respond(method === 'POST' ? JSON.parse(String(body)) : {}, request)
    },
  }
  const found = await probeServer(upstream, 'https://a.example.com/mcp', { 'x-key': 'k' }, { holder, via: '1.1 x' })
  return { found, sent }
}
const failing = (kind: UpstreamError['kind']) => () => {
  throw new UpstreamError(kind, 'so it is')
}
const error = (message: string) => ({ status: { state: 'error', message } })

test('a server that answers is connected, and keeps of itself what has its shape', async () => {
  const greeting = (serverInfo: unknown) =>
    probed(({ method, id }) => {
      if (method !== 'initialize') return answer(202)
      const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo }
      return answer(200, JSON.stringify({ jsonrpc: '2.0', id, result }))
    })
  const { found, sent } = await greeting({ name: 's', version: '1', title: 'S', more: 1 })
  expect(found).toEqual({ status: { state: 'connected' }, serverInfo: { name: 's', version: '1', title: 'S' } })
  expect(sent[0]).toMatchObject({ via: '1.1 x', holder, headers: { 'x-key': 'k' }, isParsed: true })
  const large = await greeting({ name: 's', version: 'x'.repeat(16_384) })
  expect(large.found).toEqual({ status: { state: 'connected' } })
})

test('one that does not is told, by what it did', async () => {
  expect((await probed(() => answer(401))).found).toEqual({ status: { state: 'auth_required' } } as never)
  for (const status of [300, 404, 500])
    expect((await probed(() => answer(status))).found).toEqual(
      error(`The server does not answer in MCP: check the URL of the connection (it answered ${status})`) as never,
    )
  expect((await probed(() => answer(200, '<html>', { 'content-type': 'text/html' }))).found).toEqual(
    error('The server does not answer in MCP: check the URL of the connection') as never,
  )
  for (const kind of ['down', 'late'] as const)
    expect((await probed(failing(kind))).found).toEqual(error('The server could not be reached: so it is') as never)
})

test('an address that may not be reached is refused', async () => {
  await expect(probed(failing('refused'))).rejects.toMatchObject({ kind: 'refused', message: 'so it is' })
})

test('one that takes no greeting of the handshake is greeted in the words of the newer revision, and no other', async () => {
  const methods = async (respond: Parameters<typeof probed>[0]) => {
    const { sent } = await probed(respond)
    return sent.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(String(body)).method)
  }
  expect((await methods(() => answer(400))).length).toBeGreaterThan(1)
  expect(await methods(() => answer(500))).toEqual(['initialize'])
  expect(await methods(failing('down'))).toEqual(['initialize'])
})

test('one that asks and asks is heard out for so many requests', async () => {
  const events = `data: ${JSON.stringify({ jsonrpc: '2.0', id: 7, method: 'ping' })}\n\n`.repeat(probeRequestsMax * 2)
  const { found, sent } = await probed(() => answer(200, events, { 'content-type': 'text/event-stream' }))
  expect(found).toEqual(
    error('The server cannot be used: postern would need too many requests to initialize it') as never,
  )
  expect(sent).toHaveLength(probeRequestsMax)
  expect(sent[0]?.signal?.().aborted).toBe(true)
})

test('a server that is not ready in time is told so, and not that somebody disconnected', async () => {
  const send = ({ signal }: UpstreamRequest) =>
    new Promise<never>((_, reject) =>
      signal?.().addEventListener('abort', () => reject(new UpstreamError('down', 'the client disconnected'))),
    )
  const bounds = { timeoutMs: 10, requests: 5, bytes: 1000 }
  const greeting = { url: 'https://a.example.com/mcp', headers: {}, asking: { holder, via: undefined }, bounds }
  expect(await initializeServer({ send }, { ...greeting, ask: async () => 'all' })).toMatchObject({
    problem: 'The server did not answer in time',
  })
})

test('both revisions together have the bounds of one', async () => {
  const sentFor = async (first: number) => {
    const { sent } = await probed(({ method }) =>
      method === 'initialize' ? answer(400, ' '.repeat(first)) : answer(200, ' '.repeat(200)),
    )
    return sent.filter(({ method }) => method === 'POST').map(({ signal }) => signal?.().aborted)
  }
  expect(await sentFor(probeResponseBytesMax - 200)).toEqual([false, false])
  expect(await sentFor(probeResponseBytesMax - 199)).toEqual([false, true])
})

/** A server of the handshake, whose greeting is followed by `pad` and which answers notifications without a body. */
const greets = (more: object = {}, pad = '', headers: Record<string, string> = json) =>
  probed(({ method, id }) => {
    if (method !== 'initialize') return { status: 202, headers: {}, body: undefined }
    const result = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' }, ...more }
    return answer(200, JSON.stringify({ jsonrpc: '2.0', id, result }) + pad, headers)
  })
const connected = { status: { state: 'connected' }, serverInfo: { name: 's', version: '1' } }

test('a greeting is read to its last byte, and not one of a byte more', async () => {
  const instructions = Array.from({ length: 20_000 }, (_, i) => `rule ${i}`).join()
  const plain = await greets({ instructions })
  expect(plain.found).toEqual(connected as never)
  expect(plain.sent[0]?.signal?.().aborted).toBe(false)
  const length = JSON.stringify({
    jsonrpc: '2.0',
    id: 0,
    result: { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 's', version: '1' } },
  }).length
  expect((await greets({}, ' '.repeat(probeResponseBytesMax - length))).found).toEqual(connected as never)
  const large = await greets({}, ' '.repeat(probeResponseBytesMax - length + 1))
  expect(large.found).toEqual(error('The server sent too much: at most 262144 bytes are read') as never)
  expect(large.sent[0]?.signal?.().aborted).toBe(true)
})

test('a greeting has few values, keys and lines', async () => {
  const values = (count: number) => Array.from({ length: count }, () => 0)
  expect((await greets({ capabilities: { experimental: { a: { b: values(1900) } } } })).found).toEqual(
    connected as never,
  )
  for (const [many, what] of [
    [{ capabilities: { experimental: { a: { b: values(2100) } } } }, 'values'],
    [{ capabilities: Object.fromEntries(values(2100).map((_, index) => [`k${index}`, 1])) }, 'keys'],
  ] as const)
    expect((await greets(many)).found).toEqual(error(`The server’s answer has more than 2000 ${what}`) as never)
  const events = { 'content-type': 'text/event-stream' }
  const wrong = await probed(() => answer(200, 'data: {}\n\n'.repeat(1100), events))
  expect(wrong.found).toEqual(error('The server’s answer has more than 2000 lines') as never)
})

test('what a server says of itself is kept up to its bound', async () => {
  // `{"name":"s","version":""}` takes 25.
  for (const [length, isKept] of [
    [16_383 - 25, true],
    [16_384 - 25, false],
  ] as const) {
    const { found } = await greets({ serverInfo: { name: 's', version: 'x'.repeat(length) } })
    expect({ length, isKept: found.serverInfo !== undefined }).toEqual({ length, isKept })
  }
})

test('the session that a greeting opened is ended', async () => {
  const { found, sent } = await greets({}, '', { ...json, 'mcp-session-id': 'session-1' })
  expect(found).toEqual(connected as never)
  await until(() => sent.some(({ method }) => method === 'DELETE'))
  expect(sent.find(({ method }) => method === 'DELETE')?.headers['mcp-session-id']).toBe('session-1')
})

test('a server that refuses the greeting by a status or by an error is greeted again, and no other', async () => {
  const isGreetedAgain = async (respond: Parameters<typeof probed>[0]) => {
    const { sent } = await probed(respond)
    const methods = sent.filter(({ method }) => method === 'POST').map(({ body }) => JSON.parse(String(body)).method)
    return methods.some((method) => method !== 'initialize')
  }
  const refusal = ({ id }: { id?: unknown }) =>
    answer(200, JSON.stringify({ jsonrpc: '2.0', id, error: { code: -32_601, message: 'no such method' } }))
  expect(await isGreetedAgain(refusal)).toBe(true)
  for (const [status, isAgain] of [
    [399, false],
    [400, true],
    [499, true],
    [500, false],
  ] as const)
    expect({ status, isAgain: await isGreetedAgain(() => answer(status)) }).toEqual({ status, isAgain })
})

test('a status is named where it is none of success', async () => {
  const html = { 'content-type': 'text/html' }
  for (const [status, message] of [
    [200, 'The server does not answer in MCP: check the URL of the connection'],
    [299, 'The server does not answer in MCP: check the URL of the connection'],
    [300, 'The server does not answer in MCP: check the URL of the connection (it answered 300)'],
  ] as const)
    expect((await probed(() => answer(status, '<html>', html))).found).toEqual(error(message) as never)
})
