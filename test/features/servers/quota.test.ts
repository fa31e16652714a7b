/** Servers count for what their namespace may hold, wherever they come from. */

import { beforeEach, expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { newDetail } from '../../../src/features/servers/changed-server.ts'
import { importServers } from '../../../src/features/servers/import-servers.ts'
import { ownerServersMax } from '../../../src/limits.ts'
import { importFile } from '../../../src/maintenance/import.ts'
import { loadFixtures } from '../../../src/maintenance/seed/load-fixtures.ts'
import { readFixtures } from '../../../src/maintenance/seed/read-fixtures.ts'
import { sampleSources } from '../../../src/maintenance/seed/sample.ts'
import { listingOf, noExtras, type ServerDetail } from '../../../src/model/server.ts'
import { listingEntry, newListingVersions, readServer, serverEntry } from '../../../src/storage/directory-records.ts'
import { keyOf, listingKey } from '../../../src/storage/keys.ts'
import type { Usage } from '../../../src/storage/usage.ts'
import { type Api, apiOf } from '../../support/api.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import {
  createTestPlatform,
  problemsOf,
  silent,
  source,
  startOfTime,
  type TestPlatform,
} from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { workplace } from '../../support/workplace.ts'

let platform: TestPlatform
let ada: Api
const start = async (quota: Partial<Usage>) => {
  platform = await createTestPlatform({ quota })
  ada = apiOf(platform.fetch, sampleKeys.ada)
}
beforeEach(() => start({}))
const usage = async (namespace = 'ada') => {
  const [connections = 0, bytes = 0, servers = 0] = Buffer.from(
    (await platform.store.get(keyOf('usage', namespace))) ?? '0 0 0',
  )
    .toString()
    .split(' ')
    .map(Number)
  return { connections, bytes, servers }
}
const bytesOf = async (qualifiedName: string) => {
  const values = await platform.store.getMany([keyOf('server', qualifiedName), listingKey(qualifiedName)])
  return values.reduce((sum, value) => sum + (value as Uint8Array).length, 0)
}
const full = { error: 'The namespace ada is full: delete connections or servers, or ask the operator for more room' }

test('a server is counted with every write, to the byte, and given back', async () => {
  const before = await usage()
  await ada('PUT /servers/ada/one', { description: 'short' })
  expect(await usage()).toEqual({ ...before, servers: 1, bytes: before.bytes + (await bytesOf('ada/one')) })
  await ada('PUT /servers/ada', { description: 'of the namespace itself' })
  await ada('PATCH /servers/ada/one', { description: 'longer than it was', license: 'MIT' })
  const both = (await bytesOf('ada/one')) + (await bytesOf('ada'))
  expect(await usage()).toEqual({ ...before, servers: 2, bytes: before.bytes + both })
  expect(await problemsOf(platform)).toEqual([])
  for (const name of ['ada', 'ada/one']) expect((await ada(`DELETE /servers/${name}`)).status).toBe(200)
  expect(await usage()).toEqual(before)
})

test('a namespace has so many servers and no more, of many at once too; what adds none is done', async () => {
  await start({ servers: 3 })
  // Two processes of one store.
  const { fetch } = await createTestPlatform({ store: platform.store, quota: { servers: 3 } })
  const each = [ada, apiOf(fetch, sampleKeys.ada)]
  const made = await Promise.all(Array.from({ length: 8 }, (_, i) => each[i % 2]?.(`PUT /servers/ada/s${i}`)))
  expect(made.map((one) => one?.status).sort()).toEqual([201, 201, 201, 403, 403, 403, 403, 403])
  expect(made.find((one) => one?.status === 403)?.body).toEqual(full)
  const refused = platform.audited.filter(({ event }) => event === 'write.refused')
  expect(refused[0]).toMatchObject({ userId: 'ada', namespace: 'ada', reason: 'namespace_full' })
  const has = made.findIndex((one) => one?.status === 201)
  expect((await ada(`PUT /servers/ada/s${has}`, { description: 'another' })).status).toBe(201)
  expect((await ada(`DELETE /servers/ada/s${has}`)).status).toBe(200)
  expect((await ada('PUT /servers/ada/next')).status).toBe(201)
  expect((await ada('PUT /servers/ada/past')).status).toBe(403)
  expect(await problemsOf(platform)).toEqual([])
})

test('its servers and its connections have their bytes together', async () => {
  const { bytes } = await usage()
  await start({ bytes: bytes + 4000 })
  const withText = (length: number) => ({ description: 'x'.repeat(length) })
  expect((await ada('PUT /servers/ada/one', withText(1000))).status).toBe(201)
  // The text is in the details and in the listing.
  expect((await ada('PATCH /servers/ada/one', withText(2000))).body).toEqual(full)
  expect(
    (
      await ada('PUT /connect/ada/one', {
        server: 'northwind/weather',
        mock: { enabled: true },
        metadata: { x: 'y'.repeat(2000) },
      })
    ).status,
  ).toBe(403)
  expect(await problemsOf(platform)).toEqual([])
})

test('an owner has so many servers in all of its namespaces, and another owner is not asked', async () => {
  const { store } = platform
  const priya = apiOf(platform.fetch, sampleKeys.priya)
  const { totalCount } = (await priya('GET /servers?ownerId=org_lumen')).body.pagination
  const names = Array.from({ length: ownerServersMax - totalCount }, (_, i) => `lumen/s${i}`)
  const puts = names.map((name) => listingEntry(listingOf(newDetail(name).detail, noExtras)))
  await store.commit({ puts: [...puts, serverEntry(newDetail('lumen/s1').detail), ...newListingVersions(names)] })
  expect((await priya('PUT /namespaces/lumen-lab', { organizationId: 'org_lumen' })).status).toBe(201)
  const { status, body } = await priya('PUT /servers/lumen-lab/one')
  expect({ status, ...body }).toEqual({
    status: 403,
    error: 'The owner of the namespace lumen-lab has 5000 servers, as many as one owner may have: delete some',
  })
  expect(platform.audited.at(-1)).toMatchObject({ event: 'write.refused', userId: 'priya', reason: 'owner_full' })
  expect((await priya('PUT /servers/lumen/s1')).status).toBe(201)
  expect((await priya('DELETE /servers/lumen/s1')).status).toBe(200)
  expect((await priya('PUT /servers/lumen-lab/one')).status).toBe(201)
  expect((await ada('PUT /servers/ada/one')).status).toBe(201)
})

test('a change that makes a server smaller is done past the bound, one that makes it larger is not', async () => {
  await ada('PUT /servers/ada/one', { description: 'x'.repeat(2000) })
  const { store } = platform
  platform = await createTestPlatform({ store, quota: { bytes: 10, servers: 0 } })
  ada = apiOf(platform.fetch, sampleKeys.ada)
  expect((await ada('PATCH /servers/ada/one', { description: 'x'.repeat(2001) })).status).toBe(403)
  expect((await ada('PATCH /servers/ada/one', { description: 'x'.repeat(1000) })).status).toBe(200)
  expect((await ada('DELETE /servers/ada/one')).status).toBe(200)
})

/** Loads the sample and these servers of `ada`, or only the sample's keys. */
async function loadMore(servers: object[], sample = sampleSources()) {
  const described = servers.map((one) => ({ displayName: 'Thing', remote: false, connections: [], ...one }))
  const { fixtures, problems } = await readFixtures([...sample, source('mine.json', { servers: described })])
  expect(problems).toEqual([])
  const options = { pepper: platform.pepper, now: new Date(startOfTime), log: silent }
  await loadFixtures(platform.store, fixtures, JSON.stringify(servers), options)
  expect(await problemsOf(platform)).toEqual([])
}

test('fixtures are counted, whatever they change, and refused by no quota', async () => {
  await start({ servers: 1 })
  const before = await usage()
  await loadMore([
    { qualifiedName: 'ada/a', description: '' },
    { qualifiedName: 'ada/b', description: '' },
  ])
  expect((await usage()).servers).toBe(2)
  expect((await ada('PUT /servers/ada/c')).status).toBe(403)
  await loadMore([{ qualifiedName: 'ada/b', description: 'longer' }])
  expect(await usage()).toEqual({ ...before, servers: 1, bytes: before.bytes + (await bytesOf('ada/b')) })
  await loadMore([])
  expect(await usage()).toEqual(before)
  await loadMore(
    [],
    sampleSources().filter(({ file }) => file.endsWith('keys.json')),
  )
  expect((await usage('northwind')).servers).toBe(0)
})

test('servers of a directory are counted, and refused by no quota', async () => {
  await start({ servers: 1 })
  const documents = ['1', '2'].map((version) => [
    { name: 'io.example/one', description: 'x'.repeat(Number(version)), version },
    { name: 'io.example/two', description: 'y', version },
  ])
  for (const document of documents) {
    await importServers(platform.store, document, { namespace: 'ada', userId: 'ada', now: new Date(startOfTime) })
    const bytes = (await bytesOf('ada/io.example.one')) + (await bytesOf('ada/io.example.two'))
    expect(await usage()).toMatchObject({ servers: 2 })
    expect((await usage()).bytes).toBeGreaterThan(bytes)
    expect(await problemsOf(platform)).toEqual([])
  }
  expect((await ada('PUT /servers/ada/c')).status).toBe(403)
})

test('an import counts servers anew, with their listings, and takes none twice or without', async () => {
  using place = workplace()
  await ada('PUT /servers/ada/one', { description: 'short' })
  const server = readServer((await platform.store.get(keyOf('server', 'ada/one'))) as Uint8Array)
  const longer = { ...server, description: 'longer than it was' }
  const listingFor = (of: ServerDetail) => ({
    kind: 'listing',
    listing: listingOf(of, { ...noExtras, license: 'MIT' }),
  })
  const listing = listingFor(longer)
  const two = { ...server, qualifiedName: 'ada/two' }
  const other = { kind: 'server', server: two }
  const load = (lines: object[], store = platform.store) => {
    const file = join(place.folder, 'export.jsonl')
    const all = [
      { postern: 'export', version: 1, secret: 'mine' },
      { kind: 'namespace', namespace: { namespace: 'ada', userId: 'ada' } },
      ...lines,
      { postern: 'end', records: lines.length + 1 },
    ]
    writeFileSync(file, all.map((line) => `${JSON.stringify(line)}\n`).join(''))
    return importFile(store, file, { secret: 'mine' }).then(
      () => 'imported',
      (error: Error) => error.message,
    )
  }
  const [one, first] = [
    { kind: 'server', server: longer },
    { kind: 'server', server },
  ]
  const sets = [
    [one, listing, other, listingFor(two)],
    [listing, one],
    [first, listingFor(server), listingFor(two), other],
  ]
  for (const lines of sets) {
    expect(await load(lines)).toBe('imported')
    expect(await problemsOf(platform)).toEqual([])
    expect(await load(lines, openMemoryStore())).toBe('imported')
  }
  expect((await usage()).servers).toBe(2)
  expect(await load([one, other, listing])).toEndWith(': lacks the listing of the server ada/two: export again')
  expect(await load([one, one])).toEndWith(': has the server ada/one twice: export again')
  expect(await load([one, listing, listing])).toEndWith(': has the listing ada/one twice: export again')
})
