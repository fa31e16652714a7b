import { expect, spyOn, test } from 'bun:test'
import { hasAtMostValues } from '../../src/schema/count-values.ts'

test('values are counted at any depth, and no further than it matters', () => {
  const rows: [value: unknown, count: number][] = [
    [undefined, 1],
    ['a', 1],
    [[], 1],
    [[1, [2, { a: 3 }]], 6],
    [{ a: { b: [null, true] }, c: 1 }, 6],
  ]
  for (const [value, count] of rows)
    expect([hasAtMostValues(value, count), hasAtMostValues(value, count - 1)]).toEqual([true, false])
  const list = Array.from({ length: 100_000 }, (_, index) => index)
  expect(hasAtMostValues({ list }, 1000)).toBe(false)
})

test('no keys of a list are made, which take a third of a microsecond each', () => {
  const list = Array.from({ length: 900 }, () => [1])
  using values = spyOn(Object, 'values')
  expect(hasAtMostValues(list, 2000)).toBe(true)
  expect(values).not.toHaveBeenCalled()
})
