/** The first contact with a server that is told what to answer. */

import { expect, test } from 'bun:test'
import { probeRequestsMax } from '../../src/limits.ts'
import { probeServer } from '../../src/upstream/probe.ts'
import { UpstreamError, type UpstreamRequest, type UpstreamResponse } from '../../src/upstream/upstream.ts'

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
  expect(sent[0]).toMatchObject({ via: '1.1 x', holder, headers: { 'x-key': 'k' } })
  const large = await greeting({ name: 's', version: 'x'.repeat(16_384) })
  expect(large.found).toEqual({ status: { state: 'connected' } })
})

test('one that does not is told, by what it did', async () => {
  expect((await probed(() => answer(401))).found).toEqual({ status: { state: 'auth_required' } } as never)
  for (const status of [300, 404, 500])
    expect((await probed(() => answer(status))).found).toEqual(
      error(`The server does not speak MCP: it answered ${status}`) as never,
    )
  expect((await probed(() => answer(200, '<html>', { 'content-type': 'text/html' }))).found).toEqual(
    error('The server does not speak MCP') as never,
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
  expect(found).toEqual(error('The server does not speak MCP: it asks too much for a greeting') as never)
  expect(sent).toHaveLength(probeRequestsMax)
})
