/** Fixtures beside what was made over HTTP (contract, 11.3 to 11.5). */

import { beforeEach, describe, expect, test } from 'bun:test'
import { loadFixtures } from '../../../src/maintenance/seed/load-fixtures.ts'
import { readFixtures } from '../../../src/maintenance/seed/read-fixtures.ts'
import { sampleSources } from '../../../src/maintenance/seed/sample.ts'
import { beforeServing, removeAllDeleted } from '../../../src/storage/deleted-namespaces.ts'
import { keyOf } from '../../../src/storage/keys.ts'
import { type Api, apiOf } from '../../support/api.ts'
import { createTestPlatform, problemsOf, silent, startOfTime, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

let platform: TestPlatform
let ada: Api
let operator: Api
beforeEach(async () => {
  platform = await createTestPlatform()
  ada = apiOf(platform.fetch, sampleKeys.ada)
  operator = ada.as(sampleKeys.operator)
})

/** Loads the sample with more, or nothing but keys. */
async function load(more: object, withSample = true) {
  const file = { file: 'mine.json', read: () => Buffer.from(JSON.stringify(more)) }
  const keys = sampleSources().filter((source) => withSample || source.file.endsWith('keys.json'))
  const { fixtures, problems } = await readFixtures([...keys, file])
  expect(problems).toEqual([])
  const logged: string[] = []
  const log = {
    ...silent,
    info: (event: string) => void logged.push(event),
    warn: (event: string) => void logged.push(event),
  }
  await loadFixtures(platform.store, fixtures, Math.random().toString(), {
    pepper: platform.pepper,
    now: new Date(startOfTime),
    log,
  })
  return logged
}
const server = { displayName: 'Thing', description: '', remote: false, connections: [] }

test('a load removes nothing that was made over HTTP', async () => {
  await operator('PUT /organizations/acme', { owner: 'ada' })
  await ada('PUT /namespaces/acme-one', { organizationId: 'acme' })
  await ada('PUT /servers/acme-one/thing')
  await ada('PUT /servers/ada/tool')
  await ada('PUT /organizations/acme/members/grace', { role: 'admin' })
  const before = (await ada('GET /me')).body
  await load({})
  await load({ namespaces: [{ namespace: 'other', userId: 'ada' }] })
  await load({})
  expect((await ada('GET /me')).body).toEqual(before)
  for (const name of ['acme-one/thing', 'ada/tool']) expect((await ada(`GET /servers/${name}`)).status).toBe(200)
  expect((await ada('GET /organizations/acme')).body.members).toHaveLength(2)
  expect(await problemsOf(platform)).toEqual([])
})

test('a namespace with a connection that was made over HTTP is for no other owner, whoever the fixtures name', async () => {
  const own = (userId: string) => ({ namespaces: [{ namespace: 'tools', userId }] })
  await load(own('ada'))
  await load(own('linus'))
  await load(own('ada'))
  await ada('PUT /connect/tools/mine', { mcpUrl: 'https://x.example.com/mcp', headers: { 'x-key': 'secret' } })
  await expect(load(own('linus'))).rejects.toThrow(
    'mine.json: namespaces[0]: a connection in tools was made over HTTP and belongs to user ada',
  )
  expect((await ada('GET /connect/tools/mine')).status).toBe(200)
})

describe('a fixture of what was made over HTTP', () => {
  test('takes a namespace of the same owner, and a server in it', async () => {
    await ada('PUT /namespaces/lab-one')
    await ada('PATCH /namespaces/lab-one', { pins: 'block' })
    await ada('PUT /servers/lab-one/thing', { description: 'mine' })
    const logged = await load({
      namespaces: [{ namespace: 'lab-one', userId: 'ada' }],
      servers: [{ qualifiedName: 'lab-one/thing', ...server }],
    })
    expect(logged).toContain('a fixture replaced a record that was made over HTTP or by a command')
    expect((await ada('GET /servers?q=thing')).body.servers[0]).toMatchObject({ displayName: 'Thing', description: '' })
    expect((await ada('DELETE /servers/lab-one/thing')).status).toBe(409)
    // What the fixture does not say stays.
    expect((await ada('GET /namespaces/lab-one')).body.pins).toBe('block')
    // And takes it along when it goes.
    await load({})
    expect((await ada('GET /servers/lab-one/thing')).status).toBe(404)
    expect((await ada('GET /namespaces/lab-one')).status).toBe(404)
    expect(await problemsOf(platform)).toEqual([])
  })

  test('that is being deleted is refused until its connections are gone', async () => {
    await platform.store.commit({ puts: [{ key: keyOf('deletingNamespace', 'lab-one'), value: Buffer.from('now') }] })
    const again = load({ namespaces: [{ namespace: 'lab-one', userId: 'ada' }] })
    await expect(again).rejects.toThrow('mine.json: namespaces[0]: the namespace lab-one is being deleted: load the')
    await removeAllDeleted(platform.store, beforeServing)
    await load({ namespaces: [{ namespace: 'lab-one', userId: 'ada' }] })
    expect((await ada('GET /namespaces/lab-one')).status).toBe(200)
  })

  test('of another owner is refused with file and path, and nothing changes', async () => {
    await ada('PUT /namespaces/lab-one')
    await expect(load({ namespaces: [{ namespace: 'lab-one', userId: 'grace' }] })).rejects.toThrow(
      'mine.json: namespaces[0]: the namespace lab-one was made over HTTP and belongs to user ada',
    )
    expect((await ada('GET /namespaces/lab-one')).status).toBe(200)
  })

  test('takes an organization that shares an owner, and leaves its other members', async () => {
    await operator('PUT /organizations/acme', { owner: 'ada' })
    await ada('PUT /organizations/acme/members/grace', { role: 'admin' })
    const organization = (userId: string) => ({
      organizations: [{ organizationId: 'acme', name: 'Acme', members: [{ userId, role: 'owner' }] }],
    })
    await expect(load(organization('jonas'))).rejects.toThrow(
      'mine.json: organizations[0]: the organization acme was made',
    )
    await load(organization('ada'))
    expect((await ada('GET /organizations/acme')).body).toMatchObject({
      name: 'Acme',
      members: [
        { userId: 'ada', role: 'owner' },
        { userId: 'grace', role: 'admin' },
      ],
    })
    expect((await ada('PUT /organizations/acme/members/linus', { role: 'member' })).status).toBe(409)
    expect(await problemsOf(platform)).toEqual([])
  })

  test('leaves members of an organization that were made over HTTP to HTTP, and changes its own alone', async () => {
    await operator('PUT /organizations/acme', { owner: 'ada' })
    await ada('PUT /organizations/acme/members/grace', { role: 'admin' })
    const members = [
      { userId: 'ada', role: 'owner' },
      { userId: 'linus', role: 'owner' },
    ]
    await load({ organizations: [{ organizationId: 'acme', name: 'Acme', members }] })
    for (const [request, body, status] of [
      ['PUT /organizations/acme/members/linus', { role: 'member' }, 409],
      ['DELETE /organizations/acme/members/linus', undefined, 409],
      ['PUT /organizations/acme/members/grace', { role: 'member' }, 200],
      ['DELETE /organizations/acme/members/grace', undefined, 200],
    ] as const)
      expect({ request, status: (await ada(request, body)).status }).toEqual({ request, status })
    await load({})
    // Ada was an owner before the fixture came.
    expect((await ada('GET /organizations/acme')).body.members).toEqual([{ userId: 'ada', role: 'owner' }])
    expect(await problemsOf(platform)).toEqual([])
  })

  test('takes an organization that an earlier fixture left without owners', async () => {
    const acme = {
      organizations: [{ organizationId: 'acme', name: 'Acme', members: [{ userId: 'ada', role: 'owner' }] }],
      namespaces: [{ namespace: 'acme-one', organizationId: 'acme' }],
    }
    await load(acme)
    await ada('PUT /servers/acme-one/thing')
    await load({})
    await load(acme)
    expect((await ada('GET /namespaces/acme-one')).status).toBe(200)
    expect(await problemsOf(platform)).toEqual([])
  })

  test('leaves a server verified where it is the same', async () => {
    await ada('PUT /namespaces/lab-one')
    const url = (name: string) => ({ deploymentUrl: `https://${name}.example.com/mcp`, connections: [] })
    await ada('PUT /servers/lab-one/thing', url('one'))
    await operator('PATCH /servers/lab-one/thing', { verified: true })
    const fixture = (name: string) => ({
      namespaces: [{ namespace: 'lab-one', userId: 'ada' }],
      servers: [{ qualifiedName: 'lab-one/thing', ...server, ...url(name) }],
    })
    const isVerified = async () => (await ada('GET /servers?namespace=lab-one')).body.servers[0].verified
    await load(fixture('one'))
    expect(await isVerified()).toBe(true)
    await load(fixture('two'))
    expect(await isVerified()).toBe(false)
  })

  test('leaves an unlisted server unlisted', async () => {
    await ada('PUT /namespaces/lab-one')
    await ada('PUT /servers/lab-one/thing', { unlisted: true })
    await load({
      namespaces: [{ namespace: 'lab-one', userId: 'ada' }],
      servers: [{ qualifiedName: 'lab-one/thing', ...server }],
    })
    const listed = async (api: Api) => (await api('GET /servers?namespace=lab-one')).body.servers
    expect(await listed(ada)).toHaveLength(1)
    expect(await listed(ada.as(sampleKeys.jonas))).toEqual([])
  })
})

describe('a fixture that goes', () => {
  test('leaves a namespace in which servers or connections were made, and its organization', async () => {
    const more = {
      organizations: [{ organizationId: 'acme', name: 'Acme', members: [{ userId: 'ada', role: 'owner' }] }],
      namespaces: [
        { namespace: 'one', organizationId: 'acme' },
        { namespace: 'two', organizationId: 'acme' },
        { namespace: 'three', userId: 'ada' },
      ],
      servers: [{ qualifiedName: 'two/thing', ...server }],
    }
    await load(more)
    await ada('PUT /servers/one/made')
    await ada('PUT /connect/three/made', { server: 'northwind/calendar', mock: { enabled: true } })
    const logged = await load({})
    expect(logged.filter((event) => event.startsWith('fixture removed'))).toHaveLength(3)
    for (const [name, status] of [
      ['one', 200],
      ['two', 404],
      ['three', 200],
    ] as const)
      expect({ name, status: (await operator(`GET /namespaces/${name}`)).status }).toEqual({ name, status })
    expect((await operator('GET /organizations/acme')).body).toEqual({
      organizationId: 'acme',
      name: 'Acme',
      members: [],
    })
    // They are as if they had been made over HTTP.
    await operator('PUT /organizations/acme', { owner: 'ada' })
    expect((await ada('DELETE /servers/one/made')).status).toBe(200)
    for (const request of ['DELETE /namespaces/one', 'DELETE /organizations/acme', 'DELETE /namespaces/three'])
      expect({ request, status: (await ada(request)).status }).toEqual({ request, status: 200 })
    expect(await problemsOf(platform)).toEqual([])
  })

  test('takes its members along, and those made over HTTP stay with the organization', async () => {
    await load({
      organizations: [{ organizationId: 'acme', name: 'Acme', members: [{ userId: 'ada', role: 'owner' }] }],
    })
    await operator('PUT /organizations/acme', { owner: 'ada' })
    await load({})
    expect((await operator('GET /organizations/acme')).status).toBe(404)
    expect((await ada('GET /me')).body.organizations).toEqual([{ organizationId: 'org_northwind', role: 'owner' }])
    expect(await problemsOf(platform)).toEqual([])
  })

  test('whose namespace has another owner now: nobody of before reaches it', async () => {
    await load({ namespaces: [{ namespace: 'one', userId: 'ada' }] })
    await load({ namespaces: [{ namespace: 'one', userId: 'grace' }] })
    expect((await ada('GET /namespaces?q=one')).body.namespaces).toEqual([])
    expect((await ada.as(sampleKeys.grace)('GET /namespaces?q=one')).body.namespaces).toEqual([{ name: 'one' }])
    expect(await problemsOf(platform)).toEqual([])
  })
})
