/** Logging in on a command line through the browser. */

import { beforeEach, describe, expect, test } from 'bun:test'
import { revokeApiKey } from '../../../src/auth/api-key.ts'
import {
  cliLoginSeconds,
  cliLoginsPerMinuteMax,
  sessionsPerMinuteMax,
  tokenLifetimeMaxSeconds,
} from '../../../src/limits.ts'
import type { CliLoginMade } from '../../../src/model/cli-login.ts'
import { apiOf } from '../../support/api.ts'
import { cookieIn, fieldsOf, post } from '../../support/pages.ts'
import { createTestPlatform, everythingKept, issuer, keyIdOf, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

let platform: TestPlatform
let address = '192.0.2.1'
beforeEach(async () => {
  address = '192.0.2.1'
  platform = await createTestPlatform()
})

const start = (headers: Record<string, string> = {}) =>
  platform.fetch('/api/auth/cli/session', { method: 'POST', headers: { 'x-test-address': address, ...headers } })
const begin = async () => {
  const response = await start()
  expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-store'])
  return (await response.json()) as CliLoginMade
}
const poll = async ({ sessionId }: CliLoginMade) => {
  const response = await platform.fetch(`/api/auth/cli/poll/${sessionId}`)
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it
  return { status: response.status, body: (await response.json()) as any }
}
const pathOf = ({ authUrl }: CliLoginMade) => authUrl.slice(issuer.length)
const signIn = async (key: string = sampleKeys.ada) => cookieIn(await post(platform, '/signin', { key }))
const pageOf = async (login: CliLoginMade, cookie: string) =>
  (await platform.fetch(pathOf(login), { headers: { cookie, 'x-test-address': address } })).text()
async function decide(login: CliLoginMade, decision: string, cookie?: string, fields: object = {}) {
  const session = cookie ?? (await signIn())
  const { form = '', login: secret = '' } = fieldsOf(await pageOf(login, session))
  return post(platform, '/signin/cli', { form, login: secret, decision, ...fields }, session)
}

describe('a login', () => {
  test('gives a token for a day once its user has allowed it, and once alone', async () => {
    const login = await begin()
    expect(await poll(login)).toEqual({ status: 200, body: { status: 'pending' } })
    const away = await platform.fetch(pathOf(login))
    expect([away.status, away.headers.get('location')]).toEqual([
      303,
      `${issuer}/signin?next=${encodeURIComponent(`/signin/cli?login=${new URL(login.authUrl).searchParams.get('login')}`)}`,
    ])
    expect((await decide(login, 'allow')).status).toBe(200)
    const { status, body } = await poll(login)
    expect([status, body.status]).toEqual([200, 'success'])
    const me = (await apiOf(platform.fetch, body.apiKey)('GET /me')).body
    expect(me).toMatchObject({ userId: 'ada', key: { id: await keyIdOf(platform, 'ada') } })
    expect(Date.parse(me.token.expiresAt)).toBe(platform.now + tokenLifetimeMaxSeconds * 1000)
    expect(await poll(login)).toMatchObject({ status: 404 })
    const keyId = await keyIdOf(platform, 'ada')
    expect(platform.audited).toContainEqual({ event: 'signin.cli', userId: 'ada', keyId, address })
    expect(platform.audited.map(({ event }) => event)).toContain('token.minted')
    expect(await everythingKept(platform)).not.toContain(login.sessionId.slice(0, 50))
  })

  test('that is polled twice at once gives one token', async () => {
    const login = await begin()
    await decide(login, 'allow')
    const statuses = (await Promise.all([poll(login), poll(login), poll(login)])).map(({ status }) => status)
    expect(statuses.sort()).toEqual([200, 404, 404])
  })

  test('that is denied says so, and gives nothing', async () => {
    const login = await begin()
    expect(await (await decide(login, 'deny')).text()).toContain('The login was denied')
    expect((await poll(login)).body).toEqual({ status: 'error', message: 'The login was denied in the browser' })
    expect((await decide(login, 'allow')).status).toBe(403)
    expect((await poll(login)).body.status).toBe('error')
  })

  test('is over after five minutes, for the page and for the command line', async () => {
    const login = await begin()
    const cookie = await signIn()
    platform.now += cliLoginSeconds * 1000
    expect((await platform.fetch(pathOf(login), { headers: { cookie } })).status).toBe(400)
    expect((await poll(login)).status).toBe(404)
  })

  test('ends with the key of its user', async () => {
    const login = await begin()
    await decide(login, 'allow')
    await revokeApiKey(platform.store, await keyIdOf(platform, 'ada'), new Date(platform.now))
    expect((await poll(login)).status).toBe(401)
  })

  test('is not begun over plain HTTP, with --no-sign-in, nor too often from one address', async () => {
    for (let i = 0; i < cliLoginsPerMinuteMax; i += 1) await begin()
    const late = await start()
    expect([late.status, late.headers.get('retry-after')]).toEqual([429, expect.stringMatching(/^\d+$/)])
    address = '192.0.2.2'
    await begin()
    platform = await createTestPlatform({ issuer: 'http://mcp.example.com' })
    expect((await start({ host: 'mcp.example.com' })).status).toBe(409)
    platform = await createTestPlatform({ signIn: false })
    expect((await start()).status).toBe(409)
  })
})

describe('the token is not fetched', () => {
  test('by who has seen the page or its URL', async () => {
    const login = await begin()
    await decide(login, 'allow')
    const secret = new URL(login.authUrl).searchParams.get('login') ?? ''
    for (const sessionId of [secret, `${secret}.`, `${secret}.${'A'.repeat(43)}`, `${secret}.x`, 'x', '.'])
      expect({ sessionId, status: (await poll({ ...login, sessionId })).status }).toEqual({ sessionId, status: 404 })
    expect((await poll(login)).status).toBe(200)
  })

  test('for a form of another session, of another login, or of none', async () => {
    const [mine, other] = [await begin(), await begin()]
    const cookie = await signIn()
    const { form: ofOther = '' } = fieldsOf(await pageOf(other, cookie))
    const { form: ofGrace = '' } = fieldsOf(await pageOf(mine, await signIn(sampleKeys.grace)))
    for (const form of [ofOther, ofGrace, '', 'x'])
      expect((await decide(mine, 'allow', cookie, { form })).status).toBe(403)
    for (const decision of ['', 'yes']) expect((await decide(mine, decision, cookie)).status).toBe(400)
    expect((await poll(mine)).body).toEqual({ status: 'pending' })
  })
})

describe('the page', () => {
  test('says who acts, for how long, where it was begun, and when to deny', async () => {
    const login = await begin()
    const page = await pageOf(login, await signIn())
    for (const text of ['<dd>ada</dd>', '24 hours', '<dd>192.0.2.1</dd>', 'just run a login command yourself'])
      expect(page).toContain(text)
    expect(page).not.toContain('not your address')
    const operators = await pageOf(login, await signIn(sampleKeys.operator))
    expect(operators).toContain('operator, an operator')
  })

  test('warns where the login was begun at another address', async () => {
    const login = await begin()
    address = '198.51.100.7'
    expect(await pageOf(login, await signIn())).toContain('That is not your address (198.51.100.7)')
  })
})

test('a user begins so many browser sessions in a minute, and another one is not kept from it', async () => {
  for (let i = 0; i < sessionsPerMinuteMax; i += 1)
    expect(cookieIn(await post(platform, '/signin', { key: sampleKeys.ada }))).toBeString()
  expect((await post(platform, '/signin', { key: sampleKeys.ada })).status).toBe(429)
  expect((await post(platform, '/signin', { key: sampleKeys.grace })).status).toBe(303)
})
