import { expect, test } from 'bun:test'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { importFile } from '../../src/maintenance/import.ts'
import type { Constraint } from '../../src/model/constraint.ts'
import { listingOf, noExtras, type ServerDetail } from '../../src/model/server.ts'
import { viewOf } from '../../src/model/view.ts'
import { findConnection, newConnectionsVersion } from '../../src/storage/connections.ts'
import { beforeServing, removeAllDeleted } from '../../src/storage/deleted-namespaces.ts'
import { readNamespace } from '../../src/storage/directory-records.ts'
import { directoryVersionKey, keyOf } from '../../src/storage/keys.ts'
import type { Store } from '../../src/storage/store.ts'
import { newVersion } from '../../src/storage/versions.ts'
import { pickConnection } from '../features/connections/world.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { random } from '../support/random.ts'
import { type Workplace, workplace } from '../support/workplace.ts'

const versions = {
  directory: () => newVersion(directoryVersionKey),
  'connections of the namespace': () => newConnectionsVersion('acme'),
}
for (const [what, version] of Object.entries(versions)) {
  test(`an import writes nothing where the ${what} changed while its file was checked`, async () => {
    using place = workplace()
    const store = openMemoryStore()
    const chance = random(1)
    const lines = [
      { postern: 'export', version: 1, secret: 'mine' },
      { kind: 'organization', organization: { organizationId: 'org', name: 'Org' } },
      { kind: 'namespace', namespace: { namespace: 'acme', organizationId: 'org' } },
      ...['a', 'b'].map((id) => ({ kind: 'connection', namespace: 'acme', connection: pickConnection(chance, id) })),
      { postern: 'end', records: 4 },
    ]
    const file = join(place.folder, 'export.jsonl')
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    // The last line: the first connection of the namespace was compared with the store by then.
    const change = (stage: string, done: number) => {
      if (stage === 'checking' && done === 4) void store.commit({ puts: [version()] })
    }
    expect(
      await importFile(store, file, { secret: 'mine', onProgress: change }).catch((error: Error) => error.message),
    ).toBe('another process wrote to the store, so nothing was imported: try again')
    expect(await importFile(store, file, { secret: 'mine' })).toEqual({ records: 4, leftOut: 0 })
  })
}

test('a namespace that is being deleted is not imported: its connections would go with the others', async () => {
  using place = workplace()
  const store = openMemoryStore()
  const file = join(place.folder, 'export.jsonl')
  const lines = [
    { postern: 'export', version: 1, secret: 'mine' },
    { kind: 'namespace', namespace: { namespace: 'acme', userId: 'ada' } },
    { kind: 'connection', namespace: 'acme', connection: pickConnection(random(1), 'a') },
    { postern: 'end', records: 2 },
  ]
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  await store.commit({ puts: [{ key: keyOf('deletingNamespace', 'acme'), value: Buffer.from('a') }] })
  await expect(importFile(store, file, { secret: 'mine' })).rejects.toThrow(
    `${file}: the namespace acme is being deleted: start the server, which removes its connections, and import again`,
  )
  await removeAllDeleted(store, beforeServing)
  expect(await importFile(store, file, { secret: 'mine' })).toEqual({ records: 2, leftOut: 0 })
})

test('a namespace is imported as one that was made when its name was given up last', async () => {
  using place = workplace()
  const store = openMemoryStore()
  const file = join(place.folder, 'export.jsonl')
  const importing = async (createdAt: string) => {
    const lines = [
      { postern: 'export', version: 1, secret: 'mine' },
      { kind: 'namespace', namespace: { namespace: 'acme', userId: 'ada', createdAt } },
      { postern: 'end', records: 1 },
    ]
    writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
    await importFile(store, file, { secret: 'mine' })
    const stored = await store.get(keyOf('namespace', 'acme'))
    return stored && readNamespace(stored).createdAt
  }
  expect(await importing('2026-01-01T00:00:00.000Z')).toBe('2026-01-01T00:00:00.000Z')
  await store.commit({
    puts: [{ key: keyOf('deletingNamespace', 'acme'), value: Buffer.from('a') }],
    deletes: [keyOf('namespace', 'acme')],
  })
  await store.commit({ puts: [{ key: keyOf('fixturesDigest'), value: Buffer.from('loaded') }] })
  const now = Date.parse('2026-05-01T00:00:00.000Z')
  await removeAllDeleted(store, { ...beforeServing, clock: { now: () => now } })
  expect(await importing('2026-01-01T00:00:00.000Z')).toBe('2026-05-01T00:00:00.000Z')
  expect(await importing('2026-06-01T00:00:00.000Z')).toBe('2026-06-01T00:00:00.000Z')
  // The fixtures are loaded again, whose rights count.
  expect(await store.get(keyOf('fixturesDigest'))).toBeUndefined()
})

/** Imports lines, of which only the first and the last are left out here. */
function importing(place: Workplace, store: Store) {
  return (...lines: object[]) => {
    const file = join(place.folder, 'export.jsonl')
    const whole = [
      { postern: 'export', version: 1, secret: 'mine' },
      ...lines,
      { postern: 'end', records: lines.length },
    ]
    writeFileSync(file, whole.map((line) => `${JSON.stringify(line)}\n`).join(''))
    return importFile(store, file, { secret: 'mine' })
  }
}

test('what belongs to others by now is not imported: its owners of before would have what is in it', async () => {
  using place = workplace()
  const exported = importing(place, openMemoryStore())
  const organization = { kind: 'organization', organization: { organizationId: 'org', name: 'Org' } }
  const member = (userId: string) => ({ kind: 'member', organizationId: 'org', userId, role: 'owner' })
  const namespace = (owner: object) => ({ kind: 'namespace', namespace: { namespace: 'shop', ...owner } })
  await exported(member('mallory'), namespace({ userId: 'mallory' }), organization)
  await expect(exported(namespace({ userId: 'ada' }))).rejects.toThrow(
    'has the namespace shop of user ada, and here it belongs to user mallory: take it out of the file',
  )
  await expect(exported(member('ada'), organization)).rejects.toThrow(
    'has the organization org, which belongs to others',
  )
  // Nor what is in it, where its own line was taken out of the file.
  for (const role of ['owner', 'member'])
    await expect(exported({ ...member('ada'), role })).rejects.toThrow(
      'has the organization org, which belongs to others',
    )
  await expect(exported({ ...member('ada'), organizationId: 'ghost' })).rejects.toThrow(
    'names the organization ghost, which is neither in the file nor in the store',
  )
  const times = { createdAt: '2026-01-01T00:00:00.000Z', revokedAt: null }
  const apiKey = { keyId: 'key_aaaaaaaaaaaa', userId: 'organization:org', name: null, operator: false, ...times }
  const key = { kind: 'apiKey', apiKey: { ...apiKey, organizationId: 'org' }, digest: 'a'.repeat(64) }
  await expect(exported(key)).rejects.toThrow('has the organization org, which belongs to others')
  await expect(exported({ kind: 'revocation', jti: 'x', until: 1e300 })).rejects.toThrow('until')
  // With an owner in common it is the same organization.
  expect(await exported(member('ada'), member('mallory'), organization)).toMatchObject({ records: 3 })
  expect(await exported(namespace({ userId: 'mallory' }))).toMatchObject({ records: 1 })
})

test('what is here already is replaced only by a file that says whose namespace it is in', async () => {
  using place = workplace()
  const exported = importing(place, openMemoryStore())
  const namespace = { kind: 'namespace', namespace: { namespace: 'shop', userId: 'ada' } }
  const at = '2026-01-01T00:00:00.000Z'
  const times = { createdAt: at, updatedAt: at }
  const view = (policy: Constraint[]) => ({
    kind: 'view',
    view: viewOf({ namespace: 'shop', name: 'reading' }, { policy }, times),
  })
  const connection = { kind: 'connection', namespace: 'shop', connection: pickConnection(random(1), 'a') }
  const detail: ServerDetail = {
    ...{ qualifiedName: 'shop/notes', displayName: 'Notes', description: '', iconUrl: null, remote: true },
    ...{ deploymentUrl: null, connections: [], security: null, tools: null, resources: null, prompts: null },
  }
  const server = { kind: 'server', server: detail }
  const listing = { kind: 'listing', listing: listingOf(detail, { ...noExtras, createdAt: at }) }
  await exported(namespace)
  // What is new in it is only added.
  for (const lines of [[view([])], [connection], [server, listing]]) {
    expect(await exported(...lines)).toMatchObject({ records: lines.length })
    await expect(exported(...lines)).rejects.toThrow('which is here already, and lacks the line of its namespace')
    expect(await exported(namespace, ...lines)).toMatchObject({ records: lines.length + 1 })
  }
  const wrong: readonly (readonly [Constraint[], string])[] = [
    [
      [{ rpcReqMatch: { 'params.name': '(' } }],
      'the view shop/reading: policy[0].rpcReqMatch["params.name"]: is not an RE2 pattern',
    ],
    [[{ ttl: '1h' }], 'the view shop/reading: policy[0].ttl: a view has no lifetime'],
  ]
  for (const [policy, problem] of wrong) await expect(exported(namespace, view(policy))).rejects.toThrow(problem)
})

test('each import of a connection ends what is bound to its sign-in: setups are counted on, and never back', async () => {
  using place = workplace()
  const store = openMemoryStore()
  const file = join(place.folder, 'export.jsonl')
  const connection = pickConnection(random(1), 'a')
  const lines = [
    { postern: 'export', version: 1, secret: 'mine' },
    { kind: 'namespace', namespace: { namespace: 'acme', userId: 'ada' } },
    { kind: 'connection', namespace: 'acme', connection },
    { postern: 'end', records: 2 },
  ]
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''))
  const setups = async () => (await findConnection(store, 'acme', 'a'))?.privatePart.setups
  const counted: unknown[] = []
  for (let round = 0; round < 3; round += 1) {
    await importFile(store, file, { secret: 'mine' })
    counted.push(await setups())
  }
  expect(counted).toEqual([undefined, 1, 2])
})
