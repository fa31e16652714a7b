/** The store looked at as it lies, for `postern store verify`. */

import { describe, expect, test } from 'bun:test'
import { readdirSync } from 'node:fs'
import { indexEntries } from '../../../src/storage/connections.ts'
import { keyOf, latin1Key, prefixOf, prefixRange, stagedKey } from '../../../src/storage/keys.ts'
import { openBytes, openRoot } from '../../../src/storage/lmdb/root.ts'
import { replaceIndex, scanStore } from '../../../src/storage/lmdb/scan.ts'
import { encodeSegment } from '../../../src/storage/lmdb/segments.ts'
import { openLmdbStore } from '../../../src/storage/lmdb/store.ts'
import { appendChecksum, noKey } from '../../../src/storage/lmdb/value-checksum.ts'
import type { Entry } from '../../../src/storage/store.ts'
import { connection } from '../../features/connections/world.ts'
import { workplace } from '../../support/executable.ts'

const record = (namespace: string, id: string): Entry => ({
  key: keyOf('connection', namespace, id),
  value: Buffer.from(id),
})
const indexOf = (id: string) => [...indexEntries('acme', connection(id))]
const byKey = (a: Entry, b: Entry) => Buffer.compare(a.key, b.key)

async function filled(folder: string, entries: readonly Entry[]): Promise<void> {
  const store = openLmdbStore(folder)
  await store.commit({ puts: entries })
  await store.close()
}
async function seen(folder: string) {
  const entries: string[] = []
  const damaged: string[] = []
  await scanStore(folder)((records) => {
    for (const { key, value } of records) (value === undefined ? damaged : entries).push(latin1Key(key))
  })
  return { entries, damaged }
}

test('every record is shown once, in segments or beside them', async () => {
  using place = workplace()
  const entries = [
    { key: keyOf('namespace', 'acme'), value: Buffer.from('{}') },
    ...Array.from({ length: 300 }, (_, i) => record('acme', `c${1000 + i}`)),
    ...indexOf('c1000'),
  ]
  await filled(place.folder, entries)
  const { entries: shown, damaged } = await seen(place.folder)
  expect(damaged).toEqual([])
  expect(shown.sort()).toEqual(entries.map(({ key }) => latin1Key(key)).sort())
})

test('what is only written ahead is none', async () => {
  using place = workplace()
  const ahead = [record('new', 'a'), record('new', 'b')]
  const note = { key: stagedKey, value: Buffer.from('new') }
  await filled(place.folder, [...ahead, record('acme', 'a'), note])
  expect((await seen(place.folder)).entries.sort()).toEqual([
    latin1Key(stagedKey),
    latin1Key(keyOf('connection', 'acme', 'a')),
  ])
})

test('a damaged segment is told by its last key, and the rest is shown', async () => {
  using place = workplace()
  await filled(place.folder, [
    record('acme', 'a'),
    record('acme', 'b'),
    { key: keyOf('namespace', 'acme'), value: Buffer.from('{}') },
  ])
  const root = openRoot(place.folder)
  const segments = openBytes(root, 'segments')
  const [segment] = [...segments.getRange({})]
  if (segment === undefined) throw new Error('there is no segment')
  const bytes = Buffer.from(segment.value)
  bytes[10] = (bytes[10] as number) ^ 1
  segments.putSync(segment.key, bytes)
  await root.close()
  expect(await seen(place.folder)).toEqual({
    entries: [latin1Key(keyOf('namespace', 'acme'))],
    damaged: [latin1Key(keyOf('connection', 'acme', 'b'))],
  })
})

test('an index is written anew, whatever the old one was, and nothing else changes', async () => {
  using place = workplace()
  await filled(place.folder, [record('acme', 'a'), ...indexOf('old'), ...indexOf('a')])
  const more = { key: keyOf('namespace', 'more'), value: Buffer.from('{}') }
  const index = [...indexOf('a'), ...Array.from({ length: 200 }, (_, i) => indexOf(`c${1000 + i}`)).flat()].sort(byKey)
  await replaceIndex(place.folder, index, [more])
  const { entries, damaged } = await seen(place.folder)
  expect(damaged).toEqual([])
  const others = [keyOf('connection', 'acme', 'a'), more.key].map(latin1Key)
  expect(entries.filter((key) => !key.startsWith('x')).sort()).toEqual(others.sort())
  const store = openLmdbStore(place.folder)
  const { keys } = await store.keys({ ...prefixRange(prefixOf('indexEntry')), limit: 10_000 })
  expect(keys.map(latin1Key)).toEqual(index.map(({ key }) => latin1Key(key)))
  await store.close()
})

test('a damaged record beside the segments is told, and the rest is shown', async () => {
  using place = workplace()
  const good = { key: keyOf('namespace', 'acme'), value: Buffer.from('{}') }
  const bad = { key: keyOf('namespace', 'lumen'), value: Buffer.from('{}') }
  await filled(place.folder, [good, bad])
  const root = openRoot(place.folder)
  const data = openBytes(root, 'postern')
  data.putSync(bad.key, appendChecksum(good.key, bad.value))
  await root.close()
  expect(await seen(place.folder)).toEqual({ entries: [latin1Key(good.key)], damaged: [latin1Key(bad.key)] })
})

describe('a segment', () => {
  /** Segments as they lie, by their keys: sound ones, but for their places. */
  async function lain(runs: Readonly<Record<string, readonly string[]>>) {
    using place = workplace()
    await filled(place.folder, [])
    const root = openRoot(place.folder)
    const segments = openBytes(root, 'segments')
    for (const [under, names] of Object.entries(runs)) {
      const entries = names.map((name) => ({ key: Buffer.from(name), value: Buffer.from(name) }))
      segments.putSync(Buffer.from(under), Buffer.from(appendChecksum(noKey, encodeSegment(entries))))
    }
    await root.close()
    return seen(place.folder)
  }

  test('lies under its last key or a later one', async () => {
    expect(await lain({ cb: ['ca', 'cb'] })).toEqual({ entries: ['ca', 'cb'], damaged: [] })
    expect(await lain({ cz: ['ca', 'cb'] })).toEqual({ entries: ['ca', 'cb'], damaged: [] })
    expect(await lain({ ca: ['ca', 'cb'] })).toEqual({ entries: [], damaged: ['ca'] })
    expect(await lain({ ca: ['cb'], cc: ['cc'] })).toEqual({ entries: ['cc'], damaged: ['ca'] })
  })

  test('begins after the key of the one before it, whatever became of that', async () => {
    expect(await lain({ cb: ['ca', 'cb'], cd: ['cc', 'cd'] })).toEqual({
      entries: ['ca', 'cb', 'cc', 'cd'],
      damaged: [],
    })
    expect(await lain({ cb: ['ca', 'cb'], cd: ['cb', 'cd'] })).toEqual({ entries: ['ca', 'cb'], damaged: ['cd'] })
    expect(await lain({ cb: ['ca', 'cc'], cd: ['cb', 'cd'] })).toEqual({ entries: [], damaged: ['cb', 'cd'] })
  })

  test('may be empty', async () => {
    expect(await lain({ cb: [], cd: ['cc', 'cd'] })).toEqual({ entries: ['cc', 'cd'], damaged: [] })
  })
})

test('a scan and a new index leave nothing open', async () => {
  using place = workplace()
  await filled(place.folder, [record('acme', 'a')])
  const descriptors = () => readdirSync('/dev/fd').length
  const before = descriptors()
  await seen(place.folder)
  expect(descriptors()).toBe(before)
  await replaceIndex(place.folder, indexOf('a'), [])
  expect(descriptors()).toBe(before)
})
