import { expect, test } from 'bun:test'
import { createPaces, ownerBurstMs } from '../../src/fairness/pace.ts'
import { ownerTimeShare } from '../../src/limits.ts'
import { clockOf } from '../support/clock.ts'

const holder = (userId: string, keyId = userId) => ({ keyId, family: keyId, userId })

test('an owner that has read for long waits until it has its share of time, with whichever key, and nobody else does', () => {
  let now = 1000
  const paces = createPaces(clockOf(() => now))
  const mallory = paces.of(holder('mallory'))
  const other = paces.of(holder('mallory', 'another key'))
  const ada = paces.of(holder('ada'))
  mallory.spend(ownerBurstMs)
  expect([mallory.wait(), other.wait(), ada.wait()]).toEqual([0, 0, 0])
  mallory.spend(30)
  expect(mallory.wait()).toBeCloseTo(30 / ownerTimeShare)
  expect(other.wait()).toBeCloseTo(30 / ownerTimeShare)
  expect(ada.wait()).toBe(0)
  now += 30 / ownerTimeShare
  expect(mallory.wait()).toBeCloseTo(0)
  // Time in which nothing was read is not saved up.
  now += 1e6
  mallory.spend(ownerBurstMs + 1)
  expect(mallory.wait()).toBeCloseTo(1 / ownerTimeShare)
})

test('owners who have paid are not remembered', () => {
  let now = 0
  const paces = createPaces(clockOf(() => now))
  for (let i = 0; i < 5000; i += 1) {
    paces.of(holder(`user ${i}`)).spend(1)
    now += 10
  }
  const late = paces.of(holder('user 4999'))
  late.spend(100)
  expect(late.wait()).toBeGreaterThan(0)
})
