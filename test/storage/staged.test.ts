/** Connections that are written before their namespace is there. */

import { expect, test } from 'bun:test'
import { connectionEntry, indexEntries } from '../../src/storage/connections.ts'
import { keyOf, stagedKey, termKey } from '../../src/storage/keys.ts'
import {
  isAnythingStaged,
  isEmpty,
  isOf,
  nothingStaged,
  removeStaged,
  stageConnections,
  stagedNamespaces,
} from '../../src/storage/staged.ts'
import type { Store } from '../../src/storage/store.ts'
import { connection } from '../features/connections/world.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const entriesOf = (namespace: string, id: string) => [
  connectionEntry(namespace, connection(id)),
  ...indexEntries(namespace, connection(id)),
]
const everything = (store: Store) => store.keys({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 1000 })

test('what is written ahead is noted until it is shown', async () => {
  const store = openMemoryStore()
  expect(await isAnythingStaged(store)).toBe(false)
  expect(await isEmpty(store, 'acme')).toBe(true)
  const namespaces = ['acme', 'lumen']
  expect(await stageConnections(store, namespaces, entriesOf('acme', 'a'))).toBe(true)
  expect(await isAnythingStaged(store)).toBe(true)
  expect([...stagedNamespaces(await store.get(stagedKey))]).toEqual(namespaces)
  expect([await isEmpty(store, 'acme'), await isEmpty(store, 'lumen')]).toEqual([false, true])
  // Nobody else may bring a namespace meanwhile, nor write ahead.
  expect((await store.commit({ checks: [nothingStaged] })).ok).toBe(false)
  expect(await stageConnections(store, ['other'], [])).toBe(false)
})

test('nothing is written ahead of a namespace that is there, nor of others with it', async () => {
  const store = openMemoryStore()
  await store.commit({ puts: [{ key: keyOf('namespace', 'acme'), value: Buffer.from('{}') }] })
  expect(await stageConnections(store, ['acme'], entriesOf('acme', 'a'))).toBe(false)
  expect(await stageConnections(store, ['new', 'acme'], entriesOf('new', 'a'))).toBe(false)
  expect((await everything(store)).keys.length).toBe(1)
})

test('a namespace that comes in between stops it, and what is written so far stays noted', async () => {
  const memory = openMemoryStore()
  const store: Store = {
    ...memory,
    load: async (write) => {
      await memory.commit({ puts: [{ key: keyOf('namespace', 'acme'), value: Buffer.from('{}') }] })
      return memory.load(write)
    },
  }
  expect(await stageConnections(store, ['acme'], entriesOf('acme', 'a'))).toBe(false)
  expect(await isAnythingStaged(store)).toBe(true)
})

test('what a load that was cut off has left is removed, and nothing of others', async () => {
  const store = openMemoryStore()
  await store.commit({ puts: [...entriesOf('acme-2', 'a'), ...entriesOf('acm', 'a')] })
  const before = await everything(store)
  await removeStaged(store)
  expect(await everything(store)).toEqual(before)
  const beside = { key: keyOf('connectionPrivate', 'acme', 'a'), value: Buffer.from('{}') }
  const entries = [...entriesOf('acme', 'a'), beside, ...entriesOf('lumen', 'b')]
  await stageConnections(store, ['acme', 'lumen'], entries)
  expect((await everything(store)).keys.length).toBeGreaterThan(before.keys.length)
  await removeStaged(store)
  expect(await everything(store)).toEqual(before)
})

test('as much as many commits hold arrives whole, in the order it came in', async () => {
  const memory = openMemoryStore()
  const sizes: number[] = []
  const store: Store = {
    ...memory,
    load: (write) => {
      const puts = [...(write.puts ?? [])]
      sizes.push(puts.length)
      return memory.load({ ...write, puts })
    },
  }
  const entries = Array.from({ length: 20 }, (_, i) => ({
    key: keyOf('connection', 'acme', `c${10 + i}`),
    value: Buffer.alloc(1024 * 1024, i),
  }))
  expect(await stageConnections(store, ['acme'], entries)).toBe(true)
  expect(sizes).toEqual([8, 8, 4])
  expect((await everything(memory)).keys.length).toBe(entries.length + 1)
})

test('a key is of a namespace by its kind and its name', () => {
  const acme = new Set(['acme'])
  const term = new Uint8Array(16)
  for (const key of [
    keyOf('connection', 'acme', 'a'),
    keyOf('connectionPrivate', 'acme', 'a'),
    termKey('acme', term, 'a'),
  ]) {
    expect(isOf(acme, key)).toBe(true)
    expect(isOf(new Set(['other']), key)).toBe(false)
    expect(isOf(new Set(), key)).toBe(false)
  }
  for (const key of [keyOf('namespace', 'acme'), keyOf('usage', 'acme'), keyOf('connection', 'acme-2', 'a')])
    expect(isOf(acme, key)).toBe(false)
  expect([...stagedNamespaces(undefined)]).toEqual([])
  expect([...stagedNamespaces(new Uint8Array(0))]).toEqual([])
})
