import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { Shares } from '../../src/fairness/shares.ts'

/** How many a holder gets of it, one by one. */
function takeAll(shares: Shares, keyId: string, family = keyId): number {
  let count = 0
  while (shares.take({ keyId, family }, 1)) count += 1
  return count
}

test('a token gets a quarter of all, its key another part of the half that is left to it', () => {
  const shares = new Shares(800)
  expect(takeAll(shares, 'alice', 'token')).toBe(200)
  expect(takeAll(shares, 'alice')).toBe(100)
  expect(takeAll(shares, 'alice', 'other')).toBe(50)
})

test('whoever comes next finds some, however many came before', () => {
  const shares = new Shares(1024)
  const got = ['a', 'b', 'c', 'd'].map((keyId) => takeAll(shares, keyId))
  expect(got).toEqual([256, 192, 144, 108])
})

test('the keys of an organization hold one share, however many there are', () => {
  const shares = new Shares(800)
  const take = (keyId: string, amount: number) =>
    shares.take({ keyId, family: keyId, userId: 'organization:acme' }, amount)
  expect([take('one', 200), take('two', 100), take('three', 50), take('four', 26)]).toEqual([true, true, true, false])
  expect(takeAll(shares, 'somebody')).toBe(112)
})

test('what is given back is there again, and nothing is ever held past the total', () => {
  const name = fc.constantFrom('a', 'b', 'c')
  const step = fc.record({ keyId: name, family: name, amount: fc.integer({ min: 1, max: 40 }), takes: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      const shares = new Shares(100)
      const held: { keyId: string; family: string; amount: number }[] = []
      for (const { takes, ...one } of steps) {
        if (takes) {
          if (shares.take(one, one.amount)) held.push(one)
        } else {
          const last = held.pop()
          if (last !== undefined) shares.giveBack(last, last.amount)
        }
        expect(held.reduce((sum, { amount }) => sum + amount, 0)).toBeLessThan(100)
      }
      for (const one of held) shares.giveBack(one, one.amount)
      expect(takeAll(shares, 'z')).toBe(25)
    }),
  )
})
