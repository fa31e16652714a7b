import { expect, test } from 'bun:test'
import { createDenials } from '../../src/auth/denials.ts'
import { auditNameCharsMax } from '../../src/limits.ts'
import { mintToken } from '../api/cases.ts'
import { createTestPlatform } from '../support/platform.ts'
import { sampleKeys } from '../support/sample.ts'

test('a refusal names the connection, and of a call the method and what it named, and nothing else of it', async () => {
  const platform = await createTestPlatform()
  const token = await mintToken(platform.fetch, sampleKeys.ada, {
    policy: [{ namespaces: 'northwind', operations: ['read', 'execute'], rpcReqMatch: { 'params.name': '^get_' } }],
  })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const rpc = (method: string, params: object) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  const connection = '/connect/northwind/weather-ada'
  const secret = { arguments: { password: 'SECRET' } }
  const long = 'x'.repeat(auditNameCharsMax + 1)
  const requests: [path: string, method: string, body: string | undefined, audited: object][] = [
    [connection, 'DELETE', undefined, { operation: 'write', method: undefined, name: undefined }],
    [
      `${connection}/mcp`,
      'POST',
      rpc('tools/call', { name: 'drop', ...secret }),
      { method: 'tools/call', name: 'drop' },
    ],
    [`${connection}/.tools/drop.all`, 'POST', '{"password":"SECRET"}', { method: 'tools/call', name: 'drop.all' }],
    [`${connection}/mcp`, 'POST', rpc('prompts/get', { name: 'p', ...secret }), { method: 'prompts/get', name: 'p' }],
    [`${connection}/mcp`, 'POST', rpc('resources/read', { uri: 'a:b' }), { method: 'resources/read', name: 'a:b' }],
    [
      `${connection}/mcp`,
      'POST',
      rpc('logging/setLevel', { name: 'x' }),
      { method: 'logging/setLevel', name: undefined },
    ],
    [`${connection}/mcp`, 'POST', rpc('prompts/get', { name: 5 }), { method: 'prompts/get', name: undefined }],
    [
      `${connection}/mcp`,
      'POST',
      rpc('tools/call', { name: long }),
      { method: 'tools/call', name: `${'x'.repeat(auditNameCharsMax - 1)}…` },
    ],
  ]
  for (const [path, method, body, audited] of requests) {
    platform.audited.length = 0
    const response = await platform.fetch(path, { method, headers, ...(body !== undefined && { body }) })
    expect({ path, body, status: response.status }).toEqual({ path, body, status: 403 })
    const common = {
      method: undefined as unknown,
      name: undefined as unknown,
      event: 'access.refused',
      namespace: 'northwind',
      connectionId: 'weather-ada',
      userId: 'ada',
    }
    expect(
      platform.audited.map(({ event, namespace, connectionId, userId, method, name, operation }) => ({
        event,
        namespace,
        connectionId,
        userId,
        method,
        name,
        operation,
      })),
    ).toEqual([{ ...common, operation: 'execute', ...audited }])
    expect(JSON.stringify(platform.audited)).not.toContain('SECRET')
  }
})

test('a name is told up to its last character, and a longer one with its end cut', () => {
  const told: unknown[] = []
  const denials = createDenials(
    { recordBestEffort: (_: string, __: object, { name }: { name?: unknown }) => void told.push(name) } as never,
    () => 'id',
  )
  for (const length of [auditNameCharsMax, auditNameCharsMax + 1]) {
    const rpc = { method: 'tools/call', params: { name: 'x'.repeat(length) } }
    const access = { namespace: 'a', resource: 'connections', operation: 'execute', metadata: 'none', rpc } as const
    const refusal = { allowed: false, block: 0, field: 'namespaces', visible: true } as const
    denials.recordPolicyDenial(new Request('http://a/'), { token: undefined } as never, access, refusal)
  }
  expect(told).toEqual(['x'.repeat(auditNameCharsMax), `${'x'.repeat(auditNameCharsMax - 1)}…`])
})
