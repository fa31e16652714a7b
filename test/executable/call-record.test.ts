/** The record of calls of a server that is killed or stopped. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { run, sampleFolder, sendTo, startServer, workplace } from '../support/executable.ts'
import { random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { until } from '../support/until.ts'
import { bearer, localServer } from '../support/upstream.ts'

test('a stop records the calls that it aborts, however many an owner has in progress', async () => {
  const names = new Set<string>()
  const upstream = localServer(async (request) => {
    const { method, params } = (await request.json().catch(() => ({}))) as {
      method?: string
      params?: { name: string }
    }
    if (method !== 'tools/call' || params === undefined) return new Response(null, { status: 405 })
    names.add(params.name)
    const silence = new ReadableStream<Uint8Array>({
      start: (controller) => controller.enqueue(Buffer.from(':\n\n')),
    })
    // One half answers nothing, the other begins a stream.
    if (params.name.startsWith('hangs')) return new Promise<Response>(() => {})
    return new Response(silence, { headers: { 'content-type': 'text/event-stream' } })
  })
  try {
    using place = workplace()
    const flags = ['--fixtures', sampleFolder, '--allow-upstream', `127.0.0.1:${upstream.port}`]
    await using server = await startServer(place, flags)
    const send = sendTo(server)
    const headers = bearer(sampleKeys.ada, { 'mcp-protocol-version': '2025-06-18' })
    const made = { method: 'PUT', headers, body: JSON.stringify({ mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` }) }
    expect((await send('/connect/ada/silent', made)).status).toBe(201)
    const count = 40
    const calls = Array.from({ length: count }, async (_, index) => {
      const name = `${index % 2 === 0 ? 'hangs' : 'streams'}-${index}`
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } })
      const response = await send('/connect/ada/silent/mcp', { method: 'POST', headers, body })
      await response.text()
    })
    const ended = Promise.allSettled(calls)
    await until(() => names.size === count)
    const exit = await server.kill('SIGTERM')
    await ended
    expect(exit).toBe(0)
    const lines = readFileSync(join(place.data, 'calls.jsonl'), 'utf8').split('\n')
    const recorded = new Set(lines.flatMap((line) => /"tool":"([\w-]+)"/.exec(line)?.[1] ?? []))
    expect([...names].filter((name) => !recorded.has(name))).toEqual([])
  } finally {
    void upstream.stop(true)
  }
})

test('no call that was answered is missing after kill -9', async () => {
  using place = workplace()
  const chance = random(5)
  const answered = new Set<string>()
  for (let life = 0; life < 5; life += 1) {
    const server = await startServer(place, ['--fixtures', sampleFolder])
    const send = sendTo(server)
    let isOver = false
    const callers = Array.from({ length: 8 }, async (_, caller) => {
      for (let i = 0; !isOver; i += 1) {
        const id = `${life}-${caller}-${i}`
        try {
          const response = await send('/connect/northwind/weather-ada/.tools/list_alerts', {
            method: 'POST',
            headers: { authorization: `Bearer ${sampleKeys.ada}`, 'x-request-id': id },
          })
          await response.text()
          if (response.ok) answered.add(id)
        } catch {
          return
        }
      }
    })
    const before = answered.size
    const wanted = before + 20 + chance.int(200)
    await until(() => answered.size >= wanted)
    await server.kill('SIGKILL')
    isOver = true
    await Promise.all(callers)
  }
  const lines = readFileSync(join(place.data, 'calls.jsonl'), 'utf8').split('\n')
  const recorded = new Set(lines.flatMap((line) => /"requestId":"([\d-]+)"/.exec(line)?.[1] ?? []))
  expect([...answered].filter((id) => !recorded.has(id))).toEqual([])
  expect(answered.size).toBeGreaterThan(100)
  expect((await run(place, ['audit', 'verify', join(place.data, 'calls.jsonl')])).code).toBe(0)
})
