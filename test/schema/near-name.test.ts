import { expect, test } from 'bun:test'
import { nearName } from '../../src/schema/near-name.ts'

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
  ['a'.repeat(65), ['a'.repeat(64)], undefined],
]
for (const [name, candidates, near] of rows) {
  test(`${name}: ${near ?? 'nothing'}`, () => expect(nearName(name, candidates)).toBe(near))
}
