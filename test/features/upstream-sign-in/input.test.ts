/** What a person enters for the server of a connection (contract, 14.10), in process. */

import { beforeEach, describe, expect, spyOn, test } from 'bun:test'
import { revokeApiKey } from '../../../src/auth/api-key.ts'
import { configSchemaCharsMax, inputFieldsMax } from '../../../src/model/input-fields.ts'
import { directoryVersionKey, keyOf, prefixOf } from '../../../src/storage/keys.ts'
import type { UpstreamRequest } from '../../../src/upstream/upstream.ts'
import { cookieIn, fieldsOf, post, slowBody } from '../../support/pages.ts'
import { issuer as base, createTestPlatform, keyIdOf, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { createServers, issuer, mcpUrl, type Servers } from './world.ts'

let servers: Servers
let platform: TestPlatform
/** What reached the MCP server. */
let asked: UpstreamRequest[]
/** How it answers a request. */
let verdict: (request: UpstreamRequest) => number

const configSchema = {
  type: 'object',
  properties: {
    workspace: { type: 'string', title: 'Workspace', description: 'As in the address bar', 'x-from': { query: 'ws' } },
    token: { type: 'string', minLength: 5, 'x-from': { header: 'X-Api-Token' } },
    rows: { type: 'integer', maximum: 100, default: 20, title: '' },
    region: { enum: ['eu', 'us'], default: 'eu' },
    verbose: { type: 'boolean', title: 5 },
    nested: { type: 'object' },
  },
  required: ['workspace', 'token', 'rows'],
}

beforeEach(async () => {
  servers = createServers()
  asked = []
  verdict = () => 200
  servers.instead[mcpUrl] = (request) => {
    asked.push(request)
    const status = verdict(request)
    if (status !== 200) return { status }
    const { id } = JSON.parse(Buffer.from(request.body ?? '{}').toString()) as { id?: unknown }
    if (id === undefined) return { status: 202 }
    const serverInfo = { name: 'metered', version: '1' }
    return {
      json: {
        jsonrpc: '2.0',
        id,
        result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo, content: [] },
      },
    }
  }
  platform = await createTestPlatform({ upstream: servers.upstream })
  await register(configSchema)
})

let versions = 0
async function register(schema: object): Promise<void> {
  const server = {
    qualifiedName: 'ada/metered',
    displayName: 'Metered',
    description: '',
    iconUrl: null,
    remote: true,
    deploymentUrl: mcpUrl,
    connections: [{ type: 'http', deploymentUrl: mcpUrl, configSchema: schema }],
    security: null,
    tools: null,
    resources: null,
    prompts: null,
  }
  versions += 1
  await platform.store.commit({
    puts: [
      { key: keyOf('server', 'ada/metered'), value: Buffer.from(JSON.stringify(server)) },
      { key: directoryVersionKey, value: Buffer.from(`input ${versions}`) },
    ],
  })
}

interface Made {
  readonly status: { state: string; setupUrl?: string; message?: string; http?: object; missing?: object }
  readonly mcpUrl: string
  readonly message?: string
}

const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
async function put(body: object = { server: 'ada/metered' }): Promise<Made> {
  const response = await platform.fetch('/connect/ada/metered', { method: 'PUT', headers, body: JSON.stringify(body) })
  return (await response.json()) as Made
}
const read = async () => (await (await platform.fetch('/connect/ada/metered', { headers })).json()) as Made
const pathIn = (url: string | undefined) => (url ?? 'none').slice(base.length)

async function open(path: string, cookie = '') {
  const response = await platform.fetch(path, { headers: { cookie } })
  return { status: response.status, page: await response.text() }
}
async function enter(path: string, fields: Record<string, string>, cookie = '') {
  const { form = '' } = fieldsOf((await open(path, cookie)).page)
  const response = await post(platform, path, { form, ...fields }, cookie)
  return { status: response.status, page: await response.text() }
}
const good = { ws: 'acme & co', 'X-Api-Token': 'token-secret-1' }

async function call(): Promise<number> {
  const response = await platform.fetch('/connect/ada/metered/mcp', {
    method: 'POST',
    headers,
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a', arguments: {} } }),
  })
  return response.status
}

describe('a connection whose server requires values', () => {
  test('contacts nobody until they are there, and says which', async () => {
    const made = await put()
    expect(made.status).toEqual({
      state: 'input_required',
      http: {
        headers: { 'X-Api-Token': { label: 'X-Api-Token', required: true } },
        query: {
          ws: { label: 'Workspace', description: 'As in the address bar', required: true },
          rows: { label: 'rows', required: true },
          region: { label: 'region' },
          verbose: { label: 'verbose' },
        },
      },
      missing: { headers: ['X-Api-Token'], query: ['ws'] },
      setupUrl: expect.stringMatching(/^http:\/\/.*\/connect\/ada\/metered\/setup\?ticket=/),
    })
    expect((await read()).status.setupUrl).toBe(`${base}/connect/ada/metered/setup`)
    expect(asked).toEqual([])
    expect(await call()).toBe(409)
    const told = await platform.fetch('/connect/ada/metered/.tools', {
      headers: { authorization: `Bearer ${sampleKeys.ada}` },
    })
    expect([told.status, await told.json()]).toEqual([
      409,
      {
        error: 'conflict',
        message:
          'The connection needs values before it can be used (X-Api-Token, ws): open http://localhost:8787/connect/ada/metered/setup',
        setupUrl: `${base}/connect/ada/metered/setup`,
      },
    ])
  })

  test('is set up by a person with the ticket, and is called with the values from then on', async () => {
    const path = pathIn((await put()).status.setupUrl)
    const { page } = await open(path)
    expect(asked).toEqual([])
    for (const part of [
      '<dd>mcp.example.com</dd>',
      'Workspace<small>As in the address bar</small>\n<input type="text" name="ws" required autocomplete="off">',
      '<input type="password" name="X-Api-Token" required autocomplete="off">',
      '<input type="number" name="rows" step="any" value="20" required autocomplete="off">',
      '<option value="eu" selected>eu</option><option value="us">us</option>',
      '<input type="checkbox" name="verbose" value="true">',
    ])
      expect(page).toContain(part)
    const { status, page: done } = await enter(path, { ...good, rows: '50', region: 'us', verbose: 'true' })
    expect([status, done]).toEqual([200, expect.stringContaining('<h1>Connected</h1>')])
    const url = `${mcpUrl}?ws=acme+%26+co&rows=50&region=us&verbose=true`
    expect(asked[0]).toMatchObject({ url, headers: { 'x-api-token': 'token-secret-1' } })
    expect(await read()).toMatchObject({ mcpUrl, status: { state: 'connected' }, serverInfo: { name: 'metered' } })
    expect(await call()).toBe(200)
    expect(asked.at(-1)).toMatchObject({ url, headers: { 'x-api-token': 'token-secret-1' } })
  })

  test('has a page whose options take the time of those who open it', async () => {
    const choices = Array.from({ length: 1500 }, (_, index) => `${index}`)
    await register({ type: 'object', required: ['ws'], properties: { ws: { enum: choices } } })
    const path = pathIn((await put()).status.setupUrl)
    using spend = spyOn(platform.fairness.time, 'spend')
    expect((await open(path)).status).toBe(200)
    const spent = spend.mock.calls
      .filter(([owner]) => owner.startsWith('\0tickets of'))
      .map(([, milliseconds]) => milliseconds)
    expect(Math.max(...spent)).toBeGreaterThan(1500 * 0.001)
  })

  test('is not changed by what the schema refuses: the form comes again, without secrets', async () => {
    const path = pathIn((await put()).status.setupUrl)
    const rows: [fields: Record<string, string>, problem: string][] = [
      [{ 'X-Api-Token': 'secret' }, 'Workspace: is missing'],
      [{ ...good, 'X-Api-Token': '~ab~' }, 'X-Api-Token: must not have fewer than 5 characters'],
      [{ ...good, rows: '101' }, 'rows: must be &lt;= 100'],
      [{ ...good, rows: '1.5' }, 'rows: must be integer'],
      [{ ...good, rows: 'many' }, 'rows: must be integer'],
      [{ ...good, region: 'mars' }, 'region: must be one of'],
      [{ ...good, 'X-Api-Token': 'line\nbreak' }, 'X-Api-Token: must be a header value'],
      [{ ...good, ws: 'x'.repeat(3000) }, 'The values are too long'],
    ]
    for (const [fields, problem] of rows) {
      const { status, page } = await enter(path, fields)
      expect([status, page]).toEqual([400, expect.stringContaining(problem)])
      expect(page).not.toContain(fields['X-Api-Token'] ?? 'none')
      expect(page).toContain(
        `name="ws"${fields['ws'] === undefined ? '' : ` value="${fields['ws'].replace('&', '&amp;')}"`} required`,
      )
    }
    expect(asked).toEqual([])
    expect((await read()).status.state).toBe('input_required')
  })

  for (const [when, isSlow] of [
    ['its form arrives', true],
    ['the server is asked', false],
  ] as const)
    test(`keeps nothing if the key that made its link is revoked while ${when}`, async () => {
      const path = pathIn((await put()).status.setupUrl)
      const { form = '' } = fieldsOf((await open(path)).page)
      const keyId = await keyIdOf(platform, 'ada')
      let revoked: Promise<unknown> | undefined
      const revoke = () => (revoked ??= revokeApiKey(platform.store, keyId, new Date(platform.now)))
      verdict = () => {
        if (!isSlow) revoke()
        return 200
      }
      const fields = new URLSearchParams({ form, ...good }).toString()
      const response = await platform.fetch(path, {
        method: 'POST',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: isSlow ? slowBody(fields, revoke) : fields,
      })
      await revoked
      expect([response.status, asked.length > 0]).toEqual(isSlow ? [303, false] : [409, true])
      const operator = { authorization: `Bearer ${sampleKeys.operator}` }
      const now = (await (await platform.fetch('/connect/ada/metered', { headers: operator })).json()) as Made
      expect(now.status.state).toBe('input_required')
      expect(platform.audited.filter(({ event }) => event === 'connection.changed')).toEqual([])
    })

  test('with values that are named as fields of the pages gets none of what is typed into these', async () => {
    const names = ['client_id', 'client_secret', 'end', 'again', 'register', 'client', 'values']
    const properties = Object.fromEntries(names.map((name) => [name, { type: 'string', 'x-from': { query: name } }]))
    await register({ type: 'object', properties: { ...properties, ws: { type: 'string' } }, required: ['ws'] })
    const path = pathIn((await put()).status.setupUrl)
    const { page } = await open(path)
    for (const name of names) expect([name, page.includes(`name="${name}"`)]).toEqual([name, false])
    const fields = { ws: 'acme', client_secret: 'for the authorization server', 'value client_id': 'mine' }
    expect((await enter(path, fields)).status).toBe(200)
    const urls = asked.map(({ url }) => url).join(' ')
    expect(urls).toContain('client_id=mine')
    expect(urls).not.toContain('authorization')
    // Nothing is due any more: what is sent to the page of a client is no value either.
    asked = []
    await enter(path, { client_id: 'typed', client_secret: 'for the authorization server' })
    expect(asked.map(({ url }) => url).join(' ')).not.toMatch(/typed|authorization/)
  })

  test('keeps what the server refuses, and lets a person try again', async () => {
    const path = pathIn((await put()).status.setupUrl)
    verdict = () => 500
    const broken = await enter(path, good)
    expect([broken.status, broken.page]).toEqual([200, expect.stringContaining('it answered 500')])
    expect(broken.page).not.toContain('token-secret')
    expect((await read()).status.state).toBe('error')
    verdict = ({ url }) => (url.includes('rows=20') ? 200 : 500)
    expect((await enter(path, good)).page).toContain('<h1>Connected</h1>')
    // The ticket has done its work: who still has it must not replace values that work.
    expect((await platform.fetch(path)).status).toBe(303)
  })

  test('asks for a sign-in after the values, where the server wants both', async () => {
    verdict = () => 401
    const path = pathIn((await put()).status.setupUrl)
    const { page } = await enter(path, good)
    expect(page).toContain('<h1>Now sign in</h1>')
    // Or a value was wrong, and is entered anew.
    expect((await open(path)).page).toContain('value="change">Change the values')
    const again = await enter(path, { values: 'change' })
    expect([again.status, again.page]).toEqual([200, expect.stringContaining('name="X-Api-Token"')])
    expect((await enter(path, { ...good, ws: 'other' })).page).toContain('<h1>Now sign in</h1>')
    expect(asked.at(-1)?.url).toContain('ws=other')
    servers.resource['resource'] = mcpUrl
    const begun = await enter(path, {})
    expect([begun.status, begun.page]).toEqual([200, expect.stringContaining(`href="${issuer}/authorize?`)])
    expect(asked.at(-1)?.url).toStartWith(`${mcpUrl}?ws=`)
  })

  test('whose value is an authorization header says that it is refused, and asks again', async () => {
    await register({
      type: 'object',
      properties: { key: { type: 'string', 'x-from': { header: 'Authorization' } } },
      required: ['key'],
    })
    verdict = ({ headers: sent }) => (sent['authorization'] === 'Bearer right-key' ? 200 : 401)
    const path = pathIn((await put()).status.setupUrl)
    const wrong = await enter(path, { Authorization: 'Bearer wrong-key' })
    expect([wrong.status, wrong.page]).toEqual([200, expect.stringContaining('The server refuses these values')])
    expect(wrong.page).not.toContain('wrong-key')
    expect((await read()).status).toEqual({ state: 'auth_required' })
    expect((await enter(path, { Authorization: 'Bearer right-key' })).page).toContain('<h1>Connected</h1>')
  })

  test('takes them from PUT as well: headers, and the URL with its query', async () => {
    await put()
    expect((await put({ headers: { 'x-api-token': 'a' } })).status).toMatchObject({
      missing: { headers: [], query: ['ws'] },
    })
    expect(asked).toEqual([])
    const set = await put({ mcpUrl: `${mcpUrl}?ws=b` })
    expect([set.status.state, set.mcpUrl]).toEqual(['connected', `${mcpUrl}?ws=b`])
    // The default of a required value goes with them.
    expect(asked[0]).toMatchObject({ url: `${mcpUrl}?ws=b&rows=20`, headers: { 'x-api-token': 'a' } })
    expect((await put({ headers: {} })).status.state).toBe('input_required')
  })

  test('with the headers of the connection, which win over those entered', async () => {
    await put({ server: 'ada/metered', headers: { 'X-API-TOKEN': 'own' } })
    const cookie = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
    await enter('/connect/ada/metered/setup', good, cookie)
    expect(asked[0]?.headers).toMatchObject({ 'x-api-token': 'own' })
  })

  test('of a server that no form can configure is not made', async () => {
    const many = Object.fromEntries(Array.from({ length: inputFieldsMax + 1 }, (_, i) => [`field${i}`, {}]))
    for (const [schema, problem] of [
      [{ properties: { a: { type: 'array' } }, required: ['a'] }, 'requires "a", which is an object or a list'],
      [{ properties: { a: { 'x-from': { header: 'Host' } } } }, 'sends "Host", which is not a header'],
      [{ properties: { a: { 'x-from': { header: 'a b' } } } }, 'sends "a b", which is not a header'],
      [{ properties: { a: { 'x-from': { query: 'B' } }, b: {} } }, 'two fields with the name "b"'],
      [{ properties: { form: {} } }, 'two fields with the name "form"'],
      [{ properties: many }, `more than ${inputFieldsMax} fields`],
      // Each page would show them.
      [{ properties: { a: { enum: ['<'.repeat(configSchemaCharsMax)] } } }, `more than ${configSchemaCharsMax} char`],
      [{ properties: { a: { default: '<'.repeat(configSchemaCharsMax) } } }, `more than ${configSchemaCharsMax} char`],
    ] as const) {
      await register(schema)
      expect(await put()).toMatchObject({ message: expect.stringContaining(problem) })
    }
    // As a mock it needs no values.
    expect((await put({ server: 'ada/metered', mock: { enabled: true } })).status.state).toBe('connected')
  })
})

test('values are kept sealed, and are in no answer, log, audit or other connection', async () => {
  const path = pathIn((await put()).status.setupUrl)
  await enter(path, good)
  await call()
  const stored = await platform.store.range({
    gte: prefixOf('connectionPrivate'),
    lt: Buffer.of((prefixOf('connectionPrivate')[0] ?? 0) + 1),
    limit: 1000,
  })
  const texts = [
    ...stored.entries.map(({ value }) => Buffer.from(value).toString()),
    ...platform.logged,
    ...platform.audited.map((line) => JSON.stringify(line)),
    JSON.stringify(await read()),
    (await open('/connect/ada/metered/setup', cookieIn(await post(platform, '/signin', { key: sampleKeys.ada })))).page,
  ]
  for (const text of texts) expect(text).not.toContain('token-secret')
  expect(JSON.stringify(platform.audited)).toContain('"what":"input"')
})

test('a form of another page, or of none, enters nothing', async () => {
  const path = pathIn((await put()).status.setupUrl)
  expect((await post(platform, path, { form: 'wrong', ...good })).status).toBe(403)
  expect((await post(platform, path, good)).status).toBe(403)
  expect(asked).toEqual([])
})

test('a connection of no registered server is asked for what its status names', async () => {
  await put({ mcpUrl })
  const key = Buffer.concat([Buffer.from('c'), Buffer.from('ada\0metered')])
  const bytes = await platform.store.get(key)
  const record = JSON.parse(Buffer.from(bytes ?? '').toString())
  record.status = {
    state: 'input_required',
    http: { headers: { 'X-Team': { label: 'Team', required: true } }, query: { page: { label: 'Page' } } },
    missing: { headers: ['X-Team'], query: [] },
  }
  await platform.store.commit({ puts: [{ key, value: Buffer.from(JSON.stringify(record)) }] })
  asked = []
  const cookie = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
  const path = '/connect/ada/metered/setup'
  expect((await open(path, cookie)).page).toContain('Team\n<input type="text" name="X-Team" required')
  expect((await enter(path, { page: '1' }, cookie)).status).toBe(400)
  expect((await enter(path, { 'X-Team': 'blue' }, cookie)).page).toContain('<h1>Connected</h1>')
  expect(asked[0]).toMatchObject({ url: mcpUrl, headers: { 'x-team': 'blue' } })
})
