/** Buckets that fill by a clock that the test moves. */

import { expect, test } from 'bun:test'
import { createHolderRateLimit, createRateLimit } from '../../src/fairness/rate-limit.ts'
import { burstSeconds } from '../../src/limits.ts'
import { clockOf } from '../support/clock.ts'

function limitOf(perSecond: number) {
  const clock = { now: 0 }
  return { clock, limit: createRateLimit({ perSecond, clock: clockOf(() => clock.now) }) }
}

test('twenty seconds’ worth at once, then one for each that comes back', () => {
  const { clock, limit } = limitOf(2)
  for (let i = 0; i < 2 * burstSeconds; i += 1) expect(limit.take('a')).toBe(0)
  expect(limit.take('a')).toBe(1)
  clock.now = 499
  expect(limit.take('a')).toBe(1)
  clock.now = 500
  expect([limit.take('a'), limit.take('a')]).toEqual([0, 1])
})

test('a wait is said in whole seconds, and after it there is one', () => {
  const { clock, limit } = limitOf(0.1)
  expect([limit.take('a'), limit.take('a'), limit.take('a')]).toEqual([0, 0, 10])
  clock.now = 3500
  expect(limit.take('a')).toBe(7)
  clock.now = 9999
  expect(limit.take('a')).toBe(1)
  clock.now = 10_000
  expect(limit.take('a')).toBe(0)
})

test('asking takes nothing, and being refused costs nothing', () => {
  const { clock, limit } = limitOf(1)
  for (let i = 0; i < 100; i += 1) expect(limit.wait('a')).toBe(0)
  for (let i = 0; i < burstSeconds; i += 1) limit.take('a')
  for (let i = 0; i < 100; i += 1) expect([limit.wait('a'), limit.take('a')]).toEqual([1, 1])
  clock.now = 1000
  expect([limit.wait('a'), limit.take('a'), limit.wait('a')]).toEqual([0, 0, 1])
})

test('a bucket holds no more than it did at first, however long nobody came', () => {
  const { clock, limit } = limitOf(1)
  limit.take('a')
  clock.now = 1e9
  for (let i = 0; i < burstSeconds; i += 1) expect(limit.take('a')).toBe(0)
  expect(limit.take('a')).toBe(1)
})

test('each name has its own', () => {
  const { limit } = limitOf(0.05)
  expect([limit.take('a'), limit.take('a'), limit.take('b')]).toEqual([0, 20, 0])
})

test('0 is no limit', () => {
  const { limit } = limitOf(0)
  for (let i = 0; i < 1000; i += 1) expect([limit.take('a'), limit.wait('a')]).toEqual([0, 0])
})

test('the families of a key’s tokens, however many, leave a quarter of what has gathered to the key itself', () => {
  let now = 0
  const limit = createHolderRateLimit({ perSecond: 10, clock: clockOf(() => now) })
  const take = (family: string) => limit.take({ keyId: 'key', family, userId: 'ada' }) === 0
  const flood = () => Array.from({ length: 900 }, (_, index) => take(`token-${index % 9}`)).filter(Boolean).length
  expect(flood()).toBe(150)
  // They go on with all that comes, and the key has its quarter at any time.
  for (let second = 0; second < 60; second += 1) {
    now += 1000
    expect(flood()).toBe(10)
  }
  expect(Array.from({ length: 900 }, () => take('key')).filter(Boolean)).toHaveLength(50)
  expect(flood()).toBe(0)
  now += 1000
  expect([flood(), take('key')]).toEqual([0, true])
})

test('a family of tokens has half of what its key has, and the keys of an organization have one rate', () => {
  const limit = createHolderRateLimit({ perSecond: 2, clock: clockOf(() => 0) })
  /** How many a holder gets at once. */
  const takeAll = (keyId: string, family = keyId, userId = 'ada') => {
    let count = 0
    while (limit.take({ keyId, family, userId }) === 0) count += 1
    return count
  }
  expect([takeAll('key', 'token'), takeAll('key')]).toEqual([burstSeconds, burstSeconds])
  expect(takeAll('another')).toBe(2 * burstSeconds)
  const [first, second] = ['one', 'two'].map((keyId) => takeAll(keyId, keyId, 'organization:acme'))
  expect([first, second]).toEqual([2 * burstSeconds, 0])
})
