import { expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { deletionBytesMin, freeBytesMin, reservedBytesMin } from '../../../src/limits.ts'
import { keyRevocationsMin } from '../../../src/storage/lmdb/reserve.ts'
import { openBytes, openRoot } from '../../../src/storage/lmdb/root.ts'
import { scanStore } from '../../../src/storage/lmdb/scan.ts'
import type { PackedKinds } from '../../../src/storage/lmdb/segments.ts'
import { openLmdbStore } from '../../../src/storage/lmdb/store.ts'
import { type Holder, type Range, type Store, StoreError } from '../../../src/storage/store.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { workplace } from '../../support/workplace.ts'
import { storeConformance } from '../conformance.ts'

// The keys of the suite begin with these letters: kept in segments, beside segments, and without any.
for (const kinds of [{ k: 16_384 }, { a: 1, k: 100 }, { b: 100, c: 4000 }, {}]) {
  storeConformance(`LMDB with segments of ${JSON.stringify(kinds)}`, () => openInRuns(kinds))
}

function openInRuns(kinds: PackedKinds): Store {
  const place = workplace()
  const store = openLmdbStore(join(place.folder, 'store'), kinds)
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
    const commits = store.local?.commitCount()
    writer.stdin.write(`${i}\n`)
    await lines.read()
    expect(store.local?.commitCount()).not.toBe(commits)
    expect(Buffer.from((await store.get(key)) ?? '').toString()).toBe(String(i))
  }
  await writer.stdin.end()
  await writer.exited
  await store.close()
})

async function writeVersion(folder: string, version: string): Promise<void> {
  const root = openRoot(folder)
  openBytes(root, 'format').putSync(Buffer.from('v'), Buffer.from(version))
  await root.close()
}

test('below the floor of free disk only what takes access away is written, then only revocations, and then nothing', async () => {
  using place = workplace()
  let free = freeBytesMin + 2 ** 20
  const store = openLmdbStore(place.folder, undefined, () => free)
  const write = (fromReserve?: 'deletion' | 'revocation') =>
    store.commit({ puts: [{ key: Buffer.from('r'), value: Buffer.from(String(free)) }], fromReserve })
  expect((await write()).ok).toBe(true)
  free = freeBytesMin
  await expect(write()).rejects.toThrow('free some space')
  expect((await write('deletion')).ok).toBe(true)
  free = deletionBytesMin
  await expect(write('deletion')).rejects.toThrow('free some space')
  expect((await write('revocation')).ok).toBe(true)
  free = reservedBytesMin + 2 ** 20
  await expect(write()).rejects.toThrow('free some space')
  expect((await write('revocation')).ok).toBe(true)
  free = reservedBytesMin
  await expect(write('revocation')).rejects.toThrow('free some space')
  expect(Buffer.from((await store.get(Buffer.from('r'))) ?? '').toString()).toBe(String(reservedBytesMin + 2 ** 20))
  await store.close()
})

test('the last of the disk is divided: one owner’s revocations leave room for those of others', async () => {
  using place = workplace()
  let free = reservedBytesMin + 2 ** 20
  const store = openLmdbStore(place.folder, undefined, () => free)
  const puts = [{ key: Buffer.from('r'), value: Buffer.from('1') }]
  /** How often somebody may revoke something, until it is refused. */
  const timesOf = async (holder: Holder | undefined) => {
    for (let times = 0; ; times += 1) {
      const committed = store.commit({ puts, fromReserve: 'revocation', holder })
      const text = await committed.then(() => '').catch((error: Error) => error.message)
      if (text === '') continue
      expect(text).toContain('this caller has used its share of the rest')
      return times
    }
  }
  const used = (userId: string, keyId: string, family = keyId) => timesOf({ userId, keyId, family })
  // A stolen token of the key, and another, leave the key the rest of its part; and it leaves another key half.
  expect([await used('mallory', 'one', 'stolen'), await used('mallory', 'one', 'another')]).toEqual([13, 6])
  expect(await used('mallory', 'one')).toBe(6)
  expect([await used('mallory', 'two'), await used('mallory', 'three')]).toEqual([13, 6])
  for (let key = 0; key < 10; key += 1) await used('mallory', `made for this ${key}`)
  expect([await used('mallory', 'four'), await used('mallory', 'four', 'token')]).toEqual([keyRevocationsMin, 0])
  expect([await used('ada', 'hers'), await timesOf(undefined)]).toEqual([25, 25])
  free = freeBytesMin + 2 ** 20
  expect((await store.commit({ puts })).ok).toBe(true)
  free = reservedBytesMin + 2 ** 20
  expect(await used('mallory', 'one')).toBe(25)
  await store.close()
})

test('a write needs as much disk as its values and keys are estimated to take, to the byte', async () => {
  using place = workplace()
  let free = 2 ** 40
  const store = openLmdbStore(place.folder, { c: 1000 }, () => free)
  const put = (key: string, length: number) => ({ key: Buffer.from(key), value: Buffer.alloc(length, 'x') })
  /** Half as much again, and a hundred for the key. */
  const cost = (...lengths: number[]) => lengths.reduce((sum, length) => sum + length * 1.5 + 100, 0)
  // A segment has a count, two numbers for each entry, their keys, and a comma after each value.
  const segment = (...entries: ReturnType<typeof put>[]) =>
    entries.reduce((sum, { key, value }) => sum + 8 + key.length + value.length + 1, 4)
  for (const [needed, write] of [
    [cost(100), { puts: [put('r1', 100)] }],
    [cost(100, 3000), { puts: [put('r1', 100), put('r2', 3000)] }],
    [cost(segment(put('c1', 10), put('c2', 20))), { puts: [put('c1', 10), put('c2', 20)] }],
    [cost('7 300'.length), { counts: [{ key: Buffer.from('u'), add: [7, 300] }] }],
    [0, { deletes: [Buffer.from('r1')] }],
  ] as const) {
    free = freeBytesMin + needed - 1
    await expect(store.commit(write)).rejects.toMatchObject({ kind: 'unavailable' })
    free = freeBytesMin + needed
    expect(await store.commit(write)).toEqual({ ok: true })
  }
  await store.close()
})

test('a record under another key than its own is an error', async () => {
  using place = workplace()
  const store = openLmdbStore(place.folder)
  await store.commit({ puts: [{ key: Buffer.from('m-this-one'), value: Buffer.from('owner') }] })
  await store.close()
  const file = join(place.folder, 'data.mdb')
  const bytes = readFileSync(file)
  for (let at = bytes.indexOf('m-this-one'); at >= 0; at = bytes.indexOf('m-this-one', at + 1)) bytes[at + 9] = 0x66
  writeFileSync(file, bytes)
  const damaged = openLmdbStore(place.folder)
  expect(() => damaged.get(Buffer.from('m-this-onf'))).toThrow('damaged')
  await damaged.close()
})

test('a write that fails on its way says why, and one that is refused is told as it is', async () => {
  using place = workplace()
  const store = openLmdbStore(place.folder)
  const failing = function* (thrown: unknown) {
    yield { key: Buffer.from('r'), value: Buffer.from('1') }
    throw thrown
  }
  for (const write of [store.commit, store.load]) {
    const error = new Error('in the middle')
    const refused = write({ puts: failing(error) })
    await expect(refused).rejects.toBeInstanceOf(StoreError)
    await expect(refused).rejects.toMatchObject({
      kind: 'unavailable',
      message: 'the store could not be written: in the middle',
      cause: error,
    })
    const reason = new StoreError('too_large', 'too much')
    await expect(write({ puts: failing(reason) })).rejects.toBe(reason)
    await expect(write({ puts: failing('no error') })).rejects.toBe('no error')
  }
  expect(await store.get(Buffer.from('r'))).toBeUndefined()
  await store.close()
})

test('a store of another layout version is refused in a line that says so, and left as it was', async () => {
  for (const version of ['postern 0', 'postern 2', 'postern', 'postern 1 ', 'other 1', 'p'.repeat(30)]) {
    using place = workplace()
    await writeVersion(place.folder, version)
    const file = () => readFileSync(join(place.folder, 'data.mdb'))
    const before = file()
    const line = `another version of postern wrote it (layout ${version.slice(0, 20)}, not postern 1): export it with that`
    for (let opened = 0; opened < 2; opened += 1) expect(() => openLmdbStore(place.folder)).toThrow(line)
    await expect(scanStore(place.folder)(() => {})).rejects.toThrow(line)
    expect(file().equals(before)).toBe(true)
  }
})

test('a value that is not what was written is an error, never an answer', async () => {
  using place = workplace()
  const store = openLmdbStore(place.folder)
  const text = 'the value that the disk will change'
  const keys = ['c1', 'n1'].map((key) => Buffer.from(key))
  await store.commit({ puts: keys.map((key) => ({ key, value: Buffer.from(text) })) })
  await store.close()
  const file = join(place.folder, 'data.mdb')
  const bytes = readFileSync(file)
  for (let at = bytes.indexOf(text); at >= 0; at = bytes.indexOf(text, at + 1)) bytes[at + 4] = 0x21
  writeFileSync(file, bytes)
  const damaged = openLmdbStore(place.folder)
  const isDamaged = (error: unknown) => error instanceof StoreError && error.kind === 'damaged'
  for (const key of keys) {
    const range = { gte: key, lt: Buffer.concat([key, Buffer.of(0)]), limit: 1 }
    for (const read of [
      () => damaged.get(key),
      () => damaged.getMany([key]),
      () => damaged.range(range),
      () => damaged.concatValues(range),
      () => damaged.local?.concatValues(range, 2 ** 20, ({ count }) => count),
    ]) {
      expect(await Promise.try<unknown, []>(read).then(() => 'read', isDamaged)).toBe(true)
    }
  }
  await damaged.close()
})

test('a folder that cannot hold a store is one line that names it', () => {
  expect(() => openLmdbStore('/dev/null/store')).toThrow(/cannot open the store in \/dev\/null\/store/)
})

test('a page ends where its range or its bound ends, wherever the segments end', async () => {
  using place = workplace()
  // Three entries of 12 bytes each.
  const store = openLmdbStore(place.folder, { c: 36 })
  const memory = openMemoryStore()
  const names = ['c1', 'c2', 'c3', 'c5', 'c6', 'c7', 'c8', 'c9', 'ca']
  const puts = names.map((name, i) => ({ key: Buffer.from(name), value: Buffer.from(String(i)) }))
  for (const one of [store, memory]) await one.commit({ puts })
  const read = async (one: Store, range: Range) => {
    const { wrap, count, lastKeyIfMore } = await one.concatValues(range)
    const { keys, more } = await one.keys(range)
    return [wrap('', '').toString(), count, String(lastKeyIfMore), keys.map(String), more]
  }
  const bounds = ['c', ...names, 'c4', 'd'].map((name) => Buffer.from(name))
  for (const gte of bounds) {
    for (const lt of bounds) {
      for (let limit = 1; limit <= names.length; limit += 1) {
        const range = { gte, lt, limit }
        expect([String(gte), String(lt), limit, ...(await read(store, range))]).toEqual([
          ...[String(gte), String(lt), limit],
          ...(await read(memory, range)),
        ])
      }
    }
  }
  await store.close()
})

test('values that fill the buffer of a page to its last byte are joined like others', async () => {
  // The buffer of a store that was just opened has so many bytes, and leaves 512 on each side of the values.
  const room = 128 * 1024 - 2 * 512
  const [prefix, suffix] = ['['.repeat(512), ']'.repeat(512)]
  for (const first of [0, 60_000]) {
    for (let rest = room - first - 3; rest <= room - first + 1; rest += 1) {
      using place = workplace()
      const store = openLmdbStore(place.folder)
      const values = [...(first === 0 ? [] : ['a'.repeat(first)]), 'b'.repeat(rest)]
      await store.commit({ puts: values.map((value, i) => ({ key: Buffer.from(`c${i}`), value: Buffer.from(value) })) })
      const range = { gte: Buffer.from('c'), lt: Buffer.from('ca'), limit: 10 }
      const joined = store.local?.concatValues(range, 2 * room, ({ wrap }) => wrap(prefix, suffix).toString())
      expect({ rest, isRight: joined === `${prefix}${values.join()}${suffix}` }).toEqual({ rest, isRight: true })
      await store.close()
    }
  }
})
