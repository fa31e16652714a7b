/**
 * Generates a result that fits a tool's output schema, always the same for the same seed. json-schema-faker generates
 * the structure; texts and numbers are then replaced by values that suit the names of their fields.
 */

import { faker } from '@faker-js/faker/locale/en'
import { generateSync, type Random } from 'json-schema-faker'
import { sliceCost } from '../../limits.ts'
import { cutText } from '../../schema/cut-text.ts'
import { type Check, targetOf } from '../../schema/json-schema.ts'
import { type JsonSchema, keywordKinds, type Schema } from '../../schema/schema-keywords.ts'
import { capitalise, type Likeness, phrasesOf, textFor } from './field-values.ts'
import { madeCharsOf } from './pattern-length.ts'

/**
 * Steps of one try: schemas and references that the faker follows, and the parts of the value; they take 10 to 40 ms.
 * All tries have as many as two. Past it: the error recommends recording an answer.
 */
const madeUpStepsMax = 3000
/** Characters of a made-up text that are a step. */
const madeUpCharsPerStep = 20
/** The same of a value that a schema fixes, which is only written: 600 kB of them in all. */
const fixedCharsPerStep = 200
/** Characters of a schema for which each visit takes a step more: the faker copies names, and compares values. */
const visitedCharsPerStep = 20_000
/** Characters of names that it looks through in a step, with or without making their values. */
const listedCharsPerStep = 500
/** Characters of a schema that it merges in a step. */
const mergedCharsPerStep = 4000
/** The faker copies its state for each reference, and lists of references double. */
const stepsPerReference = 5
/** Characters of a made-up text whose schema allows more. Past it: it has fewer. */
export const madeUpCharsMax = 200
/** Characters of a scenario, or of a tool's description, that made-up texts repeat. Past it: the rest is left out. */
const scenarioCharsMax = 1000
/** Characters of a pattern and of the longest text that fits it. Past it: the error recommends recording an answer. */
const madeUpPatternCharsMax = 800
/** Characters of a name in a schema: each value below repeats it. Past it: the error recommends recording an answer. */
const madeUpNameCharsMax = 200
/** Texts that the faker makes of a pattern until one is as long as the schema wants it. */
const textsPerPattern = 51
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

/** Generates as work in turns. Undefined if no try yields a value that passes `check` before the steps run out. */
export function* generating(records: DesiredRecords, check: Check): Generator<number, unknown> {
  const desired = { ...records, scenarioText: cutText(records.scenarioText, scenarioCharsMax) }
  let left = 2 * madeUpStepsMax
  for (let attempt = 0; attempt < madeUpTriesMax && left > 0; attempt += 1) {
    // The first is cheap for most schemas; a schema that needs more is not.
    if (attempt > 0) yield sliceCost
    // The second half of the tries keeps the faker's own values: replacing one can violate a rule between fields.
    const isPlain = attempt >= madeUpTriesMax / 2
    let taken = 0
    // Throws ever after: the faker takes an error for a wrong choice.
    const step = (steps = 1) => {
      taken += steps
      if (taken > madeUpStepsMax) throw new Error('the value is too large, or has no end')
    }
    const value = generateFrom({ ...desired, seed: desired.seed + attempt }, isPlain, step)
    left -= taken
    if (value !== undefined && check(value) === undefined) return value
  }
  return undefined
}

type Step = (steps?: number) => void

/** One try. `isPlain`: without replacing values. */
function generateFrom({ schema, seed, given, scenarioText }: DesiredRecords, isPlain: boolean, step: Step): unknown {
  faker.seed(seed)
  /** Steps of fixed values, by their schemas. */
  const fixed = new Map<object, number>()
  const stepsOfFixed = (part: JsonSchema) =>
    fixed.getOrInsertComputed(part, () => {
      const { const: value, enum: choices } = part
      return JSON.stringify([value, choices]).length / fixedCharsPerStep
    })
  const texts = { phrases: phrasesOf(scenarioText), scenarioText: capitalise(scenarioText) }
  const fieldValue: Likeness = { step, faker, ...texts }
  try {
    const prepared = new PreparedSchemas(schema, isPlain, step)
    const root = prepared.prepare(schema) as JsonSchema
    const stepsPerVisit = 1 + prepared.size / visitedCharsPerStep
    const value = generateSync(root, {
      seed,
      maxDepth: madeUpDepthMax,
      optionalsProbability: 0.8,
      formats,
      // The faker reads the aliases for each schema that it follows, and asks for each reference.
      propAliases: {
        get [stepKeyword]() {
          step(stepsPerVisit)
          return stepKeyword
        },
      },
      refResolver(reference) {
        step(stepsPerReference)
        return prepared.target(reference)
      },
      outputTransform(value, part, path) {
        if (typeof value === 'string') step(charactersMade(value, part) / madeUpCharsPerStep)
        if (Array.isArray(value)) step(value.length)
        if (typeof part !== 'object') return value
        if ('const' in part || 'enum' in part) step(stepsOfFixed(part as JsonSchema))
        if (isPlain) return value
        const made = applyFieldValue(value, part as JsonSchema, path, { given, fieldValue })
        // Arguments are repeated as they are.
        if (typeof made === 'string' && made.length <= scenarioCharsMax) step(made.length / madeUpCharsPerStep)
        return made
      },
    })
    return isPlain ? value : withDatesInOrder(value, step)
  } catch {
    // The faker throws for a schema that contradicts itself.
    return undefined
  }
}

/** How many characters the faker may have read and written for a text. */
function charactersMade(text: string, schema: unknown): number {
  const { pattern, minLength, maxLength } = schema as { [name: string]: unknown }
  if (typeof pattern !== 'string') return text.length
  const isBounded = minLength !== undefined || maxLength !== undefined
  // It fills up what is too short, character by character.
  return (isBounded ? textsPerPattern : 1) * (1 + madeCharsOf(pattern)) + text.length
}

/** An alias for itself. */
const stepKeyword = 'x-postern-step'

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
function withDatesInOrder(value: unknown, step: Step): unknown {
  if (typeof value !== 'object' || value === null) return value
  // A schema may fix large values, which are no steps of the faker.
  step(0.5 * Object.keys(value).length)
  if (!Array.isArray(value))
    return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, withDatesInOrder(part, step)]))
  const items = value.map((item) => withDatesInOrder(item, step))
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

/** Schemas as the faker is to read them. */
class PreparedSchemas {
  readonly #root: JsonSchema
  readonly #isPlain: boolean
  readonly #step: Step
  readonly #known = new Map<Schema, JsonSchema>()
  /** Characters of all that was prepared. */
  size = 0

  constructor(root: JsonSchema, isPlain: boolean, step: Step) {
    this.#root = root
    this.#isPlain = isPlain
    this.#step = step
  }

  /** The target of a local reference. Throws Error for any other, and if there is none. */
  target(reference: string): JsonSchema {
    const target = targetOf(this.#root, `#${reference.slice(ownScheme.length)}`) as Schema | undefined
    if (target === undefined) throw new Error(`${reference}: refers to nothing in this schema`)
    return (this.#known.get(target) ?? this.prepare(target)) as JsonSchema
  }

  /**
   * Only keywords that a check knows: the faker knows others, which may write megabytes. Without `patternProperties`,
   * whose patterns the faker would run in the runtime's RegExp, which can take exponential time, and without
   * definitions, which it would look at again for each value. A list that may be empty gets at least one item, to be a
   * useful example, unless its items contain references, which might recurse. Upper bounds are lowered: the faker would
   * use all of them. References are written so that the faker asks for each. Throws Error for a lower bound past
   * `leastPartsMax`, for a pattern whose texts are too long, and for long names.
   */
  prepare(schema: Schema): unknown {
    if (typeof schema === 'boolean') return schema
    const parts: Record<string, unknown> = {}
    for (const [keyword, given] of Object.entries(schema)) {
      const kind = keywordKinds.get(keyword)
      if (kind === undefined || unread.has(keyword)) continue
      const before = this.size
      const part = kind.withSchemas?.(given as never, (inner) => this.prepare(inner)) ?? given
      // The faker writes what a value must not be each time that it makes one.
      if (definitions.has(keyword) || (keyword === 'not' && this.size - before > scenarioCharsMax)) continue
      if (namingMembers.has(keyword)) requireShortNames(given as object)
      const own = kind.withSchemas === undefined ? given : Object.keys(given as object)
      const chars = JSON.stringify(own).length
      this.size += keyword.length + chars
      if (keyword === 'pattern' && madeCharsOf(given as string) > madeUpPatternCharsMax)
        throw new Error('pattern: its texts are too long')
      if (Number(given) > (leastPartsMax[keyword] ?? Number.POSITIVE_INFINITY))
        throw new Error(`${keyword}: is too large`)
      parts[keyword] = keyword === '$ref' ? ownReference(given as string) : (lowered(schema, keyword) ?? part)
      if (namingMembers.has(keyword)) this.#count(parts, keyword, () => chars / listedCharsPerStep)
    }
    const { type, minItems, maxItems, items, allOf } = parts as { [name: string]: unknown; allOf?: unknown[] }
    const isEmptyList = type === 'array' && minItems === undefined && maxItems !== 0 && items !== undefined
    if (isEmptyList && !this.#isPlain && !hasReference(items)) parts['minItems'] = 1
    // The faker copies all members so far for each of these schemas.
    if (allOf !== undefined) this.#count(parts, 'allOf', () => ((allOf.length - 1) * this.size) / mergedCharsPerStep)
    this.#known.set(schema, parts)
    return parts
  }

  /** Counts steps whenever the faker reads a keyword. */
  #count(parts: Record<string, unknown>, keyword: string, steps: () => number): void {
    const { [keyword]: part } = parts
    const read = () => {
      this.#step(steps())
      return part
    }
    Object.defineProperty(parts, keyword, { get: read, enumerable: true })
  }
}

/** The faker would run the patterns of the first, and takes the others for fields. */
const unread = new Set(['patternProperties', 'nullable', 'unevaluatedProperties', 'unevaluatedItems'])
const definitions = new Set(['$defs', 'definitions'])
const namingMembers = new Set(['properties', 'required', 'dependentRequired', 'dependentSchemas', 'dependencies'])
/** Instead of the `#` of each reference: the faker looks for those itself. */
const ownScheme = 'postern:'
const ownReference = (reference: string) => ownScheme + reference.replace(/^#/, '')

/** Names of members, in a list or in lists by name. Throws Error. */
function requireShortNames(names: object): void {
  for (const [key, name] of Object.entries(names)) {
    if (Array.isArray(name)) requireShortNames(name)
    if (key.length > madeUpNameCharsMax || (typeof name === 'string' && name.length > madeUpNameCharsMax))
      throw new Error('a name is too long')
  }
}

function hasReference(part: unknown): boolean {
  if (typeof part !== 'object' || part === null) return false
  return Object.entries(part).some(([name, value]) => name === '$ref' || hasReference(value))
}

/** The faker makes items and characters without a step in between, and looks at all fields for each new one. */
const leastPartsMax: Readonly<Record<string, number>> = { minItems: 3000, minLength: 3000, minProperties: 300 }

/** By upper bound: the lower bound beside it, and the most that a made-up value needs; the faker would use all. */
const upperBounds = new Map<string, readonly [least: string, most: number]>([
  ['maxLength', ['minLength', madeUpCharsMax]],
  ['maxItems', ['minItems', madeUpItemsMax]],
  ['maxProperties', ['minProperties', madeUpItemsMax]],
  ['maxContains', ['minContains', madeUpItemsMax]],
])

/** An upper bound of a schema, as low as a made-up value needs it; undefined for any other keyword. */
function lowered(schema: object, keyword: string): number | undefined {
  const [least = '', most = 0] = upperBounds.get(keyword) ?? []
  const { [keyword]: given, [least]: floor } = schema as Record<string, unknown>
  if (least === '' || typeof given !== 'number') return undefined
  return Math.min(given, Math.max(typeof floor === 'number' ? floor : 0, most))
}
