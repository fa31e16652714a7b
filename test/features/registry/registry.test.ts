/** The registry of a namespace: held to the official schema, and read as VS Code reads it. */

import { beforeEach, expect, spyOn, test } from 'bun:test'
import { registryLinksMax } from '../../../src/features/registry/registry-links.ts'
import type { RegistryEntry, RegistryPage } from '../../../src/model/server-json.ts'
import { mintToken } from '../../api/cases.ts'
import { createTestPlatform, problemsOf, type TestPlatform } from '../../support/platform.ts'
import { isRegistryEntry, isRegistryPage } from '../../support/registry-schema.ts'
import { sampleKeys } from '../../support/sample.ts'
import { bearer, connectTo } from '../../support/upstream.ts'

let platform: TestPlatform
beforeEach(async () => {
  platform = await createTestPlatform({ issuer: 'https://mcp.example.com' })
  await send('PUT', '/namespaces/sales', {})
})

async function send(method: string, path: string, body?: object, key: string | undefined = sampleKeys.ada) {
  const headers = key === undefined ? {} : bearer(key)
  const response = await platform.fetch(path, { method, headers, ...(body && { body: JSON.stringify(body) }) })
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, body: text === '' ? undefined : JSON.parse(text) }
}
const open = (registry: string) => send('PATCH', '/namespaces/sales', { registry })
const view = (name: string, more: object = {}) =>
  send('PUT', `/namespaces/sales/views/${name}`, { policy: [], ...more })
const anybody = (path: string, init: RequestInit = {}) => platform.fetch(path, init)
const servers = '/registry/sales/v0.1/servers'
async function page(query = '', at = servers, init: RequestInit = {}): Promise<RegistryPage> {
  const response = await anybody(`${at}${query}`, init)
  const body = (await response.json()) as RegistryPage
  expect({ status: response.status, errors: isRegistryPage(body) ? [] : isRegistryPage.errors }).toEqual({
    status: 200,
    errors: [],
  })
  return body
}
const namesOf = ({ servers: all }: RegistryPage) => all.map(({ server }) => server.name)

test('an entry is what the official registry says of a server with one remote', async () => {
  await open('public')
  await send('PATCH', '/namespaces/sales', { title: 'Sales', description: 'x'.repeat(400) })
  await view('reading')
  await view('all', { title: 'Everything', description: 'All of it' })
  const { servers: all } = await page()
  expect(all.map(({ server }) => [server.name, server.title, server.remotes])).toEqual([
    ['com.example.mcp/sales', 'Sales', [{ type: 'streamable-http', url: 'https://mcp.example.com/connect/sales/mcp' }]],
    [
      'com.example.mcp/sales.all',
      'Everything',
      [{ type: 'streamable-http', url: 'https://mcp.example.com/connect/sales/mcp/all' }],
    ],
    [
      'com.example.mcp/sales.reading',
      'Sales, reading',
      [{ type: 'streamable-http', url: 'https://mcp.example.com/connect/sales/mcp/reading' }],
    ],
  ])
  for (const { server } of all) {
    expect(server).not.toHaveProperty('packages')
    expect([...server.description].length).toBeLessThanOrEqual(100)
    expect(server.$schema).toBe('https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json')
    expect(JSON.stringify(server._meta)).toContain('readme')
  }
})

test('a host that is an address is local', async () => {
  for (const [issuer, name] of [
    ['http://127.0.0.1:8787', 'local/ada'],
    ['http://[::1]:8787', 'local/ada'],
    ['http://localhost:8787/postern/', 'localhost/ada'],
  ] as const) {
    platform = await createTestPlatform({ issuer })
    await send('PUT', '/namespaces/other', {})
    await send('PATCH', '/namespaces/other', { registry: 'public' })
    expect(namesOf(await page('', '/registry/other/v0.1/servers'))).toEqual([name.replace('ada', 'other')])
  }
})

test('the last number of a version counts the changes of its entry', async () => {
  await open('public')
  await view('one')
  const versions = async () =>
    Object.fromEntries((await page()).servers.map(({ server }) => [server.name.slice(16), server.version]))
  expect(await versions()).toEqual({ sales: '1.0.0', 'sales.one': '1.0.0' })
  platform.now += 60_000
  await view('one', { title: 'Other' })
  expect(await versions()).toEqual({ sales: '1.0.0', 'sales.one': '1.0.1' })
  // A policy is no part of the entry.
  await view('one', { title: 'Other', policy: [{ operations: 'read' }] })
  expect(await versions()).toEqual({ sales: '1.0.0', 'sales.one': '1.0.1' })
  const since = new Date(platform.now).toISOString()
  expect(namesOf(await page(`?updated_since=${since}`))).toEqual(['com.example.mcp/sales.one'])
  expect((await anybody(`${servers}?updated_since=yesterday`)).status).toBe(400)
  await send('DELETE', '/namespaces/sales/views/one')
  platform.now += 60_000
  await view('one')
  expect(await versions()).toEqual({ sales: '1.0.0', 'sales.one': '1.0.0' })
  expect(await problemsOf(platform)).toEqual([])
})

test('a registry that is off is not there, for its owner too', async () => {
  const paths = ['', '/com.example.mcp%2Fsales/versions', '/com.example.mcp%2Fsales/versions/latest']
  const answers = new Set<string>()
  for (const namespace of ['sales', 'nobody', 'ada', 'sales~x', 'sales~', '%00'])
    for (const path of paths)
      for (const key of [undefined, sampleKeys.ada, sampleKeys.operator]) {
        const { status, text } = await send('GET', `/registry/${namespace}/v0.1/servers${path}`, undefined, key)
        answers.add(`${status} ${text}`)
      }
  expect([...answers]).toEqual([expect.stringMatching(/^404 /)])
})

test('`members` need a credential that reaches the namespace; `public` needs none and ignores one', async () => {
  await open('members')
  expect((await anybody(servers)).status).toBe(401)
  expect((await send('GET', servers, undefined, sampleKeys.linus)).status).toBe(404)
  expect((await send('GET', servers)).body.metadata).toEqual({ count: 1 })
  for (const operations of ['read', 'execute']) {
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ operations }] })
    expect((await send('GET', servers, undefined, token)).status).toBe(200)
  }
  const elsewhere = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ namespaces: 'ada' }] })
  expect((await send('GET', servers, undefined, elsewhere)).status).toBe(404)
  await open('public')
  expect((await send('GET', servers, undefined, 'nonsense')).status).toBe(200)
})

test('a link reads without a header, is told once, and ends at once', async () => {
  await open('members')
  const made = await send('POST', '/namespaces/sales/registry-links', { name: 'VS Code' })
  expect(made.status).toBe(201)
  const secret = made.body.url.split('~')[1] as string
  expect(Buffer.from(secret, 'base64url').length).toBe(16)
  expect(made.body.url).toBe(`https://mcp.example.com/registry/sales~${secret}`)
  const at = `/registry/sales~${secret}/v0.1/servers`
  expect(namesOf(await page('', at))).toEqual(['com.example.mcp/sales'])
  expect((await anybody(`${at}/com.example.mcp%2Fsales/versions/latest`)).status).toBe(200)
  const { id, createdAt } = made.body
  expect((await send('GET', '/namespaces/sales/registry-links')).body).toEqual({
    links: [{ id, name: 'VS Code', createdAt }],
  })
  const { entries } = await platform.store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 100_000 })
  const stored = entries.map(({ key, value }) => `${Buffer.from(key)}${Buffer.from(value)}`).join()
  expect(`${stored}${JSON.stringify(platform.audited)}${platform.logged}`).not.toContain(secret)
  // A link is no credential.
  expect((await anybody(`${at}?include=connections`)).status).toBe(401)
  expect((await send('GET', `${at}?include=connections`)).status).toBe(401)
  await open('off')
  expect((await anybody(at)).status).toBe(404)
  await open('public')
  expect((await anybody(at)).status).toBe(200)
  expect((await send('DELETE', `/namespaces/sales/registry-links/${id}`)).status).toBe(200)
  expect((await anybody(at)).status).toBe(404)
  expect((await send('DELETE', `/namespaces/sales/registry-links/${id}`)).status).toBe(404)
  expect(await problemsOf(platform)).toEqual([])
})

test('only managers have links, a bounded number of them, and they end with their namespace', async () => {
  await open('members')
  const links = '/namespaces/sales/registry-links'
  expect((await send('GET', links, undefined, sampleKeys.linus)).status).toBe(404)
  expect((await send('POST', links, {}, sampleKeys.linus)).status).toBe(404)
  const first = (await send('POST', links, {})).body
  for (let more = 1; more < registryLinksMax; more += 1) expect((await send('POST', links, {})).status).toBe(201)
  expect((await send('POST', links, {})).status).toBe(403)
  await send('DELETE', '/namespaces/sales')
  platform.now += 1000
  await send('PUT', '/namespaces/sales', {})
  await open('members')
  expect((await anybody(`${new URL(first.url).pathname}/v0.1/servers`)).status).toBe(404)
  expect((await send('GET', links)).body).toEqual({ links: [] })
})

test('connections are listed for a credential that may read them, and are never named without', async () => {
  await open('public')
  const upstream = 'https://tools.example.com/secret-path'
  for (const id of ['crm', 'mail', 'reading']) {
    const body = JSON.stringify({ mcpUrl: upstream, metadata: { team: id } })
    await platform.fetch(`/connect/sales/${id}`, { method: 'PUT', headers: bearer(sampleKeys.ada), body })
  }
  await view('reading')
  const without = JSON.stringify(await page())
  for (const word of ['crm', 'secret-path', 'tools.example.com', 'mail']) expect(without).not.toContain(word)
  expect((await anybody(`${servers}?include=connections`)).status).toBe(401)
  const withThem = async (query: string, credential: string = sampleKeys.ada) =>
    page(query, servers, { headers: bearer(credential) })
  const own = ['sales', 'sales.reading']
  const prefixed = (names: string[]) => names.map((name) => `com.example.mcp/${name}`)
  const connections = ['sales.crm.connection', 'sales.mail.connection', 'sales.reading.connection']
  using spend = spyOn(platform.fairness.time, 'spend')
  expect(namesOf(await withThem('?include=connections'))).toEqual(prefixed([...own, ...connections]))
  // Entries take their reader's time, six microseconds each.
  expect(spend.mock.calls.map(([, milliseconds]) => milliseconds.toFixed(3))).toContain('0.018')
  const narrowed = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ metadata: { team: 'mail' } }] })
  expect(namesOf(await withThem('?include=connections', narrowed))).toEqual(prefixed([...own, 'sales.mail.connection']))
  expect(namesOf(await withThem('?include=connections&search=CRM'))).toEqual(prefixed(['sales.crm.connection']))
  const executor = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ operations: 'execute' }] })
  expect((await send('GET', `${servers}?include=connections`, undefined, executor)).status).toBe(403)
  const one = `${servers}/${encodeURIComponent('com.example.mcp/sales.mail.connection')}/versions/latest`
  expect((await anybody(one)).status).toBe(404)
  const { body } = await send('GET', one)
  expect(isRegistryEntry(body)).toBe(true)
  expect(body.server.remotes[0].url).toBe('https://mcp.example.com/connect/sales/mail/mcp')
  // Page by page, with the cursor alone.
  const seen: string[] = []
  for (let query: string | undefined = '?include=connections&limit=2'; query !== undefined; ) {
    const found = await withThem(query)
    expect(found.servers.length).toBeLessThanOrEqual(2)
    seen.push(...namesOf(found))
    const { nextCursor } = found.metadata
    query = nextCursor === undefined ? undefined : `?limit=2&cursor=${nextCursor}`
  }
  expect(seen).toEqual(prefixed([...own, ...connections]))
})

test('an editor reads all pages, and finds the endpoint of the entry that a person installs', async () => {
  await connectTo(platform, 'unused', 'https://tools.example.com/mcp')
  await open('public')
  for (let number = 0; number < 75; number += 1) await view(`view-${number}`, { title: `Number ${number}` })
  // The parameters of VS Code: a page of 50, the latest versions, and later the cursor.
  const seen: RegistryEntry[] = []
  let next: string | undefined = '?limit=50&version=latest&search=number'
  for (let pages = 0; next !== undefined; pages += 1) {
    const found: RegistryPage = await page(next)
    seen.push(...found.servers)
    const { nextCursor } = found.metadata
    expect(nextCursor ?? 'x').toMatch(/^[A-Za-z0-9_-]+$/)
    next = nextCursor === undefined ? undefined : `?limit=50&cursor=${nextCursor}`
    expect(pages).toBeLessThan(3)
  }
  expect(seen.length).toBe(75)
  expect(new Set(namesOf({ servers: seen, metadata: { count: 75 } })).size).toBe(75)
  const name = encodeURIComponent(seen[40]?.server.name ?? '')
  for (const path of [`/${name}/versions/latest`, `/${name}/versions/1.0.0`]) {
    const entry = (await (await anybody(`${servers}${path}`)).json()) as RegistryEntry
    expect(isRegistryEntry(entry) ? [] : isRegistryEntry.errors).toEqual([])
    expect(entry).toEqual(seen[40] as RegistryEntry)
  }
  expect((await anybody(`${servers}/${name}/versions/9.9.9`)).status).toBe(404)
  const versions = (await (await anybody(`${servers}/${name}/versions`)).json()) as RegistryPage
  expect(versions).toEqual({ servers: [seen[40] as RegistryEntry], metadata: { count: 1 } })
  const { url = '' } = seen[40]?.server.remotes?.[0] ?? {}
  const { pathname } = new URL(url)
  const refused = await anybody(pathname, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: '{}',
  })
  expect(refused.status).toBe(401)
  const metadata = /resource_metadata="([^"]+)"/.exec(refused.headers.get('www-authenticate') ?? '')?.[1] ?? ''
  expect(await (await anybody(new URL(metadata).pathname)).json()).toMatchObject({ resource: url })
})

test('a cursor holds its parameters, and no others', async () => {
  await open('public')
  await view('a')
  await view('b')
  const { nextCursor = '' } = (await page('?limit=1&search=sales')).metadata
  expect((await anybody(`${servers}?cursor=${nextCursor}&search=other`)).status).toBe(400)
  expect(namesOf(await page(`?cursor=${nextCursor}&search=sales`))).toEqual([
    'com.example.mcp/sales.a',
    'com.example.mcp/sales.b',
  ])
  for (const cursor of ['x', '*', Buffer.from('{"after":1}').toString('base64url'), `${nextCursor}=`])
    expect((await anybody(`${servers}?cursor=${cursor}`)).status).toBe(400)
  for (const query of ['?limit=0', '?limit=101', '?include=users', '?other=1', '?version=latest&version=latest'])
    expect((await anybody(`${servers}${query}`)).status).toBe(400)
})

test('pages of any origin may read it, and an unchanged answer is not sent again', async () => {
  await open('public')
  const headers = { origin: 'https://editor.example' }
  const response = await anybody(servers, { headers })
  expect(response.headers.get('access-control-allow-origin')).toBe('*')
  expect(response.headers.get('referrer-policy')).toBe('no-referrer')
  const etag = response.headers.get('etag') ?? ''
  const again = await anybody(servers, { headers: { ...headers, 'if-none-match': etag } })
  expect([again.status, again.headers.get('referrer-policy')]).toEqual([304, 'no-referrer'])
  const asked = { ...headers, 'access-control-request-method': 'GET' }
  for (const more of [headers, asked]) {
    const options = await anybody(servers, { method: 'OPTIONS', headers: more })
    expect([options.status, options.headers.get('access-control-allow-origin')]).toEqual([204, '*'])
    expect(options.headers.get('etag')).toMatch(/^"\w+"$/)
  }
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
    const refused = await anybody(servers, { method, headers })
    expect([refused.status, refused.headers.get('allow')]).toEqual([405, 'GET'])
  }
  // Nothing else is open to them.
  expect((await anybody('/namespaces/sales', { headers })).status).toBe(403)
})
