/** A token that is revoked while servers are asked for their lists is told nothing of them. */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { revokeToken } from '../../../src/auth/revocation.ts'
import { mintToken } from '../../api/cases.ts'
import { createTestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { bearer, localServer, localUpstream } from '../../support/upstream.ts'

let whenListed: () => Promise<unknown> = async () => {}
let whenGreeted: () => Promise<unknown> = async () => {}
let called = 0
let upstream: Bun.Server<undefined>
beforeAll(() => {
  upstream = localServer(async (request) => {
    if (request.method !== 'POST') return new Response(null, { status: 405 })
    const { id, method } = (await request.json()) as { id?: unknown; method?: string }
    if (id === undefined) return new Response(null, { status: 202 })
    if (method === 'tools/list') await whenListed()
    if (method === 'initialize') await whenGreeted()
    if (method === 'tools/call') called += 1
    const greeting = {
      protocolVersion: '2025-06-18',
      capabilities: { tools: {} },
      serverInfo: { name: 's', version: '1' },
    }
    const tools = [{ name: 'find_secrets', inputSchema: { type: 'object' } }]
    return Response.json({ jsonrpc: '2.0', id, result: method === 'initialize' ? greeting : { tools } })
  })
})
afterAll(() => upstream.stop(true))

const message = (method: string, params: object = {}) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
const requests: Record<string, [path: string, body?: string]> = {
  'a list': ['/connect/ada/mcp', message('tools/list')],
  'the state of all connections': [
    '/connect/ada/mcp?status=tool',
    message('tools/call', { name: 'connections_status' }),
  ],
  'a search': [
    '/connect/ada/mcp?tools=search',
    message('tools/call', { name: 'search_tools', arguments: { query: 'find' } }),
  ],
  'the lists over plain HTTP': ['/connect/ada/.tools'],
}

for (const [what, [path, body]] of Object.entries(requests))
  test(what, async () => {
    const platform = await createTestPlatform({ upstream: localUpstream() })
    const made = JSON.stringify({ mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` })
    whenListed = async () => {}
    await platform.fetch('/connect/ada/one', { method: 'PUT', headers: bearer(sampleKeys.ada), body: made })
    const ask = (credential: string) =>
      platform.fetch(path, {
        method: body === undefined ? 'GET' : 'POST',
        headers: bearer(credential),
        ...(body && { body }),
      })
    const token = await mintToken(platform.fetch, sampleKeys.ada)
    const { jti, exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    let isRevoked = false
    whenListed = async () => {
      await revokeToken(platform.store, jti, { exp, nowSeconds: platform.now / 1000 })
      isRevoked = true
    }
    const response = await ask(token)
    expect([response.status, isRevoked]).toEqual([401, true])
    expect(await response.text()).not.toContain('find_secrets')
    const other = await ask(sampleKeys.ada)
    expect([other.status, await other.text()]).toEqual([
      200,
      expect.stringContaining(what.includes('state') ? 'one' : 'find_secrets'),
    ])
  })

test('a list is nothing to a member who was removed while a server was asked', async () => {
  const platform = await createTestPlatform({ upstream: localUpstream() })
  const send = async (method: string, path: string, key: string, body?: object) =>
    (await platform.fetch(path, { method, headers: bearer(key), ...(body && { body: JSON.stringify(body) }) })).status
  const member = '/organizations/acme/members/linus'
  expect(await send('PUT', '/organizations/acme', sampleKeys.operator, { owner: 'ada' })).toBe(201)
  expect(await send('PUT', '/namespaces/acme-tools', sampleKeys.ada, { organizationId: 'acme' })).toBe(201)
  for (const [index, [path, body]] of Object.values(requests).entries()) {
    whenListed = async () => {}
    await send('PUT', member, sampleKeys.ada, { role: 'member' })
    // Its lists are asked for by the request.
    const mcpUrl = `http://127.0.0.1:${upstream.port}/mcp`
    expect(await send('PUT', `/connect/acme-tools/one-${index}`, sampleKeys.ada, { mcpUrl })).toBe(201)
    let removed = 0
    whenListed = async () => {
      removed = await send('DELETE', member, sampleKeys.ada)
    }
    const method = body === undefined ? 'GET' : 'POST'
    const headers = bearer(sampleKeys.linus)
    const response = await platform.fetch(path.replace('/ada/', '/acme-tools/'), {
      method,
      headers,
      ...(body && { body }),
    })
    expect([path, removed, response.status]).toEqual([path, 200, 404])
  }
})

test('a call that waits for its session is refused, if its view is narrowed meanwhile', async () => {
  const platform = await createTestPlatform({ upstream: localUpstream() })
  const send = async (method: string, path: string, body: object | string, key: string = sampleKeys.ada) => {
    const text = typeof body === 'string' ? body : JSON.stringify(body)
    return (await platform.fetch(path, { method, headers: bearer(key), body: text })).status
  }
  whenListed = async () => {}
  const view = '/namespaces/ada/views/reading'
  const endpoint = '/connect/ada/mcp/reading'
  await send('PUT', '/connect/ada/one', { mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` })
  await send('PUT', view, { policy: [] })
  const call = message('tools/call', { name: 'one__find_secrets', arguments: {} })
  expect([await send('POST', endpoint, call), called]).toEqual([200, 1])
  const token = await mintToken(platform.fetch, sampleKeys.ada)
  whenGreeted = async () => {
    whenGreeted = async () => {}
    platform.now += 100
    await send('PUT', view, { policy: [{ rpcReqMatch: { 'params.name': '^find_news$' } }] })
  }
  expect([await send('POST', endpoint, call, token), called]).toEqual([403, 1])
})
