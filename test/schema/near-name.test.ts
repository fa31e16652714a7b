import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { didYouMean, nearName, nearNameCandidatesMax, nearNameCharsMax } from '../../src/schema/near-name.ts'

const rows: [name: string, candidates: string[], near: string | undefined][] = [
  ['bakery', ['baker', 'Bakery', 'brewery'], 'Bakery'],
  ['evaa', ['adam', 'eva'], 'eva'],
  ['get_forcast', ['get_forecast', 'get_alerts'], 'get_forecast'],
  ['forceast', ['forecast'], 'forecast'],
  // Of four letters one may be another, or two neighbours swapped.
  ['abdc', ['abcd'], 'abcd'],
  ['bacd', ['abcd'], 'abcd'],
  ['axyd', ['abcd'], undefined],
  // Of nine no more than two may.
  ['northwind', ['nerthwand'], 'nerthwand'],
  ['northwind', ['nerthwant'], undefined],
  ['abcd', ['abdd', 'abce'], 'abdd'],
  ['northwind', ['northwind-ops', 'lumen'], undefined],
  ['ab', ['cd', 'abc'], undefined],
  ['x', [], undefined],
  // A name is not near itself, in its own letters.
  ['abcd', ['abcd'], undefined],
  ['abcd', ['abcd', 'abce'], 'abce'],
  ['abcd', ['abce', 'ABCD'], 'ABCD'],
  ['ab', ['ac'], undefined],
  ['abc', ['abd'], 'abd'],
  ['abcde', ['abxye'], undefined],
  ['abcdef', ['abxyef'], 'abxyef'],
  ['a'.repeat(64), ['a'.repeat(63)], 'a'.repeat(63)],
  ['a'.repeat(65), ['a'.repeat(64)], undefined],
]
for (const [name, candidates, near] of rows) {
  test(`${name}: ${near ?? 'nothing'}`, () => expect(nearName(name, candidates)).toBe(near))
}

test('so many candidates are looked at', () => {
  const others = (count: number) => [...Array<string>(count).fill('other'), 'northwint']
  expect(nearName('northwind', others(nearNameCandidatesMax - 1))).toBe('northwint')
  expect(nearName('northwind', others(nearNameCandidatesMax))).toBeUndefined()
  expect(nearNameCharsMax).toBe(64)
})

test('a suggestion is a question, and there is none without a near name', () => {
  expect(didYouMean('northwint', ['northwind'])).toBe('; did you mean "northwind"?')
  expect(didYouMean('northwint', ['lumen'])).toBe('')
})

/** The distance as it is defined, by trying everything. */
function distance(a: string, b: string): number {
  if (a === '' || b === '') return a.length + b.length
  const [restOfA, restOfB] = [a.slice(1), b.slice(1)]
  const swapped = a.length > 1 && b.length > 1 && a[0] === b[1] && a[1] === b[0]
  return Math.min(
    distance(restOfA, b) + 1,
    distance(a, restOfB) + 1,
    distance(restOfA, restOfB) + (a[0] === b[0] ? 0 : 1),
    ...(swapped ? [distance(a.slice(2), b.slice(2)) + 1] : []),
  )
}

test('near is what takes few letters to change, delete, insert or swap, whatever the names are', () => {
  const name = fc.string({ unit: fc.constantFrom('a', 'b', 'c'), maxLength: 7 })
  fc.assert(
    fc.property(name, name, (one, other) => {
      const least = distance(one, other)
      const isNear = least > 0 && least <= Math.min(2, Math.floor(one.length / 3))
      expect({ one, other, near: nearName(one, [other]) }).toEqual({ one, other, near: isNear ? other : undefined })
    }),
    { numRuns: 1000 },
  )
})
