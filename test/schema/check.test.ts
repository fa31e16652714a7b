/** What is wrong with a value, in words. */

import { expect, test } from 'bun:test'
import { Type } from '@sinclair/typebox'
import { bodyProblemText, placeOf, problemText, validatorOf } from '../../src/schema/check.ts'

const closed = { additionalProperties: false }
const Cat = Type.Object({ type: Type.Literal('cat'), lives: Type.Integer() }, closed)
const Dog = Type.Object({ type: Type.Literal('dog'), tricks: Type.Array(Type.String()) }, closed)
const Everything = Type.Object(
  {
    name: Type.Optional(Type.String({ minLength: 1, maxLength: 3 })),
    count: Type.Optional(Type.Integer({ errorMessage: 'must be a count' })),
    whole: Type.Optional(Type.Integer()),
    at: Type.Optional(Type.String({ format: 'date-time' })),
    kind: Type.Optional(Type.Union([Type.Literal('a'), Type.Literal('b')])),
    one: Type.Optional(Type.Literal(5)),
    list: Type.Optional(Type.Array(Type.String(), { minItems: 1, maxItems: 2 })),
    map: Type.Optional(
      Type.Record(Type.String({ pattern: '^[a-z]$' }), Type.Number(), {
        ...closed,
        minProperties: 1,
        maxProperties: 2,
        keyMessage: 'is no letter',
      }),
    ),
    pet: Type.Optional(Type.Union([Cat, Dog])),
    either: Type.Optional(Type.Union([Type.String(), Type.Array(Type.String()), Type.Null()])),
    nothing: Type.Optional(Type.Null()),
    flag: Type.Optional(Type.Boolean()),
    inner: Type.Optional(Type.Object({ must: Type.String() }, closed)),
  },
  closed,
)
const shape = validatorOf(Everything)

test('every problem is said at its place', () => {
  const rows: [value: unknown, ...problems: string[]][] = [
    [{ name: '' }, 'name: is empty'],
    [{ name: 'four' }, 'name: at most 3 characters'],
    [{ name: 5 }, 'name: must be a string'],
    [{ count: 'x' }, 'count: must be a count'],
    [{ whole: 1.5 }, 'whole: must be a whole number'],
    [{ at: 'today' }, 'at: must be a date and time like 2026-03-02T09:14:07.000Z'],
    [{ at: '2026-13-02T09:14:07Z' }, 'at: must be a date and time like 2026-03-02T09:14:07.000Z'],
    [{ kind: 'c' }, 'kind: must be "a" or "b"'],
    [{ one: 6 }, 'one: must be 5'],
    [{ list: [] }, 'list: is an empty list: give at least one item, or leave an optional list out'],
    [{ list: ['a', 'b', 'c'] }, 'list: at most 2 items'],
    [{ list: ['a', 5] }, 'list[1]: must be a string'],
    [{ list: {} }, 'list: must be a list'],
    [{ map: {} }, 'map: is empty: leave it out, or say what it restricts'],
    [{ map: { a: 1, b: 2, c: 3 } }, 'map: at most 2 entries'],
    [{ map: { A: 1 } }, 'map.A: is no letter'],
    [{ map: { a: 'x' } }, 'map.a: must be a number'],
    [{ nothing: 0 }, 'nothing: must be null'],
    [{ flag: 1 }, 'flag: must be a boolean'],
    [{ inner: {} }, 'inner.must: is missing'],
    [{ inner: 'x' }, 'inner: must be an object'],
    [{ inner: { must: 'x', more: 1 } }, 'inner: has the unknown field "more"; known are must'],
    [{ inner: { must: 'x', mush: 1 } }, 'inner: has the unknown field "mush"; did you mean "must"?'],
    [{ either: 5 }, 'either: must be a string or a list or null'],
    [{ either: ['a', 5] }, 'either[1]: must be a string'],
    [{ name: 5, list: [5], flag: 1 }, 'name: must be a string', 'list[0]: must be a string', 'flag: must be a boolean'],
    [[], 'must be an object'],
    [null, 'must be an object'],
  ]
  for (const [value, ...problems] of rows) {
    expect({ value, accepts: shape.isValid(value) }).toEqual({ value, accepts: false })
    expect({ value, problems: shape.problems(value).map(problemText) }).toEqual({ value, problems })
  }
})

test('of variants, that is spoken of which the value was meant to be', () => {
  const rows: [pet: unknown, problem: string][] = [
    [{ type: 'cat' }, 'pet.lives: is missing'],
    [{ type: 'dog', tricks: [5] }, 'pet.tricks[0]: must be a string'],
    [{ type: 'cat', lives: 9, age: 5 }, 'pet: has the unknown field "age"; known are type, lives'],
    [{ type: 'fish' }, 'pet.type: must be one of "cat", "dog"'],
    ['cat', 'pet: must be an object'],
  ]
  for (const [pet, problem] of rows) expect(shape.problems({ pet }).map(problemText)[0]).toBe(problem)
})

test('without such a field, that variant is meant which the fewest fields are missing from or unknown to', () => {
  const Pair = Type.Object({ c: Type.String(), d: Type.String() }, closed)
  const Single = Type.Object({ b: Type.String() }, closed)
  for (const variants of [
    [Pair, Single],
    [Single, Pair],
  ]) {
    const either = validatorOf(Type.Union(variants))
    const said = (value: unknown) => either.problems(value).map(problemText)
    expect(said({ b: 5 })).toEqual(['b: must be a string'])
    expect(said({ c: 'x', d: 5 })).toEqual(['d: must be a string'])
    expect(said({ b: 'x', more: 1 })).toEqual(['has the unknown field "more"; known are b'])
    expect(said({ c: 'x' })).toEqual(['d: is missing'])
  }
  // A value of the wrong type is no field that is missing or unknown.
  const Three = Type.Object({ a: Type.Number(), b: Type.Number(), c: Type.Number() }, closed)
  const Empty = Type.Object({}, closed)
  for (const variants of [
    [Three, Empty],
    [Empty, Three],
  ]) {
    const either = validatorOf(Type.Union(variants))
    expect(either.problems({ a: 'x', b: 'x', c: 'x' }).map(problemText)[0]).toBe('a: must be a number')
  }
})

test('no more problems are said than were asked for', () => {
  expect(shape.problems({ name: 5, flag: 1, list: 1 }, 2)).toHaveLength(2)
  const list = validatorOf(Type.Array(Type.String()))
  expect(list.problems(Array(100).fill(5))).toHaveLength(20)
})

test('what is right has no problem', () => {
  const good = {
    name: 'a',
    whole: 1,
    at: '2026-03-02T09:14:07.000Z',
    kind: 'b',
    list: ['x'],
    map: { a: 1.5 },
    pet: { type: 'dog', tricks: [] },
    either: null,
  }
  expect([shape.isValid(good), shape.problems(good)]).toEqual([true, []])
})

test('a bound of characters counts them as people do', () => {
  expect(shape.isValid({ name: '😀😀😀' })).toBe(true)
  expect(shape.isValid({ name: '😀😀😀😀' })).toBe(false)
  // What is too long for TypeBox alone hides nothing else that is wrong.
  expect(shape.problems({ name: '😀😀😀', flag: 1 }).map(problemText)).toEqual(['flag: must be a boolean'])
  expect(shape.isValid({ name: '😀😀😀', flag: 1 })).toBe(false)
  const words = Type.String({ minLength: 1, maxLength: 3, pattern: '^😀' })
  const optional = validatorOf(Type.Object({ title: Type.Union([words, Type.Null()]) }))
  for (const [title, isRight] of [
    ['😀😀😀', true],
    ['😀😀😀😀', false],
    ['a😀😀', false],
    [null, true],
  ] as const) {
    expect([title, optional.isValid({ title })]).toEqual([title, isRight])
    expect(optional.problems({ title })).toHaveLength(isRight ? 0 : 1)
  }
})

test('a place is written like a path into the value', () => {
  expect(placeOf(['policy', 0, 'rpcReqMatch', 'params.name', 'a-b', '5'])).toBe(
    'policy[0].rpcReqMatch["params.name"].a-b["5"]',
  )
  expect(placeOf([])).toBe('')
  expect(bodyProblemText({ place: '', message: 'is empty' })).toBe('the body is empty')
  expect(bodyProblemText({ place: 'a', message: 'is empty' })).toBe('a: is empty')
  expect(validatorOf(Type.Record(Type.String(), Type.String())).problems({ 'a/b~c': 5 }).map(problemText)).toEqual([
    '["a/b~c"]: must be a string',
  ])
})
