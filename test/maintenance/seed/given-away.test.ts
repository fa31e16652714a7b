/** What fixtures give to another user or owner, who gets nothing of before, and leaves nothing behind. */

import { beforeEach, describe, expect, test } from 'bun:test'
import { revokeApiKey } from '../../../src/auth/api-key.ts'
import { createExpiringRecords } from '../../../src/auth/expiring-records.ts'
import { loginLinkSeconds } from '../../../src/limits.ts'
import { loadFixtures } from '../../../src/maintenance/seed/load-fixtures.ts'
import { readFixtures } from '../../../src/maintenance/seed/read-fixtures.ts'
import { sampleSources } from '../../../src/maintenance/seed/sample.ts'
import { callTool, refresh, signInClient } from '../../features/authorization/world.ts'
import { apiOf } from '../../support/api.ts'
import { clockOf } from '../../support/clock.ts'
import { cookieIn, fieldsOf, post } from '../../support/pages.ts'
import { createTestPlatform, issuer, problemsOf, seed, silent, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

let platform: TestPlatform
beforeEach(async () => {
  platform = await createTestPlatform()
})

/** Loads the sample with more, a minute later. */
async function load(more: object) {
  platform.now += 60_000
  const file = { file: 'mine.json', read: () => Buffer.from(JSON.stringify(more)) }
  const { fixtures, problems } = await readFixtures([...sampleSources(), file])
  expect(problems).toEqual([])
  const options = { pepper: platform.pepper, now: new Date(platform.now), log: silent }
  await loadFixtures(platform.store, fixtures, String(platform.now), options)
}
const idOf = async (as: string) => (await apiOf(platform.fetch, as)('GET /me')).body.key.id as string

describe('a key that gets another user', () => {
  const key = 'a-key-of-dora-with-enough-characters'
  const own = (userId: string) => ({ apiKeys: [{ userId, key }] })
  const isSignedIn = async (cookie: string) =>
    (await (await platform.fetch('/signin', { headers: { cookie } })).text()).includes('You are signed in')

  test('ends sessions of the former one, here and at the console', async () => {
    await load(own('dora'))
    const response = await post(platform, '/signin', { key })
    const [, atConsole = ''] = response.headers.getSetCookie()
    const cookie = cookieIn(response)
    const session = () =>
      platform.fetch('/console/session', { headers: { cookie: atConsole, 'sec-fetch-site': 'same-origin' } })
    expect(await isSignedIn(cookie)).toBe(true)
    expect((await (await session()).json()) as object).toMatchObject({ userId: 'dora' })
    await load(own('carl'))
    expect(await isSignedIn(cookie)).toBe(false)
    expect(JSON.stringify(await (await session()).json())).not.toContain('carl')
  })

  test('ends login links and logins of a command line', async () => {
    await load(own('dora'))
    const records = createExpiringRecords(
      platform.store,
      seed('sign-in key'),
      clockOf(() => platform.now),
    )
    const link = await records.add('login link', { keyId: await idOf(key), userId: 'dora' }, loginLinkSeconds)
    const cookie = cookieIn(await post(platform, '/signin', { key }))
    const begun = await platform.fetch('/api/auth/cli/session', { method: 'POST' })
    const { sessionId, authUrl } = (await begun.json()) as { sessionId: string; authUrl: string }
    const page = await (await platform.fetch(authUrl.slice(issuer.length), { headers: { cookie } })).text()
    expect((await post(platform, '/signin/cli', { ...fieldsOf(page), decision: 'allow' }, cookie)).status).toBe(200)
    await load(own('carl'))
    expect((await platform.fetch(`/signin?link=${link}`)).status).toBe(400)
    expect((await platform.fetch(`/api/auth/cli/poll/${sessionId}`)).status).toBe(401)
  })
})

test('a key that gets another user is another key, and one that was revoked stays so', async () => {
  const key = 'a-key-of-dora-with-enough-characters'
  await load({ apiKeys: [{ userId: 'dora', key }] })
  const first = await idOf(key)
  // All that began with it names this id: setup links, sessions with servers, requests that are under way.
  await load({ apiKeys: [{ userId: 'carl', key }] })
  const second = await idOf(key)
  expect(second).not.toBe(first)
  await load({ apiKeys: [{ userId: 'dora', key }] })
  expect(await idOf(key)).toBe(first)
  await revokeApiKey(platform.store, first, new Date(platform.now))
  await load({ apiKeys: [{ userId: 'carl', key }] })
  expect((await apiOf(platform.fetch, key)('GET /me')).status).toBe(401)
  expect(await problemsOf(platform)).toEqual([])
})

describe('a namespace that gets another owner', () => {
  const connection = {
    ...{ namespace: 'moving', connectionId: 'weather', server: 'northwind/weather', mock: { enabled: true } },
    ...{ mcpUrl: 'https://weather.example.com/mcp', createdAt: '2026-01-01T00:00:00.000Z' },
  }
  const more = (owner: object) => ({
    organizations: [
      {
        ...{ organizationId: 'acme', name: 'Acme' },
        members: ['grace', 'ada'].map((userId) => ({ userId, role: userId === 'ada' ? 'member' : 'owner' })),
      },
    ],
    namespaces: [{ namespace: 'moving', ...owner, createdAt: '2026-01-01T00:00:00.000Z' }],
    views: [{ namespace: 'moving', name: 'reading', policy: [] }],
    connections: [connection],
  })

  for (const path of ['/connect/moving/mcp', '/connect/moving/mcp/reading', '/connect/moving/weather/mcp'])
    test(`ends what its former owner allowed at ${path}, after further loads too`, async () => {
      await load(more({ userId: 'ada' }))
      const { answer, clientId } = await signInClient(platform, {}, 'ada', { resource: `${issuer}${path}` })
      expect((await callTool(platform, answer.access_token, 'x', path)).status).toBe(200)
      for (const _ of ['handed over', 'loaded again']) {
        await load(more({ organizationId: 'acme' }))
        expect((await callTool(platform, answer.access_token, 'x', path)).status).toBe(401)
      }
      expect(await refresh(platform, clientId, answer.refresh_token)).toMatchObject({ error: 'invalid_grant' })
    })

  test('is a new one, although it was away for a load, or somebody had its name meanwhile', async () => {
    const grace = apiOf(platform.fetch, sampleKeys.grace)
    const since = async () => (await grace('GET /namespaces/moving')).body.createdAt
    await load(more({ userId: 'ada' }))
    await load({})
    const gone = new Date(platform.now).toISOString()
    await load(more({ organizationId: 'acme' }))
    expect(await since()).toBe(gone)
    await load({})
    await apiOf(platform.fetch, sampleKeys.linus)('PUT /namespaces/moving')
    platform.now += 60_000
    const deleted = new Date(platform.now).toISOString()
    expect((await apiOf(platform.fetch, sampleKeys.linus)('DELETE /namespaces/moving')).status).toBe(200)
    await load(more({ organizationId: 'acme' }))
    expect(await since()).toBe(deleted)
  })

  test('ends the tickets that operators made for its connections', async () => {
    platform = await createTestPlatform({
      upstream: { send: async () => ({ status: 401, headers: {}, body: new Uint8Array() }) },
    })
    const { mock: _, server: __, ...real } = connection
    const mine = (owner: object) => ({ ...more(owner), connections: [real], views: [] })
    await load(mine({ userId: 'ada' }))
    const { mcpUrl } = real
    const wanted = { mcpUrl, headers: { 'X-Region': 'us' } }
    const { body } = await apiOf(platform.fetch, sampleKeys.operator)('PUT /connect/moving/weather', wanted)
    const path = (body.status.setupUrl as string).slice(issuer.length)
    expect((await platform.fetch(path)).status).toBe(200)
    await load({})
    await load(mine({ organizationId: 'acme' }))
    expect((await platform.fetch(path)).status).toBe(303)
  })

  test('is as old as before if it stayed without its fixture', async () => {
    const ada = apiOf(platform.fetch, sampleKeys.ada)
    await load(more({ userId: 'ada' }))
    const { createdAt } = (await ada('GET /namespaces/moving')).body
    await ada('PUT /connect/moving/own', { server: 'northwind/weather', mock: { enabled: true } })
    await load({})
    await load({ ...more({ userId: 'ada' }), views: [] })
    expect((await ada('GET /namespaces/moving')).body.createdAt).toBe(createdAt)
  })
})
