/** OpenTelemetry: what a collector gets, what an upstream is told, and a collector that hangs. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type Server, sampleFolder, sendTo, startServer, type Workplace, workplace } from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'
import { until } from '../support/until.ts'

interface CollectedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly traceState?: string
  readonly name: string
  readonly attributes: readonly { key: string; value: Record<string, unknown> }[]
}
const collected: CollectedSpan[] = []
const services = new Set<string>()
const told: (string | null)[] = []
const upstream = Bun.serve({
  port: 0,
  async fetch(request) {
    if (request.method !== 'POST') return new Response(null, { status: 405 })
    const { id, method } = (await request.json()) as { id?: number; method: string }
    if (method === 'tools/call') told.push(request.headers.get('traceparent'))
    if (id === undefined) return new Response(null, { status: 202 })
    const initialized = { protocolVersion: '2025-06-18', capabilities: {}, serverInfo: { name: 'x', version: '1' } }
    return Response.json({ jsonrpc: '2.0', id, result: method === 'initialize' ? initialized : {} })
  },
})
const collector = Bun.serve({
  port: 0,
  async fetch(request) {
    const { resourceSpans } = (await request.json()) as {
      resourceSpans: {
        resource: { attributes: { key: string; value: { stringValue?: string } }[] }
        scopeSpans: { spans: CollectedSpan[] }[]
      }[]
    }
    for (const { resource, scopeSpans } of resourceSpans) {
      services.add(resource.attributes.find(({ key }) => key === 'service.name')?.value.stringValue ?? '')
      for (const { spans } of scopeSpans) collected.push(...spans)
    }
    return Response.json({})
  },
})
const hanging = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
afterAll(() => {
  upstream.stop(true)
  collector.stop(true)
  hanging.stop(true)
})

const bearer = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
const flags = ['--fixtures', sampleFolder, '--allow-upstream', '127.0.0.1']
const call = (meta?: object) =>
  JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'echo', ...(meta && { _meta: meta }) },
  })
const parent = (trace: string) => `00-${trace.repeat(32)}-${trace.repeat(16)}-01`

describe('a collector', () => {
  let place: Workplace
  let server: Server
  beforeAll(async () => {
    place = workplace()
    const env = {
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
      OTEL_BSP_SCHEDULE_DELAY: '50',
      OTEL_SERVICE_NAME: 'company-postern',
    }
    server = await startServer(place, flags, { env })
    const body = JSON.stringify({ mcpUrl: `http://127.0.0.1:${upstream.port}/secret-path` })
    const made = await sendTo(server)('/connect/ada/traced', { method: 'PUT', headers: bearer, body })
    expect(made.status).toBe(201)
  })
  afterAll(async () => {
    await server.kill('SIGTERM')
    place[Symbol.dispose]()
  })
  const spanOf = (name: string, traceId: string) =>
    collected.find((one) => one.name === name && one.traceId === traceId)
  const send = (headers: object, meta?: object) =>
    sendTo(server)('/connect/ada/traced/mcp?', { method: 'POST', headers: { ...bearer, ...headers }, body: call(meta) })

  test('gets the request, the message and the request to the upstream, under the client’s trace', async () => {
    const response = await send({ traceparent: parent('a') })
    const traceId = 'a'.repeat(32)
    await until(() => spanOf('POST /connect/{namespace}/{connectionId}/mcp', traceId) !== undefined)
    const request = spanOf('POST /connect/{namespace}/{connectionId}/mcp', traceId)
    const message = spanOf('tools/call echo', traceId)
    const out = spanOf('POST 127.0.0.1', traceId)
    expect([request?.parentSpanId, message?.parentSpanId]).toEqual(['a'.repeat(16), request?.spanId])
    expect(collected.filter((one) => one.parentSpanId === message?.spanId).length).toBeGreaterThan(0)
    expect(out?.traceId).toBe(traceId)
    const attributes = Object.fromEntries(
      request?.attributes.map(({ key, value }) => [key, Object.values(value)[0]]) ?? [],
    )
    expect(attributes).toMatchObject({
      'http.request.method': 'POST',
      'http.response.status_code': response.status,
      'postern.request_id': response.headers.get('x-request-id'),
    })
    expect(told.at(-1)).toMatch(new RegExp(`^00-${traceId}-[0-9a-f]{16}-01$`))
    expect(told.at(-1)).not.toBe(parent('a'))
    expect([...services]).toEqual(['company-postern'])
  })

  test('finds the trace that MCP names in `_meta`', async () => {
    await send({ traceparent: parent('b') }, { traceparent: parent('c') })
    await until(() => spanOf('tools/call echo', 'c'.repeat(32)) !== undefined)
    expect(spanOf('tools/call echo', 'c'.repeat(32))?.parentSpanId).toBe('c'.repeat(16))
    expect(told.at(-1)).toContain('c'.repeat(32))
  })

  test('gets the state of a trace, unless it is long', async () => {
    const root = 'POST /connect/{namespace}/{connectionId}/mcp'
    const long = ','.repeat(513)
    await send({ traceparent: parent('1'), tracestate: 'a=1' })
    await send({ traceparent: parent('2'), tracestate: long })
    await send({}, { traceparent: parent('3'), tracestate: long })
    await until(() => spanOf(root, '1'.repeat(32)) !== undefined && spanOf(root, '2'.repeat(32)) !== undefined)
    await until(() => spanOf('tools/call echo', '3'.repeat(32)) !== undefined)
    expect(spanOf(root, '1'.repeat(32))?.traceState).toBe('a=1')
    expect(spanOf(root, '2'.repeat(32))?.traceState).toBeUndefined()
    expect(spanOf('tools/call echo', '3'.repeat(32))?.traceState).toBeUndefined()
  })

  test('gets no name, query or credential', async () => {
    await sendTo(server)('/connect/ada?name=very-secret', { headers: bearer })
    await until(() => collected.some(({ name }) => name === 'GET /connect/{namespace}'))
    const everything = JSON.stringify(collected)
    for (const secret of ['very-secret', 'secret-path', sampleKeys.ada]) expect(everything).not.toContain(secret)
  })
})

test('a collector that hangs costs nothing, and a stop does not wait for it for long', async () => {
  using place = workplace()
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${hanging.port}`, OTEL_BSP_SCHEDULE_DELAY: '10' }
  const server = await startServer(place, flags, { env })
  for (let i = 0; i < 200; i += 1) {
    expect((await sendTo(server)('/connect/ada', { headers: bearer })).status).toBe(200)
  }
  expect(await server.kill('SIGTERM')).toBe(0)
})
