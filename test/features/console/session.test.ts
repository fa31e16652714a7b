/** Sessions at the console: when a cookie counts in place of an API key, and when it ends (contract, 23.2). */

import { beforeEach, describe, expect, test } from 'bun:test'
import { mintToken } from '../../api/cases.ts'
import { sampleApis } from '../../support/api.ts'
import { post } from '../../support/pages.ts'
import { createTestPlatform, issuer, keyIdOf, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

let platform: TestPlatform
beforeEach(async () => {
  platform = await createTestPlatform()
})

interface Browser {
  readonly cookie: string
  readonly csrf: string
}

/** A request as a page of ours sends it. */
async function send(
  method: string,
  path: string,
  { cookie, csrf }: Partial<Browser>,
  more: Record<string, string> = {},
) {
  const headers = {
    'sec-fetch-site': 'same-origin',
    ...(cookie !== undefined && { cookie }),
    ...(csrf !== undefined && { 'x-postern-csrf': csrf }),
    ...more,
  }
  const response = await platform.fetch(path, { method, headers })
  const text = await response.text()
  return { status: response.status, body: text === '' ? undefined : JSON.parse(text), headers: response.headers }
}

async function start(key: string) {
  const headers = { 'content-type': 'application/json', origin: new URL(issuer).origin }
  return platform.fetch('/console/session', { method: 'POST', headers, body: JSON.stringify({ key }) })
}
async function signIn(key: string = sampleKeys.ada): Promise<Browser> {
  const response = await start(key)
  const { csrf } = (await response.json()) as { csrf: string }
  return { cookie: response.headers.get('set-cookie')?.split(';')[0] ?? '', csrf }
}
const status = async (...asked: Parameters<typeof send>) => (await send(...asked)).status

describe('signing in', () => {
  test('takes an API key, and gives a cookie that scripts and other sites cannot use', async () => {
    const response = await start(sampleKeys.ada)
    expect([response.status, await response.json()]).toEqual([
      200,
      {
        ...{ userId: 'ada', operator: false, key: { id: await keyIdOf(platform, 'ada'), name: "Ada's laptop" } },
        ...{ csrf: expect.stringMatching(/^[\w-]{43}$/), expiresAt: '2026-03-02T21:00:00.000Z' },
      },
    ])
    expect(response.headers.getSetCookie()[0]).toMatch(
      /^postern_console=[\w-]{51}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/,
    )
    expect(platform.audited.at(-1)).toMatchObject({ event: 'signin.session', userId: 'ada', how: 'console' })
  })

  test('refuses tokens, keys of organizations and wrong keys alike', async () => {
    const token = await mintToken(platform.fetch, sampleKeys.ada)
    const { key } = (await sampleApis(platform.fetch).ada('POST /organizations/org_northwind/api-keys', { name: 'x' }))
      .body
    for (const one of [token, key, 'wrong']) expect((await start(one)).status).toBe(401)
    // The other pages take an organization's key, and begin no session here.
    const signedIn = await post(platform, '/signin', { key })
    expect(signedIn.headers.getSetCookie().map((one) => one.split('=')[0])).toEqual(['postern'])
    expect(new URL(signedIn.headers.get('location') ?? '').pathname).toBe('/signin')
    for (const body of ['', '{}', '{"key":1}', '{"key":"x","more":1}']) {
      const headers = { 'content-type': 'application/json' }
      expect((await platform.fetch('/console/session', { method: 'POST', headers, body })).status).toBe(400)
    }
  })
})

describe('the cookie', () => {
  test('has the rights of its key, at the whole interface', async () => {
    const ada = await signIn()
    expect((await send('GET', '/me', ada)).body).toMatchObject({ userId: 'ada', token: null, console: true })
    expect(await status('GET', '/connect/northwind', ada)).toBe(200)
    expect(await status('PUT', '/namespaces/ada-console', ada)).toBe(201)
    expect(await status('POST', '/tokens', ada)).toBe(200)
    expect(await status('GET', '/audit', ada)).toBe(403)
    expect(await status('GET', '/audit', await signIn(sampleKeys.operator))).toBe(200)
  })

  test('counts in requests of our own pages alone', async () => {
    const ada = await signIn()
    for (const site of ['cross-site', 'same-site', 'none'])
      expect(await status('GET', '/me', ada, { 'sec-fetch-site': site })).toBe(401)
    expect((await platform.fetch('/me', { headers: { cookie: ada.cookie } })).status).toBe(401)
  })

  test('needs the secret of the page where something may be changed', async () => {
    const [ada, grace] = [await signIn(), await signIn(sampleKeys.grace)]
    for (const csrf of ['', 'x', grace.csrf]) {
      expect(await status('PUT', '/namespaces/ada-console', { ...ada, csrf })).toBe(401)
      expect(await status('DELETE', '/connect/northwind/crm-ada', { ...ada, csrf })).toBe(401)
      expect(await status('POST', '/tokens', { cookie: ada.cookie, csrf })).toBe(401)
      expect(await status('GET', '/me', { cookie: ada.cookie, csrf })).toBe(200)
    }
  })

  test('is ignored at the endpoints of MCP and OAuth, and beside `Authorization`', async () => {
    const ada = await signIn()
    for (const path of ['/connect/northwind/mcp', '/connect/northwind/crm-ada/mcp', '/connect/northwind/mcp/view'])
      expect(await status('POST', path, ada)).toBe(401)
    const headers = { authorization: `Bearer ${sampleKeys.linus}` }
    expect((await send('GET', '/me', ada, headers)).body.userId).toBe('linus')
    for (const [method, path] of [
      ['GET', '/me'],
      ['GET', '/console/session'],
      ['DELETE', '/console/session'],
    ] as const)
      expect(await status(method, path, ada, { authorization: 'Bearer wrong' })).toBe(401)
    expect(await status('GET', '/me', ada)).toBe(200)
  })

  test('that somebody made up, or sends twice, is none', async () => {
    const { cookie } = await signIn()
    for (const wrong of [`${cookie}x`, 'postern_console=x', `${cookie}; ${cookie}`, cookie.replace('_console', '')])
      expect(await status('GET', '/me', { cookie: wrong })).toBe(401)
  })
})

describe('a session ends', () => {
  test('when its user signs out, in all tabs of this browser', async () => {
    const [one, other] = [await signIn(), await signIn()]
    expect(await status('DELETE', '/console/session', { cookie: one.cookie })).toBe(401)
    const ended = await send('DELETE', '/console/session', one)
    expect([ended.status, ended.headers.get('set-cookie')]).toEqual([200, expect.stringContaining('Max-Age=0')])
    expect(await status('GET', '/me', one)).toBe(401)
    expect(await status('GET', '/console/session', one)).toBe(401)
    expect(await status('GET', '/me', other)).toBe(200)
    expect(platform.audited.at(-1)).toMatchObject({ event: 'signin.ended', userId: 'ada', everywhere: false })
  })

  test('at the other pages too: here, and everywhere', async () => {
    const isKnown = async (cookie: string) =>
      (await (await platform.fetch('/signin', { headers: { cookie } })).text()).includes('ada')
    const begin = async () => {
      const response = await start(sampleKeys.ada)
      const { csrf } = (await response.json()) as { csrf: string }
      const [cookie = '', others = ''] = response.headers.getSetCookie().map((one) => one.split(';')[0] ?? '')
      return { cookie: `${cookie}; ${others}`, csrf, others }
    }
    const [one, other] = [await begin(), await begin()]
    expect([await isKnown(one.others), await isKnown(other.others)]).toEqual([true, true])
    await send('DELETE', '/console/session', one)
    expect([await isKnown(one.others), await isKnown(other.others)]).toEqual([false, true])
    await send('DELETE', '/console/session?everywhere=true', await begin())
    expect(await isKnown(other.others)).toBe(false)
    // A sign-out there ends it here, by the form of that page alone.
    platform.now += 1
    const last = await begin()
    expect(await isKnown(last.others)).toBe(true)
    const page = await (await platform.fetch('/signin', { headers: { cookie: last.cookie } })).text()
    const form = new URLSearchParams({ end: '1', form: /name="form" value="([^"]+)"/.exec(page)?.[1] ?? '' })
    const end = (cookie: string, body: URLSearchParams) =>
      platform.fetch('/signin', { method: 'POST', headers: { cookie, origin: new URL(issuer).origin }, body })
    await end(last.cookie.split('; ')[0] ?? '', new URLSearchParams({ end: '1' }))
    expect(await status('GET', '/me', last)).toBe(200)
    await end(last.cookie, form)
    expect([await isKnown(last.others), await status('GET', '/me', last)]).toEqual([false, 401])
  })

  test('everywhere, and a later one is good', async () => {
    const [one, other, grace] = [await signIn(), await signIn(), await signIn(sampleKeys.grace)]
    // The clock of the replica that ends them may be behind.
    platform.now -= 4000
    expect(await status('DELETE', '/console/session?everywhere=true', one)).toBe(200)
    expect([await status('GET', '/me', other), await status('GET', '/me', grace)]).toEqual([401, 200])
    expect(await status('GET', '/me', await signIn())).toBe(200)
  })

  test('with its key, and after twelve hours', async () => {
    const ada = await signIn()
    expect((await send('GET', '/console/session', ada)).body).toMatchObject({ userId: 'ada', csrf: ada.csrf })
    platform.now += 12 * 3600 * 1000
    expect(await status('GET', '/me', ada)).toBe(401)
    const again = await signIn()
    const operator = sampleApis(platform.fetch).operator
    await operator(`DELETE /api-keys/${await keyIdOf(platform, 'ada')}`)
    expect(await status('GET', '/me', again)).toBe(401)
  })
})

test('without a console there is nothing of it', async () => {
  const { cookie, csrf } = await signIn()
  platform = await createTestPlatform({ store: platform.store, hasConsole: false })
  expect((await start(sampleKeys.ada)).status).toBe(404)
  for (const path of ['/console/session', '/events']) expect(await status('GET', path, { cookie, csrf })).toBe(404)
  expect(await status('GET', '/me', { cookie, csrf })).toBe(401)
  expect((await sampleApis(platform.fetch).ada('GET /me')).body.console).toBe(false)
})
