import { expect, test } from 'bun:test'
import { everyEntry, everyKey } from '../../src/storage/every-entry.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const prefix = Buffer.from('a')

async function storeOf(count: number) {
  const store = openMemoryStore()
  await store.commit({
    puts: ['0', 'b'].map((other) => ({ key: Buffer.from(other), value: new Uint8Array(0) })),
  })
  const names = Array.from({ length: count }, (_, i) => `a${i}`)
  await store.commit({ puts: names.map((name) => ({ key: Buffer.from(name), value: Buffer.from(name) })) })
  return { store, names }
}

test('all under the prefix come in order, and nothing else, however many are read at once', async () => {
  for (const count of [0, 1, 3, 4, 9]) {
    const { store, names } = await storeOf(count)
    const entries: string[] = []
    for await (const { key } of everyEntry(store, prefix, 3)) entries.push(Buffer.from(key).toString())
    const keys: string[] = []
    for await (const key of everyKey(store, prefix, 3)) keys.push(Buffer.from(key).toString())
    expect({ count, entries, keys }).toEqual({ count, entries: names, keys: names })
  }
})

test('between two reads a request waits for its next slice where the one before is over, and goes on where it is not', async () => {
  const { store, names } = await storeOf(9)
  for (const isOver of [true, false]) {
    let waits = 0
    const slices = {
      isOver,
      async next() {
        waits += 1
      },
    }
    let read = 0
    for await (const _ of everyEntry(store, prefix, 3, slices)) read += 1
    expect({ isOver, read, waits }).toEqual({ isOver, read: names.length, waits: isOver ? 2 : 0 })
  }
})
