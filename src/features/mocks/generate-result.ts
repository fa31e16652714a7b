/**
 * Generates a result that fits a tool's output schema, always the same for the same seed. json-schema-faker generates
 * the structure; texts and numbers are then replaced by values that suit the names of their fields.
 */

import { faker } from '@faker-js/faker/locale/en'
import { generateSync, type Random } from 'json-schema-faker'
import { sliceCost } from '../../limits.ts'
import type { Check, JsonSchema } from '../../schema/json-schema.ts'
import { capitalise, type Likeness, phrasesOf, textFor } from './field-values.ts'

/**
 * Minimum size, in parts and characters, that a schema requires of a generated value. Past it: the error recommends
 * recording an answer.
 */
const madeUpSizeMax = 20_000
/** Characters of a made-up text whose schema allows more. Past it: it has fewer. */
export const madeUpCharsMax = 200
/** Items of a made-up list, or fields of an object, whose schema allows more. Past it: it has fewer. */
export const madeUpItemsMax = 5
/** Seeds tried for a schema that is hard to satisfy. Past it: the error recommends recording an answer. */
const madeUpTriesMax = 8
/** Nesting of a generated value. Past it: as little as the schema allows. */
const madeUpDepthMax = 12

/** The records to generate, and the seed, arguments and scenario that they follow from. */
export interface DesiredRecords {
  readonly schema: JsonSchema
  readonly seed: number
  /**
   * The arguments of the call, with the defaults of the others. A top-level field of the same name and type repeats its
   * argument; where the field is an object, its `name` does.
   */
  readonly given: Readonly<Record<string, unknown>>
  /** The scenario, or the tool's description if there is none. */
  readonly scenarioText: string
}

/**
 * Generates as work in turns. Undefined if no try yields a value that passes `check`, or the schema requires a value
 * above `madeUpSizeMax`.
 */
export function* generating(desired: DesiredRecords, check: Check): Generator<number, unknown> {
  if (leastSize(desired.schema) > madeUpSizeMax) return undefined
  for (let attempt = 0; attempt < madeUpTriesMax; attempt += 1) {
    // The first is cheap for most schemas; a schema that needs more is not.
    if (attempt > 0) yield sliceCost
    // The second half of the tries keeps the faker's own values: replacing one can violate a rule between fields.
    const isPlain = attempt >= madeUpTriesMax / 2
    const value = generateFrom({ ...desired, seed: desired.seed + attempt }, isPlain)
    if (value !== undefined && check(value) === undefined) return value
  }
  return undefined
}

/** One try. `isPlain`: without replacing values. */
function generateFrom({ schema, seed, given, scenarioText }: DesiredRecords, isPlain: boolean): unknown {
  faker.seed(seed)
  const fieldValue: Likeness = { faker, phrases: phrasesOf(scenarioText), scenarioText: capitalise(scenarioText) }
  try {
    const value = generateSync(prepareSchema(schema, isPlain) as JsonSchema, {
      seed,
      maxDepth: madeUpDepthMax,
      optionalsProbability: 0.8,
      formats,
      ...(!isPlain && {
        outputTransform: (value, part, path) =>
          typeof part === 'object' ? applyFieldValue(value, part as JsonSchema, path, { given, fieldValue }) : value,
      }),
    })
    return isPlain ? value : withDatesInOrder(value)
  } catch {
    // The faker throws for a schema that contradicts itself.
    return undefined
  }
}

/**
 * The replacement for one generated value. Values that the schema fixes (`const`, `enum`, `format`, `multipleOf`) are
 * kept. `path` is a JSON pointer; items of a list use the name of the list.
 */
function applyFieldValue(
  value: unknown,
  schema: JsonSchema,
  path: string,
  { given, fieldValue }: { readonly given: DesiredRecords['given']; readonly fieldValue: Likeness },
): unknown {
  const parts = path.split('/').slice(1)
  const name = parts.findLast((part) => !/^\d*$/.test(part)) ?? ''
  const [first = ''] = parts
  const isEchoed = parts.length === 1 || (parts.length === 2 && parts[1] === 'name')
  const argument = isEchoed && Object.hasOwn(given, first) ? given[first] : undefined
  const { enum: choices } = schema as { enum?: readonly unknown[] }
  const isPossible = !('const' in schema) && choices?.includes(argument) !== false
  if (isPossible && typeof argument === typeof value && typeof value !== 'object') return argument
  if ('const' in schema || choices !== undefined) return value
  if (typeof value === 'string' && !('format' in schema)) return textFor(name, schema, fieldValue) ?? value
  if (typeof value === 'number' && !Number.isInteger(value) && !('multipleOf' in schema)) return round(value, name)
  return value
}

/** Dates ascend from item to item of a list, field by field. */
function withDatesInOrder(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (!Array.isArray(value))
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, withDatesInOrder(part)]))
  const items = value.map(withDatesInOrder)
  const records = items.filter((item) => typeof item === 'object' && item !== null) as Record<string, unknown>[]
  for (const name of Object.keys(records[0] ?? {})) {
    const dates = records.map((record) => record[name])
    if (!dates.every((date) => typeof date === 'string' && /^\d{4}-\d\d-\d\d/.test(date))) continue
    dates.sort()
    for (const [at, record] of records.entries()) record[name] = dates[at]
  }
  return items
}

/** Two decimals, as for money and measures; four for coordinates. */
function round(value: number, name: string): number {
  const decimals = /lat|lon|lng/i.test(name) ? 4 : 2
  return Number(value.toFixed(decimals))
}

const two = (value: number) => String(value).padStart(2, '0')
const day = (random: Random) => `2026-${two(random.int(1, 12))}-${two(random.int(1, 28))}`
const email = (random: Random) => `person-${random.int(1, 999)}@example.com`
const address = (random: Random) => `https://example.com/${random.int(1000, 9999)}`

/** Dates in one fixed year, and domains and addresses reserved for documentation (RFC 2606, RFC 5737). */
const formats: Record<string, (random: Random) => string> = {
  date: day,
  'date-time': (random) => `${day(random)}T${two(random.int(7, 18))}:${two(random.int(0, 59))}:00Z`,
  email,
  'idn-email': email,
  uri: address,
  iri: address,
  'uri-reference': address,
  hostname: (random) => `host-${random.int(1, 99)}.example.com`,
  ipv4: (random) => `192.0.2.${random.int(1, 254)}`,
}

/**
 * A lower bound for the size of a valid value: its parts and the characters of its texts. Nested lists and recursive
 * references multiply, so a small schema can require a huge value. Infinity if counting takes more than `madeUpSizeMax`
 * steps.
 */
function leastSize(root: JsonSchema): number {
  let looks = 0
  function of(schema: unknown, levels: number): number {
    looks += 1
    if (looks > madeUpSizeMax) return Number.POSITIVE_INFINITY
    if (typeof schema !== 'object' || schema === null || levels === 0) return 1
    const { $ref, minItems, minLength, minProperties, items, prefixItems, properties, required, anyOf, oneOf, allOf } =
      schema as { [name: string]: unknown }
    const { maxItems } = schema as { maxItems?: unknown }
    // The faker follows these at once, however deep they lead.
    const together = Array.isArray(allOf) ? allOf.map((part) => of(part, levels)) : []
    const sizes = (parts: unknown) => (Array.isArray(parts) ? parts.map((part) => of(part, levels - 1)) : [])
    const sum = (all: readonly number[]) => all.reduce((total, size) => total + size, 0)
    const names = new Set(Array.isArray(required) ? required : [])
    const needed = Object.entries(properties ?? {}).flatMap(([name, part]) => (names.has(name) ? [part] : []))
    const count = Math.max(Number(minItems ?? 0), Math.min(Number(maxItems ?? 0), madeUpItemsMax))
    return (
      1 +
      Number(minLength ?? 0) +
      Number(minProperties ?? 0) +
      (typeof $ref === 'string' ? of(resolveReference(root, $ref), levels) : 0) +
      sum(sizes(needed)) +
      sum(sizes(prefixItems)) +
      count * (count > 0 ? of(items, levels - 1) : 0) +
      sum(together) +
      // The largest alternative, since the faker may choose any.
      Math.max(0, ...sizes(anyOf)) +
      Math.max(0, ...sizes(oneOf))
    )
  }
  return of(root, madeUpDepthMax)
}

/** The target of a local reference (`#/…`); undefined for any other. */
function resolveReference(root: JsonSchema, reference: string): unknown {
  if (!reference.startsWith('#')) return undefined
  return reference
    .split('/')
    .slice(1)
    .map((part) => decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>((part, name) => (part as Record<string, unknown> | undefined)?.[name], root)
}

/**
 * The schema for the faker. `patternProperties` is removed: the faker would run its patterns in the runtime's RegExp,
 * which can take exponential time. A list that may be empty gets at least one item, to be a useful example, unless its
 * items contain references, which might recurse. Upper bounds are lowered: the faker would use all of them.
 */
function prepareSchema(schema: unknown, isPlain: boolean): unknown {
  if (Array.isArray(schema)) return schema.map((part) => prepareSchema(part, isPlain))
  if (typeof schema !== 'object' || schema === null) return schema
  const { type, minItems, maxItems, items } = schema as { [name: string]: unknown }
  const isEmptyList = type === 'array' && minItems === undefined && maxItems !== 0 && items !== undefined
  const isEndless = isPlain || JSON.stringify(items)?.includes('"$ref"')
  const own = Object.entries(schema).filter(([name]) => name !== 'patternProperties')
  const parts = own.map(([name, part]) => [name, lowered(schema, name) ?? prepareSchema(part, isPlain)])
  return { ...Object.fromEntries(parts), ...(isEmptyList && !isEndless && { minItems: 1 }) }
}

/** An upper bound of a schema, as low as a made-up value needs it; undefined for any other keyword. */
function lowered(schema: object, keyword: string): number | undefined {
  const bounds: Readonly<Record<string, readonly [least: string, most: number]>> = {
    maxLength: ['minLength', madeUpCharsMax],
    maxItems: ['minItems', madeUpItemsMax],
    maxProperties: ['minProperties', madeUpItemsMax],
  }
  const [least, most] = Object.hasOwn(bounds, keyword) ? (bounds[keyword] ?? []) : []
  if (least === undefined || most === undefined) return undefined
  const { [keyword]: given, [least]: floor } = schema as Record<string, unknown>
  if (typeof given !== 'number') return undefined
  return Math.min(given, Math.max(typeof floor === 'number' ? floor : 0, most))
}
