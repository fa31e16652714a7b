/** A token that is revoked while servers are asked for their lists is told nothing of them. */

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'bun:test'
import { revokeToken } from '../../../src/auth/revocation.ts'
import { mintToken } from '../../api/cases.ts'
import { createTestPlatform, type TestPlatform } from '../../support/platform.ts'
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
    const inputSchema = { type: 'object', properties: { text: { type: 'string' } } }
    const tools = [{ name: 'find_secrets', inputSchema }]
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

describe('with a view that is narrowed meanwhile', () => {
  let platform: TestPlatform
  let token: string
  const endpoint = '/connect/ada/mcp/reading'
  const send = async (method: string, path: string, body?: object | string, key: string = sampleKeys.ada) => {
    const text = typeof body === 'object' ? JSON.stringify(body) : body
    const response = await platform.fetch(path, { method, headers: bearer(key), ...(text && { body: text }) })
    return { status: response.status, text: await response.text() }
  }
  const toView = (policy: object[]) =>
    send('PUT', '/namespaces/ada/views/reading', { policy, bareNames: true, search: true })
  const narrow = async () => {
    whenGreeted = whenListed = async () => {}
    platform.now += 100
    expect((await toView([{ rpcReqMatch: { 'params.name': '^find_news$' } }])).status).toBe(200)
  }
  beforeEach(async () => {
    whenGreeted = whenListed = async () => {}
    platform = await createTestPlatform({ upstream: localUpstream() })
    token = await mintToken(platform.fetch, sampleKeys.ada)
    await send('PUT', '/connect/ada/one', { mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` })
    expect((await toView([])).status).toBe(201)
    called = 0
  })
  const call = (name: string, args: object = {}) => message('tools/call', { name, arguments: args })

  test('a call that waits for its session is refused', async () => {
    expect([(await send('POST', endpoint, call('one__find_secrets'))).status, called]).toEqual([200, 1])
    whenGreeted = narrow
    expect([(await send('POST', endpoint, call('one__find_secrets'), token)).status, called]).toEqual([403, 1])
  })

  const waiting = {
    'by a bare name': call('find_secrets'),
    'found by a search': call('call_destructive', { name: 'one__find_secrets', arguments: {} }),
    'by the wrong one of three tools': call('call_read', { name: 'one__find_secrets', arguments: {} }),
    'with arguments that do not fit': call('call_destructive', { name: 'one__find_secrets', arguments: { text: 1 } }),
  }
  for (const [what, body] of Object.entries(waiting)) {
    test(`a call ${what} that waits for a list is refused`, async () => {
      whenListed = narrow
      expect([(await send('POST', endpoint, body, token)).status, called]).toEqual([403, 0])
    })
    test(`a call ${what} that waits for a list is not sent after the revocation of its token`, async () => {
      const { jti, exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
      whenListed = async () => {
        platform.now += 100
        await revokeToken(platform.store, jti, { exp, nowSeconds: platform.now / 1000 })
      }
      expect([(await send('POST', endpoint, body, token)).status, called]).toEqual([401, 0])
    })
  }

  test('a call that waits for a list is not sent to a connection of the same name in a namespace made again', async () => {
    const removed = await send('DELETE', '/connect/ada/one')
    expect(removed.status).toBe(200)
    await send('PUT', '/namespaces/shared', {})
    const mcpUrl = `http://127.0.0.1:${upstream.port}/mcp`
    await send('PUT', '/connect/shared/one', { mcpUrl })
    whenListed = async () => {
      whenListed = async () => {}
      platform.now += 100
      expect((await send('DELETE', '/namespaces/shared')).status).toBe(200)
      expect((await send('PUT', '/namespaces/shared', {}, sampleKeys.jonas)).status).toBe(201)
      expect((await send('PUT', '/connect/shared/one', { mcpUrl }, sampleKeys.jonas)).status).toBe(201)
    }
    const body = call('call_destructive', { name: 'one__find_secrets', arguments: {} })
    const { status, text } = await send('POST', '/connect/shared/mcp?tools=search', body)
    expect([status, called]).toEqual([404, 0])
    expect(text).not.toContain('find_secrets')
  })

  test('a bare name of two tools is ambiguous to nobody after the revocation of a token', async () => {
    await send('PUT', '/connect/ada/two', { mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` })
    const { jti, exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    whenListed = async () => {
      whenListed = async () => {}
      platform.now += 100
      await revokeToken(platform.store, jti, { exp, nowSeconds: platform.now / 1000 })
    }
    expect((await send('POST', endpoint, call('find_secrets'), token)).status).toBe(401)
    expect((await send('POST', endpoint, call('find_secrets'))).text).toContain('Use one of: one__find_secrets')
  })

  test('a list that waits for servers leaves out a connection that the token has come to see no more', async () => {
    const metadata = (team: string) => ({ mcpUrl: `http://127.0.0.1:${upstream.port}/mcp`, metadata: { team } })
    await send('PUT', '/connect/ada/one', metadata('a'))
    await send('PUT', '/connect/ada/two', { ...metadata('a'), name: 'two' })
    const narrow = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ metadata: { team: 'a' } }] })
    let lists = 0
    whenListed = async () => {
      lists += 1
      if (lists !== 2) return
      platform.now += 100
      expect((await send('PUT', '/connect/ada/one', metadata('b'))).status).toBe(200)
    }
    const { status, text } = await send('POST', '/connect/ada/mcp', message('tools/list'), narrow)
    expect([status, lists]).toEqual([200, 2])
    expect(text).toContain('two__find_secrets')
    expect(text).not.toContain('one__find_secrets')
  })

  for (const [what, body] of Object.entries({
    list: message('tools/list'),
    search: call('search_tools', { query: 'find' }),
  }))
    test(`a ${what} that waits for a server shows what the view shows now`, async () => {
      whenListed = narrow
      const { status, text } = await send('POST', endpoint, body, token)
      expect(status).toBe(200)
      expect(text).not.toContain('find_secrets')
    })
})
