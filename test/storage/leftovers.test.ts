/** Connections whose namespace went with its fixture. */

import { expect, test } from 'bun:test'
import { connectionChange } from '../../src/storage/connections.ts'
import { connectionKey, latin1Key, leftKey, namespaceKey } from '../../src/storage/keys.ts'
import { leftBehind, removeLeftovers } from '../../src/storage/leftovers.ts'
import { openMemoryStore } from '../../src/storage/memory.ts'
import type { Key, Store } from '../../src/storage/store.ts'
import { connection } from '../features/connections/world.ts'

const write = (store: Store, namespace: string, id: string) =>
  store.commit(connectionChange(namespace, id, undefined, { connection: connection(id), privatePart: { server: 's' } }))
const everything = async (store: Store) =>
  (await store.keys({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 10_000 })).keys.map(latin1Key)
const going = (...keys: Key[]) => new Set(keys.map(latin1Key))

test('a namespace leaves behind what does not go with it', async () => {
  const store = openMemoryStore()
  for (const id of ['a', 'b', 'c']) await write(store, 'acme', id)
  await write(store, 'lumen', 'a')
  await write(store, 'solo', 'a')
  const { counts, staleMarks } = await leftBehind(
    store,
    going(
      ...[namespaceKey('acme'), connectionKey('acme', 'b')],
      ...[namespaceKey('lumen'), connectionKey('lumen', 'a')],
      namespaceKey('solo'),
    ),
    [],
  )
  expect([...counts]).toEqual([
    ['acme', 2],
    ['solo', 1],
  ])
  expect(staleMarks).toEqual([])
})

test('what a namespace leaves is counted however much it is', async () => {
  const store = openMemoryStore()
  const keys = Array.from({ length: 1001 }, (_, i) => connectionKey('acme', `c${1000 + i}`))
  await store.load({ puts: keys.map((key) => ({ key, value: Buffer.from('{}') })) })
  expect([...(await leftBehind(store, going(namespaceKey('acme')), [])).counts]).toEqual([['acme', 1001]])
})

test('connections that go without their namespace leave nothing behind', async () => {
  const store = openMemoryStore()
  await write(store, 'acme', 'a')
  expect((await leftBehind(store, going(connectionKey('acme', 'a')), [])).counts.size).toBe(0)
})

test('the mark of a namespace that is back is taken away, and that of another stays', async () => {
  const store = openMemoryStore()
  for (const name of ['acme', 'lumen']) await store.commit({ puts: [{ key: leftKey(name), value: new Uint8Array(0) }] })
  const { staleMarks } = await leftBehind(store, going(), ['acme', 'other'])
  expect(staleMarks).toEqual([leftKey('acme')])
})

test('all that a namespace left is removed, however much it is, and nothing of anybody else', async () => {
  const store = openMemoryStore()
  for (const name of ['acm', 'acme-2', 'acme1']) await write(store, name, 'a')
  const before = await everything(store)
  await store.commit({ puts: [{ key: leftKey('acme'), value: new Uint8Array(0) }] })
  const ids = Array.from({ length: 501 }, (_, i) => `c${1000 + i}`)
  for (const id of ids) await write(store, 'acme', id)
  expect(await removeLeftovers(store, 'acme')).toBe(ids.length)
  expect((await everything(store)).filter((key) => !key.startsWith('gacme'))).toEqual(
    before.filter((key) => !key.startsWith('gacme')),
  )
  expect(await removeLeftovers(store, 'acme')).toBe(0)
})

test('nothing is removed from a namespace that is there', async () => {
  const store = openMemoryStore()
  await write(store, 'acme', 'a')
  await store.commit({ puts: [{ key: namespaceKey('acme'), value: Buffer.from('{}') }] })
  expect(await removeLeftovers(store, 'acme')).toBe(0)
  expect(await everything(store)).toContain(latin1Key(connectionKey('acme', 'a')))
})

test('what somebody else removes meanwhile is not counted', async () => {
  const store = openMemoryStore()
  for (const id of ['a', 'b', 'c']) await write(store, 'acme', id)
  const racing: Store = {
    ...store,
    async keys(range) {
      const found = await store.keys(range)
      await store.commit({ deletes: [connectionKey('acme', 'b')] })
      return found
    },
  }
  expect(await removeLeftovers(racing, 'acme')).toBe(2)
})

test('what is changed between its reading and its removal stays, and is not counted', async () => {
  const store = openMemoryStore()
  for (const id of ['a', 'b']) await write(store, 'acme', id)
  const racing: Store = {
    ...store,
    async commit(given) {
      const key = connectionKey('acme', 'a')
      if ([...(given.deletes ?? [])].some((one) => latin1Key(one) === latin1Key(key)))
        await store.commit({ puts: [{ key, value: Buffer.from('{"name":"new"}') }] })
      return store.commit(given)
    },
  }
  expect(await removeLeftovers(racing, 'acme')).toBe(1)
  expect(await everything(store)).toContain(latin1Key(connectionKey('acme', 'a')))
})
