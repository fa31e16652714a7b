/** Signing in to the server behind a connection (contract, 14), in process. */

import { beforeEach, describe, expect, test } from 'bun:test'
import { revokeApiKey } from '../../../src/auth/api-key.ts'
import { revokeToken } from '../../../src/auth/revocation.ts'
import { ticketHolder } from '../../../src/fairness/owner.ts'
import { sweepUpstreamClients, upstreamClientsMax } from '../../../src/features/upstream-sign-in/oauth-client.ts'
import { refreshClaimMs, refreshRetryMs } from '../../../src/features/upstream-sign-in/token-refresh.ts'
import { attemptSeconds, burstSeconds, ownerSetupsPerMinuteMax, setupTicketSeconds } from '../../../src/limits.ts'
import { equalBytes } from '../../../src/storage/bytes.ts'
import { connectionChange, findConnection, type StoredConnection } from '../../../src/storage/connections.ts'
import { directoryVersionKey, keyOf, prefixOf, prefixRange } from '../../../src/storage/keys.ts'
import type { Store } from '../../../src/storage/store.ts'
import type { UpstreamRequest } from '../../../src/upstream/upstream.ts'
import { mintToken } from '../../api/cases.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { oneHash } from '../../support/one-hash.ts'
import { cookieIn, fieldsOf, post, slowBody } from '../../support/pages.ts'
import {
  issuer as base,
  createTestPlatform,
  everythingKept,
  keyIdOf,
  type TestPlatform,
} from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { otherSpellings } from '../../support/spellings.ts'
import { until } from '../../support/until.ts'
import { createServers, issuer, mcpUrl, redirectUri, type Servers } from './world.ts'

let servers: Servers
let platform: TestPlatform

beforeEach(async () => {
  servers = createServers()
  platform = await createTestPlatform({ upstream: servers.upstream })
})

const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
type Answered = { status: { state: string; setupUrl?: string; authorizationUrl?: string } } & Record<string, unknown>

async function put(body: object = { mcpUrl }, id = 'guarded'): Promise<Answered> {
  const response = await platform.fetch(`/connect/ada/${id}`, { method: 'PUT', headers, body: JSON.stringify(body) })
  return (await response.json()) as Answered
}
const read = async () => (await (await platform.fetch('/connect/ada/guarded', { headers })).json()) as Answered
const pathIn = (url: string | undefined) => (url ?? 'none').slice(base.length)
const setupPath = '/connect/ada/guarded/setup'

interface Begun {
  readonly status: number
  readonly page: string
  readonly cookie: string
  /** The authorization endpoint, as the page links to it. */
  readonly url: URL
}

/** Opens the setup page at this path, and sends its form. */
async function begin(path: string, cookie = '', fields: Record<string, string> = {}): Promise<Begun> {
  const { form = '' } = fieldsOf(await (await platform.fetch(path, { headers: { cookie } })).text())
  const response = await post(platform, path, { form, ...fields }, cookie)
  const page = await response.text()
  const href = /id="continue" href="([^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&') ?? 'none:'
  return { status: response.status, page, cookie: cookieIn(response), url: new URL(href) }
}

const comeBack = (query: URLSearchParams | string, cookie: string) =>
  platform.fetch(`/oauth/callback?${query}`, { headers: { cookie } })

/** The whole way, with the ticket of a new connection. */
async function signIn(body: object = { mcpUrl }): Promise<Response> {
  const made = await put(body)
  const begun = await begin(pathIn(made.status.setupUrl))
  return comeBack(servers.authorize(begun.url), begun.cookie)
}

async function call(credential: string = sampleKeys.ada) {
  const response = await platform.fetch('/connect/ada/guarded/mcp', {
    method: 'POST',
    headers: { ...headers, authorization: `Bearer ${credential}` },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a', arguments: {} } }),
  })
  return { status: response.status, text: await response.text(), challenge: response.headers.get('www-authenticate') }
}

describe('a connection whose server wants a sign-in', () => {
  test('has links to set it up: with a ticket in the answer that made it, bare elsewhere', async () => {
    const made = await put()
    expect(made.status.state).toBe('auth_required')
    expect(made.status.setupUrl).toStartWith(`${base}${setupPath}?ticket=`)
    expect(made.status.authorizationUrl).toBe(made.status.setupUrl as string)
    expect((await read()).status).toEqual({
      state: 'auth_required',
      setupUrl: `${base}${setupPath}`,
      authorizationUrl: `${base}${setupPath}`,
    })
    expect(await call()).toMatchObject({
      status: 401,
      text: expect.stringContaining(`"data":{"authorizationUrl":"${base}${setupPath}"}`),
    })
    for (const path of ['.tools', '.tools/a']) {
      const told = await platform.fetch(`/connect/ada/guarded/${path}`, {
        method: path === '.tools' ? 'GET' : 'POST',
        headers: { ...headers, authorization: `Bearer ${sampleKeys.ada}` },
      })
      expect([told.status, await told.json()]).toEqual([
        401,
        {
          error: 'upstream_unauthorized',
          message: 'The MCP server requires a sign-in: open http://localhost:8787/connect/ada/guarded/setup',
          setupUrl: `${base}${setupPath}`,
        },
      ])
    }
  })

  test('is signed in by a person with the ticket alone, and then called with the token', async () => {
    const made = await put()
    const path = pathIn(made.status.setupUrl)
    const opened = await (await platform.fetch(path)).text()
    for (const text of ['<dd>ada</dd>', '<dd>guarded</dd>', '<dd>mcp.example.com</dd>']) expect(opened).toContain(text)
    const before = servers.seen.length
    await platform.fetch(path)
    expect(servers.seen.length).toBe(before)
    const begun = await begin(path)
    for (const text of [mcpUrl, issuer, 'read write', 'localhost:8787']) expect(begun.page).toContain(text)
    const { searchParams } = begun.url
    expect(begun.url.href).toStartWith(`${issuer}/authorize?`)
    expect(Object.fromEntries(searchParams)).toMatchObject({
      response_type: 'code',
      client_id: 'client-1',
      redirect_uri: redirectUri,
      code_challenge_method: 'S256',
      resource: mcpUrl,
      scope: 'read write',
    })
    expect(servers.registered).toEqual([
      {
        client_name: 'postern',
        client_uri: base,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        application_type: 'native',
        token_endpoint_auth_method: 'none',
      },
    ])
    const back = await comeBack(servers.authorize(begun.url), begun.cookie)
    const done = '/oauth/done?namespace=ada&connectionId=guarded'
    expect([back.status, back.headers.get('location')]).toEqual([303, `${base}${done}`])
    const shown = await platform.fetch(done)
    expect([shown.status, await shown.text()]).toEqual([
      200,
      expect.stringMatching(/<dd>ada<\/dd>[^]*<dd>guarded<\/dd>/),
    ])
    // A link that somebody else made says no more than that.
    for (const query of ['', '?namespace=ada&connectionId=%3Cb%3E', '?namespace=Your%20bank&connectionId=x'])
      expect(await (await platform.fetch(`/oauth/done${query}`)).text()).not.toContain('<dd>')
    expect(await read()).toMatchObject({ status: { state: 'connected' }, serverInfo: { name: 'guarded' } })
    const called = await call()
    expect([called.status, called.text]).toEqual([200, expect.stringContaining('done with access-secret-')])
    expect(platform.audited).toContainEqual({
      event: 'upstream.signed_in',
      namespace: 'ada',
      connectionId: 'guarded',
      issuer,
      linkKeyId: await keyIdOf(platform, 'ada'),
    })
  })

  test('is signed in by a person with a browser session too, who may write it', async () => {
    await put()
    const away = await platform.fetch(setupPath)
    expect([away.status, away.headers.get('location')]).toEqual([
      303,
      `${base}/signin?next=%2Fconnect%2Fada%2Fguarded%2Fsetup`,
    ])
    const session = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
    const begun = await begin(setupPath, session)
    const back = await comeBack(servers.authorize(begun.url), begun.cookie)
    expect(back.status).toBe(303)
    const page = await (await platform.fetch(setupPath, { headers: { cookie: session } })).text()
    expect(page).toContain('This server is connected')
    expect(page).toContain(issuer)
    const stranger = cookieIn(await post(platform, '/signin', { key: sampleKeys.priya }))
    expect((await platform.fetch(setupPath, { headers: { cookie: stranger } })).status).toBe(404)
  })

  test('answers alike without ticket and session, whatever exists', async () => {
    await put()
    for (const path of [setupPath, '/connect/nowhere/none/setup', `${setupPath}?ticket=x`]) {
      expect((await platform.fetch(path)).status).toBe(303)
    }
  })

  test('is not for anybody to sign in where it sends an authorization header of its own', async () => {
    const made = await put({ mcpUrl, headers: { Authorization: 'Bearer own' } })
    expect(made.status).toEqual({ state: 'auth_required' })
    const session = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
    expect((await platform.fetch(setupPath, { headers: { cookie: session } })).status).toBe(409)
  })

  test('cannot be signed in over plain HTTP, and the page says why', async () => {
    platform = await createTestPlatform({ upstream: servers.upstream, issuer: 'http://mcp.internal' })
    const made = await put()
    const page = await platform.fetch((made.status.setupUrl ?? '').slice('http://mcp.internal'.length))
    expect([page.status, await page.text()]).toEqual([409, expect.stringContaining('--base-url')])
  })
})

describe('a ticket', () => {
  test('is good for an hour, for its connection as it was made, until somebody has signed in', async () => {
    const path = pathIn((await put()).status.setupUrl)
    const isGood = async (at = path) => (await platform.fetch(at)).status === 200
    expect(await isGood(path.replace('guarded', 'other'))).toBe(false)
    platform.now += setupTicketSeconds * 1000 - 1000
    expect(await isGood()).toBe(true)
    platform.now += 1000
    expect(await isGood()).toBe(false)
    expect(await isGood(pathIn((await put()).status.setupUrl))).toBe(true)
  })

  test('has one spelling', async () => {
    const [path = '', ticket = ''] = pathIn((await put()).status.setupUrl).split('?ticket=')
    const others = otherSpellings(ticket)
    expect(others.length).toBeGreaterThan(1)
    for (const other of others) {
      const { status } = await platform.fetch(`${path}?ticket=${encodeURIComponent(other)}`)
      expect({ other, status }).toEqual({ other, status: 303 })
    }
  })

  test('is void once it was used', async () => {
    const path = pathIn((await put()).status.setupUrl)
    const begun = await begin(path)
    await comeBack(servers.authorize(begun.url), begun.cookie)
    expect((await platform.fetch(path)).status).toBe(303)
  })

  test('is void once the metadata changes, by which its maker may see the connection no more', async () => {
    const path = pathIn((await put({ mcpUrl, metadata: { team: 'x', tier: 1 } })).status.setupUrl)
    const begun = await begin(path)
    await put({ mcpUrl, metadata: { team: 'y', tier: 1 } })
    expect((await platform.fetch(path)).status).toBe(303)
    const back = await comeBack(servers.authorize(begun.url), begun.cookie)
    expect([back.status, (await read()).status.state]).toEqual([400, 'auth_required'])
  })

  test('is void when its maker has lost the right, and so is a sign-in that has begun', async () => {
    const keyId = await keyIdOf(platform, 'ada')
    const token = await mintToken(platform.fetch, sampleKeys.ada)
    const { jti, exp } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    const withToken = { ...headers, authorization: `Bearer ${token}` }
    const body = JSON.stringify({ mcpUrl })
    const made = await platform.fetch('/connect/ada/guarded', { method: 'PUT', headers: withToken, body })
    const path = pathIn(((await made.json()) as Answered).status.setupUrl)
    const begun = await begin(path)
    await revokeToken(platform.store, jti, { exp, nowSeconds: platform.now / 1000 })
    expect((await platform.fetch(path)).status).toBe(303)
    const back = await comeBack(servers.authorize(begun.url), begun.cookie)
    expect([back.status, (await read()).status.state]).toEqual([400, 'auth_required'])
    // One of the key itself is good until that is revoked.
    const other = pathIn((await put({ mcpUrl }, 'other')).status.setupUrl)
    expect((await platform.fetch(other)).status).toBe(200)
    await revokeApiKey(platform.store, keyId, new Date(platform.now))
    expect((await platform.fetch(other)).status).toBe(303)
  })

  test('is void, as a sign-in that has begun, once the connection leads to another server', async () => {
    const path = pathIn((await put()).status.setupUrl)
    const begun = await begin(path)
    // As an import does, which knows nothing of setups.
    const stored = (await findConnection(platform.store, 'ada', 'guarded')) as StoredConnection
    const moved = { ...stored.connection, mcpUrl: 'https://elsewhere.example.com/mcp' }
    const ref = { namespace: 'ada', connectionId: 'guarded' }
    await platform.store.commit(connectionChange(ref, stored, { ...stored, connection: moved }))
    expect((await platform.fetch(path)).status).toBe(303)
    const asked = servers.forms.length
    const back = await comeBack(servers.authorize(begun.url), begun.cookie)
    expect([back.status, await back.text()]).toEqual([400, expect.stringContaining('has changed since')])
    expect(servers.forms).toHaveLength(asked)
  })

  test('ends the tokens that nobody keeps: the connection goes while its server is asked', async () => {
    const begun = await begin(pathIn((await put()).status.setupUrl))
    servers.instead[mcpUrl] = async () => {
      await platform.fetch('/connect/ada/guarded', { method: 'DELETE', headers })
      return { status: 500 }
    }
    expect((await comeBack(servers.authorize(begun.url), begun.cookie)).status).toBeGreaterThanOrEqual(400)
    await until(() => servers.forms.some(({ url }) => url.endsWith('/revoke')))
  })

  test('is void for another connection of the same name', async () => {
    const path = pathIn((await put()).status.setupUrl)
    await platform.fetch('/connect/ada/guarded', { method: 'DELETE', headers })
    platform.now += 1000
    await put()
    expect((await platform.fetch(path)).status).toBe(303)
  })
})

describe('the challenge is looked for', () => {
  const challenge = `Bearer resource_metadata="https://mcp.example.com/elsewhere", scope="asked for"`
  const wanting = { status: 401, headers: { 'www-authenticate': challenge } }
  const greeted = (id: unknown) => ({
    headers: { 'mcp-session-id': 'open' },
    json: { jsonrpc: '2.0', id, result: { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: {} } },
  })
  const kinds: Record<string, (method: string, sent: UpstreamRequest) => object> = {
    'in the first greeting': () => wanting,
    'in that of the stateless revision, where the first is refused': (method, { headers: sent }) =>
      method !== 'initialize' && sent['mcp-protocol-version'] === '2026-07-28' && sent['mcp-method'] === method
        ? wanting
        : { status: 400 },
    'in a list of tools, where anybody may greet': (method, { headers: sent }) =>
      method === 'initialize' ? greeted(1) : sent['mcp-session-id'] === 'open' ? wanting : { status: 404 },
    'in a list of tools of the stateless revision': (method, { headers: sent }) =>
      method === 'initialize'
        ? { status: 400 }
        : method === 'tools/list' && sent['mcp-method'] === method
          ? wanting
          : {},
  }
  for (const [where, answer] of Object.entries(kinds)) {
    test(where, async () => {
      const made = await put()
      servers.instead[mcpUrl] = (request) =>
        answer((JSON.parse(Buffer.from(request.body ?? '').toString()) as { method: string }).method, request)
      servers.instead['https://mcp.example.com/elsewhere'] = () => ({ json: servers.resource })
      const { url } = await begin(pathIn(made.status.setupUrl))
      expect(url.searchParams.get('scope')).toBe('asked for')
      expect(servers.seen).toContain('GET https://mcp.example.com/elsewhere')
    })
  }
})

describe('where the authorization server has forgotten the client that it registered', () => {
  test('a person registers it again', async () => {
    const made = await put()
    const path = pathIn(made.status.setupUrl)
    const first = await begin(path)
    expect(first.page).toContain('<button name="register" value="again">')
    expect((await begin(path)).url.searchParams.get('client_id')).toBe('client-1')
    const again = await begin(path, '', { register: 'again' })
    expect(again.url.searchParams.get('client_id')).toBe('client-2')
    expect((await comeBack(servers.authorize(again.url), again.cookie)).status).toBe(303)
    expect(
      (await begin(setupPath, cookieIn(await post(platform, '/signin', { key: sampleKeys.ada })), { again: '1' })).url
        .href,
    ).toContain('client-2')
  })

  test('that is not offered for a client that was given, and does nothing to it', async () => {
    const made = await put({ mcpUrl, oauth: { clientId: 'mine', scope: 'only' } })
    const path = pathIn(made.status.setupUrl)
    expect((await begin(path)).page).not.toContain('name="register"')
    const { url } = await begin(path, '', { register: 'again' })
    expect([url.searchParams.get('client_id'), url.searchParams.get('scope')]).toEqual(['mine', 'only'])
    expect(servers.registered).toEqual([])
  })

  const other = async () => pathIn((await put({ mcpUrl }, 'other')).status.setupUrl)
  const clientOf = async (path: string, fields = {}) =>
    (await begin(path, '', fields)).url.searchParams.get('client_id')

  test('the client of all stays where no other one is given', async () => {
    const path = pathIn((await put()).status.setupUrl)
    expect(await clientOf(path)).toBe('client-1')
    servers.instead[`${issuer}/register`] = () => ({ status: 429, json: { error: 'slow_down' } })
    expect((await begin(path, '', { register: 'again' })).status).toBe(502)
    expect(await clientOf(path)).toBe('client-1')
    expect(await clientOf(await other())).toBe('client-1')
  })

  test('it is registered again once an hour, whoever asks and whatever came of it', async () => {
    const path = pathIn((await put()).status.setupUrl)
    await begin(path)
    servers.instead[`${issuer}/register`] = () => ({ status: 500 })
    expect((await begin(path, '', { register: 'again' })).status).toBe(502)
    delete servers.instead[`${issuer}/register`]
    const refused = await begin(await other(), '', { register: 'again' })
    expect([refused.status, refused.page]).toEqual([429, expect.stringContaining('less than an hour ago')])
    expect(servers.registered).toHaveLength(1)
    platform.now += 60 * 60 * 1000
    expect(await clientOf(pathIn((await put()).status.setupUrl), { register: 'again' })).toBe('client-2')
  })

  test('a client that was replaced in the meantime takes nothing along', async () => {
    const path = pathIn((await put()).status.setupUrl)
    const old = await begin(path)
    expect(await clientOf(await other(), { register: 'again' })).toBe('client-2')
    servers.instead[`${issuer}/token`] = () => ({ status: 401, json: { error: 'invalid_client' } })
    expect((await comeBack(servers.authorize(old.url), old.cookie)).status).toBe(502)
    expect(await clientOf(await other())).toBe('client-2')
  })

  test('two that meet a server at once ask as one client', async () => {
    const [one, two] = [pathIn((await put()).status.setupUrl), await other()]
    const all = await Promise.all([clientOf(one), clientOf(two)])
    expect(new Set([...all, await clientOf(one)]).size).toBe(1)
  })

  test('with a secret that is too long to be kept is refused', async () => {
    const register = (secret: string) => () => ({ status: 201, json: { client_id: 'new', client_secret: secret } })
    for (const [length, status] of [
      [2001, 502],
      [2000, 200],
    ] as const) {
      servers.instead[`${issuer}/register`] = register('s'.repeat(length))
      expect((await begin(await other())).status).toBe(status)
    }
  })

  test('of clients past their bound, the oldest are forgotten', async () => {
    expect(await clientOf(await other())).toBe('client-1')
    const day = 24 * 60 * 60
    const now = Math.floor(platform.now / 1000)
    const clients = Array.from({ length: upstreamClientsMax + 700 }, (_, i) => ({
      key: keyOf('upstreamClient', String(i)),
      value: Buffer.from(JSON.stringify({ madeAt: now - day - (i < 700 ? 2 : 1), sealed: '' })),
    }))
    await platform.store.commit({ puts: clients })
    await sweepUpstreamClients(platform.store)
    const { gte, lt } = prefixRange(prefixOf('upstreamClient'))
    const { keys } = await platform.store.keys({ gte, lt, limit: 20_000 })
    expect(keys.length).toBe(upstreamClientsMax)
    expect(await clientOf(await other())).toBe('client-1')
    const left = new Set(keys.map((key) => Buffer.from(key).toString('hex')))
    const isLeft = (i: number) => left.has(Buffer.from(keyOf('upstreamClient', String(i))).toString('hex'))
    expect([isLeft(0), isLeft(699), isLeft(701), isLeft(upstreamClientsMax + 699)]).toEqual([false, false, true, true])
  })
})

test('the form of a connection’s setup page is limited, and those of others are not', async () => {
  const made = await put()
  const path = pathIn(made.status.setupUrl)
  const { form = '' } = fieldsOf(await (await platform.fetch(path)).text())
  const statuses = []
  for (let i = 0; i <= burstSeconds; i += 1) statuses.push((await post(platform, path, { form })).status)
  expect(statuses).toEqual([...Array(burstSeconds).fill(200), 429])
  expect((await begin(pathIn((await put({ mcpUrl }, 'other')).status.setupUrl))).status).toBe(200)
  platform.now += 60_000
  expect((await post(platform, path, { form })).status).toBe(200)
})

describe('a write of the connection', () => {
  test('with an authorization header of its own ends a sign-in that has begun: no token is asked for', async () => {
    const begun = await begin(pathIn((await put()).status.setupUrl))
    await put({ headers: { Authorization: 'Bearer own' } })
    const back = await comeBack(servers.authorize(begun.url), begun.cookie)
    expect([back.status, servers.forms]).toEqual([400, []])
  })

  test('with the same client signs nobody out; with another it does', async () => {
    const oauth = { clientId: 'mine', clientSecret: 's' }
    await signIn({ mcpUrl, oauth })
    expect((await put({ oauth })).status.state).toBe('connected')
    expect((await put({ oauth: { ...oauth, clientSecret: 'other' } })).status.state).toBe('auth_required')
    expect(platform.audited.filter(({ event }) => event === 'upstream.signed_out')).toHaveLength(1)
  })

  test('that connects it ends the tickets of before', async () => {
    const path = pathIn((await put()).status.setupUrl)
    expect((await platform.fetch(path)).status).toBe(200)
    servers.good.add('own')
    expect((await put({ headers: { Authorization: 'Bearer own' } })).status.state).toBe('connected')
    expect((await platform.fetch(path)).status).toBe(303)
  })

  test('leaves it wanting the scopes that were asked for', async () => {
    await signIn()
    servers.instead[mcpUrl] = () => ({
      status: 403,
      headers: { 'www-authenticate': 'Basic realm="x, y", Bearer error="insufficient_scope", scope="more"' },
    })
    await call()
    delete servers.instead[mcpUrl]
    expect((await put({ headers: { 'x-a': '1' } })).status.state).toBe('auth_required')
    const session = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
    expect((await begin(setupPath, session)).url.searchParams.get('scope')).toBe('read write more')
  })
})

test('more scopes are noted when they are asked for after a renewed token too', async () => {
  await signIn()
  const former = [...servers.good][0]
  servers.good.clear()
  servers.instead[mcpUrl] = ({ headers: sent }) =>
    sent['authorization'] === `Bearer ${former}`
      ? { status: 401 }
      : { status: 403, headers: { 'www-authenticate': 'Bearer error="insufficient_scope", scope="more"' } }
  await call()
  expect((await read()).status.state).toBe('auth_required')
  const session = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
  expect((await begin(setupPath, session)).url.searchParams.get('scope')).toBe('read write more')
})

test('a sign-in on another host than the authorization server’s own is warned of: its answer would be sent to that one', async () => {
  for (const [endpoint, warns] of [
    ['https://honest.example.com/authorize', true],
    [`${issuer}/authorize`, false],
  ] as const) {
    servers.metadata['authorization_endpoint'] = endpoint
    const { page } = await begin(pathIn((await put()).status.setupUrl))
    expect(
      page.includes(
        'The server sends you to honest.example.com, but as.example.com gets the access that you allow there',
      ),
    ).toBe(warns)
    await platform.fetch('/connect/ada/guarded', { method: 'DELETE', headers })
  }
})

test('an authorization server on our own host gets no session’s cookie: they end before the browser goes there', async () => {
  const own = 'https://postern.example.com'
  platform = await createTestPlatform({ upstream: servers.upstream, issuer: own })
  for (const [endpoint, ends] of [
    [`${own}:9443/authorize`, true],
    ['https://as.example.com/authorize', false],
  ] as const) {
    servers.metadata['authorization_endpoint'] = endpoint
    const signedIn = await post(platform, '/signin', { key: sampleKeys.ada })
    const cookie = signedIn.headers
      .getSetCookie()
      .map((one) => one.split(';')[0])
      .join('; ')
    await put()
    const { form = '' } = fieldsOf(await (await platform.fetch(setupPath, { headers: { cookie } })).text())
    const page = await post(platform, setupPath, { form }, cookie)
    expect(await page.text()).toContain(`href="${endpoint}?`)
    const forgotten = page.headers.getSetCookie().filter((one) => one.includes('Max-Age=0'))
    expect(forgotten.map((one) => one.split('=')[0])).toEqual(ends ? ['__Host-postern', '__Host-postern_console'] : [])
    const headers = { cookie, 'sec-fetch-site': 'same-origin' }
    expect((await platform.fetch('/me', { headers })).status).toBe(ends ? 401 : 200)
  }
})

test('the form of a page that is signed in signs out, whatever else it says', async () => {
  await signIn()
  const session = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
  expect((await begin(setupPath, session)).page).toContain('<h1>Signed out</h1>')
  expect((await read()).status.state).toBe('auth_required')
})

test('nobody signs out whose own session has ended when the form was read', async () => {
  const memory = openMemoryStore()
  const reads: (() => Promise<unknown>)[] = []
  const store: Store = {
    ...memory,
    async get(key) {
      if (equalBytes(key, directoryVersionKey)) await reads.shift()?.()
      return memory.get(key)
    },
  }
  platform = await createTestPlatform({ upstream: servers.upstream, store })
  await signIn()
  const cookie = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
  const { form = '' } = fieldsOf(await (await platform.fetch(setupPath, { headers: { cookie } })).text())
  const keyId = await keyIdOf(platform, 'ada')
  // The session is looked for twice more when the form has been read, and then the owner of the connection.
  const whenRead = async () =>
    void reads.push(
      async () => {},
      async () => {},
      () => revokeApiKey(memory, keyId, new Date(0)),
    )
  const answer = await platform.fetch(setupPath, {
    method: 'POST',
    headers: { cookie, 'content-type': 'application/x-www-form-urlencoded', origin: base },
    body: slowBody(new URLSearchParams({ form, end: '1' }).toString(), whenRead),
  })
  expect([answer.status, reads.length]).toEqual([409, 0])
  const stored = await findConnection(memory, 'ada', 'guarded')
  expect(stored?.privatePart.tokens).toBeDefined()
})

test('a session with the server ends with the sign-in that it was opened with', async () => {
  await signIn()
  let opened = 0
  const used: (string | undefined)[] = []
  servers.instead[mcpUrl] = ({ body, headers: sent }) => {
    const { method, id } = JSON.parse(Buffer.from(body ?? '').toString()) as { method: string; id?: number }
    if (method === 'initialize') {
      opened += 1
      const result = { protocolVersion: '2025-11-25', capabilities: {}, serverInfo: {} }
      return { headers: { 'mcp-session-id': `session-${opened}` }, json: { jsonrpc: '2.0', id, result } }
    }
    if (method === 'tools/call') used.push(sent['mcp-session-id'])
    return id === undefined ? { status: 202 } : { json: { jsonrpc: '2.0', id, result: {} } }
  }
  const call = () =>
    platform.fetch('/connect/ada/guarded/mcp', {
      method: 'POST',
      headers: { ...headers, accept: 'application/json, text/event-stream' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'x', arguments: {} } }),
    })
  await call()
  await call()
  const session = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
  expect((await begin(setupPath, session)).page).toContain('<h1>Signed out</h1>')
  await call()
  expect(used).toEqual(['session-1', 'session-1', 'session-2'])
})

describe('an attempt', () => {
  const kept = async () => {
    const { gte, lt } = prefixRange(prefixOf('expiring'))
    const { entries } = await platform.store.range({ gte, lt, limit: 1000 })
    return { records: entries.length, bytes: entries.reduce((sum, { value }) => sum + value.length, 0) }
  }

  test('keeps little, whatever the authorization server says of itself', async () => {
    const much = Array.from({ length: 50 }, (_, i) => `${i}${'x'.repeat(990)}`)
    servers.metadata['code_challenge_methods_supported'] = ['S256', ...much]
    const path = pathIn((await put()).status.setupUrl)
    const begun = await begin(path)
    expect(await kept()).toMatchObject({ records: 1, bytes: expect.any(Number) })
    expect((await kept()).bytes).toBeLessThan(2000)
    expect((await comeBack(servers.authorize(begun.url), begun.cookie)).status).toBe(303)
    // Nor do the tokens that come of it.
    const tokens = (await findConnection(platform.store, 'ada', 'guarded'))?.privatePart.tokens ?? ''
    expect([tokens.length > 100, tokens.length < 2000]).toEqual([true, true])
  })

  test('is not begun for more scopes than a URL can carry', async () => {
    servers.resource['scopes_supported'] = Array.from({ length: 900 }, (_, i) => `scope:${i}:abc`)
    const begun = await begin(pathIn((await put()).status.setupUrl))
    expect([begun.status, begun.page]).toEqual([502, expect.stringContaining('asks for too many scopes')])
  })
})

describe('a callback is refused, asks for no token, and shows nothing of itself', () => {
  const rows: Record<
    string,
    (query: URLSearchParams, begun: Begun) => { query?: URLSearchParams | string; cookie?: string }
  > = {
    'without a state': (query) => {
      query.delete('state')
      return { query }
    },
    'with another state': (query) => {
      query.set('state', `${query.get('state')}x`)
      return { query }
    },
    'without the cookie': () => ({ cookie: '' }),
    'with another cookie': () => ({ cookie: 'postern-signin=other' }),
    'with a parameter that is given twice': (query) => ({ query: `${query}&code=<other>` }),
    'from another issuer': (query) => {
      query.set('iss', 'https://evil.example.com')
      return { query }
    },
    'from the issuer in other letters': (query) => {
      query.set('iss', `${issuer}/`)
      return { query }
    },
    'without the issuer that was announced': (query) => {
      query.delete('iss')
      return { query }
    },
    'from another issuer with an error': (query) => {
      query.set('iss', 'https://evil.example.com')
      query.set('error', 'shown?')
      return { query }
    },
  }
  for (const [what, change] of Object.entries(rows)) {
    test(what, async () => {
      const begun = await begin(pathIn((await put()).status.setupUrl))
      const good = servers.authorize(begun.url)
      const { query = good, cookie = begun.cookie } = change(new URLSearchParams(good), begun)
      const refused = await comeBack(query, cookie)
      const text = await refused.text()
      expect([refused.status, servers.forms.length, (await read()).status.state]).toEqual([400, 0, 'auth_required'])
      for (const shown of ['shown?', 'evil.example.com', '<other>', 'code-']) expect(text).not.toContain(shown)
      // The attempt of the right browser is still good.
      expect((await comeBack(good, begun.cookie)).status).toBe(303)
    })
  }

  test('a second time, late, or once the connection has changed', async () => {
    const begun = await begin(pathIn((await put()).status.setupUrl))
    const query = servers.authorize(begun.url)
    expect((await comeBack(query, begun.cookie)).status).toBe(303)
    expect((await comeBack(query, begun.cookie)).status).toBe(400)
    await put({ oauth: null })
    const late = await begin(pathIn((await put({ headers: {} })).status.setupUrl))
    platform.now += attemptSeconds * 1000
    expect((await comeBack(servers.authorize(late.url), late.cookie)).status).toBe(400)
    const moved = await begin(pathIn((await put({ headers: {} })).status.setupUrl))
    await put({ oauth: { clientId: 'other' } })
    expect((await comeBack(servers.authorize(moved.url), moved.cookie)).status).toBe(400)
  })

  test('an error of the authorization server is shown as text', async () => {
    const begun = await begin(pathIn((await put()).status.setupUrl))
    const query = servers.authorize(begun.url)
    query.delete('code')
    query.set('error', 'access_denied')
    query.set('error_description', '<script>no</script>')
    const back = await comeBack(query, begun.cookie)
    const text = await back.text()
    expect([back.status, text.includes('access_denied'), text.includes('<script>')]).toEqual([400, true, false])
    expect(servers.forms).toEqual([])
  })
})

describe('what the other side does wrong is 502, and says at which step', () => {
  const setup = async () => begin(pathIn((await put()).status.setupUrl))
  const rows: Record<string, [change: () => void, text: string]> = {
    'no PKCE': [() => delete servers.metadata['code_challenge_methods_supported'], 'PKCE'],
    'PKCE without S256': [() => (servers.metadata['code_challenge_methods_supported'] = ['plain']), 'PKCE'],
    'another issuer in its metadata': [
      () => (servers.metadata['issuer'] = 'https://evil.example.com'),
      'another issuer',
    ],
    'no metadata': [
      () => (servers.instead[`${issuer}/.well-known/oauth-authorization-server`] = () => ({ status: 404 })),
      'no metadata',
    ],
    'metadata that is not JSON': [
      () => (servers.instead[`${issuer}/.well-known/oauth-authorization-server`] = () => ({ body: '<html>' })),
      'not JSON',
    ],
    'an error in place of metadata': [
      () => (servers.instead[`${issuer}/.well-known/oauth-authorization-server`] = () => ({ status: 500 })),
      'answered 500',
    ],
    'a URL with more than one': [
      () => (servers.metadata['token_endpoint'] = `${issuer}/token\u0001`),
      'is not the metadata of an authorization server',
    ],
    'URLs that are too long to keep': [
      () => {
        for (const name of ['token_endpoint', 'revocation_endpoint', 'authorization_endpoint'])
          servers.metadata[name] = `${issuer}/${name}?${'"'.repeat(3900)}`
        servers.resource['scopes_supported'] = Array.from({ length: 7 }, (_, i) => `${i}`.repeat(1000))
      },
      'too long to keep',
    ],
    'a script as authorization endpoint': [
      () => (servers.metadata['authorization_endpoint'] = 'javascript:alert(1)'),
      'must be an https URL',
    ],
    'a plain token endpoint': [
      () => (servers.metadata['token_endpoint'] = 'http://as.example.com/token'),
      'must be an https URL',
    ],
    'a plain issuer': [
      () => (servers.resource['authorization_servers'] = ['http://as.example.com']),
      'must be an https URL',
    ],
    'a server that is down': [
      () => (servers.resource['authorization_servers'] = ['https://down.example.com']),
      'cannot be reached',
    ],
    'a document about another resource': [
      () => (servers.resource['resource'] = 'https://mcp.example.com/other'),
      'another resource',
    ],
    'a document about another host': [
      () => (servers.resource['resource'] = 'https://evil.example.com/team/mcp'),
      'another resource',
    ],
    'a registration that is refused': [
      () =>
        (servers.instead[`${issuer}/register`] = () => ({ status: 400, json: { error: 'invalid_client_metadata' } })),
      'Registering as a client',
    ],
    'a registration whose names have one hash': [
      () => {
        const names = Object.fromEntries(oneHash.slice(0, 300).map((name) => [name, 1]))
        servers.instead[`${issuer}/register`] = () => ({ status: 201, json: { client_id: 'a', ...names } })
      },
      'its answer cannot be used',
    ],
  }
  for (const [what, [change, text]] of Object.entries(rows)) {
    test(what, async () => {
      change()
      const begun = await setup()
      expect([begun.status, begun.page]).toEqual([502, expect.stringContaining(text)])
      expect(begun.page).not.toContain('id="continue"')
      // The page that was open is one step away.
      const [, back = ''] = /<a class="button" href="([^"]*)">Try again<\/a>/.exec(begun.page) ?? []
      expect(back).toStartWith(`${base}${setupPath}?ticket=`)
      expect((await platform.fetch(back.slice(base.length))).status).toBe(200)
    })
  }

  test('after the way to the other side too: who has a session goes back, who has a ticket is told', async () => {
    servers.instead[`${issuer}/token`] = () => ({ status: 400, json: { error: 'invalid_grant' } })
    const again = `<a class="button" href="${base}${setupPath}">Try again</a>`
    const made = await put()
    const session = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
    const refused = async (path: string, cookie: string, query = new URLSearchParams()) => {
      const begun = await begin(path, cookie)
      const sent = servers.authorize(begun.url)
      const back = new URLSearchParams(sent)
      for (const [name, value] of query) back.set(name, value)
      return (await comeBack(back, begun.cookie)).text()
    }
    const denied = new URLSearchParams({ error: 'access_denied' })
    expect(await refused(setupPath, session)).toContain(again)
    expect(await refused(setupPath, session, denied)).toContain(again)
    expect(await refused(pathIn(made.status.setupUrl), '', denied)).toContain('open the link that led you here')
  })

  const answers: Record<string, object> = {
    'another type of token': { access_token: 'x', token_type: 'dpop' },
    'no token': { token_type: 'Bearer' },
    'an error': { error: 'invalid_grant' },
  }
  for (const [what, json] of Object.entries(answers)) {
    test(`for the code: ${what}`, async () => {
      servers.instead[`${issuer}/token`] = () => ({ status: 'error' in json ? 400 : 200, json })
      const back = await signIn()
      expect([back.status, await back.text()]).toEqual([502, expect.stringContaining('Exchanging the code')])
      expect((await read()).status.state).toBe('auth_required')
    })
  }

  for (const access_token of ['at\r\nx: y', 'at💥', 'a b', '']) {
    test(`for the code: the token ${JSON.stringify(access_token)}`, async () => {
      servers.instead[`${issuer}/token`] = () => ({ json: { access_token, token_type: 'Bearer' } })
      expect((await signIn()).status).toBe(502)
    })
  }

  test('a server that does not answer the greeting is not connected, and its token is dropped', async () => {
    const made = await put()
    const begun = await begin(pathIn(made.status.setupUrl))
    servers.instead[mcpUrl] = () => ({ status: 500 })
    expect((await comeBack(servers.authorize(begun.url), begun.cookie)).status).toBe(502)
    expect((await read()).status.state).toBe('auth_required')
  })

  for (const more of ['code=', 'response=x', 'id_token=x', 'token=x', '']) {
    test(`a callback without a usable code: ${more}`, async () => {
      const begun = await begin(pathIn((await put()).status.setupUrl))
      const query = servers.authorize(begun.url)
      if (!/^(?:response|id_token|token)/.test(more)) query.delete('code')
      expect((await comeBack(`${query}&${more}`, begun.cookie)).status).toBe(502)
    })
  }

  test('a token that the server refuses is dropped', async () => {
    servers.good.has = () => false
    const back = await signIn()
    expect([back.status, await back.text()]).toEqual([502, expect.stringContaining('Connecting to the server')])
    expect((await call()).status).toBe(401)
  })
})

describe('discovery', () => {
  test('asks where the challenge points, and for the scope that it names', async () => {
    const where = 'https://mcp.example.com/somewhere'
    servers.challenge = `Bearer resource_metadata="${where}", scope="files:read"`
    servers.instead[where] = () => ({
      json: { resource: 'https://mcp.example.com/team', authorization_servers: [issuer] },
    })
    const { url } = await begin(pathIn((await put()).status.setupUrl))
    expect([url.searchParams.get('scope'), url.searchParams.get('resource')]).toEqual([
      'files:read',
      'https://mcp.example.com/team',
    ])
    expect(servers.seen.some((one) => one.includes('.well-known/oauth-protected-resource'))).toBe(false)
  })

  test('goes to the root where the path has no document, and to the server itself where there is none', async () => {
    delete servers.instead['x']
    servers.instead['https://mcp.example.com/.well-known/oauth-protected-resource/team/mcp'] = () => ({ status: 404 })
    servers.instead['https://mcp.example.com/.well-known/oauth-authorization-server'] = () => ({
      json: { ...servers.metadata, issuer: 'https://mcp.example.com' },
    })
    const { url } = await begin(pathIn((await put()).status.setupUrl))
    expect(url.searchParams.get('resource')).toBe(mcpUrl)
    const asked = servers.seen.filter((one) => one.includes('.well-known'))
    expect(asked).toEqual([
      'GET https://mcp.example.com/.well-known/oauth-protected-resource/team/mcp',
      'GET https://mcp.example.com/.well-known/oauth-protected-resource',
      'GET https://mcp.example.com/.well-known/oauth-authorization-server',
    ])
  })

  test('tries OAuth’s document, then OpenID’s, with the path of the issuer', async () => {
    servers.resource['authorization_servers'] = [`${issuer}/tenant`]
    const begun = await begin(pathIn((await put()).status.setupUrl))
    expect(begun.status).toBe(502)
    expect(servers.seen.filter((one) => one.includes('as.example.com'))).toEqual([
      `GET ${issuer}/.well-known/oauth-authorization-server/tenant`,
      `GET ${issuer}/.well-known/openid-configuration/tenant`,
      `GET ${issuer}/tenant/.well-known/openid-configuration`,
    ])
  })
})

describe('the client', () => {
  test('is registered once for an issuer, and again after the server has forgotten it', async () => {
    await signIn()
    await put({ mcpUrl }, 'second')
    const second = pathIn((await put({ mcpUrl, headers: {} }, 'second')).status.setupUrl)
    const begun = await begin(second)
    expect([servers.registered.length, begun.url.searchParams.get('client_id')]).toEqual([1, 'client-1'])
    servers.instead[`${issuer}/token`] = () => ({ status: 401, json: { error: 'invalid_client' } })
    servers.good.clear()
    expect((await call()).status).toBe(401)
    const again = await begin(pathIn((await put({ headers: {} })).status.setupUrl))
    expect([servers.registered.length, again.url.searchParams.get('client_id')]).toEqual([2, 'client-2'])
  })

  for (const wrong of ['', 'x'.repeat(2001), 'line\nbreak', 'ünknown', 5, null])
    test(`that a server registers as ${JSON.stringify(wrong).slice(0, 20)} is not kept: the next sign-in registers again`, async () => {
      const path = pathIn((await put()).status.setupUrl)
      servers.instead[`${issuer}/register`] = () => ({ status: 201, json: { client_id: wrong } })
      expect(await begin(path)).toMatchObject({ status: 502 })
      delete servers.instead[`${issuer}/register`]
      expect((await begin(path)).url.searchParams.get('client_id')).toBe('client-1')
    })

  test('that was given with the connection is used, with its secret as the server wants it', async () => {
    servers.metadata['token_endpoint_auth_methods_supported'] = ['client_secret_basic', 'client_secret_post']
    const oauth = { clientId: 'my:client-1_2.3', clientSecret: 'a b/%', scope: 'only' }
    const back = await signIn({ mcpUrl, oauth })
    expect(back.status).toBe(303)
    const [{ authorization, form } = { authorization: '', form: new URLSearchParams() }] = servers.forms
    // Form-encoded first (RFC 6749, 2.3.1).
    expect(authorization).toBe(`Basic ${btoa('my%3Aclient-1_2.3:a+b%2F%25')}`)
    expect(form.get('client_secret')).toBe(null)
    expect(servers.registered).toEqual([])
    expect(JSON.stringify(await read())).not.toContain('my:client')
  })

  describe('that was given for an issuer', () => {
    const other = 'https://other.example.com'
    const given = (as: string) => ({ mcpUrl, oauth: { clientId: 'mine', clientSecret: 'for one alone', issuer: as } })

    test('which the server does not list is used nowhere, and both are named', async () => {
      servers.instead[`${other}/.well-known/oauth-authorization-server`] = () => ({
        json: { ...servers.metadata, issuer: other, token_endpoint: `${other}/token` },
      })
      const path = pathIn((await put(given(other))).status.setupUrl)
      for (const listed of [[issuer], []]) {
        servers.resource['authorization_servers'] = listed
        const { status, page } = await begin(path)
        expect(status).toBe(502)
        expect(page).toContain(`is for ${other}, and the server names ${listed[0] ?? 'no authorization server'}`)
      }
      expect(servers.seen.filter((one) => one.includes(other))).toEqual([])
    })

    test('which the server lists as another than the first is used there', async () => {
      servers.resource['authorization_servers'] = [other, issuer]
      const { status, url } = await begin(pathIn((await put(given(`${issuer}/`))).status.setupUrl))
      expect([status, url.origin, url.searchParams.get('client_id')]).toEqual([200, issuer, 'mine'])
    })

    test('is used there where the server has no metadata', async () => {
      servers.instead['https://mcp.example.com/.well-known/oauth-protected-resource/team/mcp'] = () => ({ status: 404 })
      const { status, url } = await begin(pathIn((await put(given(issuer))).status.setupUrl))
      expect([status, url.origin]).toEqual([200, issuer])
    })
  })

  test('that was given without an issuer is bound to the first one that is met', async () => {
    const oauth = { clientId: 'mine', clientSecret: 'for the first alone' }
    await signIn({ mcpUrl, oauth })
    const other = 'https://other.example.com'
    servers.resource['authorization_servers'] = [other]
    servers.instead[`${other}/.well-known/oauth-authorization-server`] = () => ({
      json: { ...servers.metadata, issuer: other, token_endpoint: `${other}/token` },
    })
    const session = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
    const begun = await begin(setupPath, session, { again: '1' })
    expect([begun.status, begun.page]).toEqual([
      502,
      expect.stringContaining(`is for ${issuer}, and the server names ${other}`),
    ])
    // Its metadata was read, and nothing more.
    expect(servers.seen.filter((one) => one.includes(other))).toEqual([
      `GET ${other}/.well-known/oauth-authorization-server`,
    ])
    expect(servers.forms.filter(({ url }) => url.startsWith(other))).toEqual([])
  })

  test('that was given is replaced by nobody with a ticket, and a typed one only where it is asked for', async () => {
    const mine = pathIn((await put({ mcpUrl, oauth: { clientId: 'mine' } })).status.setupUrl)
    expect((await begin(mine, '', { client_id: 'theirs', issuer: 'https://evil.example' })).status).toBe(409)
    const free = await platform.fetch('/connect/ada/free', { method: 'PUT', headers, body: JSON.stringify({ mcpUrl }) })
    const { status } = (await free.json()) as Answered
    expect((await begin(pathIn(status.setupUrl), '', { client_id: 'typed' })).status).toBe(409)
  })

  test('is registered again after the server did not know it at the exchange', async () => {
    // With the challenge that RFC 6749, 5.2, wants after Basic.
    const challenge = { 'www-authenticate': 'Basic realm="as"' }
    servers.instead[`${issuer}/token`] = () => ({ status: 401, headers: challenge, json: { error: 'invalid_client' } })
    expect((await signIn()).status).toBe(502)
    delete servers.instead[`${issuer}/token`]
    expect((await signIn({ mcpUrl, headers: {} })).status).toBe(303)
    expect(servers.registered).toHaveLength(2)
  })

  test('is asked for where none can be had, kept, and used', async () => {
    delete servers.metadata['registration_endpoint']
    const path = pathIn((await put()).status.setupUrl)
    const asked = await begin(path)
    expect([asked.status, asked.page]).toEqual([200, expect.stringContaining(redirectUri)])
    const wrong = await begin(path, '', { client_id: 'mistyped' })
    expect(wrong.url.searchParams.get('client_id')).toBe('mistyped')
    // It is kept, and can be corrected.
    expect((await begin(path)).url.searchParams.get('client_id')).toBe('mistyped')
    expect((await begin(path, '', { client: 'other' })).page).toContain('name="client_id"')
    const begun = await begin(path, '', { client_id: 'by-hand', client_secret: 's', issuer })
    expect(begun.url.searchParams.get('client_id')).toBe('by-hand')
    expect((await comeBack(servers.authorize(begun.url), begun.cookie)).status).toBe(303)
  })

  test('is our document where the server takes such, and we have https', async () => {
    servers.metadata['client_id_metadata_document_supported'] = true
    platform = await createTestPlatform({ upstream: servers.upstream, issuer: 'https://mcp.corp.example' })
    const made = await put()
    const begun = await begin((made.status.setupUrl ?? '').slice('https://mcp.corp.example'.length))
    const clientId = begun.url.searchParams.get('client_id')
    expect(clientId).toBe('https://mcp.corp.example/oauth/client.json')
    expect(await (await platform.fetch('/oauth/client.json')).json()).toMatchObject({
      client_id: clientId,
      client_name: 'postern',
      redirect_uris: ['https://mcp.corp.example/oauth/callback'],
      application_type: 'web',
    })
    expect(servers.registered).toEqual([])
  })

  test('over https is registered as a web application, and the browser’s cookie is for this host alone', async () => {
    platform = await createTestPlatform({ upstream: servers.upstream, issuer: 'https://mcp.corp.example' })
    const path = ((await put()).status.setupUrl ?? '').slice('https://mcp.corp.example'.length)
    const { form = '' } = fieldsOf(await (await platform.fetch(path)).text())
    const begun = await post(platform, path, { form })
    expect(begun.headers.get('set-cookie')).toMatch(
      /^__Host-postern-signin=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=600; Secure$/,
    )
    expect(servers.registered).toMatchObject([
      { application_type: 'web', redirect_uris: ['https://mcp.corp.example/oauth/callback'] },
    ])
  })

  test('survives a restart between the link and the callback', async () => {
    const begun = await begin(pathIn((await put()).status.setupUrl))
    const query = servers.authorize(begun.url)
    const { store, now } = platform
    platform = await createTestPlatform({ upstream: servers.upstream, store })
    platform.now = now
    expect((await comeBack(query, begun.cookie)).status).toBe(303)
    expect((await read()).status.state).toBe('connected')
  })
})

describe('a lasting sign-in', () => {
  const asked = async (body: object = { mcpUrl }) => {
    const { url } = await begin(pathIn((await put(body)).status.setupUrl))
    return { scope: url.searchParams.get('scope'), prompt: url.searchParams.get('prompt') }
  }

  test('is asked for, with consent, where the authorization server lists offline_access', async () => {
    expect(await asked()).toEqual({ scope: 'read write', prompt: null })
    servers.metadata['scopes_supported'] = ['read', 'write', 'offline_access', 'openid']
    expect(await asked()).toEqual({ scope: 'read write offline_access', prompt: 'consent' })
    servers.resource['scopes_supported'] = ['offline_access', 'read']
    expect(await asked()).toEqual({ scope: 'offline_access read', prompt: 'consent' })
    // Without a scope the server chooses, which more than one of ours would end.
    delete servers.resource['scopes_supported']
    expect(await asked()).toEqual({ scope: null, prompt: null })
    for (const odd of ['offline_access', { offline_access: 1 }, null]) {
      servers.metadata['scopes_supported'] = odd
      servers.resource['scopes_supported'] = ['read']
      expect(await asked()).toEqual({ scope: 'read', prompt: null })
    }
  })

  test('is asked for in a given scope if that says so, and not added to it', async () => {
    servers.metadata['scopes_supported'] = ['read', 'offline_access']
    const oauth = { clientId: 'mine', scope: 'read' }
    expect(await asked({ mcpUrl, oauth })).toEqual({ scope: 'read', prompt: null })
    const lasting = { ...oauth, scope: 'read offline_access' }
    expect(await asked({ mcpUrl, oauth: lasting })).toEqual({ scope: 'read offline_access', prompt: 'consent' })
  })

  test('that there is none is said after the sign-in, and in the status, until it has ended', async () => {
    servers.refreshes = 'none'
    servers.expiresIn = 30
    const end = new Date(platform.now + 30_000).toISOString()
    const back = await signIn()
    const location = back.headers.get('location') ?? ''
    expect(back.status).toBe(303)
    const page = await (await platform.fetch(location.slice(base.length))).text()
    expect(page).toContain(`ends at ${end.slice(0, 16).replace('T', ' ')} UTC`)
    const connected = { state: 'connected', signedInUntil: end }
    expect((await read()).status as object).toEqual(connected)
    // Another name, and a server that fails in between, change nothing about it.
    await put({ name: 'other' })
    expect((await read()).status as object).toEqual(connected)
    servers.instead[mcpUrl] = () => ({ status: 500 })
    await put({ headers: { 'x-a': '1' } })
    expect((await read()).status).toMatchObject({ state: 'error' })
    delete servers.instead[mcpUrl]
    expect((await call()).status).toBe(200)
    await until(async () => (await read()).status.state === 'connected')
    expect((await read()).status as object).toEqual(connected)
    // Good to its last moment: nothing could replace it.
    platform.now += 29_000
    expect((await call()).status).toBe(200)
    platform.now += 1000
    expect((await call()).status).toBe(401)
    expect((await read()).status).toEqual({
      state: 'auth_required',
      setupUrl: `${base}${setupPath}`,
      authorizationUrl: `${base}${setupPath}`,
    })
    // A sign-in that lasts says nothing of the kind.
    servers.refreshes = 'rotating'
    expect((await signIn({ headers: {} })).headers.get('location')).not.toContain('until')
    expect((await read()).status as object).toEqual({ state: 'connected' })
  })

  test('the page says it of a time, and shows nothing else', async () => {
    for (const query of [
      'until=soon',
      'until=1e9',
      'until=99999999999999999999',
      'until=-5',
      'until=1&until=2',
      'ends=1',
    ])
      expect((await platform.fetch(`/oauth/done?${query}`)).status).toBe(400)
  })
})

describe('a token', () => {
  const refreshes = () => servers.forms.filter(({ form }) => form.get('grant_type') === 'refresh_token')

  test('is refreshed with less than a minute left, once for all that wait', async () => {
    await signIn()
    platform.now += 3_600_000 - 60_000
    expect((await call()).status).toBe(200)
    expect(refreshes()).toHaveLength(0)
    platform.now += 1
    const calls = await Promise.all(Array.from({ length: 200 }, () => call()))
    expect(new Set(calls.map(({ status }) => status))).toEqual(new Set([200]))
    expect(refreshes().map(({ form }) => [form.get('resource'), form.get('client_id')])).toEqual([[mcpUrl, 'client-1']])
  })

  test('is refreshed in one of two processes that share a store', async () => {
    await signIn()
    const other = await createTestPlatform({ upstream: servers.upstream, store: platform.store })
    platform.now += 3_600_000
    other.now = platform.now
    platform.whileWaiting = async () => {
      platform.now += 10
    }
    other.whileWaiting = platform.whileWaiting
    const [mine, theirs] = [platform, other]
    const calls = await Promise.all(
      Array.from({ length: 40 }, (_, index) => {
        platform = index % 2 === 0 ? mine : theirs
        return call()
      }),
    )
    expect(new Set(calls.map(({ status }) => status))).toEqual(new Set([200]))
    expect(refreshes()).toHaveLength(1)
  })

  test('of a short life is refreshed at its half; one without an end at a 401', async () => {
    servers.expiresIn = 40
    await signIn()
    platform.now += 20_000
    await call()
    expect(refreshes()).toHaveLength(0)
    platform.now += 1
    await call()
    expect(refreshes()).toHaveLength(1)
    servers.expiresIn = undefined
    platform.now += 40_000
    await call()
    platform.now += 1_000_000_000
    await call()
    expect(refreshes()).toHaveLength(2)
    servers.good.clear()
    expect((await call()).status).toBe(200)
    expect(refreshes()).toHaveLength(3)
  })

  test('keeps its refresh token where no new one comes', async () => {
    servers.refreshes = 'lasting'
    await signIn()
    for (let i = 0; i < 3; i += 1) {
      platform.now += 3_600_000
      expect((await call()).status).toBe(200)
    }
    expect(new Set(refreshes().map(({ form }) => form.get('refresh_token'))).size).toBe(1)
  })

  const ends: Record<string, () => void> = {
    'the grant was revoked': () =>
      (servers.instead[`${issuer}/token`] = () => ({ status: 400, json: { error: 'invalid_grant' } })),
    'the client is unknown': () =>
      (servers.instead[`${issuer}/token`] = () => ({ status: 401, json: { error: 'invalid_client' } })),
    'the client is unknown, told with a challenge': () =>
      (servers.instead[`${issuer}/token`] = () => ({
        status: 401,
        headers: { 'www-authenticate': 'Basic realm="as"' },
        json: { error: 'invalid_client' },
      })),
    'the new token is refused too': () => {
      servers.good.has = () => false
    },
  }
  for (const [what, change] of Object.entries(ends)) {
    test(`is dropped when ${what}: the caller is told where to sign in, at once`, async () => {
      await signIn()
      servers.good.clear()
      change()
      const refused = await call()
      expect([refused.status, refused.text]).toEqual([
        401,
        expect.stringContaining(`"authorizationUrl":"${base}${setupPath}"`),
      ])
      expect((await read()).status.state).toBe('auth_required')
      servers.tokensSeen.length = 0
      expect((await call()).status).toBe(401)
      expect(servers.tokensSeen).not.toContain(expect.any(String))
      expect(platform.audited.some(({ event }) => event === 'upstream.signed_out')).toBe(true)
    })
  }

  test('is dropped when the connection is written, and the grant was revoked: somebody must sign in', async () => {
    await signIn()
    platform.now += 3_600_000
    servers.instead[`${issuer}/token`] = () => ({ status: 400, json: { error: 'invalid_grant' } })
    expect((await put({ headers: { 'x-a': '1' } })).status.state).toBe('auth_required')
    expect((await read()).status.state).toBe('auth_required')
  })

  test('without a refresh token is dropped at a 401', async () => {
    servers.refreshes = 'none'
    await signIn()
    servers.good.clear()
    expect((await call()).status).toBe(401)
    expect((await read()).status.state).toBe('auth_required')
  })

  const failures: Record<string, () => void> = {
    'the authorization server is down': () => (servers.instead[`${issuer}/token`] = () => ({ status: 503 })),
    'it says that there were too many requests': () =>
      (servers.instead[`${issuer}/token`] = () => ({ status: 429, json: { error: 'slow_down' } })),
  }
  for (const [what, change] of Object.entries(failures)) {
    test(`stays when ${what}; the next try is five seconds later`, async () => {
      await signIn()
      platform.now += 3_600_000
      let tries = 0
      change()
      const broken = servers.instead[`${issuer}/token`]
      servers.instead[`${issuer}/token`] = (request) => {
        tries += 1
        return broken?.(request) ?? {}
      }
      expect((await call()).status).toBe(502)
      expect((await call()).status).toBe(502)
      expect(tries).toBe(1)
      platform.now += refreshRetryMs
      expect((await call()).status).toBe(502)
      expect(tries).toBe(2)
      delete servers.instead[`${issuer}/token`]
      platform.now += refreshRetryMs
      expect((await call()).status).toBe(200)
    })
  }

  test('that is still good is used while it cannot be refreshed', async () => {
    await signIn()
    platform.now += 3_600_000 - 30_000
    servers.instead[`${issuer}/token`] = () => ({ status: 503 })
    expect((await call()).status).toBe(200)
  })

  test('is refreshed by another one where the claim of a process was left behind', async () => {
    await signIn()
    platform.now += 3_600_000
    // As after kill -9: the claim is there, and nobody refreshes.
    let isStuck = true
    servers.instead[`${issuer}/token`] = async () => {
      if (isStuck) await new Promise(() => {})
      return { status: 503 }
    }
    void call()
    for (let i = 0; i < 20; i += 1) await new Promise((resolve) => setImmediate(resolve))
    isStuck = false
    delete servers.instead[`${issuer}/token`]
    const other = await createTestPlatform({ upstream: servers.upstream, store: platform.store })
    other.now = platform.now
    let waited = 0
    other.whileWaiting = async () => {
      waited += 1
      other.now += 1000
    }
    platform = other
    expect((await call()).status).toBe(200)
    expect(waited).toBe(refreshClaimMs / 1000)
  })

  test('goes to the server’s own URL only, never to another address of it, and not to the authorization server', async () => {
    await signIn()
    await call()
    for (const { form, authorization } of servers.forms)
      expect(`${form} ${authorization}`).not.toContain('access-secret')
  })

  test('is refused to a client that signed in here with a 403, so that it does not sign in here again', async () => {
    await signIn()
    const { token } = (await (
      await platform.fetch('/tokens', { method: 'POST', headers: { authorization: `Bearer ${sampleKeys.ada}` } })
    ).json()) as { token: string }
    servers.good.has = () => false
    expect((await call(token)).status).toBe(401)
  })
})

test('a server that wants more scopes has them asked for at the next sign-in; its token stays in use', async () => {
  await signIn()
  const challenge = 'Bearer error="insufficient_scope", scope="admin write"'
  servers.instead[mcpUrl] = () => ({ status: 403, headers: { 'www-authenticate': challenge }, json: { error: 'no' } })
  const refused = await call()
  expect([refused.status, refused.text]).toEqual([
    401,
    expect.stringContaining(`"authorizationUrl":"${base}${setupPath}"`),
  ])
  expect((await read()).status.state).toBe('auth_required')
  // It is written once, however often the server wants it.
  const version = () => platform.store.get(keyOf('connectionsVersion', 'ada'))
  const before = await version()
  await call()
  expect(await version()).toEqual(before)
  delete servers.instead[mcpUrl]
  expect((await call()).status).toBe(200)
  expect((await read()).status.state).toBe('auth_required')
  const session = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
  const opened = await (await platform.fetch(setupPath, { headers: { cookie: session } })).text()
  expect(opened).toContain('needs more permissions: read write admin')
  const begun = await begin(setupPath, session)
  expect(begun.url.searchParams.get('scope')).toBe('read write admin')
  expect((await comeBack(servers.authorize(begun.url), begun.cookie)).status).toBe(303)
  expect((await read()).status.state).toBe('connected')
})

test('a 403 without that challenge is the server’s own error', async () => {
  await signIn()
  servers.instead[mcpUrl] = () => ({ status: 403, json: { jsonrpc: '2.0', id: 1, error: { code: 1, message: 'no' } } })
  expect(await call()).toMatchObject({ status: 403, text: expect.stringContaining('"message":"no"') })
  expect((await read()).status.state).toBe('connected')
})

describe('the requests of a sign-in count against', () => {
  const holders: { readonly url: string; readonly holder: object }[] = []
  beforeEach(async () => {
    holders.length = 0
    const upstream = {
      send(request: UpstreamRequest) {
        holders.push({ url: request.url, holder: request.holder })
        return servers.upstream.send(request)
      },
    }
    platform = await createTestPlatform({ upstream })
  })

  test('the owner of the namespace of the connection, where a ticket is enough', async () => {
    const path = pathIn((await put()).status.setupUrl)
    holders.length = 0
    const begun = await begin(path)
    expect((await comeBack(servers.authorize(begun.url), begun.cookie)).status).toBe(303)
    expect(holders.map(({ url }) => url)).toEqual(
      expect.arrayContaining([mcpUrl, `${issuer}/register`, `${issuer}/token`]),
    )
    const holder = ticketHolder('user ada', { namespace: 'ada', connectionId: 'guarded' })
    for (const one of holders) expect(one).toEqual({ url: one.url, holder })
  })

  test('the key of the session, and those of a refresh the namespace, whose members wait for it together', async () => {
    await put()
    const session = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
    const keyId = await keyIdOf(platform, 'ada')
    holders.length = 0
    const begun = await begin(setupPath, session)
    const cookie = `${session}; ${begun.cookie}`
    expect((await comeBack(servers.authorize(begun.url), cookie)).status).toBe(303)
    const ofToken = () => holders.splice(0).filter(({ url }) => url === `${issuer}/token`)
    for (const one of holders) expect(one).toMatchObject({ url: one.url, holder: { keyId, family: keyId } })
    expect(ofToken()).toHaveLength(1)
    servers.good.clear()
    expect((await call()).status).toBe(200)
    expect(ofToken()).toMatchObject([
      { holder: ticketHolder('user ada', { namespace: 'ada', connectionId: 'guarded' }) },
    ])
  })
})

describe('signing out', () => {
  test('drops and revokes the tokens', async () => {
    await signIn()
    const session = cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))
    const page = await (await platform.fetch(setupPath, { headers: { cookie: session } })).text()
    const { form = '' } = fieldsOf(page)
    expect((await post(platform, setupPath, { end: '1' }, session)).status).toBe(403)
    expect((await post(platform, setupPath, { form, end: '1' }, session)).status).toBe(200)
    expect((await call()).status).toBe(401)
    const [revoked] = servers.forms.filter(({ url }) => url.endsWith('/revoke'))
    expect(revoked?.form.get('token')).toStartWith('refresh-secret-')
  })

  const ways: Record<string, () => Promise<unknown>> = {
    'another client': () => put({ oauth: { clientId: 'other' } }),
    'no client': () => put({ oauth: null }),
    'an authorization header': () => put({ headers: { authorization: 'Bearer own' } }),
    'a deletion': () => platform.fetch('/connect/ada/guarded', { method: 'DELETE', headers }),
  }
  for (const [what, act] of Object.entries(ways)) {
    test(`comes with ${what}`, async () => {
      await signIn()
      await act()
      expect(servers.forms.filter(({ url }) => url.endsWith('/revoke'))).toHaveLength(1)
      expect(platform.audited.some(({ event }) => event === 'upstream.signed_out')).toBe(true)
    })
  }

  test('comes with a deletion of the namespace', async () => {
    const lab = '/connect/lab-one/guarded'
    await platform.fetch('/namespaces/lab-one', { method: 'PUT', headers })
    const made = await platform.fetch(lab, { method: 'PUT', headers, body: JSON.stringify({ mcpUrl }) })
    const begun = await begin(pathIn(((await made.json()) as Answered).status.setupUrl))
    expect((await comeBack(servers.authorize(begun.url), begun.cookie)).status).toBeLessThan(400)
    expect((await platform.fetch('/namespaces/lab-one', { method: 'DELETE', headers })).status).toBe(200)
    expect(servers.forms.filter(({ url }) => url.endsWith('/revoke'))).toHaveLength(1)
    expect(platform.audited.filter(({ event }) => event === 'upstream.signed_out')).toMatchObject([
      { namespace: 'lab-one', connectionId: 'guarded', reason: 'its namespace was deleted' },
    ])
  })

  test('does not come with a new name or other headers', async () => {
    await signIn()
    const made = await put({ name: 'New', headers: { 'x-team': 'a' } })
    expect(made.status).toEqual({ state: 'connected' })
    expect((await call()).status).toBe(200)
  })
})

test('tokens that the namespace has no room for are not kept', async () => {
  platform = await createTestPlatform({ upstream: servers.upstream, quota: { bytes: 20_000 } })
  const access_token = 'x'.repeat(40_000)
  servers.instead[`${issuer}/token`] = () => ({ json: { access_token, token_type: 'Bearer' } })
  servers.good.add(access_token)
  const back = await signIn()
  expect([back.status, await back.text()]).toEqual([403, expect.stringContaining('The namespace ada is full')])
  expect((await read()).status.state).toBe('auth_required')
})

test('nothing of it is in the store in the clear, in the log or in the audit log', async () => {
  servers.metadata['token_endpoint_auth_methods_supported'] = ['client_secret_basic']
  servers.instead[`${issuer}/register`] = () => ({
    status: 201,
    json: { client_id: 'client-registered', client_secret: 'registered-secret' },
  })
  const body = JSON.stringify({ mcpUrl })
  const other = await platform.fetch('/connect/ada/other', { method: 'PUT', headers, body })
  const { setupUrl = '' } = ((await other.json()) as Answered).status
  const begun = await begin(pathIn(setupUrl))
  await signIn({ mcpUrl, oauth: { clientId: 'client-by-hand', clientSecret: 'very-secret' } })
  await call()
  const texts = await everythingKept(platform)
  const secrets = [
    ...['access-secret', 'refresh-secret', 'very-secret', 'client-by-hand', 'registered-secret', 'verifier'],
    new URL(setupUrl).searchParams.get('ticket') ?? 'none',
    begun.url.searchParams.get('state') ?? 'none',
    begun.cookie.split('=')[1] ?? 'none',
  ]
  expect(secrets).not.toContain('none')
  expect(secrets.filter((secret) => texts.includes(secret))).toEqual([])
})

test('an owner sends so many forms of setup pages a minute, for all of its connections', async () => {
  const statuses: number[] = []
  for (let i = 0; i <= ownerSetupsPerMinuteMax; i += 1) {
    // A few for each connection, so that its own limit is not met.
    const path = pathIn((await put({ mcpUrl }, `many-${Math.floor(i / 5)}`)).status.setupUrl)
    const { form = '' } = fieldsOf(await (await platform.fetch(path)).text())
    statuses.push((await post(platform, path, { form })).status)
  }
  expect(statuses.slice(0, -1)).not.toContain(429)
  expect(statuses.at(-1)).toBe(429)
})
