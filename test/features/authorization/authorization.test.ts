/** Clients that sign in with nothing but a URL (contract, 13), in process. */

import { beforeEach, describe, expect, test } from 'bun:test'
import { revokeApiKey } from '../../../src/auth/api-key.ts'
import { endGrant, grantEntry, listGrants, sweepGrants } from '../../../src/auth/grants.ts'
import { unusedClientSeconds, unusedClientsMax } from '../../../src/features/authorization/clients.ts'
import {
  accessTokenSeconds,
  codeSeconds,
  grantsPerMinuteMax,
  registrationsPerMinuteMax,
  userClientsMax,
  userGrantsMax,
} from '../../../src/limits.ts'
import { withIndex } from '../../../src/storage/directory-records.ts'
import { keyOf } from '../../../src/storage/keys.ts'
import { StoreError, type Write } from '../../../src/storage/store.ts'
import { mintToken } from '../../api/cases.ts'
import { cookieIn, fieldsOf, post, slowBody } from '../../support/pages.ts'
import {
  createTestPlatform,
  everythingKept,
  issuer,
  keyIdOf,
  startOfTime,
  type TestPlatform,
} from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import {
  authorizePath,
  callTool,
  decide,
  exchange,
  newVerifier,
  redirectUri,
  refresh,
  register,
  resource,
  sentBack,
  signedIn,
  signInClient,
} from './world.ts'

let platform: TestPlatform
beforeEach(async () => {
  platform = await createTestPlatform()
})

const json = async (path: string) => {
  const response = await platform.fetch(path)
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}
const mcpPath = new URL(resource).pathname
const grantsNow = () => listGrants(platform.store, platform.now / 1000)

describe('the way in', () => {
  test('begins with a 401 that names the document of the connection, for every name alike', async () => {
    const challenges: (string | null)[] = []
    for (const [path, credential] of [
      [mcpPath, undefined],
      [mcpPath, 'wrong'],
      ['/connect/nowhere/none/mcp', undefined],
    ] as const) {
      const headers = {
        'content-type': 'application/json',
        ...(credential && { authorization: `Bearer ${credential}` }),
      }
      const response = await platform.fetch(path, { method: 'POST', headers, body: '{}' })
      expect(response.status).toBe(401)
      challenges.push(response.headers.get('www-authenticate'))
    }
    const of = (path: string) =>
      `resource_metadata="${issuer}/.well-known/oauth-protected-resource${path}", scope="mcp"`
    expect(challenges).toEqual([
      `Bearer ${of(mcpPath)}`,
      `Bearer error="invalid_token", ${of(mcpPath)}`,
      `Bearer ${of('/connect/nowhere/none/mcp')}`,
    ])
  })

  test('goes on with that document, and with the one of the server', async () => {
    expect(await json(`/.well-known/oauth-protected-resource${mcpPath}`)).toEqual({
      status: 200,
      body: {
        resource,
        authorization_servers: [issuer],
        scopes_supported: ['mcp'],
        bearer_methods_supported: ['header'],
      },
    })
    const documentOf = (names: string) => json(`/.well-known/oauth-protected-resource/connect/${names}/mcp`)
    expect((await documentOf('no/thing')).status).toBe(200)
    // Of names that cannot exist there is nothing to hide.
    for (const names of [
      'a%00b/thing',
      'no/th%0aing',
      'a%2Fb/thing',
      'no/.thing',
      '-no/thing',
      'no/%E2%80%AEthing',
      'a%22/b',
    ])
      expect({ names, status: (await documentOf(names)).status }).toEqual({ names, status: 404 })
    expect(await json('/.well-known/oauth-authorization-server')).toMatchObject({
      status: 200,
      body: {
        issuer,
        authorization_endpoint: `${issuer}/oauth/authorize`,
        token_endpoint: `${issuer}/oauth/token`,
        registration_endpoint: `${issuer}/oauth/register`,
        revocation_endpoint: `${issuer}/oauth/revoke`,
        jwks_uri: `${issuer}/.well-known/jwks.json`,
        response_types_supported: ['code'],
        grant_types_supported: ['authorization_code', 'refresh_token'],
        code_challenge_methods_supported: ['S256'],
        token_endpoint_auth_methods_supported: ['none'],
        authorization_response_iss_parameter_supported: true,
        client_id_metadata_document_supported: true,
      },
    })
    expect((await json('/.well-known/oauth-authorization-server/postern')).status).toBe(404)
  })

  test('is found below the path of the base URL as well', async () => {
    platform = await createTestPlatform({ issuer: 'https://mcp.example.com/postern' })
    const issuer = 'https://mcp.example.com/postern'
    for (const path of ['', '/postern']) {
      const { body } = await json(`/.well-known/oauth-authorization-server${path}`)
      expect(body).toMatchObject({ issuer, token_endpoint: `${issuer}/oauth/token` })
    }
    expect((await json('/.well-known/oauth-authorization-server/other')).status).toBe(404)
  })

  test('does not exist where there is plain HTTP to other machines, or with --no-sign-in', async () => {
    for (const options of [{ issuer: 'http://mcp.example.com' }, { signIn: false }]) {
      platform = await createTestPlatform(options)
      for (const path of [
        '/.well-known/oauth-authorization-server',
        `/.well-known/oauth-protected-resource${mcpPath}`,
        '/oauth/authorize',
      ])
        expect((await platform.fetch(path)).status).toBe(404)
      expect((await post(platform, '/oauth/token', {})).status).toBe(404)
      const denied = await platform.fetch(mcpPath, { method: 'POST' })
      expect([denied.status, denied.headers.get('www-authenticate')]).toEqual([401, 'Bearer error="invalid_token"'])
    }
  })

  test('leads to a token that calls the tools of the connection, and is audited', async () => {
    const { answer } = await signInClient(platform)
    expect(answer).toMatchObject({
      status: 200,
      token_type: 'Bearer',
      expires_in: accessTokenSeconds,
      scope: 'mcp',
      refresh_token: expect.stringMatching(/^grant_/),
    })
    expect((await callTool(platform, answer.access_token, 'find_product')).status).toBe(200)
    const [grant] = await grantsNow()
    expect(grant).toMatchObject({
      userId: 'ada',
      client: 'Tester',
      namespace: 'northwind',
      connectionId: 'inventory-us-west',
    })
    expect(platform.audited.at(-1)).toMatchObject({ event: 'grant.created', grantId: grant?.grantId, client: 'Tester' })
  })
})

describe('registration', () => {
  test('makes a public client, whatever was asked', async () => {
    const made = await register(platform, { token_endpoint_auth_method: 'client_secret_basic', scope: 'all', extra: 1 })
    expect(made).toMatchObject({
      status: 201,
      token_endpoint_auth_method: 'none',
      redirect_uris: [redirectUri],
      scope: 'mcp',
    })
    expect(made).not.toHaveProperty('client_secret')
  })

  const refused: Record<string, [uris: unknown, error: string]> = {
    'no redirect URI': [[], 'invalid_redirect_uri'],
    'eleven of them': [Array.from({ length: 11 }, (_, i) => `https://a.example/${i}`), 'invalid_redirect_uri'],
    'plain HTTP elsewhere': [['http://a.example/cb'], 'invalid_redirect_uri'],
    'a host that only begins like localhost': [['http://localhost.evil.example/cb'], 'invalid_redirect_uri'],
    'a user in it': [['https://localhost@evil.example/cb'], 'invalid_redirect_uri'],
    'a fragment': [['https://a.example/cb#x'], 'invalid_redirect_uri'],
    'a script': [['javascript:alert(1)'], 'invalid_redirect_uri'],
    data: [['data:text/html,x'], 'invalid_redirect_uri'],
    'a scheme that nobody allowed': [['myapp://cb'], 'invalid_redirect_uri'],
    'a backslash': [['https://a.example\\@evil.example/cb'], 'invalid_redirect_uri'],
    'no text': [[5], 'invalid_redirect_uri'],
    'no slashes': [['https:evil.example/cb'], 'invalid_redirect_uri'],
    'one slash': [['https:/evil.example/cb'], 'invalid_redirect_uri'],
    'a host that is a pattern': [['https://*/cb'], 'invalid_redirect_uri'],
    'a host that ends a directive': [['https://x;sandbox/cb'], 'invalid_redirect_uri'],
    'another loopback address': [['http://127.9.9.9/cb'], 'invalid_redirect_uri'],
    'a short form of the loopback address': [['http://127.1/cb'], 'invalid_redirect_uri'],
    'a code of its own': [['https://a.example/cb?code=1'], 'invalid_redirect_uri'],
    'letters that are not ASCII': [['https://例え.jp/cb'], 'invalid_redirect_uri'],
  }
  for (const [what, [redirect_uris, error]] of Object.entries(refused)) {
    test(`is refused: ${what}`, async () => {
      expect(await register(platform, { redirect_uris })).toMatchObject({ status: 400, error })
    })
  }
  for (const uri of [
    'https://a.example/cb?x=1',
    'http://[::1]/cb',
    'http://localhost:1/',
    'cursor://a/b',
    'com.example.app:/cb',
  ]) {
    test(`is made for ${uri}`, async () => {
      expect((await register(platform, { redirect_uris: [uri] })).status).toBe(201)
    })
  }

  test('is limited for each address', async () => {
    const statuses: number[] = []
    for (let i = 0; i <= registrationsPerMinuteMax; i += 1) statuses.push((await register(platform)).status)
    expect(statuses).toEqual([...Array(registrationsPerMinuteMax).fill(201), 429])
    platform.now += 2000
    expect((await register(platform)).status).toBe(201)
  })

  test('that is refused uses nothing up', async () => {
    const bad = () => register(platform, { redirect_uris: ['ftp://a/'] })
    for (let i = 0; i <= registrationsPerMinuteMax; i += 1) expect((await bad()).status).toBe(400)
    for (let i = 0; i < registrationsPerMinuteMax; i += 1) expect((await register(platform)).status).toBe(201)
    expect((await bad()).status).toBe(429)
  })

  test('past the bound takes the place of the oldest of the network that has most', async () => {
    const at = async (address: string) => (await register(platform, {}, address)).client_id
    const mine = await at('198.51.100.7')
    // One network of many addresses, as anybody can rent it, and an older one with fewer.
    const few = [await at('2001:db9:1:1::/64'), await at('2001:db9:1:2::/64')]
    const flood: string[] = []
    for (let i = 0; i <= unusedClientsMax; i += 1) {
      platform.now += 1000
      flood.push(await at(`2001:db8:f:${(i >> 4).toString(16)}::/64`))
    }
    const late = await at('198.51.100.8')
    const cookie = await signedIn(platform)
    const status = async (id: string) =>
      (await platform.fetch(authorizePath({ clientId: id, verifier: newVerifier() }), { headers: { cookie } })).status
    for (const id of [mine, ...few, late, flood.at(-1) ?? '']) expect(await status(id)).toBe(200)
    const gone = await Promise.all(flood.slice(0, 6).map(status))
    expect(gone.filter((one) => one === 400)).toHaveLength(5)
  })

  test('past the bound of clients that nobody has used is of the newest', async () => {
    const { clientId: used } = await signInClient(platform)
    const ids: string[] = []
    for (let i = 0; i <= unusedClientsMax; i += 1) {
      platform.now += 2000
      ids.push((await register(platform)).client_id)
    }
    const cookie = await signedIn(platform)
    const status = async (id: string) =>
      (await platform.fetch(authorizePath({ clientId: id, verifier: newVerifier() }), { headers: { cookie } })).status
    const seen = [
      await status(ids[0] ?? ''),
      await status(ids[1] ?? ''),
      await status(ids.at(-1) ?? ''),
      await status(used),
    ]
    expect(seen).toEqual([400, 200, 200, 200])
  })

  test('is forgotten after a day without use, and kept once it was used', async () => {
    const { clientId } = await signInClient(platform)
    const { client_id: unused } = await register(platform)
    platform.now += unusedClientSeconds * 1000
    const cookie = await signedIn(platform)
    const status = async (id: string) =>
      (await platform.fetch(authorizePath({ clientId: id, verifier: newVerifier() }), { headers: { cookie } })).status
    expect([await status(clientId), await status(unused)]).toEqual([200, 400])
  })
})

describe('a request that is wrong is a page, and no redirect', () => {
  const rows: Record<string, [change: Record<string, string | undefined>, status: number]> = {
    'another response type': [{ response_type: 'token' }, 400],
    'no client': [{ client_id: undefined }, 400],
    'an unknown client': [{ client_id: 'mcp_00000000aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa' }, 400],
    'no redirect URI': [{ redirect_uri: undefined }, 400],
    'another redirect URI': [{ redirect_uri: 'http://127.0.0.1:4444/other' }, 400],
    'a redirect URI with more behind it': [{ redirect_uri: `${redirectUri}/../x` }, 400],
    'a port that is none': [{ redirect_uri: 'http://127.0.0.1:99999/callback' }, 400],
    'a client id without end': [{ client_id: 'a'.repeat(5000) }, 400],
    'a redirect URI of another host': [{ redirect_uri: 'http://127.0.0.1:4444@evil.example/callback' }, 400],
    'no challenge': [{ code_challenge: undefined }, 400],
    'a plain challenge': [{ code_challenge_method: 'plain' }, 400],
    'no method of the challenge': [{ code_challenge_method: undefined }, 400],
    'no resource': [{ resource: undefined }, 400],
    'a resource elsewhere': [{ resource: 'https://evil.example/connect/northwind/inventory-us-west/mcp' }, 400],
    'a resource that is no endpoint': [{ resource: `${issuer}/connect/northwind` }, 400],
    'a connection that does not exist': [{ resource: `${issuer}/connect/northwind/none/mcp` }, 404],
    'a connection that the user does not see': [{ resource: `${issuer}/connect/priya/reading-list/mcp` }, 404],
    'a state without end': [{ state: 'a'.repeat(3000) }, 400],
  }
  for (const [what, [change, status]] of Object.entries(rows)) {
    test(what, async () => {
      const { client_id: clientId } = await register(platform)
      const path = authorizePath({ clientId, verifier: newVerifier() }, change)
      const cookie = await signedIn(platform)
      const response = await platform.fetch(path, { headers: { cookie } })
      expect([response.status, response.headers.get('location')]).toEqual([status, null])
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8')
      const sent = await post(platform, path, { decision: 'allow', access: 'all', days: '30' }, cookie)
      expect([sent.status >= 400, sent.headers.get('location')]).toEqual([true, null])
    })
  }

  test('a parameter that is given twice', async () => {
    const { client_id: clientId } = await register(platform)
    const path = `${authorizePath({ clientId, verifier: newVerifier() })}&state=2`
    expect((await platform.fetch(path, { headers: { cookie: await signedIn(platform) } })).status).toBe(400)
  })

  test('a loopback port may be another one; a scope and unknown parameters are ignored', async () => {
    const { client_id: clientId } = await register(platform)
    const change = { redirect_uri: 'http://127.0.0.1:9/callback', scope: 'everything', prompt: 'x' }
    const path = authorizePath({ clientId, verifier: newVerifier() }, change)
    const back = await decide(platform, path, await signedIn(platform))
    expect(back.headers.get('location')).toStartWith('http://127.0.0.1:9/callback?code=')
  })
})

describe('the consent page', () => {
  const opened = async (change: Record<string, string> = {}, more: object = {}) => {
    const { client_id: clientId } = await register(platform, more)
    const path = authorizePath({ clientId, verifier: newVerifier() }, change)
    const cookie = await signedIn(platform)
    return { path, cookie, response: await platform.fetch(path, { headers: { cookie } }) }
  }

  test('shows the form again where the choice is unclear, and says why', async () => {
    const { path, cookie } = await opened()
    const choices: [fields: Record<string, string>, problem: string][] = [
      [{ access: 'all', tool: 'find_product' }, 'You chose all tools, and some of them'],
      [{ access: 'some' }, 'Choose at least one tool'],
    ]
    for (const [fields, problem] of choices) {
      const response = await decide(platform, path, cookie, fields)
      const page = await response.text()
      expect([response.status, page]).toEqual([400, expect.stringContaining(problem)])
      expect(page).toContain('value="find_product"')
    }
  })

  test('says that the server behind the connection still wants a sign-in', async () => {
    const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
    platform = await createTestPlatform({
      upstream: { send: async () => ({ status: 401, headers: {}, body: undefined }) },
    })
    const body = JSON.stringify({ mcpUrl: 'https://mcp.example.com/mcp' })
    await platform.fetch('/connect/ada/closed', { method: 'PUT', headers, body })
    const { response } = await opened({ resource: `${issuer}/connect/ada/closed/mcp` })
    const page = await response.text()
    expect(page).toContain(`<a href="${issuer}/connect/ada/closed/setup">Set it up</a>`)
    // Nothing is chosen beforehand, whether the tools are known or not.
    expect(page).not.toMatch(/name="access"[^>]*checked/)
  })

  test('wants somebody who has signed in, and comes back', async () => {
    const { client_id: clientId } = await register(platform)
    const path = authorizePath({ clientId, verifier: newVerifier() })
    const response = await platform.fetch(path)
    expect(response.status).toBe(303)
    const location = new URL(response.headers.get('location') ?? '')
    expect([location.pathname, location.searchParams.get('next')]).toEqual(['/signin', path])
    const back = await post(platform, '/signin', { key: sampleKeys.ada, next: path })
    expect(back.headers.get('location')).toBe(`${issuer}${path}`)
    expect((await platform.fetch(path, { headers: { cookie: cookieIn(back) } })).status).toBe(200)
  })

  test('says who asks, for what, for whom, and where it goes; with the tools, and 30 days at first', async () => {
    const { response } = await opened()
    const page = await response.text()
    for (const text of [
      'Tester (not verified)',
      'northwind/inventory-us-west',
      '>ada<',
      '127.0.0.1:4444',
      'Any program on this computer',
    ])
      expect(page).toContain(text)
    expect([...page.matchAll(/name="tool" value="(\w+)"/g)].map(([, name]) => name)).toEqual([
      'find_product',
      'get_stock_level',
      'list_low_stock',
      'reserve_stock',
      'transfer_stock',
    ])
    expect(page).toContain(
      'find_product<small>Looks products up by words in the title, by brand or by category. (may change or delete data)</small>',
    )
    expect(page).toContain('name="days" value="30" checked')
    expect(page).not.toContain('name="access" value="all" checked')
    expect(response.headers.get('content-security-policy')).toContain("form-action 'self' http://127.0.0.1:4444")
  })

  test('shows a name without what would turn the words around it', async () => {
    const { response } = await opened({}, { client_name: 'Good\u202e\u0000\nName' })
    expect(await response.text()).toContain('GoodName (not verified)')
    const blank = await opened({}, { client_name: '\u3164 \u2800\ufe0f\u115f' })
    expect(await blank.response.text()).toContain('without a name (not verified)')
  })

  async function mockOf(name: string, tools: readonly object[]): Promise<void> {
    const as = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
    const send = (path: string, body: object) =>
      platform.fetch(path, { method: 'PUT', headers: as, body: JSON.stringify(body) })
    expect((await send(`/servers/ada/${name}`, { tools })).status).toBe(201)
    expect((await send(`/connect/ada/${name}`, { server: `ada/${name}`, mock: { enabled: true } })).status).toBe(201)
  }

  test('shows what hides in the name of a tool, and allows the tool of that very name', async () => {
    const tools = ['list_issues', 'list_\u200bissues', 'eteled\u202e'].map((name) => ({
      name,
      inputSchema: { type: 'object' },
    }))
    await mockOf('hidden', tools)
    const of = `${issuer}/connect/ada/hidden/mcp`
    const { response } = await opened({ resource: of })
    const page = await response.text()
    for (const shown of ['> list_issues<', '> list_\\u{200b}issues<', '> eteled\\u{202e}<'])
      expect(page).toContain(shown)
    expect(page.replaceAll(/value="[^"]*"/g, '')).not.toMatch(/[\u200b\u202e]/)
    const { answer } = await signInClient(platform, { access: 'some', tool: 'list_\u200bissues' }, 'ada', {
      resource: of,
    })
    const { pathname } = new URL(of)
    expect((await callTool(platform, answer.access_token, 'list_\u200bissues', pathname)).status).toBe(200)
    expect((await callTool(platform, answer.access_token, 'list_issues', pathname)).status).toBe(403)
  })

  test('has a field for names, where those of all tools would be too long a list', async () => {
    const tools = Array.from({ length: 150 }, (_, i) => ({
      name: `tool_${i}`.padEnd(128, '_'),
      inputSchema: { type: 'object' },
    }))
    await mockOf('wordy', tools)
    const { response } = await opened({ resource: `${issuer}/connect/ada/wordy/mcp` })
    expect(await response.text()).toContain('Names of tools')
  })

  test('shows a name as text', async () => {
    const { response } = await opened({}, { client_name: '<script>alert(1)</script>' })
    const page = await response.text()
    expect(page).toContain('&lt;script&gt;')
    expect(page).not.toContain('<script')
  })

  test('of a client on our own host ends the sessions, whose cookies that client would get', async () => {
    const local = 'http://localhost:5555/callback'
    const { client_id: clientId } = await register(platform, { redirect_uris: [local, redirectUri] })
    for (const [uri, ends] of [
      [redirectUri, false],
      [local, true],
    ] as const) {
      const signIn = await post(platform, '/signin', { key: sampleKeys.ada })
      const cookie = signIn.headers
        .getSetCookie()
        .map((one) => one.split(';')[0])
        .join('; ')
      const path = authorizePath({ clientId, verifier: newVerifier() }, { redirect_uri: uri })
      const response = await decide(platform, path, cookie)
      expect([response.status, sentBack(response).has('code')]).toEqual([303, true])
      const forgotten = response.headers
        .getSetCookie()
        .filter((one) => one.includes('=; ') && one.includes('Max-Age=0'))
      expect(forgotten.map((one) => one.split('=')[0])).toEqual(ends ? ['postern', 'postern_console'] : [])
      expect((await platform.fetch(path, { headers: { cookie } })).status).toBe(ends ? 303 : 200)
      // The console's cookie is the user's key at the whole interface.
      const headers = { cookie, 'sec-fetch-site': 'same-origin' }
      expect((await platform.fetch('/me', { headers })).status).toBe(ends ? 401 : 200)
    }
  })

  test('gives nothing for a form that arrives after the session has ended', async () => {
    const { path, cookie, response } = await opened()
    const { form = '' } = fieldsOf(await response.text())
    const signOut = async () => {
      const page = await (await platform.fetch('/signin', { headers: { cookie } })).text()
      const { form: end = '' } = fieldsOf(page)
      expect((await post(platform, '/signin', { end: '1', form: end }, cookie)).status).toBe(303)
    }
    const fields = new URLSearchParams({ form, access: 'all', days: '30', decision: 'allow' }).toString()
    const answer = await platform.fetch(path, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded', cookie },
      body: slowBody(fields, signOut),
    })
    expect([answer.status, new URL(answer.headers.get('location') ?? '').pathname]).toEqual([303, '/signin'])
  })

  test('is good for its own request only: not for another one, another user, or without its form', async () => {
    const { path, cookie, response } = await opened()
    const { form = '' } = fieldsOf(await response.text())
    const fields = { access: 'all', days: '30', decision: 'allow' }
    expect((await post(platform, path, fields, cookie)).status).toBe(403)
    expect((await post(platform, `${path}&x=1`, { ...fields, form }, cookie)).status).toBe(403)
    expect((await post(platform, path, { ...fields, form }, await signedIn(platform, 'grace'))).status).toBe(403)
    expect((await post(platform, path, { ...fields, form }, cookie)).status).toBe(303)
    // Another connection stands under the name that the page showed.
    const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
    const connection = resource.slice(issuer.length, -'/mcp'.length)
    await platform.fetch(connection, { method: 'DELETE', headers })
    const body = JSON.stringify({ mcpUrl: 'https://elsewhere.example.com/mcp', mock: { enabled: false } })
    expect((await platform.fetch(connection, { method: 'PUT', headers, body })).status).toBe(201)
    expect((await post(platform, path, { ...fields, form }, cookie)).status).toBe(403)
  })

  const wrong: Record<string, Record<string, string | string[]>> = {
    'no decision': { decision: 'yes' },
    'other days': { days: '365' },
    'another access': { access: 'none' },
    'some without a tool': { access: 'some' },
    'all, and some of them': { access: 'all', tool: 'find_product' },
    'tools that do not fit a token': { access: 'some', tool: Array.from({ length: 100 }, (_, i) => `${i}_tool_${i}`) },
    // Their pattern is short, as they begin alike; their grant would not be.
    'tools that do not fit a grant': {
      access: 'some',
      tool: Array.from({ length: 90 }, (_, i) => `${'\u0001'.repeat(150)}${i}`),
    },
  }
  for (const [what, fields] of Object.entries(wrong)) {
    test(`is refused with ${what}`, async () => {
      const { path, cookie } = await opened()
      const response = await decide(platform, path, cookie, fields)
      expect([response.status, response.headers.get('location')]).toEqual([400, null])
    })
  }

  test('leads back with a code, the state and the issuer; or with access_denied', async () => {
    const { path, cookie } = await opened()
    const allowed = sentBack(await decide(platform, path, cookie))
    expect([[...allowed.keys()], allowed.get('state'), allowed.get('iss')]).toEqual([
      ['code', 'state', 'iss'],
      'st/ate +1',
      issuer,
    ])
    const denied = sentBack(await decide(platform, path, cookie, { decision: 'deny' }))
    expect([...denied]).toEqual([
      ['error', 'access_denied'],
      ['state', 'st/ate +1'],
      ['iss', issuer],
    ])
    expect(await grantsNow()).toEqual([])
  })
})

describe('a code', () => {
  const coded = async () => {
    const { client_id: clientId } = await register(platform)
    const verifier = newVerifier()
    const back = await decide(platform, authorizePath({ clientId, verifier }), await signedIn(platform))
    const code = sentBack(back).get('code') ?? ''
    return {
      grant_type: 'authorization_code',
      code,
      client_id: clientId,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    }
  }
  const wrong: Record<string, [change: Record<string, string>, error: string, status?: number]> = {
    'another verifier': [{ code_verifier: newVerifier() }, 'invalid_grant'],
    'a verifier that is none': [{ code_verifier: 'short' }, 'invalid_grant'],
    'no verifier': [{ code_verifier: '' }, 'invalid_request'],
    'another redirect URI': [{ redirect_uri: 'http://127.0.0.1:4445/callback' }, 'invalid_grant'],
    'another resource': [{ resource: `${issuer}/connect/northwind/inventory-eu/mcp` }, 'invalid_target'],
    'another code': [{ code: 'x' }, 'invalid_grant'],
    'an unknown client': [{ client_id: 'mcp_x' }, 'invalid_client', 401],
    'a client id without end': [{ client_id: 'a'.repeat(5000) }, 'invalid_client', 401],
    'another grant type': [{ grant_type: 'password' }, 'unsupported_grant_type'],
  }
  for (const [what, [change, error, status = 400]] of Object.entries(wrong)) {
    test(`is not good with ${what}, and still good after that`, async () => {
      const fields = await coded()
      expect(await exchange(platform, { ...fields, ...change })).toMatchObject({ status, error })
      expect((await exchange(platform, { ...fields, resource })).status).toBe(200)
    })
  }

  test('is not good for another client', async () => {
    const fields = await coded()
    const { client_id } = await register(platform)
    expect(await exchange(platform, { ...fields, client_id })).toMatchObject({ status: 400, error: 'invalid_grant' })
  })

  test('is good for a minute', async () => {
    const [first, second] = [await coded(), await coded()]
    platform.now += codeSeconds * 1000 - 1000
    expect((await exchange(platform, first)).status).toBe(200)
    platform.now += 1000
    expect(await exchange(platform, second)).toMatchObject({ status: 400, error: 'invalid_grant' })
  })

  test('works once: a second time ends what the first one gave', async () => {
    const fields = await coded()
    const first = await exchange(platform, fields)
    expect(await exchange(platform, fields)).toMatchObject({ status: 400, error: 'invalid_grant' })
    expect((await callTool(platform, first.access_token, 'find_product')).status).toBe(401)
    expect(await refresh(platform, fields.client_id, first.refresh_token)).toMatchObject({ error: 'invalid_grant' })
    expect(platform.audited.at(-1)).toMatchObject({ event: 'grant.ended', reason: 'code used twice' })
  })

  test('ends what it gave when it comes again, long after its minute', async () => {
    const fields = await coded()
    const first = await exchange(platform, fields)
    platform.now += 20 * 60_000
    expect((await callTool(platform, first.access_token, 'find_product')).status).toBe(200)
    expect(await exchange(platform, fields)).toMatchObject({ status: 400, error: 'invalid_grant' })
    expect((await callTool(platform, first.access_token, 'find_product')).status).toBe(401)
    expect(await grantsNow()).toEqual([])
  })

  test('works once when it is sent many times at once: none of what comes of it lives', async () => {
    const fields = await coded()
    const answers = await Promise.all(Array.from({ length: 8 }, () => exchange(platform, fields)))
    const given = answers.filter(({ status }) => status === 200)
    expect(given.length).toBeLessThanOrEqual(1)
    for (const { access_token } of given)
      expect((await callTool(platform, access_token, 'find_product')).status).toBe(401)
    expect(await grantsNow()).toEqual([])
  })

  test('is worth nothing once its user’s key is revoked', async () => {
    const fields = await coded()
    await revokeApiKey(platform.store, await keyIdOf(platform, 'ada'), new Date(0))
    expect(await exchange(platform, fields)).toMatchObject({ status: 400, error: 'invalid_grant' })
  })
})

describe('an access token', () => {
  test('is good at its own endpoint only', async () => {
    const { answer } = await signInClient(platform)
    const authorization = `Bearer ${answer.access_token}`
    expect((await callTool(platform, answer.access_token, 'find_product')).status).toBe(200)
    for (const path of ['/connect/northwind/inventory-eu/mcp', '/connect/ada/weather-cabin/mcp'])
      expect((await callTool(platform, answer.access_token, 'find_product', path)).status).toBe(401)
    for (const [method, path] of [
      ['POST', '/tokens'],
      ['GET', '/connect/northwind'],
      ['GET', '/connect/northwind/inventory-us-west'],
      ['GET', '/connect/northwind/inventory-us-west/.tools'],
      ['DELETE', '/connect/northwind/inventory-us-west'],
      ['GET', '/servers/northwind/inventory'],
    ] as const)
      expect({ path, status: (await platform.fetch(path, { method, headers: { authorization } })).status }).toEqual({
        path,
        status: 401,
      })
    // Here again, now that it is known.
    expect((await callTool(platform, answer.access_token, 'find_product')).status).toBe(200)
  })

  test('calls only the tools that were chosen, and sees no others', async () => {
    const { answer } = await signInClient(platform, { access: 'some', tool: ['find_product', 'list_low_stock'] })
    const status = async (name: string) => (await callTool(platform, answer.access_token, name)).status
    expect([await status('find_product'), await status('list_low_stock')]).toEqual([200, 200])
    expect([await status('reserve_stock'), await status('find_product_'), await status('afind_product')]).toEqual([
      403, 403, 403,
    ])
    const list = await platform.fetch(mcpPath, {
      method: 'POST',
      headers: { authorization: `Bearer ${answer.access_token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
    })
    const names = [...(await list.text()).matchAll(/"name":"(\w+)"/g)].map(([, name]) => name)
    expect(names).toEqual(['find_product', 'list_low_stock'])
  })

  test('for some tools is good for nothing else that has a name', async () => {
    const { answer } = await signInClient(platform, { access: 'some', tool: ['find_product'] })
    const send = async (method: string, params: object) => {
      const response = await platform.fetch(mcpPath, {
        method: 'POST',
        headers: { authorization: `Bearer ${answer.access_token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
      })
      return response.status
    }
    expect(await send('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: {} })).toBe(200)
    for (const method of ['prompts/get', 'resources/read', 'logging/setLevel', 'completion/complete']) {
      expect({ method, status: await send(method, { name: 'find_product', uri: 'x' }) }).toEqual({
        method,
        status: 403,
      })
    }
  })

  test('for a tool whose name has spaces is good for that tool and not for its words', async () => {
    const one = await signInClient(platform, { access: 'some', tool: ['x find_product', 'list_low_stock'] })
    expect((await callTool(platform, one.answer.access_token, 'find_product')).status).toBe(403)
    const typed = await signInClient(platform, { access: 'some', tool: ['find_product, list_low_stock'], typed: '1' })
    for (const name of ['find_product', 'list_low_stock'])
      expect((await callTool(platform, typed.answer.access_token, name)).status).toBe(200)
  })

  test('is for the connection that was allowed, and not for a later one of the same name', async () => {
    const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
    const made = () =>
      platform.fetch('/connect/ada/again', {
        method: 'PUT',
        headers,
        body: JSON.stringify({ server: 'northwind/inventory', mock: { enabled: true } }),
      })
    await made()
    const allowed = `${issuer}/connect/ada/again/mcp`
    const { clientId, answer } = await signInClient(platform, {}, 'ada', { resource: allowed })
    const status = async () =>
      (await callTool(platform, answer.access_token, 'find_product', '/connect/ada/again/mcp')).status
    expect(await status()).toBe(200)
    await platform.fetch('/connect/ada/again', { method: 'DELETE', headers })
    expect((await refresh(platform, clientId, answer.refresh_token)).error).toBe('invalid_grant')
    // Within the same second, too: tokens do not know the time more exactly.
    platform.now += 1
    await made()
    expect(await status()).toBe(401)
    platform.now += 1000
    expect(await status()).toBe(401)
    expect((await refresh(platform, clientId, answer.refresh_token)).error).toBe('invalid_grant')
  })

  test('expires after an hour, and dies with its key and with its grant', async () => {
    const { answer } = await signInClient(platform)
    const status = async (token: string) => (await callTool(platform, token, 'find_product')).status
    platform.now += accessTokenSeconds * 1000 - 1000
    expect(await status(answer.access_token)).toBe(200)
    platform.now += 1000
    expect(await status(answer.access_token)).toBe(401)
    const second = (await signInClient(platform)).answer
    const [, grant] = await grantsNow()
    await endGrant(platform.store, grant?.grantId ?? '', platform.now / 1000)
    expect(await status(second.access_token)).toBe(401)
    const third = (await signInClient(platform)).answer
    await revokeApiKey(platform.store, await keyIdOf(platform, 'ada'), new Date(0))
    expect(await status(third.access_token)).toBe(401)
  })

  test('does not outlive its grant', async () => {
    const { answer, clientId } = await signInClient(platform, { days: '1' })
    platform.now += 24 * 3_600_000 - 60_000
    const last = await refresh(platform, clientId, answer.refresh_token)
    expect([last.status, last.expires_in]).toEqual([200, 60])
    platform.now += 60_000
    expect((await refresh(platform, clientId, last.refresh_token)).error).toBe('invalid_grant')
  })
})

describe('a refresh token', () => {
  test('gives a new one each time', async () => {
    const { clientId, answer } = await signInClient(platform)
    platform.now += accessTokenSeconds * 1000
    const second = await refresh(platform, clientId, answer.refresh_token)
    expect((await callTool(platform, second.access_token, 'find_product')).status).toBe(200)
    const third = await refresh(platform, clientId, second.refresh_token)
    expect(new Set([answer.refresh_token, second.refresh_token, third.refresh_token]).size).toBe(3)
  })

  test('that was used before ends everything', async () => {
    const { clientId, answer } = await signInClient(platform)
    const second = await refresh(platform, clientId, answer.refresh_token)
    expect(await refresh(platform, clientId, answer.refresh_token)).toMatchObject({
      status: 400,
      error: 'invalid_grant',
    })
    expect((await refresh(platform, clientId, second.refresh_token)).error).toBe('invalid_grant')
    expect((await callTool(platform, second.access_token, 'find_product')).status).toBe(401)
    expect(platform.audited.at(-1)).toMatchObject({ event: 'grant.ended', reason: 'refresh token used twice' })
  })

  describe('whose answer nobody can have got', () => {
    /** The next write is done, or not, and nobody learns which. */
    function loseNextCommit(isDone: boolean): void {
      const { store } = platform
      const { commit } = store
      const losing = async (write: Write) => {
        Object.assign(store, { commit })
        if (isDone) await commit.call(store, write)
        throw new StoreError('indeterminate', 'the connection was lost')
      }
      Object.assign(store, { commit: losing })
    }

    for (const isDone of [true, false]) {
      test(`is good once more: the write was ${isDone ? '' : 'not '}done`, async () => {
        const { clientId, answer } = await signInClient(platform)
        loseNextCommit(isDone)
        expect((await refresh(platform, clientId, answer.refresh_token)).status).toBe(503)
        const second = await refresh(platform, clientId, answer.refresh_token)
        expect(second.status).toBe(200)
        expect((await callTool(platform, second.access_token, 'find_product')).status).toBe(200)
        const third = await refresh(platform, clientId, second.refresh_token)
        expect(third.status).toBe(200)
        // Once, and no longer.
        expect((await refresh(platform, clientId, second.refresh_token)).error).toBe('invalid_grant')
        expect((await refresh(platform, clientId, third.refresh_token)).error).toBe('invalid_grant')
      })
    }

    test('is good once, however many send it again', async () => {
      const { clientId, answer } = await signInClient(platform)
      loseNextCommit(true)
      expect((await refresh(platform, clientId, answer.refresh_token)).status).toBe(503)
      const all = await Promise.all(Array.from({ length: 5 }, () => refresh(platform, clientId, answer.refresh_token)))
      expect(all.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1)
      expect(await grantsNow()).toEqual([])
    })

    test('is not good after its successor was used', async () => {
      const { clientId, answer } = await signInClient(platform)
      loseNextCommit(true)
      expect((await refresh(platform, clientId, answer.refresh_token)).status).toBe(503)
      const second = await refresh(platform, clientId, answer.refresh_token)
      loseNextCommit(true)
      expect((await refresh(platform, clientId, second.refresh_token)).status).toBe(503)
      expect((await refresh(platform, clientId, answer.refresh_token)).error).toBe('invalid_grant')
      expect(await grantsNow()).toEqual([])
    })
  })

  test('sent many times at once gives one answer at most, and ends', async () => {
    const { clientId, answer } = await signInClient(platform)
    const all = await Promise.all(Array.from({ length: 5 }, () => refresh(platform, clientId, answer.refresh_token)))
    expect(all.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1)
    expect(await grantsNow()).toEqual([])
  })

  test('that was made up, altered, or is another client’s changes nothing', async () => {
    const { clientId, answer } = await signInClient(platform)
    const [grant = '', , mac = ''] = answer.refresh_token.split('.')
    for (const token of [
      `${grant}.1.${mac}`,
      `${grant}.0.${mac.slice(1)}a`,
      `${grant}.0.${'a'.repeat(43)}`,
      grant,
      'x',
    ]) {
      expect((await refresh(platform, clientId, token)).error).toBe('invalid_grant')
    }
    const { client_id: other } = await register(platform)
    expect((await refresh(platform, other, answer.refresh_token)).error).toBe('invalid_grant')
    expect((await refresh(platform, clientId, answer.refresh_token)).status).toBe(200)
  })

  test('is not given to a client without that grant type', async () => {
    const { client_id: clientId } = await register(platform, { grant_types: undefined })
    const verifier = newVerifier()
    const back = await decide(platform, authorizePath({ clientId, verifier }), await signedIn(platform))
    const answer = await exchange(platform, {
      grant_type: 'authorization_code',
      code: sentBack(back).get('code') ?? '',
      client_id: clientId,
      redirect_uri: redirectUri,
      code_verifier: verifier,
    })
    expect(answer).not.toHaveProperty('refresh_token')
  })
})

describe('revocation', () => {
  for (const which of ['refresh_token', 'access_token'] as const) {
    test(`of the ${which} ends the grant`, async () => {
      const { clientId, answer } = await signInClient(platform)
      const response = await post(platform, '/oauth/revoke', { token: answer[which] })
      expect([response.status, await response.text()]).toEqual([200, ''])
      expect((await callTool(platform, answer.access_token, 'find_product')).status).toBe(401)
      expect((await refresh(platform, clientId, answer.refresh_token)).error).toBe('invalid_grant')
    })
  }

  test('of anything else is answered alike, and ends nothing', async () => {
    const { answer } = await signInClient(platform)
    const service = await mintToken(platform.fetch, sampleKeys.ada)
    for (const token of ['x', service, `${answer.access_token}x`, answer.refresh_token.slice(0, -1)]) {
      expect((await post(platform, '/oauth/revoke', { token })).status).toBe(200)
    }
    expect((await callTool(platform, answer.access_token, 'find_product')).status).toBe(200)
    expect((await platform.fetch('/connect/ada', { headers: { authorization: `Bearer ${service}` } })).status).toBe(200)
  })
})

test('a client that signed in here is not told to sign in here again where the server behind wants a sign-in', async () => {
  platform = await createTestPlatform({
    upstream: { send: async () => ({ status: 401, headers: {}, body: undefined }) },
  })
  const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
  const body = JSON.stringify({ mcpUrl: 'https://mcp.example.com/mcp' })
  await platform.fetch('/connect/ada/closed', { method: 'PUT', headers, body })
  const { answer } = await signInClient(platform, {}, 'ada', { resource: `${issuer}/connect/ada/closed/mcp` })
  const call = await callTool(platform, answer.access_token, 'any', '/connect/ada/closed/mcp')
  expect([call.status, call.challenge]).toEqual([403, 'Bearer realm="postern"'])
  expect(JSON.parse(call.text).error).toMatchObject({
    code: -32_001,
    data: { authorizationUrl: `${issuer}/connect/ada/closed/setup` },
  })
  // With a key or a service token it is a 401, which is nobody's to sign in to here.
  expect((await callTool(platform, sampleKeys.ada, 'any', '/connect/ada/closed/mcp')).status).toBe(401)
})

test('nothing that a client holds is in the store in the clear, in the log or in the audit log', async () => {
  const { client_id: clientId } = await register(platform)
  const verifier = newVerifier()
  const cookie = await signedIn(platform)
  const unused = sentBack(await decide(platform, authorizePath({ clientId, verifier }), cookie)).get('code') ?? 'none'
  const { answer, fields } = await signInClient(platform)
  const renewed = await refresh(platform, fields['client_id'] ?? '', answer.refresh_token)
  await callTool(platform, renewed.access_token, 'find_product')
  const texts = await everythingKept(platform)
  const secrets = [unused, fields['code'] ?? 'none', cookie.split('=')[1] ?? 'none', verifier]
  const tokens = [answer, renewed].flatMap((one) => [one.access_token, one.refresh_token])
  // Of a refresh token only its MAC is secret: the rest is the id of its grant and a number.
  const all = [...secrets, ...tokens.map((token) => token.split('.').at(-1) ?? 'none')]
  expect(all).not.toContain('none')
  expect(all.filter((secret) => texts.includes(secret))).toEqual([])
})

test('answers of the token endpoint are kept by nobody, and its body is a form', async () => {
  const { fields } = await signInClient(platform)
  for (const response of [await post(platform, '/oauth/token', fields), await post(platform, '/oauth/token', {})])
    expect([response.status, response.headers.get('cache-control')]).toEqual([400, 'no-store'])
  const headers = { 'content-type': 'application/json' }
  const json = await platform.fetch('/oauth/token', { method: 'POST', headers, body: JSON.stringify(fields) })
  expect(json.status).toBe(400)
})

test('schemes of applications: some are known, others by flag', async () => {
  const uris = ['vscode://x/cb', 'vscode-insiders://x/cb', 'cursor://x/cb', 'com.example.app:/cb', 'myapp://cb']
  const statuses = () =>
    Promise.all(uris.map(async (uri) => (await register(platform, { redirect_uris: [uri] })).status))
  expect(await statuses()).toEqual([201, 201, 201, 201, 400])
  platform = await createTestPlatform({ redirectSchemes: ['myapp'] })
  expect(await statuses()).toEqual([201, 201, 201, 201, 201])
})

test('a client document is fetched for nobody who has no code and no grant', async () => {
  const fetched: string[] = []
  const upstream = {
    send: async ({ url }: { url: string }) => {
      fetched.push(url)
      return { status: 404, headers: {}, body: undefined }
    },
  }
  platform = await createTestPlatform({ upstream })
  const client_id = 'https://evil.example/client.json'
  for (const grant of [
    { grant_type: 'refresh_token', refresh_token: 'x' },
    { grant_type: 'authorization_code', code: 'x', redirect_uri: redirectUri, code_verifier: newVerifier() },
  ])
    expect(await exchange(platform, { ...grant, client_id })).toMatchObject({ status: 400, error: 'invalid_grant' })
  expect(fetched).toEqual([])
})

test('grants and clients that are over are swept, and those in use stay', async () => {
  await signInClient(platform, { days: '1' })
  const { clientId, answer } = await signInClient(platform, { days: '90' })
  platform.now += 24 * 3_600_000
  await sweepGrants(platform.store, platform.now / 1000)
  expect(await grantsNow()).toHaveLength(1)
  expect((await refresh(platform, clientId, answer.refresh_token)).status).toBe(200)
  platform.now = startOfTime + 400 * 24 * 3_600_000
  await sweepGrants(platform.store, platform.now / 1000)
  expect(await grantsNow()).toEqual([])
  expect((await refresh(platform, clientId, answer.refresh_token)).error).toBe('invalid_client')
})

describe('a user who lets clients in again and again', () => {
  /** As it becomes when its code is redeemed. */
  const clientNow = (clientId: string) => platform.store.get(keyOf('oauthClient', clientId))

  test('allows so much in a minute, redeemed or not, and others allow theirs', async () => {
    const { client_id } = await register(platform)
    const path = authorizePath({ clientId: client_id, verifier: newVerifier() })
    const [ada, linus] = [await signedIn(platform), await signedIn(platform, 'linus')]
    const allow = async (cookie: string) => (await decide(platform, path, cookie)).status
    const statuses: number[] = []
    for (let i = 0; i <= grantsPerMinuteMax; i += 1) statuses.push(await allow(ada))
    expect(statuses).toEqual([...Array(grantsPerMinuteMax).fill(303), 429])
    expect(await allow(linus)).toBe(303)
    platform.now += 1000
    expect([await allow(ada), await allow(ada)]).toEqual([303, 429])
  })

  test('keeps the last of its grants and clients, and takes none of others', async () => {
    const { store } = platform
    const { clientId, answer } = await signInClient(platform)
    const [grant] = await grantsNow()
    if (grant === undefined) throw new Error('there is no grant')
    const client = JSON.parse(Buffer.from((await clientNow(clientId)) ?? '').toString())
    expect(client).toMatchObject({ userId: 'ada' })
    const later = (i: number) => new Date(Date.parse(grant.createdAt) + i * 1000).toISOString()
    const grantsOf = (userId: string, count: number) =>
      Array.from({ length: count }, (_, i) => {
        const grantId = `grant_${userId}${String(i).padStart(18, '0')}`
        return withIndex(grantEntry({ ...grant, userId, grantId, createdAt: later(i + 1) }))
      }).flat()
    const clientsOf = (userId: string, count: number) =>
      Array.from({ length: count }, (_, i) => ({
        key: keyOf('oauthClient', `mcp_${userId}${i}`),
        value: Buffer.from(JSON.stringify({ ...client, userId, usedAt: client.usedAt + i + 1 })),
      }))
    await store.commit({
      puts: [
        ...[...grantsOf('ada', userGrantsMax - 1), ...grantsOf('bo', 3)],
        ...[...clientsOf('ada', userClientsMax - 1), ...clientsOf('bo', 3)],
      ],
    })
    const sweep = () => sweepGrants(store, platform.now / 1000)
    expect(await sweep()).toEqual([])
    expect((await refresh(platform, clientId, answer.refresh_token)).status).toBe(200)
    // One more of each: the first ones end.
    await store.commit({
      puts: [
        ...withIndex(grantEntry({ ...grant, grantId: `grant_ada${'9'.repeat(19)}`, createdAt: later(5000) })),
        { key: keyOf('oauthClient', 'mcp_ada-last'), value: Buffer.from(JSON.stringify({ ...client, usedAt: 1e10 })) },
      ],
    })
    expect(await sweep()).toEqual([grant.grantId])
    expect(await clientNow(clientId)).toBeUndefined()
    expect((await callTool(platform, answer.access_token, 'find_stock')).status).toBe(401)
    const left = await grantsNow()
    expect([left.length, left.filter(({ userId }) => userId === 'bo').length]).toEqual([userGrantsMax + 3, 3])
    expect(await clientNow('mcp_bo0')).toBeDefined()
    expect(await sweep()).toEqual([])
  })
})
