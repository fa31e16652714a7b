/**
 * The smallest MCP server that a call can be made to: over HTTP, printing its port, or with `stdio` over that. A call of
 * the tool `hold` is answered by a stream that never ends. A POST to `/load` makes it the load generator as well.
 */

import { type Load, run } from './load.ts'

interface Message {
  readonly id?: number | string
  readonly method: string
  readonly params?: { readonly name?: string }
}

const initialized = {
  protocolVersion: '2025-06-18',
  capabilities: { tools: {} },
  serverInfo: { name: 'smallest', version: '1' },
}
const listed = { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] }
const called = { content: [{ type: 'text', text: 'x'.repeat(500) }] }
const results: Readonly<Record<string, object>> = { initialize: initialized, 'tools/list': listed }
const answer = ({ id, method }: Message) => JSON.stringify({ jsonrpc: '2.0', id, result: results[method] ?? called })

if (process.argv[2] === 'stdio') {
  for await (const line of console) {
    const message = JSON.parse(line) as Message
    if (message.id !== undefined) process.stdout.write(`${answer(message)}\n`)
  }
} else {
  const headers = { 'content-type': 'application/json' }
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      if (request.method !== 'POST') return new Response(null, { status: 405 })
      if (request.url.endsWith('/load')) return Response.json(await run((await request.json()) as Load))
      const message = (await request.json()) as Message
      if (message.id === undefined) return new Response(null, { status: 202 })
      if (message.params?.name !== 'hold') return new Response(answer(message), { headers })
      const held = new ReadableStream({
        async start(controller) {
          controller.enqueue(': held\n\n')
          await new Promise(() => {})
        },
      })
      return new Response(held, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  console.log(server.port)
}
