/** Browser sessions: signing in with a key or a link, where it leads, and how it ends. */

import { beforeEach, describe, expect, test } from 'bun:test'
import { revokeApiKey } from '../../../src/auth/api-key.ts'
import { createExpiringRecords, expiredRecordsDeletedMax } from '../../../src/auth/expiring-records.ts'
import { browserSessionSeconds, loginLinkSeconds } from '../../../src/limits.ts'
import { prefixOf, prefixRange } from '../../../src/storage/keys.ts'
import { clockOf } from '../../support/clock.ts'
import { cookieIn, fieldsOf, post } from '../../support/pages.ts'
import { createTestPlatform, issuer, keyIdOf, seed, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

let platform: TestPlatform
beforeEach(async () => {
  platform = await createTestPlatform()
})

const get = (path: string, cookie = '') => platform.fetch(path, { headers: { cookie } })
const signIn = (fields: Record<string, string>, cookie = '') => post(platform, '/signin', fields, cookie)
const isSignedIn = async (cookie: string) => (await (await get('/signin', cookie)).text()).includes('You are signed in')

async function cookieOfAda(): Promise<string> {
  return cookieIn(await signIn({ key: sampleKeys.ada }))
}
const recordsNow = () =>
  createExpiringRecords(
    platform.store,
    seed('sign-in key'),
    clockOf(() => platform.now),
  )
const linkFor = async (keyId: string) =>
  `/signin?link=${await recordsNow().add('login link', { keyId }, loginLinkSeconds)}`

test('without a console, a sign-in leads to its own page', async () => {
  platform = await createTestPlatform({ hasConsole: false })
  for (const next of ['', '/console']) {
    const response = await signIn({ key: sampleKeys.ada, next })
    expect(response.headers.get('location')).toBe(`${issuer}/signin`)
    expect(response.headers.getSetCookie()).toHaveLength(1)
  }
})

describe('with an API key', () => {
  test('starts a session, here and at the console, and leads to that', async () => {
    const response = await signIn({ key: sampleKeys.ada })
    expect([response.status, response.headers.get('location')]).toEqual([303, `${issuer}/console`])
    const [cookie, atConsole, ...others] = response.headers.getSetCookie()
    expect(cookie).toMatch(/^postern=[0-9a-z]{8}[A-Za-z0-9_-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=43200$/)
    expect(atConsole).toMatch(/^postern_console=[\w-]{51}; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/)
    expect(others).toEqual([])
    const page = await (await get('/signin', cookieIn(response))).text()
    expect(page).toContain('<dd>ada</dd>')
    expect(page).toContain('Did a page or a program send you here?')
    expect(platform.audited).toContainEqual({
      event: 'signin.session',
      userId: 'ada',
      keyId: await keyIdOf(platform, 'ada'),
      how: 'key',
    })
  })

  test('is asked for by a page that says where', async () => {
    const page = await (await get('/signin')).text()
    expect(page).toContain(`<h1>Sign in to ${new URL(issuer).host}</h1>`)
    expect(page).toContain(`Ask an operator of ${new URL(issuer).host}`)
  })

  test('that is wrong is refused with the form, and counts as a failure', async () => {
    platform = await createTestPlatform({ rates: { failures: 0.1 } })
    const wrong = await signIn({ key: 'nope', next: '/connect/ada/one/setup' })
    expect([wrong.status, wrong.headers.get('set-cookie')]).toEqual([401, null])
    const page = await wrong.text()
    expect(page).toContain('This API key is not valid.')
    expect(fieldsOf(page)).toMatchObject({ next: '/connect/ada/one/setup', key: '' })
    for (let i = 0; i < 3; i += 1) await signIn({ key: 'nope' })
    const late = await signIn({ key: 'nope' })
    expect([late.status, late.headers.get('retry-after')]).toEqual([429, expect.stringMatching(/^\d+$/)])
    expect((await signIn({ key: sampleKeys.ada })).status).toBe(303)
  })

  test('does not take a token', async () => {
    const { token } = (await (
      await platform.fetch('/tokens', { method: 'POST', headers: { authorization: `Bearer ${sampleKeys.ada}` } })
    ).json()) as { token: string }
    expect((await signIn({ key: token })).status).toBe(401)
  })
})

describe('next', () => {
  const followed = [
    '/connect/ada/one/setup',
    '/connect/ada/one/setup?ticket=a.b',
    '/oauth/authorize?client_id=a&x=1',
    '/signin/cli?login=a',
    '/console',
    '/console/connections/acme/crm%40x?tab=tools',
  ]
  for (const next of followed) {
    test(`${next} is followed`, async () => {
      expect((await signIn({ key: sampleKeys.ada, next })).headers.get('location')).toBe(`${issuer}${next}`)
    })
  }
  const ignored = [
    'https://evil.example/connect/a/b/setup',
    '//evil.example/oauth/authorize',
    '/\\evil.example/oauth/authorize',
    '/connect/ada/one',
    '/connect/ada/one/setup/more',
    '/connect/../x/y/setup',
    '/oauth/authorize/x',
    '/oauth/authorize?a=\\x',
    '/oauth/authorize\n',
    '/oauth/authorize?x=💥',
    '/oauth/authorize?x=é',
    '/connect/../../setup',
    '/connect/%2e%2e/%2e%2e/setup',
    '/docs',
    '/signin/cli/x',
    '/console/../oauth/x',
    '/console/%2E%2e/x',
    '/console/./x',
    '/console//evil.example',
    '/consoles',
    '',
  ]
  for (const next of ignored) {
    test(`${JSON.stringify(next)} is not followed`, async () => {
      expect((await signIn({ key: sampleKeys.ada, next })).headers.get('location')).toBe(`${issuer}/console`)
    })
  }
})

describe('a session', () => {
  test('ends after twelve hours, and its record is deleted by a later one', async () => {
    const cookie = await cookieOfAda()
    platform.now += browserSessionSeconds * 1000 - 1000
    expect(await isSignedIn(cookie)).toBe(true)
    platform.now += 1000
    expect(await isSignedIn(cookie)).toBe(false)
    platform.now += 1000
    await cookieOfAda()
    const { keys } = await platform.store.keys({ ...prefixRange(prefixOf('expiring')), limit: 10 })
    // One here, and one at the console.
    expect(keys).toHaveLength(2)
  })

  test('does not leave records behind, however many there are', async () => {
    for (let i = 0; i < 3 * expiredRecordsDeletedMax; i += 1) await cookieOfAda()
    platform.now += browserSessionSeconds * 1000 + 1000
    for (let i = 0; i < 4; i += 1) await cookieOfAda()
    const { keys } = await platform.store.keys({ ...prefixRange(prefixOf('expiring')), limit: 100 })
    expect(keys).toHaveLength(8)
  })

  test('does not leave records behind, however many come at once', async () => {
    const many = () => Promise.all(Array.from({ length: 200 }, () => cookieOfAda()))
    for (let round = 0; round < 4; round += 1) {
      await many()
      platform.now += browserSessionSeconds * 1000 + 1000
    }
    const { keys } = await platform.store.keys({ ...prefixRange(prefixOf('expiring')), limit: 1000 })
    expect(keys.length).toBeLessThan(300)
  })

  test('ends with its key', async () => {
    const cookie = await cookieOfAda()
    await revokeApiKey(platform.store, await keyIdOf(platform, 'ada'), new Date(0))
    expect(await isSignedIn(cookie)).toBe(false)
  })

  test('ends by its own form, and not by another site’s', async () => {
    const cookie = await cookieOfAda()
    expect((await signIn({ end: '1' }, cookie)).status).toBe(403)
    expect((await signIn({ end: '1', form: 'x' }, cookie)).status).toBe(403)
    expect(await isSignedIn(cookie)).toBe(true)
    const other = fieldsOf(await (await get('/signin', await cookieOfAda())).text())
    expect((await signIn({ end: '1', form: other['form'] ?? '' }, cookie)).status).toBe(403)
    const { form = '' } = fieldsOf(await (await get('/signin', cookie)).text())
    const ended = await signIn({ end: '1', form }, cookie)
    expect([ended.status, ended.headers.getSetCookie()]).toEqual([
      303,
      [
        'postern=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0',
        'postern_console=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0',
      ],
    ])
    expect(await isSignedIn(cookie)).toBe(false)
  })

  test('is not found by a cookie that is sent twice, altered or of another purpose', async () => {
    const cookie = await cookieOfAda()
    expect(await isSignedIn(`a=b; ${cookie}; c=d`)).toBe(true)
    expect(await isSignedIn(`${cookie}; ${cookie}`)).toBe(false)
    expect(await isSignedIn(`${'a; '.repeat(199)}${cookie}`)).toBe(true)
    expect(await isSignedIn(`${'a; '.repeat(200)}${cookie}`)).toBe(false)
    expect(await isSignedIn(`${cookie}x`)).toBe(false)
    expect(await isSignedIn(`postern=${(await linkFor(await keyIdOf(platform, 'ada'))).split('=')[1]}`)).toBe(false)
  })

  test('has a cookie that is bound to the host where the base URL is https', async () => {
    platform = await createTestPlatform({ issuer: 'https://mcp.example.com' })
    const response = await platform.fetch('/signin', {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ key: sampleKeys.ada }).toString(),
    })
    expect(response.headers.get('set-cookie')).toMatch(
      /^__Host-postern=\S+; Path=\/; HttpOnly; SameSite=Lax; .*Secure$/,
    )
  })

  test('is sealed in the store: a copy of it has neither cookie nor key', async () => {
    const cookie = await cookieOfAda()
    const { entries } = await platform.store.range({ ...prefixRange(prefixOf('expiring')), limit: 10 })
    const text = entries.map(({ key, value }) => `${Buffer.from(key)}${Buffer.from(value)}`).join()
    expect(text).not.toContain(cookie.split('=')[1] ?? '?')
    expect(text).not.toContain(await keyIdOf(platform, 'ada'))
  })
})

test('nobody types a key where the network could read it', async () => {
  platform = await createTestPlatform({ issuer: 'http://tools.example' })
  for (const response of [await get('/signin'), await signIn({ key: sampleKeys.ada })]) {
    expect([response.status, response.headers.get('set-cookie')]).toEqual([409, null])
    expect(await response.text()).toContain('--base-url')
  }
})

describe('a login link', () => {
  test('opens a page whose button signs in, once', async () => {
    const link = await linkFor(await keyIdOf(platform, 'linus'))
    const text = await (await get(link)).text()
    expect(text).toContain('<h1>Sign in as linus?</h1>')
    const fields = fieldsOf(text)
    const first = await signIn(fields)
    expect([first.status, await isSignedIn(cookieIn(first))]).toEqual([303, true])
    const again = await signIn(fields)
    expect([again.status, again.headers.get('set-cookie')]).toEqual([400, null])
    expect((await get(link)).status).toBe(400)
    expect(platform.audited.at(-1)).toMatchObject({ event: 'signin.session', userId: 'linus', how: 'link' })
  })

  test('is refused once it has expired, and without its form', async () => {
    const link = await linkFor(await keyIdOf(platform, 'linus'))
    const fields = fieldsOf(await (await get(link)).text())
    expect((await signIn({ link: fields['link'] ?? '' })).status).toBe(403)
    platform.now += loginLinkSeconds * 1000
    expect((await signIn(fields)).status).toBe(400)
  })

  test('is refused once its key is revoked', async () => {
    const link = await linkFor(await keyIdOf(platform, 'linus'))
    const fields = fieldsOf(await (await get(link)).text())
    await revokeApiKey(platform.store, await keyIdOf(platform, 'linus'), new Date(0))
    expect((await signIn(fields)).status).toBe(400)
  })
})

test('the page has no script, is not framed or cached, and shows foreign text as text', async () => {
  const response = await get(`/signin?next=${encodeURIComponent('"><script>alert(1)</script>')}`)
  const page = await response.text()
  expect(page).not.toContain('<script')
  expect(Object.fromEntries(response.headers)).toMatchObject({
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
    'x-frame-options': 'DENY',
    'referrer-policy': 'same-origin',
    'content-security-policy': expect.stringMatching(
      /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'$/,
    ),
  })
})

test('what cannot be read is a page that says so', async () => {
  const twice = await get('/signin?next=a&next=b')
  expect([twice.status, await twice.text()]).toEqual([400, expect.stringContaining('next: is given twice')])
  const headers = { 'content-type': 'application/json' }
  const json = await platform.fetch('/signin', { method: 'POST', headers, body: '{}' })
  expect([json.status, json.headers.get('content-type')]).toEqual([400, 'text/html; charset=utf-8'])
})
