import { expect, test } from 'bun:test'
import { owedMsMax, ownerBurstMs, Paces } from '../../src/fairness/pace.ts'
import { ownerTimeShare } from '../../src/limits.ts'
import { clockOf } from '../support/clock.ts'
import { until } from '../support/until.ts'

test('an owner that has read for long waits until it has its share of time, and nobody else does', () => {
  let now = 1000
  const paces = new Paces(clockOf(() => now))
  paces.spend('mallory', ownerBurstMs)
  expect([paces.wait('mallory'), paces.wait('ada')]).toEqual([0, 0])
  paces.spend('mallory', 30)
  expect(paces.wait('mallory')).toBeCloseTo(30 / ownerTimeShare)
  expect(paces.wait('ada')).toBe(0)
  now += 30 / ownerTimeShare
  expect(paces.wait('mallory')).toBeCloseTo(0)
  // Time in which nothing was read is not saved up.
  now += 1e6
  paces.spend('mallory', ownerBurstMs + 1)
  expect(paces.wait('mallory')).toBeCloseTo(1 / ownerTimeShare)
})

test('owners who have paid are not remembered', () => {
  let now = 0
  const paces = new Paces(clockOf(() => now))
  for (let i = 0; i < 5000; i += 1) {
    paces.spend(`user ${i}`, 1)
    now += 10
  }
  paces.spend('user 4999', 100)
  expect(paces.wait('user 4999')).toBeGreaterThan(0)
})

test('of many who wait together, each goes on when those before have paid', async () => {
  let now = 0
  const paces = new Paces(clockOf(() => now))
  paces.spend('mallory', ownerBurstMs + 1)
  let gone = 0
  for (let i = 0; i < 20; i += 1) void paces.pause('mallory', ownerBurstMs / 2).then(() => (gone += 1))
  now += 1 / ownerTimeShare
  await until(() => gone > 0)
  for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve))
  expect(gone).toBe(1)
})

test('an owner owes so much and no more, however much was done for it without waiting', () => {
  let now = 0
  const paces = new Paces(clockOf(() => now))
  for (let i = 0; i < 1000; i += 1) paces.spend('mallory', 100)
  expect(paces.wait('mallory')).toBeCloseTo(owedMsMax)
  now += owedMsMax
  expect(paces.wait('mallory')).toBeCloseTo(0)
})

test('requests that wait for nothing take no more than half of the time of the work that waits', () => {
  let now = 0
  const paces = new Paces(clockOf(() => now))
  const worked = () => {
    let milliseconds = 0
    for (const end = now + 10_000; now < end; now += 1) {
      for (let i = 0; i < 10; i += 1) paces.spendAtOnce('mallory', 1)
      if (paces.wait('mallory') > 0) continue
      paces.spend('mallory', 10)
      milliseconds += 10
    }
    return milliseconds
  }
  expect(worked() / 10_000).toBeCloseTo(ownerTimeShare / 2, 2)
  expect(paces.wait('mallory')).toBeLessThan(owedMsMax)
})
