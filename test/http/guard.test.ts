import { describe, expect, test } from 'bun:test'
import { createGuard } from '../../src/http/guard.ts'
import { createTestPlatform, issuer } from '../support/platform.ts'
import { sampleKeys } from '../support/sample.ts'

const guard = (host: string, baseUrl = 'https://mcp.example.com') =>
  createGuard({ host, baseUrl, corsOrigins: [], localAddresses: ['192.0.2.7', 'fe80::1'] })
const passes = (host: string, header: string, baseUrl?: string) => {
  try {
    guard(host, baseUrl).check(new Headers({ host: header }))
    return true
  } catch {
    return false
  }
}

describe('Host', () => {
  const cases: [bound: string, header: string, passes: boolean][] = [
    ['127.0.0.1', 'localhost', true],
    ['127.0.0.1', 'localhost:8787', true],
    ['127.0.0.1', 'LOCALHOST:1', true],
    ['127.0.0.1', '127.0.0.1:8787', true],
    ['127.0.0.1', '127.8.9.1', true],
    ['127.0.0.1', '[::1]', true],
    ['127.0.0.1', '[::1]:80', true],
    ['127.0.0.1', 'mcp.example.com', true],
    ['127.0.0.1', 'MCP.example.com:443', true],
    ['127.0.0.1', 'evil.example', false],
    ['127.0.0.1', 'mcp.example.com.evil.example', false],
    ['127.0.0.1', 'localhost.evil.example', false],
    ['127.0.0.1', '127.0.0.1.evil.example', false],
    ['127.0.0.1', '127.0.0.1@evil.example', false],
    ['127.0.0.1', 'localhost:80:80', false],
    ['127.0.0.1', 'localhost:65535', true],
    ['127.0.0.1', 'localhost:65536', false],
    ['127.0.0.1', 'localhost, evil.example', false],
    ['127.0.0.1', 'localhost/x', false],
    ['127.0.0.1', '', false],
    ['127.0.0.1', '192.0.2.7', false],
    ['192.0.2.1', '192.0.2.1:8787', true],
    ['192.0.2.1', '192.0.2.7', false],
    ['0.0.0.0', '192.0.2.7:8787', true],
    ['0.0.0.0', '192.0.2.8', false],
    ['::', '[fe80::1]:8787', true],
  ]
  for (const [bound, header, expected] of cases) {
    test(`${header || 'an empty one'} ${expected ? 'passes' : 'does not pass'} on ${bound}`, () =>
      expect(passes(bound, header)).toBe(expected))
  }
})

describe('CORS', () => {
  const origin = 'https://app.example.com'
  const authorization = `Bearer ${sampleKeys.ada}`

  test('is off by default: an origin is refused, even for a preflight', async () => {
    const platform = await createTestPlatform()
    const headers = { origin, 'access-control-request-method': 'POST' }
    expect((await platform.fetch('/tokens', { method: 'OPTIONS', headers })).status).toBe(403)
  })

  test('an allowed origin gets its headers, on answers and on errors', async () => {
    const platform = await createTestPlatform({ corsOrigins: [origin] })
    for (const [path, status] of [
      ['/connect/ada', 200],
      ['/connect/nowhere', 404],
      ['/servers/lumen', 200],
      ['/nothing', 404],
    ] as const) {
      const response = await platform.fetch(path, { headers: { origin, authorization } })
      expect({ path, status: response.status, origin: response.headers.get('access-control-allow-origin') }).toEqual({
        path,
        status,
        origin,
      })
      expect(response.headers.get('vary')).toContain('origin')
    }
    const without = await platform.fetch('/connect/ada', { headers: { authorization } })
    expect(without.headers.get('access-control-allow-origin')).toBeNull()
  })

  test('our own origin is no other one: it is answered, and told of no other', async () => {
    const platform = await createTestPlatform({ corsOrigins: [origin] })
    const own = { origin: issuer, 'access-control-request-method': 'POST' }
    const response = await platform.fetch('/tokens', { method: 'OPTIONS', headers: own })
    expect([response.status, response.headers.get('access-control-allow-origin')]).toEqual([204, null])
    const answer = await platform.fetch('/connect/ada', { headers: { origin: issuer, authorization } })
    expect([answer.status, answer.headers.get('access-control-allow-origin')]).toEqual([200, null])
  })

  test('a preflight allows the headers of the contract and no others', async () => {
    const platform = await createTestPlatform({ corsOrigins: [origin] })
    const response = await platform.fetch('/tokens', {
      method: 'OPTIONS',
      headers: {
        origin,
        'access-control-request-method': 'POST',
        'access-control-request-headers':
          'authorization, content-type, mcp-session-id, x-stainless-os, last-event-id, accept, x-api-key, cookie',
      },
    })
    expect(response.status).toBe(204)
    expect(response.headers.get('access-control-allow-origin')).toBe(origin)
    expect(response.headers.get('access-control-allow-headers')).toBe(
      'authorization, content-type, mcp-session-id, x-stainless-os, last-event-id, accept',
    )
  })
})

test('answers carry the headers of this list and no others', async () => {
  const platform = await createTestPlatform()
  const allowed = new Set(['content-type', 'cache-control', 'etag', 'vary', 'www-authenticate', 'x-request-id'])
  for (const path of [
    '/connect/ada',
    '/connect/nowhere',
    '/servers/lumen',
    '/health',
    '/nothing',
    '/.well-known/jwks.json',
  ]) {
    for (const authorization of [`Bearer ${sampleKeys.ada}`, 'Bearer nope']) {
      const { headers } = await platform.fetch(path, { headers: { authorization } })
      for (const name of headers.keys())
        expect({ path, name, allowed: allowed.has(name) }).toEqual({ path, name, allowed: true })
    }
  }
})
