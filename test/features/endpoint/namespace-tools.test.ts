/** The tools of all connections over plain HTTP, and the recipes for clients. */

import { expect, test } from 'bun:test'
import { clientNames, type Recipe } from '../../../src/model/recipe.ts'
import { mintToken } from '../../api/cases.ts'
import { createTestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { bearer } from '../../support/upstream.ts'

const get = async (path: string, credential: string) => {
  const platform = await createTestPlatform()
  const response = await platform.fetch(path, { headers: bearer(credential) })
  return { status: response.status, body: (await response.json()) as Record<string, Record<string, unknown>> }
}

test('each connection has its tools by their own names, or the reason why not', async () => {
  const platform = await createTestPlatform()
  const policy = [{ metadata: { team: 'merchandising' } }, { rpcReqMatch: { 'params.name': '^get_' } }]
  const token = await mintToken(platform.fetch, sampleKeys.ada, { policy })
  const response = await platform.fetch('/connect/northwind/.tools', { headers: bearer(token) })
  const body = (await response.json()) as Record<string, { tools?: { name: string }[]; error?: string }>
  expect(body['trailhead-board']?.tools?.map(({ name }) => name)).toEqual(['get_forecast', 'get_current_conditions'])
  expect(body['calendar-ada']).toMatchObject({ error: 'upstream_error', message: expect.any(String) })
  const all = await get('/connect/northwind/.tools?x=1', sampleKeys.ada)
  expect(all.status).toBe(400)
})

test('a token that may not list tools gets none', async () => {
  const platform = await createTestPlatform()
  for (const [rules, status] of [
    [{ method: '^tools/call$' }, 403],
    [{ jsonrpc: '^3' }, 403],
    [{ method: '^tools/list$' }, 200],
  ] as const) {
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ rpcReqMatch: rules }] })
    const paths = ['/connect/northwind/.tools', '/connect/northwind/trailhead-board/.tools']
    const answers = await Promise.all(paths.map((path) => platform.fetch(path, { headers: bearer(token) })))
    expect(answers.map((one) => one.status)).toEqual([status, status])
    if (status === 403) expect(await answers[0]?.json()).toEqual(await answers[1]?.json())
  }
})

test('a token that may only read, or only call, gets the recipes, and nothing is recorded as refused', async () => {
  const platform = await createTestPlatform()
  for (const operations of ['read', 'execute', 'write'] as const) {
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ operations }] })
    for (const path of ['.clients', '.clients?connection=weather-ada']) {
      const { status } = await platform.fetch(`/connect/northwind/${path}`, { headers: bearer(token) })
      expect([operations, status]).toEqual([operations, operations === 'write' ? 403 : 200])
    }
    expect(platform.audited.filter(({ event }) => event === 'access.refused').length > 0).toBe(operations === 'write')
  }
})

test('every client has a recipe without a credential, for the namespace or a view', async () => {
  const { body } = await get('/connect/northwind/.clients?view=merchandising', sampleKeys.linus)
  const clients = body['clients'] as unknown as Recipe[]
  expect(clients.map(({ client }) => client)).toEqual([...clientNames])
  const url = 'http://localhost:8787/connect/northwind/mcp/merchandising'
  for (const { format, content, kind } of clients) {
    expect(content).toContain(kind === 'config' || format === 'toml' ? url : 'http://localhost:8787/connect/*')
    if (format === 'json') expect(JSON.parse(content)).toBeObject()
    else
      expect(Bun.TOML.parse(content)).toMatchObject({ mcp_servers: { 'northwind-merchandising': expect.anything() } })
    expect(content).not.toContain('sample-key')
  }
  const [vscode, cursor] = clients
  expect(JSON.parse(decodeURIComponent(vscode?.link?.split('?')[1] ?? ''))).toEqual({
    ...{ name: 'northwind-merchandising', type: 'http', url },
  })
  const config = new URL(cursor?.link ?? '').searchParams.get('config') ?? ''
  expect(JSON.parse(Buffer.from(config, 'base64').toString())).toEqual({ url })
  const one = await get('/connect/northwind/.clients?connection=weather-ada', sampleKeys.ada)
  expect(one.body).toMatchObject({ url: 'http://localhost:8787/connect/northwind/weather-ada/mcp' })
  for (const [path, key, status] of [
    ['/connect/northwind/.clients?view=nothing', sampleKeys.ada, 404],
    ['/connect/northwind/.clients?connection=nothing', sampleKeys.ada, 404],
    ['/connect/northwind/.clients?connection=weather-ada&view=merchandising', sampleKeys.ada, 400],
    ['/connect/northwind/.clients?other=1', sampleKeys.ada, 400],
    ['/connect/northwind/.clients', sampleKeys.jonas, 404],
  ] as const)
    expect((await get(path, key)).status).toBe(status)
})
