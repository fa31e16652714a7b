import { expect, test } from 'bun:test'
import { StoreError } from '../../src/storage/store.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { storeConformance } from './conformance.ts'

storeConformance('memory', openMemoryStore)

test('a store that is closed reads and writes nothing', async () => {
  const store = openMemoryStore()
  const key = Buffer.from('a')
  const range = { gte: key, lt: Buffer.from('b'), limit: 1 }
  await store.commit({ puts: [{ key, value: key }] })
  await store.close()
  for (const act of [
    () => store.get(key),
    () => store.getMany([key]),
    () => store.range(range),
    () => store.keys(range),
    () => store.concatValues(range),
    async () => store.local?.get(key),
    async () => store.local?.concatValues(range, 1, ({ count }) => count),
    () => store.commit({ puts: [{ key, value: key }] }),
    () => store.load({ deletes: [key] }),
  ]) {
    await expect(act()).rejects.toThrow(StoreError)
    await expect(act()).rejects.toMatchObject({ kind: 'fatal', message: 'the store is closed' })
  }
})

test('what a writer changes afterwards is not changed in the store', async () => {
  const store = openMemoryStore()
  const [key, value] = [Buffer.from('a'), Buffer.from('1')]
  await store.commit({ puts: [{ key, value }] })
  key.fill('b')
  value.fill('2')
  expect(Buffer.from((await store.get(Buffer.from('a'))) ?? []).toString()).toBe('1')
})
