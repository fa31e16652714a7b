/** Values of chance are held to schemas of chance as ajv, which compiles them, holds them. */

import { expect, test } from 'bun:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { checkOf } from '../../src/schema/json-schema.ts'
import type { JsonSchema } from '../../src/schema/schema-keywords.ts'

const name = fc.constantFrom('a', 'b', 'ab', 'é', 'x/y')
const scalar = fc.constantFrom<unknown>(null, true, false, 0, 1, 1.5, -2, '', 'a', 'ab', 'é🏕', 'abc')
const { value } = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    scalar,
    fc.array(tie('value'), { maxLength: 4 }),
    fc
      .array(fc.tuple(name, tie('value')), { maxLength: 3 })
      .map((pairs) => JSON.parse(`{${pairs.map(([key, part]) => `${JSON.stringify(key)}:${JSON.stringify(part)}`)}}`)),
  ),
}))

const count = fc.integer({ min: 0, max: 3 })
const type = fc.constantFrom('null', 'boolean', 'string', 'number', 'integer', 'array', 'object')
const { schema } = fc.letrec<{ schema: unknown }>((tie) => {
  const one = tie('schema')
  const list = fc.array(one, { minLength: 1, maxLength: 3 })
  const names = fc.uniqueArray(name, { maxLength: 2 })
  const named = <T>(of: fc.Arbitrary<T>) =>
    fc
      .uniqueArray(fc.tuple(fc.constantFrom('a', 'b', 'ab', 'é'), of), { maxLength: 3, selector: ([key]) => key })
      .map(Object.fromEntries)
  const keywords: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
    type: fc.oneof(type, fc.uniqueArray(type, { minLength: 1, maxLength: 3 })),
    const: value,
    enum: fc.uniqueArray(value, { minLength: 1, maxLength: 3, selector: JSON.stringify }),
    ...{ minimum: count, maximum: count, exclusiveMinimum: count, exclusiveMaximum: count },
    multipleOf: fc.constantFrom(1, 2, 0.5),
    ...{ minLength: count, maxLength: count, pattern: fc.constantFrom('^a', 'b$', '.', '^$') },
    ...{ minItems: count, maxItems: count, uniqueItems: fc.boolean(), prefixItems: list, items: one, contains: one },
    ...{ minProperties: count, maxProperties: count, required: names, propertyNames: one },
    ...{
      properties: named(one),
      additionalProperties: one,
      dependentRequired: named(names),
      dependentSchemas: named(one),
    },
    patternProperties: fc.dictionary(fc.constantFrom('^a', 'b$'), one, { maxKeys: 2 }),
    ...Object.fromEntries(['allOf', 'anyOf', 'oneOf'].map((keyword) => [keyword, list])),
    ...Object.fromEntries(['not', 'if', 'then', 'else'].map((keyword) => [keyword, one])),
    $ref: fc.constantFrom('#/$defs/x', '#y'),
  }
  // Few keywords each: of many, nothing fits. Only those are made: to make all takes ten times as long.
  const members = Object.entries(keywords).map(([keyword, of]) => of.map((part) => [keyword, part] as const))
  const few = fc
    .uniqueArray(fc.oneof(...members), { minLength: 1, maxLength: 3, selector: ([keyword]) => keyword })
    .map((own) => Object.fromEntries(own))
  return {
    schema: fc.oneof(
      { maxDepth: 3, depthSize: 'small' },
      { weight: 1, arbitrary: fc.boolean() },
      { weight: 6, arbitrary: few },
    ),
  }
})

const ajv = new Ajv2020({ strict: false, logger: false, ownProperties: true, validateSchema: false })
// The code that notes properties for `unevaluatedProperties`, which no schema here has, fails for some schemas.
ajv.opts.unevaluated = false

/** The same schema, with `contains` apart: for ajv a list that is shorter than the `prefixItems` beside it has all. */
const forAjv = (whole: JsonSchema): JsonSchema =>
  JSON.parse(JSON.stringify(whole), (_, part) => {
    if (part?.contains === undefined || part.prefixItems === undefined) return part
    const { contains, allOf = [], ...rest } = part
    return { ...rest, allOf: [...allOf, { contains }] }
  })

test('a value fits a schema exactly where it fits it for ajv', () => {
  const seen = { fits: 0, not: 0 }
  fc.assert(
    fc.property(schema, schema, schema, fc.array(value, { minLength: 1, maxLength: 5 }), (root, x, y, values) => {
      const $defs = { x: { allOf: [x] }, y: { $anchor: 'y', allOf: [y] } }
      const whole = { $defs, allOf: [root] } as JsonSchema
      // A reference that leads back to itself has no end.
      if (/"\$ref"/.test(JSON.stringify([x, y]))) return
      // For ajv an empty list contains what the list before it did.
      const isWrong = (one: unknown) => /"contains"/.test(JSON.stringify(whole)) && /\[\]/.test(JSON.stringify(one))
      const oracle = ajv.compile(forAjv(whole))
      const check = checkOf(whole, 'arguments')
      for (const one of values.filter((one) => !isWrong(one))) {
        const fits = oracle(one)
        seen[fits ? 'fits' : 'not'] += 1
        expect({ whole, one, fits: check(one) === undefined }).toEqual({ whole, one, fits })
      }
    }),
    { numRuns: Number(process.env['RUNS'] ?? 2000), endOnFailure: true },
  )
  expect(Math.min(seen.fits, seen.not)).toBeGreaterThan(1000)
})
