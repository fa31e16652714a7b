/** Values replaced within JSON, and everything else as it was: against parsing, replacing and writing it. */

import { expect, test } from 'bun:test'
import { type JsonPath, replacingValues } from '../../src/schema/replace-values.ts'
import { drained } from '../../src/schema/steps.ts'
import { type Random, random } from '../support/random.ts'

test('nothing replaced: the same text, whatever it is', () => {
  const chance = random(1)
  for (let i = 0; i < 300; i += 1) {
    const text = JSON.stringify(madeValue(chance, 4), null, chance.int(3))
    expect(drained(replacingValues(text, () => undefined))).toBe(text)
  }
})

test('each value is visited once with its path, and replaced alone', () => {
  const chance = random(2)
  for (let i = 0; i < 300; i += 1) {
    const value = madeValue(chance, 4)
    const text = JSON.stringify(value, null, chance.int(3))
    const paths: JsonPath[] = []
    drained(replacingValues(text, (path) => void paths.push([...path])))
    expect(paths).toEqual(pathsOf(value))
    const chosen = chance.pick(paths)
    const replaced = drained(
      replacingValues(text, (path) => (JSON.stringify(path) === JSON.stringify(chosen) ? '"other"' : undefined)),
    )
    expect(JSON.parse(replaced)).toEqual(withOther(value, chosen) as object)
  }
})

test('members are put first into an object, empty or not', () => {
  const insert = (path: JsonPath) => (path[0] === 'a' && path.length === 1 ? '"x":1' : undefined)
  const after = (text: string) => drained(replacingValues(text, () => undefined, insert))
  expect(after('{"a":{}}')).toBe('{"a":{"x":1}}')
  expect(after('{"a":{ \n}}')).toBe('{"a":{"x":1 \n}}')
  expect(after('{"a":{"b":2}}')).toBe('{"a":{"x":1,"b":2}}')
  expect(after('{"b":{"a":{}},"c":[{"a":{}}]}')).toBe('{"b":{"a":{}},"c":[{"a":{}}]}')
})

test('numbers keep their digits', () => {
  const text = '{"a":12345678901234567890,"b":[1e400,-0,1.50],"c":"x"}'
  expect(drained(replacingValues(text, (path) => (path[0] === 'c' ? '"y"' : undefined)))).toBe(text.replace('x', 'y'))
})

test('a text that is no JSON ends, with an error or without', () => {
  const chance = random(3)
  for (let i = 0; i < 2000; i += 1) {
    const text = Array.from({ length: chance.int(12) }, () => chance.pick([...'{}[]",:\\a1tfn -'])).join('')
    try {
      drained(replacingValues(text, () => undefined))
    } catch (error) {
      expect(error).toBeInstanceOf(SyntaxError)
    }
  }
})

function madeValue(chance: Random, depth: number): unknown {
  const many = (make: (i: number) => unknown) => Array.from({ length: chance.int(4) }, (_, i) => make(i))
  return chance.pick([
    () => chance.pick(['', 'a"b', '\\', '{"', 'é😀', ',:[]{}']),
    () => chance.pick([0, -1, 1.5, 1e21, true, false, null]),
    ...(depth === 0
      ? []
      : [
          () => many(() => madeValue(chance, depth - 1)),
          () =>
            Object.fromEntries(
              many((i) => [chance.pick([`k${i}`, `"${i}`, `\\${i}`]), madeValue(chance, depth - 1)]) as [
                string,
                unknown,
              ][],
            ),
        ]),
  ])()
}

function pathsOf(value: unknown, path: JsonPath = []): JsonPath[] {
  if (typeof value !== 'object' || value === null) return [path]
  const parts = Array.isArray(value) ? [...value.entries()] : Object.entries(value)
  return [path, ...parts.flatMap(([key, part]) => pathsOf(part, [...path, key]))]
}

function withOther(value: unknown, [first, ...rest]: JsonPath): unknown {
  if (first === undefined) return 'other'
  const copy = structuredClone(value) as Record<string | number, unknown>
  copy[first] = withOther(copy[first], rest)
  return copy
}

test('a text does not become much longer than it was, and each replacement takes its time', () => {
  const repeated = `{${Array.from({ length: 5000 }, () => '"id":1').join()}}`
  const longer = (length: number) => (_: JsonPath, raw: string) =>
    raw === '' || length === 0 ? undefined : 'x'.repeat(length)
  const grown = (length: number) => () => drained(replacingValues(repeated, longer(length)))
  expect(grown(20)()).toContain(`"id":${'x'.repeat(20)},`)
  expect(grown(100)).toThrow('it repeats too much')
  const steps = (length: number) => [...replacingValues(repeated, longer(length))].length
  expect(steps(1)).toBeGreaterThan(20 * steps(0))
})

test('a text that is nested too deeply, or has too long a number, is an error', () => {
  const nested = (levels: number) => () => drained(replacingValues(`${'['.repeat(levels)}${']'.repeat(levels)}`, keep))
  const keep = () => undefined
  expect(nested(10_000)()).toHaveLength(20_000)
  expect(nested(10_001)).toThrow('nested too deeply')
  const number = (digits: number) => () => drained(replacingValues(`[${'1'.repeat(digits)}]`, keep))
  expect(number(10_000)()).toHaveLength(10_002)
  expect(number(10_001)).toThrow('a number is too long')
})

test('what only some parsers read between values is an error: another member could hide in it', () => {
  for (const odd of ['NaN', 'nan', '-Infinity', 'Infinity', '/* */ 1', "'a'", 'nul', 'truey', '1 // no', '\u00a01'])
    for (const text of [`{"a":${odd},"id":1}`, `[${odd}]`])
      expect(() => drained(replacingValues(text, () => undefined))).toThrow(SyntaxError)
  for (const text of ['{id:1}', '{1:1}', '{true:1}', '{"a":1;"b":2}'])
    expect(() => drained(replacingValues(text, () => undefined))).toThrow(SyntaxError)
})

test('a replacement takes as long as it is', () => {
  const list = `[${Array.from({ length: 20 }, () => `"${'x'.repeat(2000)}"`).join()}]`
  const all = (length: number) => [...replacingValues(list, (_, raw) => (raw === '' ? undefined : 'x'.repeat(length)))]
  expect(all(6000).length).toBeGreaterThan(all(10).length + 5)
})
