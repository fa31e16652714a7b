/** Output schemas that somebody wrote to keep a mock busy: cycles, choices that fail, lists of lists, large minimums. */

import type { Random } from '../../support/random.ts'

const definitions = 4

/** Of a few dozen parts, which refer to one another. */
export function hostileSchema(chance: Random): Record<string, unknown> {
  const $defs = Object.fromEntries(Array.from({ length: definitions }, (_, i) => [`d${i}`, part(chance, 3)]))
  return { type: 'object', required: ['a'], properties: { a: part(chance, 3), b: reference(chance) }, $defs }
}

const reference = (chance: Random) => ({ $ref: `#/$defs/d${chance.int(definitions)}` })

function part(chance: Random, depth: number): object {
  if (depth === 0 || chance.chance(0.3)) return reference(chance)
  const some = (count: number) => Array.from({ length: 1 + chance.int(count) }, () => part(chance, depth - 1))
  const one = () => part(chance, depth - 1)
  return chance.pick<() => object>([
    () => ({ [chance.pick(['allOf', 'anyOf', 'oneOf'])]: some(4) }),
    () => Object.fromEntries(['if', 'then', 'else'].map((word) => [word, one()])),
    () => ({ not: one() }),
    () => ({
      type: 'array',
      minItems: chance.pick([0, 1, 40, 3000, 1e9]),
      uniqueItems: chance.chance(0.5),
      items: one(),
    }),
    () => ({ type: 'array', contains: one(), minContains: chance.pick([1, 5, 1000]), maxContains: 1e6 }),
    () => ({ type: 'object', minProperties: chance.pick([0, 3, 2000]), additionalProperties: one() }),
    () => ({ type: 'object', required: ['x', 'y'], properties: { x: one(), y: one(), z: one() } }),
    // Cannot be satisfied.
    () => ({ type: 'object', minProperties: 1, additionalProperties: false }),
    () => ({ type: 'string', minLength: chance.pick([1, 4000, 1e9]), pattern: '^(?:ab?){5,40}$' }),
    () => ({ type: 'string', maxLength: 3, pattern: `^[^a]{${chance.pick([3, 80, 900])}}` }),
    () => ({ type: 'string', pattern: `${'('.repeat(9)}a${chance.pick([')+', ')*', '){1,}']).repeat(9)}` }),
    () => ({ const: Array.from({ length: 30 }, () => ({ fixed: '2026-01-01' })) }),
    () => ({ type: chance.pick(['integer', 'boolean', 'null']) }),
  ])()
}
