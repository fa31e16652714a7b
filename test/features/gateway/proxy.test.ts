/** Calls that wait for one another at an upstream that is told what to do. */

import { expect, test } from 'bun:test'
import { concurrentCallsMax } from '../../../src/limits.ts'
import { UpstreamError, type UpstreamResponse } from '../../../src/upstream/upstream.ts'
import { mintToken } from '../../api/cases.ts'
import { createTestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { until } from '../../support/until.ts'

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
  await until(() => asked > 0)
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

test('one token takes a part of a connection’s places, and leaves some to others of its key', async () => {
  let asked = 0
  const { promise: held, resolve: release } = Promise.withResolvers<UpstreamResponse>()
  const platform = await createTestPlatform({
    upstream: {
      send() {
        asked += 1
        return asked === 1 ? Promise.reject(new UpstreamError('down', 'it is not there yet')) : held
      },
    },
  })
  const headers = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })
  const body = JSON.stringify({ mcpUrl: 'https://tools.example.com/mcp' })
  await platform.fetch('/connect/ada/tools', { method: 'PUT', headers: headers(sampleKeys.ada), body })
  // What needs no session: each is a request of its own.
  const ask = (credential: string, id: number | string) =>
    platform.fetch('/connect/ada/tools/mcp', {
      method: 'POST',
      headers: headers(credential),
      body: JSON.stringify({ jsonrpc: '2.0', id, method: 'initialize', params: {} }),
    })
  const token = await mintToken(platform.fetch, sampleKeys.ada)
  asked = 1
  const all = Array.from({ length: concurrentCallsMax / 4 }, (_, id) => ask(token, id))
  await until(() => asked > all.length)
  const refused = await ask(token, 'next')
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '1'])
  expect(await refused.json()).toMatchObject({ id: 'next', error: { code: -32_000 } })
  // Neither has a child of it more; its own key and other keys have.
  expect((await ask(await mintToken(platform.fetch, token), 1)).status).toBe(429)
  const others = [sampleKeys.ada, sampleKeys.operator].map((key) => ask(key, 1))
  await until(() => asked > all.length + 2)
  release({ status: 200, headers: { 'content-type': 'application/json' }, body: new TextEncoder().encode('{}') })
  expect((await Promise.all([...all, ...others])).every(({ status }) => status === 200)).toBe(true)
  const again = await Promise.all(Array.from({ length: concurrentCallsMax / 4 }, (_, id) => ask(token, id)))
  expect(again.every(({ status }) => status === 200)).toBe(true)
})
