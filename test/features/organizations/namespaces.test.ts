/** Namespaces over HTTP (contract, 10.1 to 10.4). */

import { afterEach, beforeEach, describe, expect, jest, test } from 'bun:test'
import { deletionAnswerMs } from '../../../src/features/organizations/namespaces.ts'
import { namespacesPerOrganizationMax } from '../../../src/limits.ts'
import { beforeServing, removeAllDeleted } from '../../../src/storage/deleted-namespaces.ts'
import { namespaceEntry, withIndex } from '../../../src/storage/directory-records.ts'
import { directoryVersionKey, keyOf } from '../../../src/storage/keys.ts'
import { newVersion } from '../../../src/storage/versions.ts'
import { mintToken } from '../../api/cases.ts'
import { type Api, apiOf } from '../../support/api.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { createTestPlatform, problemsOf, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

let platform: TestPlatform
let ada: Api
let linus: Api
let priya: Api
let operator: Api
beforeEach(async () => {
  platform = await createTestPlatform()
  ada = apiOf(platform.fetch, sampleKeys.ada)
  ;[linus, priya, operator] = [ada.as(sampleKeys.linus), ada.as(sampleKeys.priya), ada.as(sampleKeys.operator)]
})
const names = async (api: Api, query = '') =>
  ((await api(`GET /namespaces${query}`)).body.namespaces as { name: string }[]).map(({ name }) => name)
const mint = async (body: object, key: string = sampleKeys.ada) =>
  ada.as(await mintToken(platform.fetch, key, body as { policy: object[] }))
const event = (name: string) => platform.audited.filter((one) => one['event'] === name)

describe('a list of namespaces', () => {
  test('has what a caller reaches, by name, of the owner, the member, the organization’s token and the operator', async () => {
    const northwind = ['northwind', 'northwind-ops', 'northwind-support']
    expect(await names(ada)).toEqual(['ada', ...northwind])
    expect(await names(linus)).toEqual(northwind)
    expect(await names(await mint({ organizationId: 'org_northwind' }))).toEqual(northwind)
    expect(await names(operator)).toEqual(['ada', 'lumen', ...northwind, 'priya'])
  })

  test('is narrowed by the policy, and refused where it does not allow to read namespaces', async () => {
    expect(
      await names(await mint({ policy: [{ namespaces: ['ada', 'northwind', 'lumen'] }, { namespaces: 'ada' }] })),
    ).toEqual(['ada'])
    for (const constraint of [{ resources: 'servers' }, { operations: 'write' }, { metadata: { a: 'b' } }]) {
      const [field = ''] = Object.keys(constraint)
      const api = await mint({ policy: [constraint] })
      expect(await api('GET /namespaces')).toMatchObject({
        status: 403,
        body: { error: `The token does not allow this: policy[0].${field}` },
      })
    }
  })

  test('is read by pages; past the end they are empty', async () => {
    const page = await ada('GET /namespaces?pageSize=3&page=2')
    expect(page.body).toEqual({
      namespaces: [{ name: 'northwind-support' }],
      pagination: { currentPage: 2, pageSize: 3, totalPages: 2, totalCount: 4 },
    })
    expect(await names(ada, '?pageSize=3&page=3')).toEqual([])
    expect((await ada('GET /namespaces')).body.pagination).toMatchObject({ pageSize: 50, currentPage: 1 })
  })

  test('is filtered by beginning, owner and servers', async () => {
    expect(await names(ada, '?q=northwind-')).toEqual(['northwind-ops', 'northwind-support'])
    expect(await names(operator, '?ownerId=ada')).toEqual(['ada'])
    expect(await names(operator, '?ownerId=org_lumen')).toEqual(['lumen'])
    expect(await names(operator, '?hasServers=true')).toEqual([
      'lumen',
      'northwind',
      'northwind-ops',
      'northwind-support',
    ])
    expect(await names(operator, '?hasServers=0')).toEqual(['ada', 'priya'])
    // Names that begin alike are not taken for each other.
    for (const name of ['lab', 'lab-one']) await ada(`PUT /namespaces/${name}`)
    await ada('PUT /servers/lab-one/thing')
    expect(await names(ada, '?hasServers=1&q=lab')).toEqual(['lab-one'])
    await ada('DELETE /servers/lab-one/thing')
    await ada('PUT /servers/lab')
    expect(await names(ada, '?hasServers=1&q=lab')).toEqual(['lab'])
    expect(await names(operator, '?hasSkills=1')).toEqual([])
    expect(await names(operator, '?hasSkills=false&q=pri')).toEqual(['priya'])
    expect((await operator('GET /namespaces?fields=x&pageSize=1')).body.namespaces).toEqual([{}])
  })

  test('takes no other parameter, none twice and no number out of range', async () => {
    for (const query of ['x=1', 'page=0', 'page=01', 'pageSize=51', 'q=a&q=b', 'hasServers=yes', 'page=1e3'])
      expect(await ada(`GET /namespaces?${query}`)).toMatchObject({ status: 400 })
  })
})

describe('a namespace', () => {
  test('is made for the caller, and reached at once', async () => {
    const made = await ada('PUT /namespaces/ada-lab')
    expect(made).toMatchObject({ status: 201, body: { name: 'ada-lab', createdAt: '2026-03-02T09:00:00.000Z' } })
    expect(Object.keys(made.body)).toEqual(['name', 'createdAt'])
    expect(await names(ada)).toContain('ada-lab')
    expect(await ada('GET /namespaces/ada-lab')).toMatchObject({
      status: 200,
      body: { name: 'ada-lab', createdAt: '2026-03-02T09:00:00.000Z', pins: 'warn' },
    })
    expect((await ada('GET /connect/ada-lab')).status).toBe(200)
    expect((await linus('GET /connect/ada-lab')).status).toBe(404)
    expect(event('namespace.created')).toMatchObject([{ userId: 'ada', namespace: 'ada-lab', owner: 'user ada' }])
  })

  test('that the caller leads is answered as it is, one of a fixture too', async () => {
    platform.now += 5000
    await ada('PUT /namespaces/ada-lab')
    platform.now += 5000
    for (const name of ['ada-lab', 'northwind', 'ada']) {
      const again = await ada(
        `PUT /namespaces/${name}`,
        name === 'northwind' ? { organizationId: 'org_northwind' } : undefined,
      )
      const createdAt = name === 'ada-lab' ? '2026-03-02T09:00:05.000Z' : '2026-03-02T09:00:00.000Z'
      expect(again).toMatchObject({ status: 201, body: { name, createdAt } })
    }
    expect(await ada('PUT /namespaces/ada-lab', { organizationId: 'org_northwind' })).toMatchObject({ status: 409 })
  })

  test('is made for an organization by who leads it, and by its token without a word', async () => {
    expect((await ada('PUT /namespaces/nw-two', { organizationId: 'org_northwind' })).status).toBe(201)
    expect(await names(linus)).toContain('nw-two')
    expect(await linus('PUT /namespaces/nw-three', { organizationId: 'org_northwind' })).toMatchObject({
      status: 403,
    })
    expect(await ada('PUT /namespaces/lum', { organizationId: 'org_lumen' })).toMatchObject({ status: 403 })
    const token = await mint({ organizationId: 'org_northwind' })
    expect((await token('PUT /namespaces/nw-four')).status).toBe(201)
    expect(await names(linus)).toContain('nw-four')
    expect(await token('PUT /namespaces/mine', { userId: 'ada' })).toMatchObject({ status: 403 })
    expect(await ada('PUT /namespaces/hers', { userId: 'grace' })).toMatchObject({ status: 403 })
    expect((await operator('PUT /namespaces/hers', { userId: 'grace' })).status).toBe(201)
    expect(await names(ada.as(sampleKeys.grace))).toContain('hers')
  })

  test('of others is a 409 in any case of letters, and one that is reached and not led a 403', async () => {
    expect(await ada('PUT /namespaces/priya')).toMatchObject({
      status: 409,
      body: { error: 'The name priya is taken: choose another name' },
    })
    expect(await linus('PUT /namespaces/northwind')).toMatchObject({ status: 403 })
    const upper = await createTestPlatform({
      sources: [
        {
          file: 'a.json',
          read: () =>
            Buffer.from(
              JSON.stringify({
                namespaces: [{ namespace: 'Acme', userId: 'x' }],
                apiKeys: [{ userId: 'ada', key: sampleKeys.ada }],
              }),
            ),
        },
      ],
    })
    expect(await apiOf(upper.fetch, sampleKeys.ada)('PUT /namespaces/acme')).toMatchObject({ status: 409 })
  })

  test('has a name of 3 to 39 small letters, digits and dashes', async () => {
    for (const name of ['ab', 'a'.repeat(40), 'Abc', 'abc-', '-abc', '--', 'a_c', 'a.c', 'a%20c'])
      expect({ name, ...(await ada(`PUT /namespaces/${name}`)) }).toMatchObject({ name, status: 400 })
    for (const name of ['abc', `b-${'b'.repeat(37)}`])
      expect({ name, ...(await ada(`PUT /namespaces/${name}`)) }).toMatchObject({ name, status: 201 })
    expect(await problemsOf(platform)).toEqual([])
  })

  test('takes no other body', async () => {
    for (const body of [
      '[]',
      '{"name":"x"}',
      '{"organizationId":""}',
      '{"organizationId":"o","userId":"u"}',
      '"x"',
      '{',
    ])
      expect({ ...(await ada('PUT /namespaces/abc', body)), sent: body }).toMatchObject({ sent: body, status: 400 })
    for (const body of ['null', '{}', '']) expect((await ada('PUT /namespaces/abc', body)).status).toBe(201)
  })

  test('is one of three that a user may own', async () => {
    for (const name of ['ada-2', 'ada-3']) expect((await ada(`PUT /namespaces/${name}`)).status).toBe(201)
    expect(await ada('PUT /namespaces/ada-4')).toMatchObject({
      status: 403,
      body: { error: 'A user may own at most 3 namespaces here (--namespaces-per-user): delete one first' },
    })
    expect((await ada('PUT /namespaces/nw-9', { organizationId: 'org_northwind' })).status).toBe(201)
  })

  test('is refused to an organization that owns as many as it may, and never to operators and fixtures', async () => {
    const owned = await names(await mint({ organizationId: 'org_northwind' }))
    const puts = Array.from({ length: namespacesPerOrganizationMax - owned.length - 1 }, (_, i) =>
      withIndex(namespaceEntry({ namespace: `nw-${i}`, organizationId: 'org_northwind' })),
    )
    await platform.store.commit({ puts: [...puts.flat(), newVersion(directoryVersionKey)] })
    const put = async (api: Api, name: string) => {
      const { status, body } = await api(`PUT /namespaces/${name}`, { organizationId: 'org_northwind' })
      return [status, body.error]
    }
    const made = await Promise.all([put(ada, 'nw-last'), put(ada, 'nw-past')])
    expect(made.sort()).toEqual([
      [201, undefined],
      [403, 'An organization may own at most 1000 namespaces here: delete one first'],
    ])
    expect(await put(ada, 'nw-0')).toEqual([201, undefined])
    expect(await put(operator, 'nw-of-operator')).toEqual([201, undefined])
    expect((await ada('DELETE /namespaces/nw-0')).status).toBe(200)
    expect((await put(ada, 'nw-again'))[0]).toBe(403)
    expect((await ada('DELETE /namespaces/nw-1')).status).toBe(200)
    expect(await put(ada, 'nw-again')).toEqual([201, undefined])
    expect(await problemsOf(platform)).toEqual([])
  })

  test('gets a name where none is given, for who owns none', async () => {
    const made = await linus('POST /namespaces')
    expect(made.status).toBe(201)
    expect(made.body.name).toMatch(/^[a-z]+-[0-9a-z]{4}$/)
    expect(await names(linus)).toContain(made.body.name)
    expect(await linus('POST /namespaces')).toMatchObject({ status: 400 })
    expect(await ada('POST /namespaces', { userId: 'ada' })).toMatchObject({ status: 400 })
    const narrowed = await mint({ policy: [{ namespaces: 'northwind' }] }, sampleKeys.linus)
    expect(await narrowed('POST /namespaces')).toMatchObject({
      status: 403,
      body: { error: 'The token does not allow this: policy[0].namespaces' },
    })
    const refused = { event: 'access.refused', userId: 'linus', constraint: 'policy[0].namespaces' }
    expect(platform.audited.at(-1)).toMatchObject(refused)
  })

  test('is hidden, refused and read in the order of the contract', async () => {
    await linus('PUT /namespaces/linus-lab')
    for (const [body, who] of [
      [{ bogus: 1 }, 'northwind'],
      [{ organizationId: 'org_northwind' }, 'northwind'],
      [{ organizationId: 'org_northwind' }, 'linus-lab'],
      [{ organizationId: 'org_none' }, 'lumen'],
    ] as const)
      expect({ who, ...(await linus(`PUT /namespaces/${who}`, body)) }).toMatchObject({ who, status: 403 })
    expect((await ada('PUT /namespaces/northwind', { bogus: 1 })).status).toBe(400)
    const named = await mint({ policy: [{ namespaces: 'ada' }, { operations: 'read' }] })
    expect(await named('PUT /namespaces/other')).toMatchObject({ status: 404, body: { error: 'Namespace not found' } })
    expect(await named('PUT /namespaces/ada')).toMatchObject({
      status: 403,
      body: { error: 'The token does not allow this: policy[1].operations' },
    })
    expect((await named('GET /namespaces/ada')).status).toBe(200)
    for (const path of [
      'GET /namespaces/priya',
      'GET /namespaces/none',
      'DELETE /namespaces/priya',
      'GET /namespaces/a%00',
    ])
      expect(await ada(path)).toMatchObject({ status: 404, body: { error: 'Namespace not found' } })
    expect(await linus('DELETE /namespaces/northwind')).toMatchObject({ status: 403 })
    expect((await linus('GET /namespaces/northwind')).status).toBe(200)
  })

  test('of a fixture is changed there', async () => {
    expect(await ada('PATCH /namespaces/ada', { pins: 'block' })).toMatchObject({
      status: 409,
      body: { error: expect.stringMatching(/change it in .*organizations\.json: namespaces\[4\]$/) },
    })
    expect(await ada('DELETE /namespaces/ada')).toMatchObject({ status: 409 })
  })

  test('says what happens when a pinned tool changes', async () => {
    await ada('PUT /namespaces/abc')
    expect(await ada('PATCH /namespaces/abc', { pins: 'block' })).toMatchObject({
      status: 200,
      body: { pins: 'block' },
    })
    expect((await ada('GET /namespaces/abc')).body.pins).toBe('block')
    for (const body of [{ pins: 'x' }, {}, { pins: 'off', more: 1 }])
      expect(await ada('PATCH /namespaces/abc', body)).toMatchObject({ status: 400 })
  })
})

describe('a namespace that is deleted', () => {
  const mocked = { server: 'northwind/calendar', mock: { enabled: true } }

  test('goes with its connections, and is free again', async () => {
    await ada('PUT /namespaces/abc')
    for (let i = 0; i < 3; i += 1) expect((await ada('POST /connect/abc', mocked)).status).toBe(201)
    expect(await ada('DELETE /namespaces/abc')).toMatchObject({ status: 200, body: { success: true, name: 'abc' } })
    expect((await ada('GET /connect/abc')).status).toBe(404)
    const { keys } = await platform.store.keys({
      gte: keyOf('connection', 'abc', ''),
      lt: keyOf('connection', 'abd', ''),
      limit: 9,
    })
    expect(keys).toEqual([])
    expect(await platform.store.get(keyOf('deletingNamespace', 'abc'))).toBeUndefined()
    expect(event('namespace.deleted')).toHaveLength(1)
    expect((await priya('PUT /namespaces/abc')).status).toBe(201)
    expect((await priya('GET /connect/abc')).body.connections).toEqual([])
  })

  test('keeps its name until the last of them is gone, whoever removes it', async () => {
    await ada('PUT /namespaces/abc')
    await ada('POST /connect/abc', mocked)
    // As if the process had ended right after the commit.
    await platform.store.commit({
      deletes: [keyOf('namespace', 'abc')],
      puts: [{ key: keyOf('deletingNamespace', 'abc'), value: new Uint8Array(0) }],
    })
    expect(await priya('PUT /namespaces/abc')).toMatchObject({ status: 409 })
    await removeAllDeleted(platform.store, beforeServing)
    expect((await priya('PUT /namespaces/abc')).status).toBe(201)
    expect((await priya('GET /connect/abc')).body.connections).toEqual([])
  })

  test('leaves no connection that was being made meanwhile, for whoever has the name next', async () => {
    await ada('PUT /namespaces/abc')
    let isHeld = false
    const racing = await createTestPlatform({
      store: {
        ...platform.store,
        async commit(write) {
          const puts = [...(write.puts ?? [])]
          const makes = puts.some(({ key }) => Buffer.from(key).toString().startsWith('cabc'))
          if (makes && !isHeld) {
            isHeld = true
            await ada('DELETE /namespaces/abc')
            await priya('PUT /namespaces/abc')
          }
          return platform.store.commit({ ...write, puts })
        },
      },
    })
    expect((await apiOf(racing.fetch, sampleKeys.ada)('POST /connect/abc', mocked)).status).toBe(404)
    expect(isHeld).toBe(true)
    expect((await priya('GET /connect/abc')).body.connections).toEqual([])
  })
})

describe('a deletion that takes longer than a client waits', () => {
  beforeEach(() => void jest.useFakeTimers())
  afterEach(() => void jest.useRealTimers())

  test('is answered, and goes on', async () => {
    const store = openMemoryStore()
    const removal = Promise.withResolvers<void>()
    let isHeld = false
    const slow = await createTestPlatform({
      store: {
        ...store,
        async keys(range) {
          if (isHeld && Buffer.from(range.gte).toString().startsWith('cslow-one')) await removal.promise
          return store.keys(range)
        },
      },
    })
    const api = apiOf(slow.fetch, sampleKeys.ada)
    expect((await api('PUT /namespaces/slow-one')).status).toBe(201)
    isHeld = true
    let status = 0
    const answer = api('DELETE /namespaces/slow-one').then((one) => {
      status = one.status
    })
    for (let i = 0; i < 1000; i += 1) await Promise.resolve()
    expect(status).toBe(0)
    jest.advanceTimersByTime(deletionAnswerMs)
    await answer
    expect(status).toBe(200)
    expect(await slow.store.get(keyOf('deletingNamespace', 'slow-one'))).toBeDefined()
    removal.resolve()
    while ((await slow.store.get(keyOf('deletingNamespace', 'slow-one'))) !== undefined) await Promise.resolve()
  })
})
