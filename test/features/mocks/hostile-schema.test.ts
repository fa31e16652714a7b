/** Making up a result ends, whatever the output schema is. */

import { expect, spyOn, test } from 'bun:test'
import { RE2JS } from 're2js'
import type { MockedCall } from '../../../src/features/mocks/call.ts'
import { choosing } from '../../../src/features/mocks/choose-answer.ts'
import { generating } from '../../../src/features/mocks/generate-result.ts'
import { sliceCost } from '../../../src/limits.ts'
import { checkOf } from '../../../src/schema/json-schema.ts'
import { drained } from '../../../src/schema/steps.ts'
import { random } from '../../support/random.ts'
import { hostileSchema } from './hostile-schema.ts'

const X = { $ref: '#/$defs/x' }
const defined = (x: object, more: object = {}) => ({
  type: 'object',
  required: ['a'],
  properties: { a: X },
  $defs: { x, ...more },
})
/** Choices within choices, none of which can be satisfied. */
const choices = (depth: number): object =>
  depth === 0 ? { type: 'object', minProperties: 1, additionalProperties: false } : { oneOf: [choices(depth - 1)] }
const list = (minItems: number, items: object) => ({ type: 'array', minItems, items, uniqueItems: true })

const rows: Readonly<Record<string, object>> = {
  'a choice of itself': defined({ oneOf: [X] }),
  'a choice of itself, twice': defined({ oneOf: [X, X] }),
  'itself, anonymously': { type: 'object', allOf: [{ $ref: '#' }] },
  'by its id': defined({ $id: 'urn:x', allOf: [{ $ref: 'urn:x' }, { $ref: 'urn:x' }] }),
  'by an anchor': defined({ $anchor: 'x', allOf: [{ $ref: '#x' }, { $ref: '#x' }] }),
  'two that double each other': defined(
    { allOf: [{ $ref: '#/$defs/y' }, { $ref: '#/$defs/y' }] },
    { y: { allOf: [X, X] } },
  ),
  'in a place that is no schema': { ...defined(X), enum: [{ allOf: [{ $ref: '#/enum/0' }, { $ref: '#/enum/0' }] }] },
  'choices that fail': defined(choices(200)),
  'maps of lists': defined({ type: 'object', minProperties: 2000, additionalProperties: list(40, { type: 'string' }) }),
  'an optional list of lists': { type: 'object', properties: { b: list(101, list(1000, { type: 'number' })) } },
  'a list without end': defined(list(1e9, { type: 'integer' })),
  'a list of fixed values': defined({ type: 'array', minItems: 4000, items: { const: Array(900).fill({ at: 1 }) } }),
}

const desired = (schema: object, seed = 1) => ({ schema: schema as never, seed, given: {}, scenarioText: 'a word' })

for (const [name, schema] of Object.entries(rows))
  test(`of ${name}`, () => {
    expect(drained(generating(desired(schema), () => undefined)) ?? 'none').toBeDefined()
    // Of such a schema there is no example that is worth anything: an answer is to be recorded.
    expect(drained(generating(desired(schema), () => 'it never fits'))).toBeUndefined()
  })

function checkIn(schema: Parameters<typeof checkOf>[0]) {
  try {
    return checkOf(schema, 'result')
  } catch {
    return undefined
  }
}

test('of schemas of chance', () => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  const chance = random(seed)
  let looked = 0
  for (let i = 0; i < 150; i += 1) {
    const schema = hostileSchema(chance)
    const wrong = checkIn(schema)
    // It is too large, and nothing is made up.
    if (wrong === undefined) continue
    looked += 1
    const made = drained(generating(desired(schema, i), wrong))
    if (made !== undefined) expect({ seed, i, wrong: wrong(made) }).toEqual({ seed, i, wrong: undefined })
  }
  expect(looked).toBeGreaterThan(50)
})

test('a made-up text repeats little of a description of a megabyte, and counts', () => {
  const scenarioText = 'a word '.repeat(150_000)
  const made = (minItems: number) => {
    const texts = { type: 'array', minItems, maxItems: minItems, items: { type: 'string', maxLength: 10_000 } }
    const schema = { type: 'object', required: ['description'], properties: { description: texts } }
    return drained(generating({ ...desired(schema), scenarioText }, () => undefined)) as { description: string[] }
  }
  const { description } = made(3)
  expect(description.map(({ length }) => length <= 1000)).toEqual([true, true, true])
  // These are too many: the faker's own texts take their place.
  expect(made(1400)?.description?.every(({ length }) => length <= 200) ?? true).toBe(true)
})

test('texts by the names of fields cost no more for hard patterns and long names', () => {
  const items = (count: number, item: object) => ({ type: 'array', minItems: count, maxItems: count, items: item })
  const hard = { type: 'string', pattern: '(?:[a-z ]{0,20}){0,20}[A-Z0-9]{2}$' }
  const body = { type: 'object', required: ['body'], properties: { body: hard } }
  const schema = (part: object) => ({ type: 'object', required: ['l'], properties: { l: part } })
  const scenarioText = 'all words of a long description '.repeat(30)
  const asked = spyOn(RE2JS.prototype, 'matcher')
  drained(generating({ ...desired(schema(items(300, body))), scenarioText }, () => undefined))
  expect(asked.mock.calls.length).toBeLessThan(30)
  asked.mockRestore()
  const long = { type: 'object', properties: { ['aB'.repeat(20_000)]: items(1000, { type: 'string', maxLength: 3 }) } }
  expect(drained(generating(desired(long), () => undefined))).toBeUndefined()
})

test('texts that are filled up to their least length count, character by character', () => {
  for (const part of [{ pattern: '' }, { pattern: 'a' }, { pattern: '^a$', format: 'date' }]) {
    const of = (minItems: number, minLength: number) =>
      desired({
        type: 'object',
        required: ['z'],
        properties: { z: { type: 'array', minItems, items: { type: 'string', minLength, ...part } } },
      })
    expect(drained(generating(of(3, 30), () => undefined))).toBeDefined()
    // In one try the faker would write millions of characters.
    expect(drained(generating(of(1000, 3000), () => undefined))).toBeUndefined()
  }
})

test('an example is checked in a step of its own, and so many are looked at', () => {
  const examples = Array.from({ length: 300 }, (_, index) => ({ index }))
  const outputSchema = { type: 'object', properties: { index: { minimum: 99 } }, examples }
  const tool = { name: 't', inputSchema: { type: 'object' }, outputSchema }
  const server = { detail: { qualifiedName: 'a/b' }, recorded: [] }
  const work = choosing({ server, scenario: '', tool, given: {} } as unknown as MockedCall, 2)
  let slices = 0
  for (let step = work.next(); ; step = work.next()) {
    if (step.done) {
      expect(step.value).toMatchObject({ result: { structuredContent: { index: 99 } } })
      break
    }
    if (step.value >= sliceCost) slices += 1
  }
  // Its schemas may take another.
  expect(slices).toBeWithin(100, 103)
})

test('a fixed value counts as often as it is repeated', () => {
  const items = { const: { a: '"'.repeat(45_000) } }
  const schema = (minItems: number) => ({
    type: 'object',
    required: ['l'],
    properties: { l: { type: 'array', minItems, maxItems: minItems, items } },
  })
  expect(drained(generating(desired(schema(1)), () => undefined))).toEqual({ l: [items.const] })
  expect(drained(generating(desired(schema(400)), () => undefined))).toBeUndefined()
})

test('a schema is prepared without writing its parts, each of which may hold a megabyte', () => {
  const description = 'long '.repeat(1000)
  let schema: object = { type: 'string', description }
  for (let level = 0; level < 12; level += 1) schema = { type: 'array', items: schema }
  using write = spyOn(JSON, 'stringify')
  drained(generating(desired({ type: 'object', required: ['x'], properties: { x: schema } }), () => undefined))
  expect(write.mock.results.filter(({ value }) => String(value).length > description.length)).toEqual([])
})

test('an unsettled list of what may hold itself stays empty', () => {
  const tree = { type: 'array', items: { type: 'object', properties: { more: { $ref: '#/$defs/tree' } } } }
  const schema = { type: 'object', required: ['x'], properties: { x: tree }, $defs: { tree } }
  const made = (at: number) => drained(generating(desired(schema, at), () => undefined)) as { x: unknown[] }
  expect(Array.from({ length: 50 }, (_, at) => made(at).x.length)).toContain(0)
})
