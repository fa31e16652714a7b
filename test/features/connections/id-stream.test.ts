/** Streams of ids, one by one and together: each says what sets of ids would. */

import { describe, expect, spyOn, test } from 'bun:test'
import { Slices } from '../../../src/fairness/slices.ts'
import {
  allOf,
  anyOf,
  type IdStream,
  indexBatchMax,
  indexBatchMin,
  indexStream,
  singleStream,
  successor,
} from '../../../src/features/connections/id-stream.ts'
import { eventLoopSliceMs } from '../../../src/limits.ts'
import { termDigest, termEntries, termKey } from '../../../src/storage/keys.ts'
import type { Store } from '../../../src/storage/store.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { notedTurns } from '../../support/noted-turns.ts'
import { type Random, random } from '../../support/random.ts'

const term = (name: string) => termDigest('string', name, 'x')
const idOf = (number: number) => `i${String(number).padStart(5, '0')}`

/** An index of ids by name, and how many keys were asked for at a time. */
async function indexOf(lists: Record<string, readonly string[]>) {
  const store = openMemoryStore()
  await store.commit({
    puts: Object.entries(lists).flatMap(([name, ids]) =>
      ids.map((id) => ({ key: termKey('acme', term(name), id), value: new Uint8Array(0) })),
    ),
  })
  const asked: number[] = []
  const counting: Pick<Store, 'keys'> = {
    keys(range) {
      asked.push(range.limit)
      return store.keys(range)
    },
  }
  let turns = 0
  const counted = notedTurns(() => {
    turns += 1
  })
  const work = { examined: 0, slices: new Slices(counted, { keyId: 'a', family: 'a' }) }
  const stream = (name: string) => indexStream(counting, termEntries('acme', term(name)), work)
  return { stream, asked, work, turns: () => turns }
}

/** All ids of a stream. Each step moves on, and skips nothing that it says it has. */
async function walked(stream: IdStream, skip = (position: string) => position): Promise<string[]> {
  const ids: string[] = []
  for (let position = ''; ; ) {
    const step = await stream(position)
    if (step === undefined) return ids
    expect(step.at >= position && (step.found || step.at > position)).toBe(true)
    if (step.found) ids.push(step.at)
    position = skip(step.found ? successor(step.at) : step.at)
  }
}

describe('an index', () => {
  const many = Array.from({ length: 2000 }, (_, i) => idOf(i))

  test('has its ids and no others', async () => {
    const { stream, work } = await indexOf({ a: many.slice(0, 5), b: [idOf(9)], none: [] })
    expect(await walked(stream('a'))).toEqual(many.slice(0, 5))
    expect(work.examined).toBe(5)
    expect([await walked(stream('b')), await walked(stream('none'))]).toEqual([[idOf(9)], []])
  })

  test('is read in batches that grow while all of them is used', async () => {
    const { stream, asked, work } = await indexOf({ a: many })
    expect(await walked(stream('a'))).toEqual(many)
    const [first, ...rest] = asked
    expect(first).toBe(2 * indexBatchMin)
    for (const [i, limit] of rest.entries()) expect(limit).toBe(Math.min(2 * (asked[i] as number), indexBatchMax))
    expect(Math.max(...asked)).toBe(indexBatchMax)
    expect(work.examined).toBe(many.length)
  })

  test('is read in batches that shrink while most of them is skipped', async () => {
    const { stream, asked } = await indexOf({ a: many })
    const far = stream('a')
    for (let i = 0; i < 5; i += 1) await far(idOf(i * 300))
    // The first is grown before anything was skipped.
    expect(asked).toEqual([16, 8, 8, 8, 8])
  })

  test('is used half where half of a batch was', async () => {
    const { stream, asked } = await indexOf({ a: many })
    const half = stream('a')
    await half(idOf(0))
    await half(idOf(8))
    await half(idOf(100))
    await half(idOf(115))
    await half(idOf(500))
    expect(asked).toEqual([16, 32, 16])
  })

  test('answers from what it read, wherever that begins', async () => {
    for (let seed = 1; seed <= 100; seed += 1) {
      const chance = random(seed)
      const ids = many.filter(() => chance.chance(0.3))
      const { stream } = await indexOf({ a: ids })
      const one = stream('a')
      for (let at = 0; at < many.length; at += chance.int(chance.pick([2, 20, 400]))) {
        const expected = ids.find((id) => id >= idOf(at))
        expect({ seed, at, step: (await one(idOf(at)))?.at }).toEqual({ seed, at, step: expected })
        if (expected === undefined) break
      }
    }
  })

  test('others have their turn where its own took long enough, and all streams of a plan have the next one', async () => {
    // Before the slice begins: on a busy machine it would be over.
    const clock = spyOn(performance, 'now').mockReturnValue(performance.now())
    try {
      const { stream, turns } = await indexOf({ a: many, b: many })
      await stream('a')('')
      expect(turns()).toBe(0)
      clock.mockReturnValue(performance.now() + eventLoopSliceMs)
      await Promise.all([stream('a')(''), stream('b')('')])
      expect(turns()).toBe(1)
    } finally {
      clock.mockRestore()
    }
  })
})

test('a single id is there up to itself', () => {
  const one = singleStream('b')
  expect(['a', 'b', 'b\0', 'c'].map((from) => one(from))).toEqual([
    { at: 'b', found: true },
    { at: 'b', found: true },
    undefined,
    undefined,
  ])
})

test('nothing of nothing is nothing, and one alone is itself', async () => {
  const one = singleStream('a')
  expect([allOf([one]), anyOf([one])]).toEqual([one, one])
  expect(await walked(anyOf([]))).toEqual([])
  expect(await walked(allOf([anyOf([]), one]))).toEqual([])
})

test('a stream that is ahead of the others is not asked again before they have come to it', async () => {
  const all = Array.from({ length: 10 }, (_, i) => idOf(i))
  const { stream, work } = await indexOf({ a: all.slice(0, 5), b: all.slice(5) })
  expect(await walked(anyOf([stream('a'), stream('b')]))).toEqual(all)
  expect(work.examined).toBe(10)
})

test('streams together have what all of them have, or any, however they are joined', async () => {
  const all = Array.from({ length: 60 }, (_, i) => idOf(i))
  for (let seed = 1; seed <= 300; seed += 1) {
    const chance = random(seed)
    const lists = Object.fromEntries(
      ['a', 'b', 'c', 'd'].map((name) => [name, all.filter(() => chance.chance(chance.pick([0.1, 0.5, 0.9])))]),
    )
    const { stream } = await indexOf(lists)
    const pick = (chance: Random, depth: number): { of: IdStream; ids: readonly string[] } => {
      if (depth === 0 || chance.chance(0.3)) {
        const name = chance.pick(['a', 'b', 'c', 'd', 'one'])
        const id = chance.pick(all)
        return name === 'one'
          ? { of: singleStream(id), ids: [id] }
          : { of: stream(name), ids: lists[name] as readonly string[] }
      }
      const parts = Array.from({ length: 1 + chance.int(3) }, () => pick(chance, depth - 1))
      const isAll = chance.chance(0.5)
      const has = ({ ids }: { ids: readonly string[] }, id: string) => ids.includes(id)
      return {
        of: (isAll ? allOf : anyOf)(parts.map(({ of }) => of)),
        ids: all.filter((id) => (isAll ? parts.every((part) => has(part, id)) : parts.some((part) => has(part, id)))),
      }
    }
    const { of, ids } = pick(chance, 3)
    expect({ seed, ids: await walked(of) }).toEqual({ seed, ids: [...ids] })
  }
})
