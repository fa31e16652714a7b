/** The directory as requests see it: in one version, each record read once. */

import { expect, test } from 'bun:test'
import { createDirectory } from '../../src/auth/directory.ts'
import { nextTurn } from '../../src/next-turn.ts'
import { directoryVersionKey, keyOf } from '../../src/storage/keys.ts'
import type { Key, Store } from '../../src/storage/store.ts'
import { newVersion } from '../../src/storage/versions.ts'
import { openMemoryStore } from '../support/memory-store.ts'

/** A directory, and the keys that it asked the store for since it was last asked itself. */
async function counted() {
  const store = openMemoryStore()
  let asked: string[] = []
  const counting: Store = {
    ...store,
    async get(key) {
      asked.push(Buffer.from(key).toString('latin1'))
      return store.get(key)
    },
  }
  const put = (key: Key, text: string) =>
    store.commit({ puts: [{ key, value: Buffer.from(text) }, newVersion(directoryVersionKey)] })
  await put(keyOf('member', 'o', 'ada'), 'member')
  return {
    directory: createDirectory(counting),
    put,
    reads: (key: Key) => asked.filter((one) => one === Buffer.from(key).toString('latin1')).length,
    forget: () => {
      asked = []
    },
  }
}

test('a record is read once in a version, and again in the next', async () => {
  const { directory, put, reads } = await counted()
  const role = async () => (await directory.current()).role('o', 'ada')
  expect([await role(), await role(), await role()]).toEqual(['member', 'member', 'member'])
  expect(reads(keyOf('member', 'o', 'ada'))).toBe(1)
  await put(keyOf('member', 'o', 'ada'), 'owner')
  expect([await role(), await role()]).toEqual(['owner', 'owner'])
  expect(reads(keyOf('member', 'o', 'ada'))).toBe(2)
})

test('what is not there is looked for each time: made-up names push nothing out', async () => {
  const { directory, reads } = await counted()
  const snapshot = await directory.current()
  expect([await snapshot.namespace('none'), await snapshot.namespace('none')]).toEqual([undefined, undefined])
  expect(await snapshot.hasOrganization('none')).toBe(false)
  expect(await snapshot.isRevoked('none')).toBe(false)
  expect(reads(keyOf('namespace', 'none'))).toBe(2)
})

test('an earlier request keeps what it has seen', async () => {
  const { directory, put } = await counted()
  const before = await directory.current()
  expect(await directory.current()).toBe(before)
  expect(await before.role('o', 'ada')).toBe('member')
  await put(keyOf('member', 'o', 'ada'), 'owner')
  expect(await before.role('o', 'ada')).toBe('member')
  expect(await directory.current()).not.toBe(before)
})

test('of a directory that was never written nothing is kept', async () => {
  const store = openMemoryStore()
  const directory = createDirectory(store)
  const first = await directory.current()
  expect(first.version).toBe('')
  expect(await first.hasOrganization('o')).toBe(false)
  await store.commit({ puts: [{ key: keyOf('organization', 'o'), value: Buffer.from('{}') }] })
  expect(await directory.current()).not.toBe(first)
  expect(await (await directory.current()).hasOrganization('o')).toBe(true)
})

test('large records are let go long before as many small ones', async () => {
  const { directory, put, reads } = await counted()
  const sets = Array.from({ length: 600 }, (_, i) => ({ [i]: '' }))
  const view = (i: number) => keyOf('view', 'acme', `v${i}`)
  for (let i = 0; i < 300; i += 1) await put(view(i), JSON.stringify({ policy: [{ metadata: sets }] }))
  for (let i = 0; i < 300; i += 1) await put(keyOf('member', 'o', `u${i}`), 'member')
  const snapshot = await directory.current()
  const ask = async () => {
    for (let i = 0; i < 300; i += 1) await snapshot.role('o', `u${i}`)
  }
  await ask()
  await ask()
  expect(reads(keyOf('member', 'o', 'u0'))).toBe(1)
  for (let i = 0; i < 300; i += 1) await snapshot.view('acme', `v${i}`)
  await snapshot.view('acme', 'v299')
  await snapshot.view('acme', 'v0')
  expect([reads(view(299)), reads(view(0))]).toEqual([1, 2])
})

test('a small view weighs what its policy takes in memory, which is sixty times as much', async () => {
  const { directory, put, reads } = await counted()
  const metadata = Array.from({ length: 40 }, (_, i) => ({ [i]: '' }))
  const view = (i: number) => keyOf('view', 'acme', `v${i}`)
  for (let i = 0; i < 1000; i += 1) await put(view(i), JSON.stringify({ policy: [{ metadata }] }))
  const snapshot = await directory.current()
  for (let i = 0; i < 1000; i += 1) await snapshot.view('acme', `v${i}`)
  await snapshot.view('acme', 'v999')
  await snapshot.view('acme', 'v0')
  expect([reads(view(999)), reads(view(0))]).toEqual([1, 2])
})

test('records of a version that an open stream still has take no memory of their own', async () => {
  const { directory, put, reads } = await counted()
  const sets = Array.from({ length: 600 }, (_, i) => ({ [i]: '' }))
  const view = (i: number) => keyOf('view', 'acme', `v${i}`)
  for (let i = 0; i < 200; i += 1) await put(view(i), JSON.stringify({ policy: [{ metadata: sets }] }))
  const before = await directory.current()
  for (let i = 0; i < 2; i += 1) await before.view('acme', 'v0')
  expect(reads(view(0))).toBe(1)
  await put(keyOf('member', 'o', 'linus'), 'member')
  const now = await directory.current()
  for (let i = 1; i < 200; i += 1) await now.view('acme', `v${i}`)
  await before.view('acme', 'v0')
  expect(reads(view(0))).toBe(2)
})

test('names are read once for all who ask at once, and again for the next version', async () => {
  const { directory, put } = await counted()
  let reads = 0
  const ask = async () =>
    (await directory.current()).names('user ada', async () => {
      reads += 1
      await nextTurn()
      return ['a', 'b']
    })
  const both = await Promise.all([ask(), ask()])
  expect([both, await ask(), reads]).toEqual([[new Set(['a', 'b']), new Set(['a', 'b'])], new Set(['a', 'b']), 1])
  await put(keyOf('member', 'o', 'ada'), 'owner')
  await ask()
  expect(reads).toBe(2)
  // A read that fails is none.
  const failing = async () => (await directory.current()).names('other', () => Promise.reject(new Error('no')))
  await expect(failing()).rejects.toThrow('no')
  await expect(failing()).rejects.toThrow('no')
})
