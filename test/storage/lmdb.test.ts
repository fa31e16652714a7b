import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openLmdbStore, type Runs } from '../../src/storage/lmdb.ts'
import type { Store } from '../../src/storage/store.ts'
import { workplace } from '../support/executable.ts'
import { storeConformance } from './conformance.ts'

// The keys of the suite begin with these letters: kept in runs, beside runs, and without any.
for (const inRuns of [{ k: 16_384 }, { a: 1, k: 100 }, { b: 100, c: 4000 }, {}]) {
  storeConformance(`LMDB with runs of ${JSON.stringify(inRuns)}`, () => open(inRuns))
}

function open(inRuns: Runs): Store {
  const place = workplace()
  const store = openLmdbStore(join(place.folder, 'store'), inRuns)
  const close = async () => {
    await store.close()
    place[Symbol.dispose]()
  }
  return { ...store, close }
}

test('what was committed is there after closing and opening again', async () => {
  using place = workplace()
  const key = Buffer.from('a')
  const first = openLmdbStore(place.folder)
  await first.commit({ puts: [{ key, value: Buffer.from('1') }] })
  await first.close()
  const second = openLmdbStore(place.folder)
  expect(Buffer.from((await second.get(key)) ?? '').toString()).toBe('1')
  await second.close()
})

test('a read sees what another process has committed before it began', async () => {
  using place = workplace()
  const store = openLmdbStore(place.folder)
  const key = Buffer.from('n')
  const writer = Bun.spawn([process.execPath, join(import.meta.dir, 'other-process.ts'), place.folder], {
    stdin: 'pipe',
    stdout: 'pipe',
  })
  const lines = writer.stdout.pipeThrough(new TextDecoderStream()).getReader()
  for (let i = 0; i < 50; i += 1) {
    // A read of our own first, so that there is an old snapshot to be kept by mistake.
    await store.get(key)
    const stamp = store.stamp()
    writer.stdin.write(`${i}\n`)
    await lines.read()
    expect(store.stamp()).not.toBe(stamp)
    expect(Buffer.from((await store.get(key)) ?? '').toString()).toBe(String(i))
  }
  await writer.stdin.end()
  await writer.exited
  await store.close()
})

test('a folder that cannot hold a store is one line that names it', () => {
  expect(() => openLmdbStore('/dev/null/store')).toThrow(/cannot open the store in \/dev\/null\/store/)
})
