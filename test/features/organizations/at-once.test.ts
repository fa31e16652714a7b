/** Writes to the directory at the same time: each is allowed, or not, by what is stored when its turn comes. */

import { beforeEach, describe, expect, test } from 'bun:test'
import { revokeApiKey } from '../../../src/auth/api-key.ts'
import { type Grant, grantEntry } from '../../../src/auth/grants.ts'
import { strangerAt } from '../../../src/fairness/owner.ts'
import type { Member } from '../../../src/model/organization.ts'
import { beforeServing, removeDeleted } from '../../../src/storage/deleted-namespaces.ts'
import { indexKeysOf, memberEntry, withIndex } from '../../../src/storage/directory-records.ts'
import { directoryVersionKey, keyOf } from '../../../src/storage/keys.ts'
import { postgresCommitKeysMax } from '../../../src/storage/postgres/store.ts'
import type { Store, Write } from '../../../src/storage/store.ts'
import { newVersion } from '../../../src/storage/versions.ts'
import { type Answer, type Api, apiOf } from '../../support/api.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { createTestPlatform, keyIdOf, problemsOf, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

let platform: TestPlatform
let operator: Api
let ada: Api
let grace: Api
beforeEach(async () => {
  platform = await createTestPlatform()
  operator = apiOf(platform.fetch, sampleKeys.operator)
  ada = operator.as(sampleKeys.ada)
  grace = operator.as(sampleKeys.grace)
  await operator('PUT /organizations/acme', { owner: 'ada' })
  await ada('PUT /organizations/acme/members/grace', { role: 'admin' })
})

/** The answer to a request that has to wait for its turn, while another process does something. */
async function whileWaiting(request: () => Promise<Answer>, act: () => Promise<unknown>): Promise<Answer> {
  const turn = Promise.withResolvers<void>()
  const first = platform.fairness.writes.run('directory', strangerAt('192.0.2.1'), () => turn.promise)
  const answer = request()
  // It reads its body, is allowed, and waits.
  for (let turns = 0; turns < 100; turns += 1) await new Promise((resolve) => setImmediate(resolve))
  await act()
  turn.resolve()
  await first
  return answer
}

test('an organization that is deleted leaves nothing that was made meanwhile', async () => {
  const requests: [Api, string, object?][] = [
    [ada, 'DELETE /organizations/acme'],
    [ada, 'POST /organizations/acme/api-keys', { name: 'late' }],
    [ada, 'PUT /namespaces/acme-late', { organizationId: 'acme' }],
    [ada, 'PUT /organizations/acme/members/linus', { role: 'owner' }],
  ]
  const answers = await Promise.all(requests.map(([api, request, body]) => api(request, body)))
  expect(answers.map(({ status }) => status)).toEqual([200, 403, 403, 404])
  expect(await problemsOf(platform)).toEqual([])
  // And nobody but its owner is in one that is made again under its name.
  await operator('PUT /organizations/acme', { owner: 'jonas' })
  expect((await operator('GET /organizations/acme')).body.members).toEqual([{ userId: 'jonas', role: 'owner' }])
})

describe('a member that is removed while a request of theirs waits', () => {
  beforeEach(async () => {
    await ada('PUT /namespaces/acme-one', { organizationId: 'acme' })
    await ada('PUT /servers/acme-one/thing', { description: 'mine' })
    await ada('PUT /namespaces/acme-two', { organizationId: 'acme' })
  })
  const remove = () => {
    const entry = memberEntry('acme', 'grace', 'admin')
    const deletes = [keyOf('member', 'acme', 'grace'), ...indexKeysOf(entry)]
    return platform.store.commit({ deletes, puts: [newVersion(directoryVersionKey)] })
  }

  test.each([
    ['POST /organizations/acme/api-keys', { name: 'late' }, 201, 403],
    ['PUT /organizations/acme/members/linus', { role: 'admin' }, 200, 404],
    ['PUT /namespaces/acme-late', { organizationId: 'acme' }, 201, 403],
    ['PATCH /namespaces/acme-one', { pins: 'block' }, 200, 404],
    ['DELETE /namespaces/acme-two', undefined, 200, 404],
    ['PUT /servers/acme-one/late', {}, 201, 404],
    ['PUT /servers/acme-one/thing', { description: 'hers' }, 201, 404],
    ['PATCH /servers/acme-one/thing', { description: 'hers' }, 200, 404],
    ['DELETE /servers/acme-one/thing', undefined, 200, 404],
  ] as [string, object | undefined, number, number][])(
    'changes nothing: %s',
    async (request, body, allowed, refused) => {
      const read = async () => {
        const asked = [
          'organizations/acme',
          'organizations/acme/api-keys',
          'namespaces',
          'namespaces/acme-one',
          'servers',
        ]
        return Promise.all(asked.map(async (path) => (await operator(`GET /${path}`)).body))
      }
      const [organization, ...rest] = await read()
      expect((await whileWaiting(() => grace(request, body), remove)).status).toBe(refused)
      expect(await read()).toEqual([{ ...organization, members: [{ userId: 'ada', role: 'owner' }] }, ...rest])
      // Nothing else was in its way.
      await ada('PUT /organizations/acme/members/grace', { role: 'admin' })
      expect(
        (
          await whileWaiting(
            () => grace(request, body),
            async () => {},
          )
        ).status,
      ).toBe(allowed)
    },
  )
})

test('a key that is revoked while its request waits writes nothing', async () => {
  const { id, key } = (await ada('POST /organizations/acme/api-keys', { name: 'ci' })).body
  const request = () => ada.as(key)('PUT /namespaces/acme-late')
  const revoke = () => revokeApiKey(platform.store, id, new Date(0))
  expect((await whileWaiting(request, revoke)).status).toBe(401)
  expect((await operator('GET /namespaces?q=acme')).body.namespaces).toEqual([])
})

describe('a namespace with many connections', () => {
  /** The numbers of keys that each write changes. */
  async function emptied(count: number, metadata?: (at: number) => object): Promise<number[]> {
    const { store } = platform
    await ada('PUT /namespaces/lab-one')
    const mocked = { server: 'northwind/weather', mock: { enabled: true } }
    for (let i = 0; i < count; i += 1) {
      const body = { ...mocked, ...(metadata && { metadata: metadata(i) }) }
      expect((await ada(`PUT /connect/lab-one/c${i}`, body)).status).toBe(201)
    }
    const keys: number[] = []
    const counting = {
      ...store,
      commit(write: Write) {
        keys.push([...(write.puts ?? []), ...(write.deletes ?? [])].length)
        return store.commit(write)
      },
    } as Store
    await store.commit({ puts: [newVersion(keyOf('deletingNamespace', 'lab-one'))] })
    await removeDeleted(counting, 'lab-one', beforeServing)
    expect((await ada('GET /connect/lab-one')).body.connections).toEqual([])
    expect(await problemsOf(platform)).toEqual([])
    return keys
  }

  test('is emptied in few writes: each changes the index once', async () => {
    // One that ends what was being made, six for the connections, one for their version, and the mark.
    expect(await emptied(150)).toHaveLength(9)
  })

  test('is emptied in writes that PostgreSQL locks key by key, however much metadata they have', async () => {
    const keys = await emptied(40, () => pairs(64))
    expect(Math.max(...keys)).toBeLessThanOrEqual(postgresCommitKeysMax)
    // Seven connections in each.
    expect(keys).toHaveLength(3 + Math.ceil(40 / 7))
  })

  test('is emptied in writes that change few parts of the index, whatever metadata each connection has', async () => {
    expect(await emptied(5, (at) => pairs(64, at))).toHaveLength(3 + 5)
  })

  const pairs = (count: number, value: unknown = 'v') =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, value]))
})

test('deletions of many namespaces at once write one at a time', async () => {
  let [underWay, most] = [0, 0]
  const store: Store = {
    ...platform.store,
    async commit(write) {
      const isRemoval = [...(write.deletes ?? [])].some((key) => key[0] === keyOf('connection', '', '')[0])
      if (isRemoval) underWay += 1
      most = Math.max(most, underWay)
      // As long as another process writes.
      for (let turn = 0; isRemoval && turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
      if (isRemoval) underWay -= 1
      return platform.store.commit(write)
    },
  }
  const others = apiOf((await createTestPlatform({ store })).fetch, sampleKeys.ada)
  const names = ['lab-one', 'lab-two']
  for (const name of names) {
    await others(`PUT /namespaces/${name}`)
    await others(`PUT /connect/${name}/one`, { server: 'northwind/weather', mock: { enabled: true } })
  }
  const deleted = await Promise.all(names.map((name) => others(`DELETE /namespaces/${name}`)))
  expect([deleted.map(({ status }) => status), most]).toEqual([[200, 200], 1])
})

test('a deletion that goes on elsewhere takes nothing of a namespace that is made again under the name', async () => {
  const { store } = platform
  const connect = (id: string) =>
    ada(`PUT /connect/lab-one/${id}`, { server: 'northwind/weather', mock: { enabled: true } })
  await ada('PUT /namespaces/lab-one')
  await connect('old')
  // Another process reads the connections, and does not go on before all is over.
  const found = Promise.withResolvers<void>()
  const goOn = Promise.withResolvers<void>()
  const slow = {
    ...store,
    async keys(range: Parameters<Store['keys']>[0]) {
      const keys = await store.keys(range)
      found.resolve()
      await goOn.promise
      return keys
    },
  } as Store
  await store.commit({ puts: [newVersion(keyOf('deletingNamespace', 'lab-one'))] })
  const elsewhere = removeDeleted(slow, 'lab-one', beforeServing)
  await found.promise
  await removeDeleted(store, 'lab-one', beforeServing)
  expect((await connect('old')).status).toBe(201)
  goOn.resolve()
  await elsewhere
  expect((await ada('GET /connect/lab-one/old')).status).toBe(200)
  expect(await problemsOf(platform)).toEqual([])
})

test('what takes access away is held up by no replica that changes the directory all the time', async () => {
  const memory = openMemoryStore()
  let isBusy = false
  const store: Store = {
    ...memory,
    async commit(write) {
      if (isBusy) await memory.commit({ puts: [newVersion(directoryVersionKey)] })
      return memory.commit(write)
    },
  }
  const busy = await createTestPlatform({ store })
  const api = apiOf(busy.fetch, sampleKeys.ada)
  const { body: key } = await api('POST /me/api-keys', { name: 'lost' })
  const { body: minted } = await api('POST /tokens', {})
  const grantId = `grant_${'x'.repeat(22)}`
  const grant: Grant = {
    ...{ grantId, userId: 'ada', keyId: await keyIdOf(busy, 'ada'), clientId: 'c', client: 'c', namespace: 'ada' },
    ...{ madeAt: '2026-01-01T00:00:00.000Z', createdAt: '2026-01-01T00:00:00.000Z', expires: busy.now / 1000 + 60 },
  }
  await store.commit({ puts: withIndex(grantEntry(grant)) })
  await api.as(sampleKeys.operator)('PUT /organizations/acme', { owner: 'ada' })
  for (const member of ['grace', 'linus']) await api(`PUT /organizations/acme/members/${member}`, { role: 'owner' })
  await api('PUT /namespaces/ada-now', {})
  await api('PATCH /namespaces/ada-now', { registry: 'members' })
  expect((await api('PUT /namespaces/ada-now/views/reading', { policy: [] })).status).toBe(201)
  const { body: link } = await api('POST /namespaces/ada-now/registry-links', {})
  isBusy = true
  expect((await api('PUT /namespaces/ada-late', {})).status).toBe(503)
  expect((await api('POST /tokens/revoke', { token: minted.token })).status).toBe(200)
  expect((await api('DELETE /organizations/acme/members/grace')).status).toBe(200)
  expect((await api('PUT /organizations/acme/members/linus', { role: 'member' })).status).toBe(200)
  expect((await api('PUT /organizations/acme/members/linus', { role: 'admin' })).status).toBe(503)
  expect((await api('DELETE /namespaces/ada-now/views/reading')).status).toBe(200)
  expect((await api(`DELETE /namespaces/ada-now/registry-links/${link.id}`)).status).toBe(200)
  expect((await api(`DELETE /me/api-keys/${key.id}`)).status).toBe(200)
  expect((await api(`DELETE /me/grants/${grantId}`)).status).toBe(200)
  for (const token of [minted.token, key.key]) expect((await api.as(token)('GET /me')).status).toBe(401)
  expect((await api('GET /me/grants')).body.grants).toEqual([])
  expect((await api('GET /organizations/acme')).body.members.map(({ userId }: Member) => userId)).toEqual([
    'ada',
    'linus',
  ])
  expect(await problemsOf(busy)).toEqual([])
})

describe('the owner that was found beside another one becomes a member meanwhile', () => {
  const lower = (...users: string[]) =>
    platform.store.commit({
      puts: [
        ...users.flatMap((userId) => withIndex(memberEntry('acme', userId, 'member'))),
        newVersion(directoryVersionKey),
      ],
    })
  const ownersNow = async () => {
    const { members } = (await operator('GET /organizations/acme')).body
    return members.filter(({ role }: Member) => role === 'owner').map(({ userId }: Member) => userId)
  }
  beforeEach(async () => {
    for (const user of ['grace', 'linus']) await ada(`PUT /organizations/acme/members/${user}`, { role: 'owner' })
  })

  for (const [request, body] of [
    ['DELETE /organizations/acme/members/linus', undefined],
    ['PUT /organizations/acme/members/linus', { role: 'admin' }],
  ] as const)
    test(`there is a third: ${request}`, async () => {
      const answer = await whileWaiting(
        () => grace(request, body),
        () => lower('ada'),
      )
      expect([answer.status, await ownersNow()]).toEqual([200, ['grace']])
    })

  test('so does the one who is removed', async () => {
    const answer = await whileWaiting(
      () => grace('DELETE /organizations/acme/members/linus'),
      () => lower('ada', 'linus'),
    )
    expect([answer.status, await ownersNow()]).toEqual([200, ['grace']])
  })

  test('nobody is left', async () => {
    const answer = await whileWaiting(
      () => grace('DELETE /organizations/acme/members/grace'),
      () => lower('ada', 'linus'),
    )
    expect([answer.status, await ownersNow()]).toEqual([409, ['grace']])
  })
})
