import { expect, test } from 'bun:test'
import { everyEntry, everyKey, smallPerRead } from '../../src/storage/every-entry.ts'
import { keyOf, latin1Key, prefixOf } from '../../src/storage/keys.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const prefix = prefixOf('member', 'acme')

async function storeOf(count: number) {
  const store = openMemoryStore()
  await store.commit({
    puts: ['acm', 'acme1'].map((other) => ({ key: keyOf('member', other, 'a'), value: new Uint8Array(0) })),
  })
  const names = Array.from({ length: count }, (_, i) => latin1Key(keyOf('member', 'acme', String(10_000 + i))))
  await store.commit({ puts: names.map((name) => ({ key: Buffer.from(name), value: Buffer.from(name) })) })
  return { store, names }
}

test('all under the prefix come in order, and nothing else, however many are read at once', async () => {
  for (const count of [0, 1, smallPerRead, smallPerRead + 1, 2 * smallPerRead]) {
    const { store, names } = await storeOf(count)
    const entries: string[] = []
    for await (const { key } of everyEntry(store, prefix)) entries.push(Buffer.from(key).toString())
    const keys: string[] = []
    for await (const key of everyKey(store, prefix)) keys.push(Buffer.from(key).toString())
    expect({ count, entries, keys }).toEqual({ count, entries: names, keys: names })
  }
})

test('between two reads a request waits for its next slice where the one before is over, and goes on where it is not', async () => {
  const { store, names } = await storeOf(3 * smallPerRead)
  for (const isOver of [true, false]) {
    let waits = 0
    const slices = {
      isOver,
      async next() {
        waits += 1
      },
    }
    let read = 0
    for await (const _ of everyEntry(store, prefix, slices)) read += 1
    expect({ isOver, read, waits }).toEqual({ isOver, read: names.length, waits: isOver ? 2 : 0 })
  }
})
