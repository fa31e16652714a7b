/** Organizations, members and their keys over HTTP (contract, 10.5 to 10.8), and `/me` (2.7). */

import { beforeEach, describe, expect, test } from 'bun:test'
import { createFairness } from '../../../src/fairness/fairness.ts'
import { Paces } from '../../../src/fairness/pace.ts'
import { newKeysPerHourMax, newNamespacesPerDayMax, organizationMembersMax } from '../../../src/limits.ts'
import { memberEntry, withIndex } from '../../../src/storage/directory-records.ts'
import type { Store } from '../../../src/storage/store.ts'
import { mintToken } from '../../api/cases.ts'
import { apiOf, sampleApis } from '../../support/api.ts'
import { createTestPlatform, everythingKept, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

let platform: TestPlatform
let api: ReturnType<typeof sampleApis>
beforeEach(async () => {
  platform = await createTestPlatform()
  api = sampleApis(platform.fetch)
})
const mint = async (key: string, body: object) => api.ada.as(await mintToken(platform.fetch, key, body))
const made = async () => expect((await api.operator('PUT /organizations/acme', { owner: 'ada' })).status).toBe(201)

describe('an organization', () => {
  test('of as many members as there may be takes no other, is not read while others wait, and can be deleted', async () => {
    await made()
    const users = Array.from({ length: organizationMembersMax - 2 }, (_, i) => `u${String(i).padStart(5, '0')}`)
    await platform.store.load({ puts: users.flatMap((user) => withIndex(memberEntry('acme', user, 'member'))) })
    const fairness = createFairness()
    const run = fairness.writes.run.bind(fairness.writes)
    let isChanging = false
    fairness.writes.run = (name, holder, task, isFirst) =>
      run(
        name,
        holder,
        async () => {
          isChanging = name === 'directory'
          return Promise.resolve(task()).finally(() => {
            isChanging = false
          })
        },
        isFirst,
      )
    let read = 0
    let readInChanges = 0
    const note = ({ limit }: { readonly limit: number }) => {
      read = Math.max(read, limit)
      if (isChanging) readInChanges += limit
    }
    const counting: Store = {
      ...platform.store,
      range(range) {
        note(range)
        return platform.store.range(range)
      },
      keys(range) {
        note(range)
        return platform.store.keys(range)
      },
    }
    const ada = apiOf((await createTestPlatform({ store: counting, fairness })).fetch, sampleKeys.ada)
    read = 0
    readInChanges = 0
    expect(await ada('PUT /organizations/acme/members/last', { role: 'member' })).toMatchObject({ status: 200 })
    for (const leaving of [
      ada('PUT /organizations/acme/members/ada', { role: 'member' }),
      ada('DELETE /organizations/acme/members/ada'),
    ])
      expect(await leaving).toMatchObject({ status: 409 })
    expect(read).toBeLessThan(organizationMembersMax)
    expect(readInChanges).toBe(0)
    expect(await ada('PUT /organizations/acme/members/one-more', { role: 'member' })).toMatchObject({
      status: 403,
      body: { error: `An organization has at most ${organizationMembersMax} members: remove one first` },
    })
    expect(await ada('PUT /organizations/acme/members/last', { role: 'admin' })).toMatchObject({ status: 200 })
    expect((await ada('DELETE /organizations/acme')).status).toBe(200)
    expect((await ada('GET /organizations/acme')).status).toBe(404)
  })

  test('costs those who read or count its members their time, and an owner reads them one after the other', async () => {
    await made()
    const users = Array.from({ length: 5000 }, (_, i) => `u${i}`)
    await platform.store.load({ puts: users.flatMap((user) => withIndex(memberEntry('acme', user, 'member'))) })
    let spent = 0
    let [reading, most] = [0, 0]
    class Noted extends Paces {
      override spend(_: string, milliseconds: number) {
        spent += milliseconds
      }
    }
    const isOfMembers = ({ gte }: { gte: Uint8Array }) => Buffer.from(gte).includes('acme\0u')
    const store: Store = {
      ...platform.store,
      async range(range) {
        reading += isOfMembers(range) ? 1 : 0
        most = Math.max(most, reading)
        await new Promise((resolve) => setImmediate(resolve))
        reading -= isOfMembers(range) ? 1 : 0
        return platform.store.range(range)
      },
    }
    const fairness = { ...createFairness(), time: new Noted() }
    const ada = apiOf((await createTestPlatform({ store, fairness })).fetch, sampleKeys.ada)
    const costOf = async (request: string, body?: object) => {
      spent = 0
      await ada(request, body)
      return spent
    }
    const costs = [
      await costOf('GET /organizations/acme'),
      await costOf('PUT /organizations/acme/members/new', { role: 'member' }),
      await costOf('PUT /organizations/acme/members/ada', { role: 'member' }),
      await costOf('DELETE /organizations/acme/members/ada'),
    ]
    for (const cost of costs) expect(cost).toBeGreaterThan(9)
    expect(await costOf('DELETE /organizations/acme/members/u7')).toBeLessThan(1)
    await Promise.all(Array.from({ length: 4 }, () => ada('GET /organizations/acme')))
    expect(most).toBe(1)
  })

  test('is made by operators, read by members, renamed, and deleted by its owner', async () => {
    expect(await api.ada('PUT /organizations/acme', { owner: 'ada' })).toMatchObject({ status: 403 })
    const organization = { organizationId: 'acme', name: 'acme', members: [{ userId: 'ada', role: 'owner' }] }
    expect(await api.operator('PUT /organizations/acme', { owner: 'ada' })).toMatchObject({
      status: 201,
      body: organization,
    })
    expect(await api.operator('PUT /organizations/acme', { owner: 'ada', name: 'Acme' })).toMatchObject({
      status: 200,
      body: { ...organization, name: 'Acme' },
    })
    expect((await api.ada('GET /organizations/acme')).body).toEqual({ ...organization, name: 'Acme' })
    expect(await api.grace('GET /organizations/acme')).toMatchObject({
      status: 404,
      body: { error: 'Organization not found' },
    })
    expect((await api.operator('GET /organizations/acme')).status).toBe(200)
    await api.ada('PUT /organizations/acme/members/grace', { role: 'admin' })
    expect((await api.grace('DELETE /organizations/acme')).status).toBe(403)
    expect(await api.ada('DELETE /organizations/acme')).toMatchObject({ status: 200, body: { success: true } })
    expect((await api.ada('GET /organizations/acme')).status).toBe(404)
  })

  test('is not deleted while it owns a namespace', async () => {
    await made()
    await api.ada('PUT /namespaces/acme-one', { organizationId: 'acme' })
    expect(await api.ada('DELETE /organizations/acme')).toMatchObject({ status: 409 })
    await api.ada('DELETE /namespaces/acme-one')
    expect((await api.ada('DELETE /organizations/acme')).status).toBe(200)
  })

  test('revokes its keys when it is deleted, and says so of each', async () => {
    await made()
    const keys: Record<string, string>[] = []
    for (const name of ['ci', 'nightly'])
      keys.push((await api.ada('POST /organizations/acme/api-keys', { name })).body as Record<string, string>)
    expect((await api.ada('DELETE /organizations/acme')).status).toBe(200)
    for (const { key = '' } of keys) expect((await api.ada.as(key)('GET /me')).status).toBe(401)
    const lines = platform.audited.filter(({ event }) => event === 'key.revoked')
    expect(lines.map(({ revoked }) => revoked).sort()).toEqual(keys.map(({ id }) => id).sort())
    expect(lines).toMatchObject(lines.map(() => ({ userId: 'ada', organizationId: 'acme' })))
  })

  test('takes no token, nor its own key', async () => {
    await made()
    const token = await mint(sampleKeys.operator, {})
    const { key } = (await api.ada('POST /organizations/acme/api-keys', { name: 'ci' })).body
    for (const other of [token, api.ada.as(key)])
      for (const [request, body] of [
        ['GET /organizations/acme'],
        ['PUT /organizations/other', { owner: 'ada' }],
        ['DELETE /organizations/acme'],
        ['PUT /organizations/acme/members/grace', { role: 'member' }],
        ['DELETE /organizations/acme/members/ada'],
        ['POST /organizations/acme/api-keys', { name: 'x' }],
        ['GET /organizations/acme/api-keys'],
        ['DELETE /organizations/acme/api-keys/x'],
      ] as const)
        expect({ request, ...(await other(request, body)) }).toMatchObject({ request, status: 403 })
  })

  test('of a fixture is changed there', async () => {
    expect(await api.operator('PUT /organizations/org_lumen', { owner: 'ines' })).toMatchObject({
      status: 409,
      body: { error: expect.stringContaining('organizations.json: organizations[1]') },
    })
    // What changes nothing is fine.
    expect((await api.operator('PUT /organizations/org_lumen', { owner: 'priya' })).status).toBe(200)
    expect((await api.priya('PUT /organizations/org_lumen/members/jonas', { role: 'member' })).status).toBe(200)
    for (const [request, body] of [
      ['DELETE /organizations/org_lumen'],
      ['PUT /organizations/org_lumen/members/ada', { role: 'member' }],
      ['DELETE /organizations/org_lumen/members/jonas'],
    ] as const)
      expect({ request, ...(await api.priya(request, body)) }).toMatchObject({ request, status: 409 })
  })

  test('says what is wrong with a request', async () => {
    for (const body of [
      {},
      { owner: '' },
      { owner: 'organization:x' },
      { owner: 'ada', x: 1 },
      { owner: 'ada', name: '' },
    ])
      expect({ ...(await api.operator('PUT /organizations/acme', body)), sent: body }).toMatchObject({
        sent: body,
        status: 400,
      })
    for (const id of ['.x', 'a%2Fb', 'a%00', 'x'.repeat(200)])
      expect({ id, ...(await api.operator(`PUT /organizations/${id}`, { owner: 'ada' })) }).toMatchObject({
        id,
        status: 404,
      })
  })
})

describe('members', () => {
  beforeEach(made)

  test('reach its namespaces from the next request on, and no longer when they go', async () => {
    await api.ada('PUT /namespaces/acme-one', { organizationId: 'acme' })
    expect((await api.jonas('GET /connect/acme-one')).status).toBe(404)
    expect(await api.ada('PUT /organizations/acme/members/jonas', { role: 'member' })).toMatchObject({
      status: 200,
      body: { userId: 'jonas', role: 'member' },
    })
    expect((await api.jonas('GET /connect/acme-one')).status).toBe(200)
    expect((await api.jonas('GET /namespaces?q=acme')).body.namespaces).toEqual([{ name: 'acme-one' }])
    expect((await api.ada('DELETE /organizations/acme/members/jonas')).body).toEqual({ success: true })
    expect((await api.jonas('GET /connect/acme-one')).status).toBe(404)
    expect((await api.jonas('GET /namespaces?q=acme')).body.namespaces).toEqual([])
  })

  test('do not lose sight of their own namespaces among many of its', async () => {
    await api.linus('PUT /namespaces/zzz-own')
    for (let i = 0; i < 101; i += 1) await api.ada(`PUT /namespaces/acme-${i}`, { organizationId: 'acme' })
    await api.ada('PUT /organizations/acme/members/linus', { role: 'member' })
    const { namespaces, more } = (await api.linus('GET /me')).body
    expect([namespaces.length, more]).toEqual([100, true])
    expect(namespaces.map(({ name }: { name: string }) => name)).toContain('zzz-own')
  })

  test('are managed by owners and admins, and owners by owners alone', async () => {
    await api.ada('PUT /organizations/acme/members/grace', { role: 'admin' })
    await api.ada('PUT /organizations/acme/members/linus', { role: 'member' })
    expect((await api.grace('PUT /organizations/acme/members/jonas', { role: 'admin' })).status).toBe(200)
    expect((await api.grace('PUT /organizations/acme/members/jonas', { role: 'owner' })).status).toBe(403)
    expect((await api.grace('PUT /organizations/acme/members/ada', { role: 'member' })).status).toBe(403)
    expect((await api.grace('DELETE /organizations/acme/members/ada')).status).toBe(403)
    expect((await api.linus('PUT /organizations/acme/members/linus', { role: 'admin' })).status).toBe(403)
    expect((await api.priya('PUT /organizations/acme/members/priya', { role: 'owner' })).status).toBe(404)
    expect((await api.grace('DELETE /organizations/acme/members/jonas')).status).toBe(200)
    expect((await api.grace('DELETE /organizations/acme/members/jonas')).body).toEqual({ error: 'Member not found' })
  })

  test('leave when they want to, whatever their role: nobody asked them before they were added', async () => {
    for (const [name, role] of [
      ['grace', 'admin'],
      ['linus', 'member'],
    ] as const) {
      await api.ada(`PUT /organizations/acme/members/${name}`, { role })
      expect((await api[name](`DELETE /organizations/acme/members/${name}`)).body).toEqual({ success: true })
      expect((await api[name]('GET /organizations/acme')).status).toBe(404)
      expect((await api[name](`DELETE /organizations/acme/members/${name}`)).status).toBe(404)
    }
    expect((await api.priya('DELETE /organizations/acme/members/priya')).status).toBe(404)
  })

  test('have an owner among them always', async () => {
    expect((await api.ada('DELETE /organizations/acme/members/ada')).status).toBe(409)
    expect((await api.ada('PUT /organizations/acme/members/ada', { role: 'admin' })).status).toBe(409)
    expect((await api.ada('PUT /organizations/acme/members/grace', { role: 'owner' })).status).toBe(200)
    expect((await api.ada('DELETE /organizations/acme/members/ada')).status).toBe(200)
    // Two that go at once do not both find the other.
    await api.grace('PUT /organizations/acme/members/jonas', { role: 'owner' })
    const both = await Promise.all([
      api.grace('DELETE /organizations/acme/members/jonas'),
      api.jonas('DELETE /organizations/acme/members/grace'),
    ])
    expect(both.filter(({ status }) => status === 200)).toHaveLength(1)
  })
})

describe('an API key of an organization', () => {
  beforeEach(made)
  const create = async () => (await api.ada('POST /organizations/acme/api-keys', { name: 'ci' })).body

  test('is shown once, listed without itself, and revoked', async () => {
    const { id, key, ...rest } = await create()
    expect(rest).toEqual({ name: 'ci', createdAt: '2026-03-02T09:00:00.000Z' })
    expect(key).toMatch(/^pst_/)
    expect(await everythingKept(platform)).not.toContain(key)
    const list = await api.ada('GET /organizations/acme/api-keys')
    expect(list.body).toEqual({ apiKeys: [{ id, name: 'ci', createdAt: rest.createdAt }] })
    expect((await api.ada.as(key)('GET /me')).status).toBe(200)
    expect((await api.ada(`DELETE /organizations/acme/api-keys/${id}`)).body).toEqual({ success: true })
    expect((await api.ada.as(key)('GET /me')).status).toBe(401)
    expect((await api.ada(`DELETE /organizations/acme/api-keys/${id}`)).status).toBe(404)
    expect((await api.ada('GET /organizations/acme/api-keys')).body).toEqual({ apiKeys: [] })
  })

  test('is made so many times in an hour, revoked or not', async () => {
    const statuses = new Map<number, number>()
    for (let i = 0; i <= newKeysPerHourMax; i += 1) {
      const { status, body } = await api.ada('POST /organizations/acme/api-keys', { name: 'ci' })
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (status === 201) await api.ada(`DELETE /organizations/acme/api-keys/${body.id}`)
    }
    expect([...statuses]).toEqual([
      [201, newKeysPerHourMax],
      [429, 1],
    ])
    platform.now += 3_600_000 / newKeysPerHourMax
    expect((await api.ada('POST /organizations/acme/api-keys', { name: 'ci' })).status).toBe(201)
  })

  test('makes so many namespaces in a day, deleted or not', async () => {
    const ci = api.ada.as((await create()).key)
    for (let i = 0; i < newNamespacesPerDayMax; i += 1) {
      expect((await ci(`PUT /namespaces/acme-${i}`)).status).toBe(201)
      expect((await ci(`DELETE /namespaces/acme-${i}`)).status).toBe(200)
    }
    expect((await ci('PUT /namespaces/acme-more')).status).toBe(429)
    // Whoever owns it: an operator makes what is needed, and others make their own.
    expect((await api.operator('PUT /namespaces/acme-more', { organizationId: 'acme' })).status).toBe(201)
    expect((await api.ada('PUT /namespaces/ada-more')).status).toBe(201)
    platform.now += 86_400_000 / newNamespacesPerDayMax
    expect((await ci('PUT /namespaces/acme-again')).status).toBe(201)
  })

  test('acts for the organization, whose namespaces it leads, and outlives its maker', async () => {
    const ci = api.ada.as((await create()).key)
    expect((await ci('PUT /namespaces/acme-ci')).status).toBe(201)
    expect((await api.ada('GET /namespaces/acme-ci')).status).toBe(200)
    expect((await ci('GET /namespaces')).body.namespaces).toEqual([{ name: 'acme-ci' }])
    expect((await ci('GET /connect/ada')).status).toBe(404)
    expect((await ci('GET /connect/northwind')).status).toBe(404)
    const token = (await ci('POST /tokens')).body.token as string
    expect(JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())).toMatchObject({
      sub: 'organization:acme',
      org: 'acme',
    })
    expect((await ci('POST /tokens', { organizationId: 'org_northwind' })).status).toBe(403)
    const holder = api.ada.as(token)
    expect((await holder('GET /connect/acme-ci')).status).toBe(200)
    expect((await holder('GET /connect/ada')).status).toBe(404)
    await api.operator('PUT /organizations/acme', { owner: 'grace' })
    await api.grace('DELETE /organizations/acme/members/ada')
    expect((await ci('GET /connect/acme-ci')).status).toBe(200)
    await ci('DELETE /namespaces/acme-ci')
    await api.grace('DELETE /organizations/acme')
    for (const one of [ci, holder]) expect((await one('GET /me')).status).toBe(401)
    // An organization of the same name later does not get them back.
    await made()
    for (const one of [ci, holder]) expect((await one('GET /me')).status).toBe(401)
  })

  test('is managed by its owners and admins alone, and who is not is told nothing else', async () => {
    const answers = await Promise.all([
      api.jonas('POST /organizations/acme/api-keys', { name: 'x' }),
      api.jonas('POST /organizations/none/api-keys', { name: 'x' }),
      api.jonas('GET /organizations/acme/api-keys'),
      api.jonas('DELETE /organizations/none/api-keys/x'),
    ])
    for (const { status, body } of answers) expect({ status, body }).toEqual({ status: 403, body: answers[0]?.body })
    expect((await api.ada('POST /organizations/acme/api-keys', {})).status).toBe(400)
  })
})

describe('who am I', () => {
  test('a user: organizations, and namespaces with what may be done', async () => {
    const { body } = await api.linus('GET /me')
    expect(body).toEqual({
      userId: 'linus',
      operator: false,
      organizationId: null,
      key: { id: expect.stringMatching(/^key_/), name: 'Linus, store kiosk' },
      token: null,
      organizations: [{ organizationId: 'org_northwind', role: 'member' }],
      namespaces: ['northwind', 'northwind-ops', 'northwind-support'].map((name) => ({
        name,
        leads: false,
        may: ['connections:read', 'connections:write', 'connections:execute', 'servers:read', 'namespaces:read'],
      })),
      more: false,
      baseUrl: 'http://localhost:8787',
      console: true,
      version: expect.any(String),
    })
    const [mine] = (await api.ada('GET /me')).body.namespaces
    expect(mine).toEqual({
      name: 'ada',
      leads: true,
      may: [
        'connections:read',
        'connections:write',
        'connections:execute',
        'servers:read',
        'servers:write',
        'namespaces:read',
        'namespaces:write',
      ],
    })
  })

  test('a token: its policy, and what it leaves', async () => {
    const policy = [
      { namespaces: ['ada', 'priya'], resources: ['connections', 'servers'] },
      { operations: 'read', ttl: '10m' },
    ]
    const { body } = await (await mint(sampleKeys.ada, { policy }))('GET /me')
    expect(body).toMatchObject({
      token: { jti: expect.stringMatching(/^tok_/), expiresAt: '2026-03-02T09:10:00.000Z', policy },
      namespaces: [{ name: 'ada', leads: true, may: ['connections:read', 'servers:read'] }],
    })
    const scoped = await mint(sampleKeys.grace, { organizationId: 'org_northwind' })
    expect((await scoped('GET /me')).body).toMatchObject({
      organizationId: 'org_northwind',
      organizations: [{ organizationId: 'org_northwind', role: 'admin' }],
    })
  })

  test('an operator reaches all, and the first hundred are listed', async () => {
    expect((await api.operator('GET /me')).body).toMatchObject({ operator: true, more: false })
    for (let i = 0; i < 95; i += 1) await api.operator(`PUT /namespaces/n-${100 + i}`)
    const { body } = await api.operator('GET /me')
    expect([body.namespaces.length, body.more]).toEqual([100, true])
  })
})
