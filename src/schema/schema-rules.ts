/** The rule of each keyword of JSON Schema (2020-12: core 10 and 11, validation 6). */

import type { Asked, Evaluation, KeywordRule, Rule } from './evaluation.ts'
import { isInFormat } from './formats.ts'
import { isMultiple } from './is-multiple.ts'
import { isObject, isOfType, type JsonSchema, type Named, type Schema } from './schema-keywords.ts'

const rule = <Given>(one: Rule<Given>) => one as KeywordRule
/** Values of another type fit. */
const only =
  <Value>(is: (value: unknown) => boolean) =>
  <Given>(one: Rule<Given, Value>) =>
    rule<Given>((by, given, value, asked) => !is(value) || one(by, given, value as Value, asked))
const ofNumber = only<number>((value) => typeof value === 'number')
const ofText = only<string>((value) => typeof value === 'string')
const ofList = only<readonly unknown[]>(Array.isArray)
const ofObject = only<Named<unknown>>((value) => isObject(value))

const bound = (words: string, holds: (value: number, most: number) => boolean) =>
  ofNumber<number>((by, most, value, { at }) => holds(value, most) || by.fail(at, `must be ${words} ${most}`))
const size =
  <Value>(isLeast: boolean, words: string, sizeOf: (by: Evaluation, value: Value) => number): Rule<number, Value> =>
  (by, most, value, { at }) => {
    const found = sizeOf(by, value)
    const fits = isLeast ? found >= most : found <= most
    return fits || by.fail(at, `must not have ${isLeast ? 'fewer' : 'more'} than ${most} ${words}`)
  }
/** As Unicode has them: two units of UTF-16 may be one character. */
const charactersIn = (by: Evaluation, text: string) => {
  by.spendText(text)
  let count = text.length
  for (let at = 1; at < text.length; at += 1)
    if ((text.charCodeAt(at) & 0xfc00) === 0xdc00 && (text.charCodeAt(at - 1) & 0xfc00) === 0xd800) count -= 1
  return count
}
/** Steps of a member: its name is listed, and looked up in what the schema says of the object. */
const memberSteps = 4
/** Steps of a name that is listed alone. */
const nameSteps = 2
/** Counts the list itself: the first name may end the look at the others. */
const namesIn = (by: Evaluation, object: object) => {
  const names = Object.keys(object)
  by.spend(names.length * nameSteps)
  return names
}
const membersIn = (by: Evaluation, object: Named<unknown>) => namesIn(by, object).length
const itemsIn = (_: Evaluation, list: readonly unknown[]) => list.length

const areUnique = (by: Evaluation, list: readonly unknown[]) => {
  by.spend(list.length)
  return new Set(list.map((item) => by.digestOf(item))).size === list.length
}
const requires = (by: Evaluation, names: readonly string[], object: Named<unknown>) =>
  names.filter((name) => {
    by.spend(1)
    return !Object.hasOwn(object, name)
  })

/** By the name of a member: the names that an object must have with it, or the schema that it must fit. */
const dependents = ofObject<Named<Schema | string[]>>((by, given, object, { at, seen }) =>
  namesIn(by, given).every((name) => {
    by.spend(1)
    if (!Object.hasOwn(object, name)) return true
    const part = given[name] as Schema | string[]
    if (!Array.isArray(part)) return by.check(part as Schema, object, at, seen)
    const missing = requires(by, part, object)
    return (
      missing.length === 0 ||
      by.fail(at, () => `must have property ${missing.join(', ')} when property ${name} is present`)
    )
  }),
)

/** Asks about the members that have a schema. */
function members(
  by: Evaluation,
  object: Named<unknown>,
  { at, seen }: Asked,
  schemaOf: (name: string) => Schema | undefined,
) {
  let fits = true
  for (const name of Object.keys(object)) {
    by.spend(memberSteps)
    by.spendText(name)
    const schema = schemaOf(name)
    if (schema === undefined) continue
    seen?.names.add(name)
    if (schema === false) fits = by.fail(at, () => `has an unknown field ${JSON.stringify(name)}`)
    else if (!by.check(schema, object[name], { up: at, key: name })) fits = false
  }
  return fits
}

/** Asks about the items that have a schema. */
function items(
  by: Evaluation,
  list: readonly unknown[],
  { at, seen }: Asked,
  schemaOf: (index: number) => Schema | undefined,
) {
  let fits = true
  for (const [index, item] of list.entries()) {
    by.spend(1)
    const schema = schemaOf(index)
    if (schema === undefined) continue
    seen?.items.add(index)
    if (!by.check(schema, item, { up: at, key: index })) fits = false
  }
  return fits
}

const prefixOf = ({ prefixItems = [] }: JsonSchema) => prefixItems as readonly Schema[]
const isDeclared = (by: Evaluation, { properties = {}, patternProperties = {} }: JsonSchema, name: string) =>
  Object.hasOwn(properties as object, name) ||
  namesIn(by, patternProperties as object).some((one) => by.matches(one, name))

/** By keyword, in the order in which they are asked. `then` and `else` belong to `if`, and those without a rule to others. */
export const rules: ReadonlyMap<string, KeywordRule> = new Map(
  Object.entries({
    type: rule<string | string[]>((by, given, value, { at, schema }) => {
      const isNull = value === null && schema['nullable'] === true
      if (typeof given === 'string')
        return isNull || isOfType[given]?.(value) === true || by.fail(at, `must be ${given}`)
      by.spend(given.length)
      return isNull || given.some((type) => isOfType[type]?.(value)) || by.fail(at, () => `must be ${given.join()}`)
    }),
    const: rule<unknown>(
      (by, given, value, { at }) =>
        by.digestOf(given) === by.digestOf(value) || by.fail(at, 'must be equal to constant'),
    ),
    enum: rule<unknown[]>((by, given, value, { at }) => {
      const digest = by.digestOf(value)
      const isOne = given.some((one) => by.digestOf(one) === digest)
      return isOne || by.fail(at, () => `must be one of ${JSON.stringify(given)}`)
    }),
    minimum: bound('>=', (value, least) => value >= least),
    maximum: bound('<=', (value, most) => value <= most),
    exclusiveMinimum: bound('>', (value, least) => value > least),
    exclusiveMaximum: bound('<', (value, most) => value < most),
    multipleOf: bound('multiple of', isMultiple),
    minLength: ofText(size(true, 'characters', charactersIn)),
    maxLength: ofText(size(false, 'characters', charactersIn)),
    pattern: ofText<string>(
      (by, pattern, text, { at }) => by.matches(pattern, text) || by.fail(at, `must match pattern "${pattern}"`),
    ),
    format: rule<string>(
      (by, format, value, { at }) =>
        isInFormat(format, value, (cost) => by.spendPattern(cost)) || by.fail(at, `must match format "${format}"`),
    ),
    minItems: ofList(size(true, 'items', itemsIn)),
    maxItems: ofList(size(false, 'items', itemsIn)),
    uniqueItems: ofList<boolean>(
      (by, isAsked, list, { at }) =>
        !isAsked || areUnique(by, list) || by.fail(at, 'must not have the same item twice'),
    ),
    prefixItems: ofList<Schema[]>((by, schemas, list, asked) =>
      items(by, list.slice(0, schemas.length), asked, (index) => schemas[index]),
    ),
    items: ofList<Schema>((by, schema, list, asked) => {
      const from = prefixOf(asked.schema).length
      if (schema === false) return list.length <= from || by.fail(asked.at, `must not have more than ${from} items`)
      return items(by, list, asked, (index) => (index < from ? undefined : schema))
    }),
    contains: ofList<Schema>(
      (by, schema, list, { at, seen, schema: { minContains = 1, maxContains = Number.POSITIVE_INFINITY } }) => {
        const [least, most] = [minContains as number, maxContains as number]
        let found = 0
        for (const [index, item] of list.entries()) {
          if (!by.asks(schema, item, at)) continue
          found += 1
          seen?.items.add(index)
          if (seen === undefined && found >= least && (found > most || most === Number.POSITIVE_INFINITY)) break
        }
        const range = most === Number.POSITIVE_INFINITY ? `at least ${least}` : `${least} to ${most}`
        return (found >= least && found <= most) || by.fail(at, `must contain ${range} valid items`)
      },
    ),
    minProperties: ofObject(size(true, 'properties', membersIn)),
    maxProperties: ofObject(size(false, 'properties', membersIn)),
    required: ofObject<string[]>((by, names, object, { at }) => {
      const missing = requires(by, names, object)
      for (const name of missing) by.fail(at, `must have required property '${name}'`)
      return missing.length === 0
    }),
    dependentRequired: dependents,
    dependentSchemas: dependents,
    dependencies: dependents,
    propertyNames: ofObject<Schema>((by, schema, object, { at }) =>
      namesIn(by, object).every((name) => by.check(schema, name, at) || by.fail(at, 'property name must be valid')),
    ),
    properties: ofObject<Named>((by, schemas, object, asked) => {
      let fits = true
      for (const [name, schema] of Object.entries(schemas)) {
        by.spend(memberSteps)
        if (!Object.hasOwn(object, name)) continue
        asked.seen?.names.add(name)
        if (!by.check(schema, object[name], { up: asked.at, key: name })) fits = false
      }
      return fits
    }),
    patternProperties: ofObject<Named>((by, schemas, object, asked) =>
      namesIn(by, schemas).every((pattern) =>
        members(by, object, asked, (name) => (by.matches(pattern, name) ? schemas[pattern] : undefined)),
      ),
    ),
    additionalProperties: ofObject<Schema>((by, schema, object, asked) =>
      members(by, object, asked, (name) => (isDeclared(by, asked.schema, name) ? undefined : schema)),
    ),
    $ref: rule<string>((by, reference, value, { at, seen }) => by.check(by.target(reference), value, at, seen)),
    $dynamicRef: rule<string>((by, reference, value, { at, seen }) => by.check(by.target(reference), value, at, seen)),
    allOf: rule<Schema[]>((by, schemas, value, { at, seen }) => {
      let fits = true
      for (const schema of schemas) if (!by.check(schema, value, at, seen)) fits = false
      return fits
    }),
    anyOf: rule<Schema[]>(
      (by, schemas, _, asked) => by.counts(schemas, asked, 1) > 0 || by.fail(asked.at, 'must match a schema in anyOf'),
    ),
    oneOf: rule<Schema[]>(
      (by, schemas, _, asked) =>
        by.counts(schemas, asked, 2) === 1 || by.fail(asked.at, 'must match exactly one schema in oneOf'),
    ),
    not: rule<Schema>((by, schema, value, { at }) => !by.asks(schema, value, at) || by.fail(at, 'must not be valid')),
    if: rule<Schema>((by, schema, value, { at, seen, schema: { then: yes = true, else: no = true } }) => {
      const holds = by.asks(schema, value, at, seen)
      return (
        by.check((holds ? yes : no) as Schema, value, at, seen) ||
        by.fail(at, `must match "${holds ? 'then' : 'else'}" schema`)
      )
    }),
    // Last: they ask what the others have evaluated.
    unevaluatedItems: ofList<Schema>((by, schema, list, { at, seen }) =>
      list.every((item, index) => {
        by.spend(1)
        if (seen?.items.has(index)) return true
        seen?.items.add(index)
        return by.check(schema, item, { up: at, key: index })
      }),
    ),
    unevaluatedProperties: ofObject<Schema>((by, schema, object, asked) => {
      const known = new Set(asked.seen?.names)
      by.spend(known.size)
      return members(by, object, asked, (name) => (known.has(name) ? undefined : schema))
    }),
  }),
)
