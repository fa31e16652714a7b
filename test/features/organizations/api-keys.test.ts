/** API keys over HTTP: a user's own, and for operators everybody's; tokens and grants that end with them or alone. */

import { beforeEach, describe, expect, test } from 'bun:test'
import { holderApiKeysMax } from '../../../src/limits.ts'
import { mintToken } from '../../api/cases.ts'
import { sampleApis } from '../../support/api.ts'
import { createTestPlatform, everythingKept, keyIdOf, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { callTool, signInClient } from '../authorization/world.ts'

let platform: TestPlatform
let api: ReturnType<typeof sampleApis>
beforeEach(async () => {
  platform = await createTestPlatform()
  api = sampleApis(platform.fetch)
})
const statusOf = async (answer: Promise<{ status: number }>) => (await answer).status

describe('a key of one’s own', () => {
  test('is shown once, acts for its user and never as an operator, and ends for everybody at once', async () => {
    const { status, body } = await api.operator('POST /me/api-keys', { name: 'laptop' })
    expect(status).toBe(201)
    const { id, key, ...rest } = body
    expect(rest).toEqual({ name: 'laptop', createdAt: '2026-03-02T09:00:00.000Z' })
    expect(await everythingKept(platform)).not.toContain(key)
    expect((await api.operator('GET /me/api-keys')).body.apiKeys).toContainEqual({ id, ...rest })
    const laptop = api.ada.as(key)
    expect((await laptop('GET /me')).body).toMatchObject({ userId: 'operator', operator: false, key: { id } })
    const token = api.ada.as(await mintToken(platform.fetch, key, {}))
    expect(await statusOf(token('GET /me'))).toBe(200)
    expect((await laptop(`DELETE /me/api-keys/${id}/`)).body).toEqual({ success: true })
    for (const one of [laptop, token]) expect(await statusOf(one('GET /me'))).toBe(401)
    expect(await api.operator(`DELETE /me/api-keys/${id}`)).toMatchObject({
      status: 404,
      body: { error: 'API key not found' },
    })
    expect(platform.audited.filter(({ event }) => String(event).startsWith('key.'))).toMatchObject([
      { event: 'key.created', userId: 'operator', created: id, holder: 'operator' },
      { event: 'key.revoked', userId: 'operator', revoked: id },
    ])
  })

  test('is nobody else’s: others neither see nor revoke it, and no token or organization’s key makes one', async () => {
    const { id } = (await api.ada('POST /me/api-keys', { name: 'a' })).body
    expect(JSON.stringify((await api.grace('GET /me/api-keys')).body)).not.toContain(id)
    expect(await statusOf(api.grace(`DELETE /me/api-keys/${id}`))).toBe(404)
    const token = api.ada.as(await mintToken(platform.fetch, sampleKeys.ada, {}))
    const { key } = (await api.ada('POST /organizations/org_northwind/api-keys', { name: 'ci' })).body
    for (const one of [token, api.ada.as(key)]) {
      expect(await statusOf(one('GET /me/api-keys'))).toBe(403)
      expect(await statusOf(one('POST /me/api-keys', { name: 'a' }))).toBe(403)
      expect(await statusOf(one(`DELETE /me/api-keys/${id}`))).toBe(403)
    }
    expect(await statusOf(api.ada('GET /me/api-keys?x=1'))).toBe(400)
    expect(await statusOf(api.ada('POST /me/api-keys', { name: 'a', operator: true }))).toBe(400)
  })

  test('is one of so many', async () => {
    const statuses: number[] = []
    for (let i = 0; i < holderApiKeysMax; i += 1)
      statuses.push((await api.ada('POST /me/api-keys', { name: 'a' })).status)
    // One of them the fixtures brought.
    expect(new Set(statuses.slice(0, -1))).toEqual(new Set([201]))
    expect(statuses.at(-1)).toBe(403)
  })
})

describe('an operator', () => {
  test('makes, lists and revokes anybody’s keys', async () => {
    const { id, key } = (await api.operator('POST /api-keys', { userId: 'bob', name: 'first' })).body
    const bob = api.ada.as(key)
    expect((await bob('GET /me')).body).toMatchObject({ userId: 'bob', operator: false })
    const boss = (await api.operator('POST /api-keys', { userId: 'bob', operator: true })).body
    expect((await bob.as(boss.key)('GET /me')).body).toMatchObject({ userId: 'bob', operator: true })
    const listed = async (query = '') => (await api.operator(`GET /api-keys?userId=bob${query}`)).body
    expect(await listed('&pageSize=1&page=2')).toEqual({
      apiKeys: [expect.objectContaining({ userId: 'bob' })],
      pagination: { currentPage: 2, pageSize: 1, totalPages: 2, totalCount: 2 },
    })
    expect(await statusOf(api.operator(`DELETE /api-keys/${id}`))).toBe(200)
    expect(await statusOf(bob('GET /me'))).toBe(401)
    expect((await listed()).apiKeys).toContainEqual({
      ...{ id, userId: 'bob', name: 'first', operator: false },
      ...{ createdAt: '2026-03-02T09:00:00.000Z', revokedAt: '2026-03-02T09:00:00.000Z' },
    })
    expect((await api.operator('GET /api-keys')).body.pagination.totalCount).toBeGreaterThan(7)
  })

  test('is one with an API key: others get the same 403, and learn of no key', async () => {
    const token = api.ada.as(await mintToken(platform.fetch, sampleKeys.operator, {}))
    const adas = await keyIdOf(platform, 'ada')
    for (const one of [api.grace, token])
      for (const request of ['GET /api-keys', 'GET /grants', `DELETE /api-keys/${adas}`, 'DELETE /api-keys/none'])
        expect(await statusOf(one(request))).toBe(403)
    expect(await statusOf(api.grace('POST /api-keys', { userId: 'bob' }))).toBe(403)
    expect(await statusOf(api.operator('POST /api-keys', { userId: 'organization:x' }))).toBe(400)
  })
})

describe('a grant', () => {
  test('is listed and ended by its user or an operator, and ends with the key of its session', async () => {
    const { answer: first } = await signInClient(platform)
    const [grant] = (await api.ada('GET /me/grants')).body.grants
    expect(grant).toMatchObject({ userId: 'ada', client: 'Tester', connectionId: 'inventory-us-west', tools: null })
    expect((await api.grace('GET /me/grants')).body.grants).toEqual([])
    expect(await statusOf(api.grace(`DELETE /me/grants/${grant.id}`))).toBe(404)
    expect((await api.operator('GET /grants?userId=ada')).body.grants).toEqual([grant])
    expect((await api.operator('GET /grants?userId=grace')).body.pagination.totalCount).toBe(0)
    expect(await statusOf(api.ada('GET /me/grants?userId=grace'))).toBe(400)
    expect(await statusOf(api.ada(`DELETE /me/grants/${grant.id}`))).toBe(200)
    expect((await callTool(platform, first.access_token, 'a')).status).toBe(401)
    expect(platform.audited.at(-1)).toMatchObject({ userId: 'ada', grantId: grant.id, reason: 'revoked by its user' })

    const { answer: again } = await signInClient(platform)
    const [second] = (await api.operator('GET /grants')).body.grants
    expect(await statusOf(api.operator(`DELETE /grants/${second.id}`))).toBe(200)
    expect((await callTool(platform, again.access_token, 'a')).status).toBe(401)

    const { answer: third } = await signInClient(platform)
    const adas = await keyIdOf(platform, 'ada')
    expect(await statusOf(api.operator(`DELETE /api-keys/${adas}`))).toBe(200)
    expect((await callTool(platform, third.access_token, 'a')).status).toBe(401)
    expect(platform.audited.at(-1)).toMatchObject({ event: 'grant.ended', reason: 'its key was revoked' })
    expect((await api.operator('GET /grants')).body.grants).toEqual([])
  })
})

describe('a token', () => {
  test('is revoked by whoever has it, with its children, and by its id by its user and by operators', async () => {
    const parent = await mintToken(platform.fetch, sampleKeys.ada, {})
    const child = await mintToken(platform.fetch, parent, {})
    const other = await mintToken(platform.fetch, sampleKeys.ada, {})
    const idOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).jti
    expect(await api.grace('POST /tokens/revoke', { token: parent })).toMatchObject({
      status: 200,
      body: { success: true, tokenId: idOf(parent) },
    })
    for (const token of [parent, child]) expect(await statusOf(api.ada.as(token)('GET /me'))).toBe(401)
    expect(await statusOf(api.ada.as(other)('GET /me'))).toBe(200)
    // Again it is no other revocation, and has no line.
    expect(await statusOf(api.grace('POST /tokens/revoke', { token: parent }))).toBe(200)
    // By its id: neither by another user, nor with a token, be it the token itself, for it may be narrow.
    for (const as of [api.grace, api.ada.as(other), api.ada.as(await mintToken(platform.fetch, sampleKeys.ada, {}))])
      expect(await statusOf(as('POST /tokens/revoke', { tokenId: idOf(other) }))).toBe(403)
    expect(await statusOf(api.ada.as(other)('GET /me'))).toBe(200)
    expect(await statusOf(api.operator('POST /tokens/revoke', { tokenId: idOf(other) }))).toBe(200)
    expect(await statusOf(api.ada.as(other)('GET /me'))).toBe(401)
    const own = await mintToken(platform.fetch, sampleKeys.ada, {})
    const { access_token: access } = (await signInClient(platform)).answer
    expect(await statusOf(api.ada('POST /tokens/revoke', { tokenId: idOf(own) }))).toBe(200)
    expect(await statusOf(api.ada('POST /tokens/revoke', { tokenId: idOf(access) }))).toBe(200)
    expect(await statusOf(api.ada.as(own)('GET /me'))).toBe(401)
    expect((await callTool(platform, access, 'a')).status).toBe(401)
    expect(platform.audited.filter(({ event }) => event === 'token.revoked')).toMatchObject([
      { userId: 'grace', revoked: idOf(parent) },
      { userId: 'operator', revoked: idOf(other) },
      { userId: 'ada', revoked: idOf(own) },
      { userId: 'ada', revoked: idOf(access) },
    ])
  })

  test('of nobody, or named twice or not at all, is refused', async () => {
    const token = await mintToken(platform.fetch, sampleKeys.ada, {})
    const bodies = [
      {},
      { token: 'no' },
      { token: `${token}x` },
      { tokenId: 'tok_' },
      { token, tokenId: `tok_${'a'.repeat(22)}` },
    ]
    for (const body of bodies) expect(await statusOf(api.operator('POST /tokens/revoke', body))).toBe(400)
    expect(await statusOf(api.ada.as(token)('GET /me'))).toBe(200)
    expect((await platform.fetch('/tokens/revoke', { method: 'POST' })).status).toBe(401)
  })
})

test('writes of other keys and of tokens keep no key from revoking', async () => {
  const slow = await createTestPlatform({ rates: { writes: 1 } })
  const of = sampleApis(slow.fetch)
  const { body: first } = await of.ada('POST /organizations/org_northwind/api-keys', { name: 'first' })
  const { body: second } = await of.ada('POST /organizations/org_northwind/api-keys', { name: 'second' })
  const flood = async (credential: string) => {
    for (let sent = 0; sent < 30; sent += 1) {
      const { status } = await of.ada.as(credential)('DELETE /connect/nothing-here/x')
      if (status === 429) return
    }
    throw new Error('the rate was not reached')
  }
  const given = [await mintToken(slow.fetch, second.key), await mintToken(slow.fetch, sampleKeys.ada)] as const
  await flood(first.key)
  expect((await of.ada.as(second.key)('POST /tokens/revoke', { token: given[0] })).status).toBe(200)
  await flood(sampleKeys.ada)
  expect((await of.ada('POST /tokens/revoke', { token: given[1] })).status).toBe(200)
  // Sixty in a minute, and a token has none of them.
  const other = await mintToken(slow.fetch, sampleKeys.ada)
  expect((await of.ada.as(other)('POST /tokens/revoke', { token: other })).status).toBe(429)
  for (let sent = 0; sent < 59; sent += 1)
    expect((await of.ada('POST /tokens/revoke', { token: given[1] })).status).toBe(200)
  expect((await of.ada('POST /tokens/revoke', { token: given[1] })).status).toBe(429)
})
