/** A namespace that goes with its fixture, and the connections that were made in it over HTTP. */

import { expect, test } from 'bun:test'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keyOf } from '../../src/storage/keys.ts'
import { openLmdbStore } from '../../src/storage/lmdb/store.ts'
import { run, type Server, sendTo, startServer, type Workplace, workplace } from '../support/executable.ts'

const key = 'a-key-of-at-least-32-characters-0'
const bearer = { authorization: `Bearer ${key}`, 'content-type': 'application/json' }
const server = { qualifiedName: 'ada/s', displayName: 'S', description: '', remote: true, connections: [] }
const body = (team: string) => JSON.stringify({ server: 'ada/s', mock: { enabled: true }, metadata: { team } })

/** Serves these namespaces of one user from fixtures, until `use` is over. Resolves with what was logged at `warn`. */
async function serving(place: Workplace, namespaces: readonly string[], use: (server: Server) => Promise<void>) {
  const folder = join(place.folder, 'fixtures')
  mkdirSync(folder, { recursive: true })
  const document = {
    namespaces: namespaces.map((namespace) => ({ namespace, userId: 'ada' })),
    servers: [server],
    apiKeys: [{ userId: 'ada', key }],
    connections: namespaces.map((namespace) => ({
      namespace,
      connectionId: 'of-fixture',
      mcpUrl: 'https://x.example.com/mcp',
    })),
  }
  writeFileSync(join(folder, 'a.json'), JSON.stringify(document))
  const running = await startServer(place, ['--fixtures', folder, '--base-url', 'http://localhost'])
  await use(running)
  await running.kill('SIGTERM')
  const lines = running.stderr().trim().split('\n')
  return lines.map((line) => JSON.parse(line)).filter(({ level }) => level === 'warn')
}

async function make(server: Server): Promise<void> {
  for (const id of ['one', 'two']) {
    const init = { method: 'PUT', headers: bearer, body: body('x') }
    expect((await sendTo(server)(`/connect/eva/${id}`, init)).status).toBe(201)
  }
}
const listed = async (server: Server, query = '') => {
  const { connections } = (await (await sendTo(server)(`/connect/eva${query}`, { headers: bearer })).json()) as {
    connections: { connectionId: string }[]
  }
  return connections.map(({ connectionId }) => connectionId)
}
const verify = (place: Workplace, ...flags: string[]) => run(place, ['verify', '--data', place.data, ...flags])
const gone = async () => {}

test('a namespace in which something was made stays when its fixture goes, and verify is content', async () => {
  using place = workplace()
  expect(await serving(place, ['ada', 'eva'], make)).toEqual([])
  expect(await serving(place, ['ada'], async (server) => expect(await listed(server)).toEqual(['one', 'two']))).toEqual(
    [],
  )
  expect(await verify(place)).toMatchObject({ code: 0, stdout: expect.stringMatching(/all correct\n$/), stderr: '' })
  // It is as if it had been made over HTTP, and its owner may delete it.
  await serving(place, ['ada'], async (server) => {
    const init = { method: 'DELETE', headers: bearer }
    expect((await sendTo(server)('/namespaces/eva', init)).status).toBe(200)
    expect((await sendTo(server)('/connect/eva', { headers: bearer })).status).toBe(404)
    expect((await sendTo(server)('/namespaces/ada', init)).status).toBe(409)
  })
  expect(await verify(place)).toMatchObject({ code: 0, stderr: '' })
})

test('a fixture takes it back, with what was made in it', async () => {
  using place = workplace()
  await serving(place, ['ada', 'eva'], make)
  await serving(place, ['ada'], gone)
  await serving(place, ['ada', 'eva'], async (server) => {
    expect(await listed(server)).toEqual(['of-fixture', 'one', 'two'])
    expect(await listed(server, '?metadata.team=x')).toEqual(['one', 'two'])
  })
  expect(await verify(place)).toMatchObject({ code: 0, stderr: '' })
})

test('connections of a namespace that was lost are a problem', async () => {
  using place = workplace()
  await serving(place, ['ada', 'eva'], make)
  const store = openLmdbStore(join(place.data, 'store'))
  await store.commit({ deletes: [keyOf('namespace', 'eva')] })
  await store.close()
  const lost = await verify(place)
  expect(lost).toMatchObject({ code: 1, stdout: '' })
  expect(lost.stderr).toContain('connections of eva: there is no such namespace\n')
  expect(lost.stderr).toContain('owner of namespace eva: belongs to no record\n')
  expect(lost.stderr).toMatch(/\nrestore a backup, or write these records again\n$/)
  // It was so when the backup was made, and nobody is better off without the rest.
  const [backup, restored] = [join(place.folder, 'backup'), join(place.folder, 'restored')]
  expect((await run(place, ['backup', backup, '--data', place.data])).code).toBe(0)
  const found = await run(place, ['restore', backup, '--data', restored])
  expect(found).toMatchObject({ code: 0, stdout: expect.stringContaining('is as it was when the backup was made') })
  expect(found.stderr).toEndWith(
    'connections of eva: there is no such namespace\nthese records were already wrong in the backup: write them again\n',
  )
  const file = join(place.folder, 'export.jsonl')
  expect((await run(place, ['export', file, '--data', place.data])).stderr).toContain(
    'the export has connections of eva, but not the namespace',
  )
})

test('where many records go with their fixtures, the log names some', async () => {
  using place = workplace()
  const many = Array.from({ length: 6 }, (_, i) => `n${i}`)
  await serving(place, ['ada', ...many], gone)
  const [warned, ...more] = await serving(place, ['ada'], gone)
  expect({ warned, more }).toMatchObject({
    warned: {
      event: 'records were removed with their fixtures',
      removed: 12,
      records: expect.stringMatching(/namespace n0/),
    },
    more: [],
  })
})
