/**
 * One hostile MCP server among twenty of a namespace: it hangs, floods `list_changed`, has pages without end, lists of
 * 16 MB, rubbish, and other names each time. The others' tools are listed and called as if it were not there.
 */

import { anonymousMemory } from '../bench/measure.ts'
import { sampleFolder, sendTo, startServer, withoutRates, workplace } from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'
import { localServer } from '../support/upstream.ts'
import { collector, type Trial } from './trial.ts'

const manners = ['hangs', 'floods', 'endless pages', '16 MB', 'rubbish', 'other names', 'works'] as const
type Manner = (typeof manners)[number]
const good = 19
const memoryMostMegabytes = 400

const headers = {
  authorization: `Bearer ${sampleKeys.ada}`,
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
}

export const hostileUpstream: Trial = {
  name: 'hostile-upstream',
  promise: `One hostile server among twenty costs the others no tool and no call, and memory stays within ${memoryMostMegabytes} MB`,
  times: { full: 20, short: 1 },

  async run(times, seed) {
    const { broken, expect } = collector()
    using place = workplace()
    let manner: Manner = 'works'
    let asked = 0
    const upstream = localServer((request) => hostile(request))
    await using server = await startServer(place, [
      ...['--fixtures', sampleFolder, ...withoutRates, '--allow-upstream', '127.0.0.1'],
    ])
    const send = sendTo(server)
    const rpc = async (method: string, params: object = {}) => {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
      const response = await send('/connect/ada/mcp', { method: 'POST', headers, body })
      return (await response.json()) as { result?: { tools?: { name: string }[]; content?: unknown }; error?: object }
    }
    const put = async (id: string, body: object) =>
      (await send(`/connect/ada/${id}`, { method: 'PUT', headers, body: JSON.stringify(body) })).text()
    for (let number = 0; number < good; number += 1)
      await put(`good-${number}`, { server: 'northwind/weather', mock: { enabled: true } })
    const list = async () => {
      const { result } = await rpc('tools/list')
      const names = result?.tools?.map(({ name }) => name) ?? []
      const found = Array.from({ length: good }, (_, number) => `good-${number}__`)
      return { names, missing: found.filter((prefix) => !names.some((name) => name.startsWith(prefix))) }
    }
    // An answer waits for lists that were never seen, but for five seconds at most, which a busy machine exceeds.
    while ((await list()).missing.length > 0);
    const before = anonymousMemory(server.pid)
    const counts = { lists: 0, calls: 0 }
    let most = before

    for (let round = 0; round < times; round += 1) {
      for (manner of manners) {
        const said = (what: string) => () => `seed ${seed}, round ${round}, a server that ${manner}: ${what}`
        // A connection that was never seen: the first list waits for it.
        await put('hostile', { mcpUrl: `http://127.0.0.1:${upstream.port}/${round}/${manner.replace(' ', '-')}` })
        for (let again = 0; again < 3; again += 1) {
          const { names, missing } = await list()
          expect(missing.length === 0, said(`without the tools of ${missing.join(', ')}`))
          counts.lists += 1
          const called = names.find((name) => name.startsWith('good-3__'))
          const answer = await rpc('tools/call', { name: called, arguments: { latitude: 1, longitude: 1 } })
          expect(answer.result?.content !== undefined, said(`a call got ${JSON.stringify(answer).slice(0, 200)}`))
          counts.calls += 1
          most = Math.max(most, anonymousMemory(server.pid))
        }
        await send('/connect/ada/hostile', { method: 'DELETE', headers })
      }
    }
    expect(most - before <= memoryMostMegabytes, () => `memory grew by ${Math.round(most - before)} MB`)
    upstream.stop(true)
    return {
      figure: `${times} × ${manners.length} manners, ${counts.lists} lists, ${counts.calls} calls, ${asked} requests to it, ${Math.round(most - before)} MB`,
      broken,
      seen: {
        lists: [counts.lists, times * manners.length * 3],
        calls: [counts.calls, times * manners.length * 3],
        'requests to the hostile server': [asked, times * manners.length],
      },
    }

    async function hostile(request: Request): Promise<Response> {
      asked += 1
      if (request.method !== 'POST') return new Response(null, { status: 405 })
      const { method, id, params } = (await request.json()) as {
        method: string
        id?: number
        params?: { cursor?: string }
      }
      if (id === undefined) return new Response(null, { status: 202 })
      const answer = (result: object) => Response.json({ jsonrpc: '2.0', id, result })
      const greeting = {
        protocolVersion: '2025-11-25',
        capabilities: { tools: {} },
        serverInfo: { name: 's', version: '1' },
      }
      if (method === 'initialize') return answer(greeting)
      if (manner === 'hangs') return new Promise(() => {})
      if (manner === 'rubbish')
        return new Response('{"jsonrpc":"2.0","result":{"tools":[{"name":', {
          headers: { 'content-type': 'application/json' },
        })
      if (manner === 'floods') return flood()
      const tool = (name: string, description = '') => ({ name, description, inputSchema: { type: 'object' } })
      if (manner === 'endless pages')
        return answer({ tools: [tool(`t${asked}`)], nextCursor: `${params?.cursor ?? ''}x` })
      if (manner === '16 MB') return answer({ tools: [tool('large', 'x'.repeat(16 * 2 ** 20))] })
      if (manner === 'other names') return answer({ tools: [tool(`t${asked}`), tool('good-3__x'), tool('good-3__x')] })
      return answer({ tools: [tool('works')] })
    }
  },
}

/** Notifications without end, and never an answer. */
function flood(): Response {
  const event = `event: message\ndata: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })}\n\n`
  const some = Buffer.from(event.repeat(100))
  const stream = new ReadableStream({ pull: (controller) => controller.enqueue(some) })
  return new Response(stream, { headers: { 'content-type': 'text/event-stream' } })
}
