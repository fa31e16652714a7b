/** Segments of entries, against a plain sorted list of them. */

import { expect, test } from 'bun:test'
import {
  editSegments,
  encodeSegment,
  Segment,
  type SegmentStorage,
  splitSegments,
} from '../../../src/storage/lmdb/segments.ts'
import type { Entry, Key } from '../../../src/storage/store.ts'
import { type Random, random } from '../../support/random.ts'

const entry = (key: string, value: string): Entry => ({ key: Buffer.from(key), value: Buffer.from(value) })
const text = ({ key, value }: Entry) => `${Buffer.from(key)}=${Buffer.from(value)}`
const segmentOf = (entries: readonly Entry[]) => new Segment(Buffer.from(encodeSegment(entries)))
const some = [entry('a', '1'), entry('b', ''), entry('bb', '333'), entry('c', '4')]

test('a segment gives back its entries, and finds each', () => {
  const run = segmentOf(some)
  expect(run.count).toBe(some.length)
  for (const [at, { key, value }] of some.entries()) {
    expect([run.key(at), run.value(at)].map(String)).toEqual([key, value].map(String))
    expect([run.seek(key), run.compare(at, key)]).toEqual([at, 0])
  }
  const places: [key: string, at: number][] = [
    ['', 0],
    ['A', 0],
    ['aa', 1],
    ['ba', 2],
    ['bbb', 3],
    ['d', 4],
  ]
  for (const [key, at] of places) expect({ key, at: run.seek(Buffer.from(key)) }).toEqual({ key, at })
  expect([segmentOf([]).count, segmentOf([]).seek(Buffer.from('a'))]).toEqual([0, 0])
})

test('values stand as a page shows them', () => {
  const run = segmentOf(some)
  for (let start = 0; start < some.length; start += 1) {
    for (let end = start + 1; end <= some.length; end += 1) {
      const length = run.valuesLength(start, end)
      const target = Buffer.alloc(length + 2, '.')
      run.copyValues(start, end, target, 1)
      expect(target.toString()).toBe(
        `.${some
          .slice(start, end)
          .map(({ value }) => value)
          .join(',')}.`,
      )
    }
  }
})

test('what is cut is about equally full, past no bound but for a single entry, and of one kind', () => {
  const entries = Array.from({ length: 99 }, (_, i) => entry(`a${100 + i}`, 'x'.repeat(11)))
  const sizes = (runs: Entry[][]) => runs.map((run) => run.length)
  // Each takes 24 bytes.
  expect(sizes(splitSegments(entries, () => 24 * 40))).toEqual([33, 33, 33])
  expect(sizes(splitSegments(entries, () => 24 * 99))).toEqual([99])
  expect(sizes(splitSegments(entries, () => 1))).toEqual(Array(99).fill(1))
  expect(sizes(splitSegments([entry('a1', ''), entry('a2', ''), entry('b1', '')], () => 1000))).toEqual([2, 1])
  expect(splitSegments([], () => 10)).toEqual([])
})

test('many edits leave what they would leave in a sorted list, in segments that are in order', () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const chance = random(seed)
    const stored = new Map<string, Buffer>()
    const plain = new Map<string, string>()
    for (let step = 0; step < 20; step += 1) {
      const editor = editSegments(storageOf(stored, chance))
      for (let i = 0; i < 1 + chance.int(10); i += 1) {
        const key = `k${100 + chance.int(60)}`
        const value = 'v'.repeat(chance.int(30))
        if (chance.chance(0.6)) {
          plain.set(key, value)
          editor.put(entry(key, value))
        } else {
          plain.delete(key)
          editor.remove(Buffer.from(key))
        }
      }
      editor.flush()
      const runs = [...stored].sort(([a], [b]) => (a < b ? -1 : 1))
      const kept: Entry[] = []
      for (const [under, bytes] of runs) {
        const run = new Segment(bytes)
        for (let at = 0; at < run.count; at += 1) kept.push({ key: run.key(at), value: run.value(at) })
        // One search from any key lands in the run that may hold it.
        if (run.count > 0) expect(String(run.key(run.count - 1)) <= under).toBe(true)
      }
      const expected = [...plain].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, value]) => text(entry(key, value)))
      expect({ seed, step, kept: kept.map(text) }).toEqual({ seed, step, kept: expected })
    }
    expect(stored.size).toBeGreaterThan(3)
  }
})

/** What an editor asked of its storage, in order. */
function counted(stored: Map<string, Buffer>, most = 24 * 4) {
  const asked: string[] = []
  const storage = storageOf(stored, random(1))
  const editor = editSegments({
    ...storage,
    bytesMax: () => most,
    atOrAfter(key) {
      asked.push(`read ${key}`)
      return storage.atOrAfter(key)
    },
    put(key, value) {
      asked.push(`put ${key}`)
      storage.put(key, value)
    },
    remove(key) {
      asked.push(`remove ${key}`)
      storage.remove(key)
    },
  })
  return { asked, editor }
}
/** Each takes 24 bytes. */
const numbered = (i: number) => entry(`a${100 + i}`, 'x'.repeat(11))

test('entries in key order are read once for each segment, and written once', () => {
  const stored = new Map<string, Buffer>()
  const first = counted(stored)
  for (let i = 0; i < 8; i += 2) first.editor.put(numbered(i))
  first.editor.flush()
  expect(first.asked).toEqual(['read a100', 'put a106'])
  const second = counted(stored)
  for (let i = 1; i < 10; i += 1) second.editor.put(numbered(i))
  second.editor.flush()
  const puts = ['put a102', 'put a105', 'put a106']
  expect(second.asked).toEqual(['read a101', ...puts, 'read a107', 'read a106', 'remove a106', 'put a109'])
  second.editor.flush()
  expect(second.asked).toHaveLength(8)
})

test('what changes nothing writes nothing', () => {
  const stored = new Map<string, Buffer>()
  const { editor } = counted(stored)
  for (let i = 0; i < 4; i += 1) editor.put(numbered(i))
  editor.flush()
  const again = counted(stored)
  for (const key of ['a0', 'a1005', 'b']) again.editor.remove(Buffer.from(key))
  again.editor.flush()
  expect(again.asked.filter((one) => !one.startsWith('read'))).toEqual([])
  again.editor.remove(Buffer.from('a100'))
  again.editor.flush()
  expect(again.asked.filter((one) => !one.startsWith('read'))).toEqual(['put a103'])
  for (let i = 1; i < 4; i += 1) again.editor.remove(numbered(i).key)
  again.editor.flush()
  expect(stored.size).toBe(0)
})

test('a segment that loses its last entry keeps its key, and one that gains a later one has another', () => {
  const stored = new Map<string, Buffer>()
  const { editor } = counted(stored)
  for (let i = 0; i < 3; i += 1) editor.put(numbered(i))
  editor.flush()
  editor.remove(Buffer.from('a102'))
  editor.flush()
  expect([...stored.keys()]).toEqual(['a102'])
  // It is written before the first of the next one.
  editor.put(numbered(3))
  editor.flush()
  expect([...stored.keys()]).toEqual(['a103'])
})

test('a long load is written on its way', () => {
  const stored = new Map<string, Buffer>()
  const { asked, editor } = counted(stored, 2 ** 20)
  const value = 'x'.repeat(2 ** 18)
  for (let i = 0; i < 4; i += 1) editor.put(entry(`a${100 + i}`, value))
  expect(asked.filter((one) => one.startsWith('put'))).not.toEqual([])
})

function storageOf(stored: Map<string, Buffer>, chance: Random): SegmentStorage {
  const most = 100 + chance.int(50)
  const sorted = () => [...stored.keys()].sort()
  const found = (key: string | undefined): Key | undefined => (key === undefined ? undefined : Buffer.from(key))
  return {
    bytesMax: () => most,
    atOrAfter(key) {
      const at = sorted().find((one) => one >= String(key))
      return at === undefined ? undefined : { key: Buffer.from(at), value: stored.get(at) as Buffer }
    },
    keyBefore: (key) => found(sorted().findLast((one) => key === undefined || one < String(key))),
    put: (key, value) => void stored.set(String(key), Buffer.from(value)),
    remove: (key) => void stored.delete(String(key)),
  }
}
