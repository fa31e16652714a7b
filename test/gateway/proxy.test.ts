/** Calls that wait for one another at an upstream that is told what to do. */

import { expect, test } from 'bun:test'
import { UpstreamError } from '../../src/upstream/upstream.ts'
import { createTestPlatform } from '../support/platform.ts'
import { sampleKeys } from '../support/sample.ts'

test('two who waited for one session that failed are told of it, each under its own id', async () => {
  const waiting = Promise.withResolvers<never>()
  let asked = 0
  const platform = await createTestPlatform({
    upstream: {
      send() {
        asked += 1
        return waiting.promise
      },
    },
  })
  const credentials = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
  const greeted = platform.fetch('/connect/ada/tools', {
    method: 'PUT',
    headers: credentials,
    body: JSON.stringify({ mcpUrl: 'https://tools.example.com/mcp' }),
  })
  while (asked === 0) await new Promise(setImmediate)
  waiting.reject(new UpstreamError('down', 'it takes no connection'))
  expect((await greeted).status).toBe(201)

  const call = async (id: number) => {
    const response = await platform.fetch('/connect/ada/tools/mcp', {
      method: 'POST',
      headers: { ...credentials, accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'echo' } }),
    })
    const { id: answered, error } = (await response.json()) as { id: number; error: { code: number } }
    return { status: response.status, id: answered, code: error.code }
  }
  asked = 0
  const both = await Promise.all([call(1), call(2)])
  expect(asked).toBe(1)
  expect(both).toEqual([
    { status: 502, id: 1, code: -32_000 },
    { status: 502, id: 2, code: -32_000 },
  ])
})
