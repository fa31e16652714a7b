/** `/v0.1/servers`: the read API of the official MCP Registry, held to its published schema. */

import { beforeEach, describe, expect, test } from 'bun:test'
import { createFairness } from '../../../src/fairness/fairness.ts'
import { importServers } from '../../../src/features/servers/import-servers.ts'
import { registryPageBytesMax } from '../../../src/features/servers/mcp-registry.ts'
import { importedServersMax } from '../../../src/limits.ts'
import { mintToken } from '../../api/cases.ts'
import { type Api, apiOf } from '../../support/api.ts'
import { createTestPlatform, startOfTime, type TestPlatform } from '../../support/platform.ts'
import { isRegistryEntry, isRegistryPage } from '../../support/registry-schema.ts'
import { sampleKeys } from '../../support/sample.ts'

let platform: TestPlatform
let ada: Api
beforeEach(async () => {
  platform = await createTestPlatform({ isRegistryOpen: true })
  ada = apiOf(platform.fetch, sampleKeys.ada)
})
type Entry = { server: { name: string; version: string }; _meta: Record<string, { updatedAt: string }> }
async function page(query = '', api = ada) {
  const { status, body } = await api(`GET /v0.1/servers${query}`)
  expect({ status, errors: isRegistryPage(body) ? [] : isRegistryPage.errors }).toEqual({ status: 200, errors: [] })
  return body as { servers: Entry[]; metadata: { count: number; nextCursor?: string } }
}
const names = async (query = '', api = ada) => (await page(query, api)).servers.map(({ server }) => server.name)
const all = [
  'lumen/lumen',
  'lumen/sql-warehouse',
  'northwind-ops/feature-flags',
  'northwind-support/tickets',
  'northwind/calendar',
  'northwind/crm',
  'northwind/inventory',
  'northwind/invoices',
  'northwind/weather',
]
const weather = {
  name: 'io.github.someone/weather',
  description: 'Weather',
  version: '2.1.0',
  remotes: [
    { type: 'sse', url: 'https://weather.example.com/sse' },
    { type: 'streamable-http', url: 'https://weather.example.com/mcp', headers: [{ name: 'X-Key', isSecret: true }] },
  ],
  packages: [{ registryType: 'npm', identifier: '@someone/weather', version: '2.1.0', transport: { type: 'stdio' } }],
  repository: { url: 'https://github.com/someone/weather', source: 'github' },
}
const official = (more: object) => ({
  'io.modelcontextprotocol.registry/official': { status: 'active', publishedAt: '2025-10-01T00:00:00Z', ...more },
})
const load = (documents: unknown[], namespace?: string) =>
  importServers(platform.store, documents, {
    userId: 'ada',
    now: new Date(startOfTime),
    ...(namespace !== undefined && { namespace }),
  })

describe('the list', () => {
  test('has all servers, as the schema has them', async () => {
    expect(await names()).toEqual(all)
    const { servers } = await page('?search=northwind/weather')
    expect(servers).toEqual([
      {
        server: expect.objectContaining({
          name: 'northwind/weather',
          version: '1.0.0',
          remotes: [{ type: 'streamable-http', url: expect.stringMatching(/^https:/) }],
        }),
        _meta: {
          'io.modelcontextprotocol.registry/official': {
            status: 'active',
            publishedAt: '2026-03-02T09:00:00.000Z',
            updatedAt: '2026-03-02T09:00:00.000Z',
            isLatest: true,
          },
        },
      },
    ] as never)
  })

  test('is walked by cursors, each server once, though others come and go', async () => {
    await ada('PUT /namespaces/lab-one')
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const { servers, metadata } = await page(`?limit=2${cursor === undefined ? '' : `&cursor=${cursor}`}`)
      expect(metadata.count).toBe(servers.length)
      seen.push(...servers.map(({ server }) => server.name))
      cursor = metadata.nextCursor
      await ada(`PUT /servers/lab-one/t${seen.length}`)
    } while (cursor !== undefined)
    expect(seen.filter((name) => !name.startsWith('lab-one'))).toEqual(all)
    expect(new Set(seen).size).toBe(seen.length)
  })

  test('has one server of a name: the first that its reader sees', async () => {
    await ada('PUT /namespaces/lab-one')
    await ada('PUT /namespaces/lab-two')
    for (const namespace of ['lab-two', 'lab-one']) await load([weather], namespace)
    const shown = async (api: Api) => {
      const found: string[] = []
      for (let cursor = ''; ; ) {
        const { body } = await api(`GET /v0.1/servers?limit=1&search=someone&cursor=${cursor}`)
        found.push(...body.servers.map(({ server }: Entry) => server.name))
        cursor = body.metadata.nextCursor ?? ''
        if (cursor === '') return found
      }
    }
    const { name } = weather
    expect(await shown(ada)).toEqual([name])
    const shownAs = async (api: Api) =>
      (await api(`GET /v0.1/servers/${encodeURIComponent(name)}/versions/latest`)).body.server?.description
    const inTwo = ada.as(await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ namespaces: 'lab-two' }] }))
    await load([{ ...weather, description: 'Two' }], 'lab-two')
    expect([await shownAs(ada), await shownAs(inTwo)]).toEqual([weather.description, 'Two'])
    expect(await shown(inTwo)).toEqual([name])
    // Who does not see the first sees the second, wherever their page begins.
    await ada('PATCH /servers/lab-one/io.github.someone.weather', { unlisted: true })
    expect([await shownAs(ada), await shownAs(ada.as(sampleKeys.jonas))]).toEqual([weather.description, 'Two'])
    expect(await shown(ada.as(sampleKeys.jonas))).toEqual([name])
  })

  test('gives nobody the name of a server that is called so here', async () => {
    await ada('PUT /namespaces/aaa')
    await load([{ ...weather, name: 'northwind/crm' }], 'aaa')
    const shown = (await ada('GET /v0.1/servers/northwind%2Fcrm/versions/latest')).body
    expect(shown.server.description).not.toBe(weather.description)
    expect((await names('?search=northwind/crm')).length).toBe(1)
    const onlyIt = ada.as(await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ namespaces: 'aaa' }] }))
    expect(await names('', onlyIt)).toEqual(['northwind/crm'])
  })

  test('is filtered by name, version and time', async () => {
    expect(await names('?search=WIND-')).toEqual(['northwind-ops/feature-flags', 'northwind-support/tickets'])
    expect(await names('?version=latest&search=crm')).toEqual(['northwind/crm'])
    expect(await names('?version=2.0.0')).toEqual([])
    platform.now += 60_000
    await ada('PUT /namespaces/lab-one')
    await ada('PUT /servers/lab-one/thing')
    expect(await names('?updated_since=2026-03-02T09:00:30Z')).toEqual(['lab-one/thing'])
    for (const query of [
      '?x=1',
      '?limit=0',
      '?limit=101',
      '?cursor=abc',
      '?updated_since=yesterday',
      '?updated_since=2026-99-99T00:00:00Z',
      '?updated_since=2026-02-30T00:00:00Z',
      '?include_deleted=2',
    ])
      expect({ query, ...(await ada(`GET /v0.1/servers${query}`)) }).toMatchObject({ query, status: 400 })
  })
})

describe('one server', () => {
  test('is read by its name and version', async () => {
    for (const path of [
      '/v0.1/servers/northwind%2Fcrm/versions/latest',
      '/v0.1/servers/northwind/crm/versions/1.0.0',
    ]) {
      const { status, body } = await ada(`GET ${path}`)
      expect({ status, errors: isRegistryEntry(body) ? [] : isRegistryEntry.errors }).toEqual({
        status: 200,
        errors: [],
      })
      expect(body.server.name).toBe('northwind/crm')
    }
    const { body } = await ada('GET /v0.1/servers/lumen%2Flumen/versions')
    expect(isRegistryPage(body)).toBe(true)
    expect(body.servers).toHaveLength(1)
    for (const path of [
      'northwind%2Fnone/versions',
      'northwind%2Fcrm/versions/2.0.0',
      'northwind%2F%FF/versions/latest',
    ])
      expect(await ada(`GET /v0.1/servers/${path}`)).toMatchObject({ status: 404, body: { error: 'Server not found' } })
  })
})

describe('who may read it', () => {
  const anonymous = (path: string, headers: Record<string, string> = {}, of = platform) => of.fetch(path, { headers })

  test('all, where it is open: without what is unlisted, and from pages of any origin', async () => {
    await ada('PUT /namespaces/lab-one')
    await ada('PUT /servers/lab-one/secret', { unlisted: true })
    const response = await anonymous('/v0.1/servers', { origin: 'vscode-file://vscode-app' })
    expect(response.headers.get('access-control-allow-origin')).toBe('*')
    expect(((await response.json()) as { servers: Entry[] }).servers.map(({ server }) => server.name)).toEqual(all)
    expect((await anonymous('/v0.1/servers/lab-one%2Fsecret/versions/latest')).status).toBe(404)
    expect(await names('?search=secret')).toEqual(['lab-one/secret'])
    // A credential that is no good is not passed over.
    expect((await anonymous('/v0.1/servers', { authorization: 'Bearer nope' })).status).toBe(401)
    expect((await anonymous('/servers', { origin: 'vscode-file://vscode-app' })).status).toBe(403)
  })

  test('whoever has a credential, where it is not', async () => {
    const closed = await createTestPlatform()
    expect((await anonymous('/v0.1/servers', {}, closed)).status).toBe(401)
    expect((await anonymous('/v0.1/servers/northwind%2Fcrm/versions/latest', {}, closed)).status).toBe(401)
    expect((await anonymous('/v0.1/servers', { origin: 'https://x.example' }, closed)).status).toBe(403)
    expect(await names('', apiOf(closed.fetch, sampleKeys.linus))).toEqual(all)
  })

  test('a token, as far as its policy goes', async () => {
    const narrowed = ada.as(await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ namespaces: 'lumen' }] }))
    expect(await names('', narrowed)).toEqual(['lumen/lumen', 'lumen/sql-warehouse'])
    expect((await narrowed('GET /v0.1/servers/northwind%2Fcrm/versions/latest')).status).toBe(404)
    const other = ada.as(await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ resources: 'connections' }] }))
    expect((await other('GET /v0.1/servers')).status).toBe(403)
  })
})

describe('an import', () => {
  test('of a server.json keeps it as it is, and its name', async () => {
    expect(await load([weather])).toEqual({
      servers: ['io.github.someone/weather'],
      namespaces: ['io.github.someone'],
      leftOut: [],
    })
    expect((await page('?search=someone')).servers[0]?.server as unknown).toEqual(weather)
    expect((await ada('GET /servers/io.github.someone/weather')).body).toMatchObject({
      deploymentUrl: 'https://weather.example.com/mcp',
      connections: [
        { type: 'http', deploymentUrl: 'https://weather.example.com/mcp' },
        { type: 'stdio', bundleUrl: '@someone/weather', runtime: 'node' },
      ],
    })
    expect((await ada('GET /servers?repoOwner=someone')).body.servers).toHaveLength(1)
  })

  test('of pages of a registry takes the latest versions, and what is not deleted', async () => {
    const documents = [
      {
        servers: [
          { server: { ...weather, version: '2.0.0' }, _meta: official({ isLatest: false }) },
          { server: weather, _meta: official({ isLatest: true }) },
          { server: { ...weather, name: 'a.b/gone' }, _meta: official({ status: 'deleted' }) },
          { server: { name: 'no-slash', description: '', version: '1' } },
        ],
        metadata: {},
      },
    ]
    expect(await load(documents, 'mirror')).toEqual({
      servers: ['mirror/io.github.someone.weather'],
      namespaces: ['mirror'],
      leftOut: ['a.b/gone: it was deleted', expect.stringMatching(/^no-slash: name: must be NAMESPACE\/NAME/)],
    })
    expect((await ada('GET /servers?namespace=mirror')).body.servers).toMatchObject([
      { qualifiedName: 'mirror/io.github.someone.weather', createdAt: '2025-10-01T00:00:00.000Z' },
    ])
    expect(await names('?search=io.github')).toEqual(['io.github.someone/weather'])
    expect((await ada('GET /v0.1/servers/io.github.someone%2Fweather/versions/2.1.0')).status).toBe(200)
    expect(await load(documents, 'mirror')).toMatchObject({ namespaces: [] })
  })

  test('leaves out what would come into a namespace of somebody else, who could change it', async () => {
    await ada('PUT /namespaces/mirror')
    const imported = (owner: string) =>
      importServers(platform.store, [weather], {
        ...{ userId: 'operator', owner },
        now: new Date(startOfTime),
        namespace: 'mirror',
      })
    expect(await imported('operator')).toMatchObject({
      servers: [],
      leftOut: [expect.stringContaining('the namespace mirror belongs to ada')],
    })
    expect((await imported('ada')).servers).toEqual(['mirror/io.github.someone.weather'])
  })

  test('takes no older version of a server whose latest is deleted', async () => {
    const versions = [
      { server: { ...weather, version: '1.0.0' }, _meta: official({ isLatest: false }) },
      { server: weather, _meta: official({ isLatest: true, status: 'deleted' }) },
    ]
    for (const servers of [versions, versions.toReversed()])
      expect(await load([{ servers }])).toEqual({
        servers: [],
        namespaces: [],
        leftOut: ['io.github.someone/weather: it was deleted'],
      })
    // A version that is deleted says nothing of the latest.
    const servers = ['deleted', 'active'].map((status, index) => ({
      server: weather,
      _meta: official({ isLatest: index === 1, status }),
    }))
    expect(await load([{ servers }])).toMatchObject({ servers: [weather.name] })
  })

  test('makes no namespace that differs from another in small and capital letters alone', async () => {
    const named = (name: string) => ({ ...weather, name })
    expect(await load([named('io.Some/one'), named('io.some/two'), named('io.Some/three')])).toEqual({
      servers: ['io.Some/one', 'io.Some/three'],
      namespaces: ['io.Some'],
      leftOut: [
        'io.some/two: the name of the namespace io.some differs too little from io.Some: choose another with --namespace',
      ],
    })
    expect(await load([named('io.SOME/one'), named('Northwind/one'), named('io.Some/four')])).toMatchObject({
      servers: ['io.Some/four'],
      namespaces: [],
      leftOut: [
        expect.stringContaining('too little from io.Some'),
        expect.stringContaining('too little from northwind'),
      ],
    })
  })

  test('again keeps what was said here: unlisted, its license, and verified where it is', async () => {
    await load([weather], 'lab-one')
    const operator = ada.as(sampleKeys.operator)
    const name = (await ada('GET /servers?namespace=lab-one&q=weather')).body.servers[0].qualifiedName
    await operator(`PATCH /servers/${name}`, { unlisted: true, license: 'MIT', verified: true })
    const said = async () => (await ada('GET /servers?namespace=lab-one&q=weather')).body.servers[0]
    const before = await said()
    await load([weather], 'lab-one')
    expect(await said()).toEqual(before)
    expect((await ada.as(sampleKeys.jonas)('GET /servers?namespace=lab-one&q=weather')).body.servers).toEqual([])
    await load(
      [{ ...weather, remotes: [{ type: 'streamable-http', url: 'https://other.example.com/mcp' }] }],
      'lab-one',
    )
    expect(await said()).toEqual({ ...before, verified: false })
  })

  test('again keeps what the server was learnt to have, and when it was made, where it is the same', async () => {
    const { packages, ...rest } = weather
    const local = { ...rest, remotes: [], packages }
    const name = 'lab-one/io.github.someone.weather'
    const operator = ada.as(sampleKeys.operator)
    await load([{ server: local, _meta: official({}) }], 'lab-one')
    await ada(`PUT /servers/${name}`, { tools: [{ name: 'get', description: null, inputSchema: { type: 'object' } }] })
    await operator(`PATCH /servers/${name}`, { verified: true })
    const shown = async () => {
      const { tools, security } = (await ada(`GET /servers/${name}`)).body
      const { verified, createdAt } = (await ada('GET /servers?namespace=lab-one')).body.servers[0]
      return { tools: tools?.map((tool: { name: string }) => tool.name), security, verified, createdAt }
    }
    const before = {
      tools: ['get'],
      security: { scanPassed: true },
      verified: true,
      createdAt: '2025-10-01T00:00:00.000Z',
    }
    expect(await shown()).toEqual(before)
    await load([{ ...local, version: '3.0.0' }], 'lab-one')
    expect(await shown()).toEqual(before)
    const swapped = [{ ...packages[0], identifier: '@someone/other' }]
    await load([{ ...local, packages: swapped }], 'lab-one')
    expect(await shown()).toEqual({ ...before, tools: undefined, security: null, verified: false })
  })

  test('leaves a server that another file brought under another name', async () => {
    const [one, other] = ['app.vercel/foo.bar', 'app.vercel.foo/bar'].map((name) => ({ ...weather, name }))
    expect((await load([one], 'mirror')).servers).toEqual(['mirror/app.vercel.foo.bar'])
    expect(await load([other], 'mirror')).toEqual({
      servers: [],
      namespaces: [],
      leftOut: [
        'app.vercel.foo/bar: mirror/app.vercel.foo.bar was imported as app.vercel/foo.bar: delete it first, or choose another --namespace',
      ],
    })
    expect((await load([one], 'mirror')).servers).toEqual(['mirror/app.vercel.foo.bar'])
  })

  test('leaves what was registered here, and what was moved since', async () => {
    await ada('PUT /namespaces/lab-one')
    await ada('PUT /servers/lab-one/io.github.someone.weather', { displayName: 'Ours' })
    expect(await load([weather], 'lab-one')).toEqual({
      servers: [],
      namespaces: [],
      leftOut: [
        'io.github.someone/weather: lab-one/io.github.someone.weather exists and was not imported: delete it first, or choose another --namespace',
      ],
    })
    await load([weather])
    const operator = ada.as(sampleKeys.operator)
    await operator('PUT /servers/io.github.someone/weather', { deploymentUrl: 'https://here.example.com/mcp' })
    // The registry no longer says what was imported.
    expect((await page('?search=someone/weather')).servers[0]?.server).toMatchObject({ version: '1.0.0' })
    expect(await load([weather])).toMatchObject({ servers: [], leftOut: [expect.stringContaining('was not imported')] })
  })

  test('takes no time that others cannot read, and says of a name that it cannot be one', async () => {
    const far = { server: weather, _meta: official({ publishedAt: '+275760-09-13T00:00:00Z' }) }
    await load([far])
    const { createdAt } = (await ada('GET /servers?namespace=io.github.someone')).body.servers[0]
    expect(createdAt).toBe(new Date(startOfTime).toISOString())
    expect(await load([{ ...weather, name: 'acme/..' }])).toMatchObject({
      leftOut: ['acme/..: acme/.. cannot be the name of a server here'],
    })
  })

  test('leaves what a fixture brings', async () => {
    expect(await load([{ ...weather, name: 'northwind/crm' }])).toMatchObject({ servers: [], namespaces: [] })
  })
})

test('a page ends when it was made from enough bytes, and the next one goes on', async () => {
  const before = new Set(await names())
  await ada('PUT /namespaces/large')
  for (let i = 0; i < 12; i += 1) {
    const tools = [{ name: 't', description: 'x'.repeat(900_000), inputSchema: { type: 'object' } }]
    expect((await ada(`PUT /servers/large/s${i}`, { tools, deploymentUrl: 'https://a.example.com/mcp' })).status).toBe(
      201,
    )
  }
  const seen: string[] = []
  const sizes: number[] = []
  let cursor: string | undefined = ''
  while (cursor !== undefined) {
    const { servers, metadata } = await page(`?limit=100${cursor && `&cursor=${cursor}`}`)
    seen.push(...servers.map(({ server }) => server.name))
    sizes.push(servers.filter(({ server }) => server.name.startsWith('large/')).length)
    expect(metadata.count).toBe(servers.length)
    cursor = metadata.nextCursor
  }
  // The last one of a page may go past it.
  expect(Math.max(...sizes)).toBe(Math.ceil(registryPageBytesMax / 900_000))
  expect(seen.filter((name) => !before.has(name)).sort()).toEqual(
    Array.from({ length: 12 }, (_, i) => `large/s${i}`).sort(),
  )
  expect(seen).toHaveLength(new Set(seen).size)
})

test('an operator imports servers over HTTP, so many at once', async () => {
  const platform = await createTestPlatform()
  const operator = apiOf(platform.fetch, sampleKeys.operator)
  const servers = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ name: `com.example/s${i}`, description: 'One', version: '1.0.0' }))
  const imported = await operator('POST /servers/.import', { servers: [{ servers: servers(importedServersMax) }] })
  expect([imported.status, imported.body.servers.length]).toEqual([200, importedServersMax])
  expect(imported.body).toMatchObject({ namespaces: ['com.example'], leftOut: [] })
  expect((await operator('GET /servers/com.example%2Fs0')).status).toBe(200)
  const tooMany = await operator('POST /servers/.import', { servers: servers(importedServersMax + 1) })
  expect(tooMany).toMatchObject({ status: 400, body: { error: expect.stringContaining('at most 500') } })
  const mine = { servers: servers(1), namespace: 'mirror', owner: 'ada' }
  expect((await operator('POST /servers/.import', mine)).body.servers).toEqual(['mirror/com.example.s0'])
  expect((await apiOf(platform.fetch, sampleKeys.ada)('GET /namespaces/mirror')).status).toBe(200)
  expect((await apiOf(platform.fetch, sampleKeys.ada)('POST /servers/.import', mine)).status).toBe(403)
  expect(platform.audited.at(-1)).toMatchObject({ event: 'servers.imported', userId: 'operator', servers: 1 })
})

test('an import waits for no turn of its owner while others wait for it', async () => {
  const fairness = createFairness()
  const { writes, turns } = fairness
  let isChanging = false
  const run = writes.run.bind(writes)
  writes.run = (name, holder, task, isFirst) =>
    run(
      name,
      holder,
      () => {
        isChanging = true
        return Promise.resolve(task()).finally(() => {
          isChanging = false
        })
      },
      isFirst,
    )
  let waited = 0
  const turn = turns.run.bind(turns)
  turns.run = (holder, work) => {
    if (isChanging) waited += 1
    return turn(holder, work)
  }
  const platform = await createTestPlatform({ fairness })
  const servers = Array.from({ length: importedServersMax }, (_, i) => ({ ...weather, name: `com.example/s${i}` }))
  const imported = await apiOf(platform.fetch, sampleKeys.operator)('POST /servers/.import', { servers })
  expect([imported.status, imported.body.servers.length, waited]).toEqual([200, importedServersMax, 0])
})
