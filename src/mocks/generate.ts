/**
 * A result that fits a tool's output schema, the same for the same seed: the structure comes from a schema faker, and
 * what its texts and numbers look like from the names of their fields.
 */

import { faker } from '@faker-js/faker/locale/en'
import { generateSync, type Random } from 'json-schema-faker'
import { capitalised, type Likeness, phrasesOf, textFor } from './likeness.ts'
import type { Check, JsonSchema } from './schema.ts'

export interface Wanted {
  readonly schema: JsonSchema
  readonly check: Check
  readonly seed: number
  /** What the tool was asked with: fields of the same name answer the same, so that one gets what one asked for. */
  readonly given: Readonly<Record<string, unknown>>
  readonly story: string
}

/** How often another seed is tried where the schema is hard to fit. */
const triesMax = 8

/** Undefined where nothing that fits was found. */
export function generated({ schema, check, seed, given, story }: Wanted): unknown {
  for (let attempt = 0; attempt < triesMax; attempt += 1) {
    // The last half without likeness: a field may be bound to others in a way that only the faker follows.
    const isPlain = attempt >= triesMax / 2
    const value = made(schema, seed + attempt, given, story, isPlain)
    if (value !== undefined && check(value) === undefined) return value
  }
  return undefined
}

function made(schema: JsonSchema, seed: number, given: Wanted['given'], story: string, isPlain: boolean): unknown {
  faker.seed(seed)
  const likeness: Likeness = { faker, phrases: phrasesOf(story), story: capitalised(story) }
  try {
    return generateSync(prepared(schema, isPlain) as JsonSchema, {
      seed,
      maxDepth: 12,
      optionalsProbability: 0.8,
      formats,
      ...(!isPlain && {
        outputTransform: (value, part, path) =>
          typeof part === 'object' ? likened(value, part as JsonSchema, path, given, likeness) : value,
      }),
    })
  } catch {
    // The faker gives up on what contradicts itself.
    return undefined
  }
}

function likened(
  value: unknown,
  schema: JsonSchema,
  path: string,
  given: Wanted['given'],
  likeness: Likeness,
): unknown {
  const parts = path.split('/').slice(1)
  const name = parts.findLast((part) => !/^\d*$/.test(part)) ?? ''
  if ('const' in schema || 'enum' in schema) return value
  if (
    parts.length === 1 &&
    Object.hasOwn(given, name) &&
    typeof given[name] === typeof value &&
    typeof value !== 'object'
  )
    return given[name]
  if (typeof value === 'string' && !('format' in schema)) return textFor(name, schema, likeness) ?? value
  if (typeof value === 'number' && !Number.isInteger(value) && !('multipleOf' in schema)) return rounded(value, name)
  return value
}

/** Money and measures have two decimals, places four. */
function rounded(value: number, name: string): number {
  const decimals = /lat|lon|lng/i.test(name) ? 4 : 2
  return Number(value.toFixed(decimals))
}

/** Within one year that stands still, and at places that are nobody's. */
const formats: Record<string, (random: Random) => string> = {
  date: day,
  'date-time': (random) => `${day(random)}T${two(random.int(7, 18))}:${two(random.int(0, 59))}:00Z`,
  email: email,
  'idn-email': email,
  uri: address,
  iri: address,
  'uri-reference': address,
  hostname: (random) => `host-${random.int(1, 99)}.example.com`,
  ipv4: (random) => `192.0.2.${random.int(1, 254)}`,
}

function day(random: Random): string {
  return `2026-${two(random.int(1, 12))}-${two(random.int(1, 28))}`
}

function two(value: number): string {
  return String(value).padStart(2, '0')
}

function email(random: Random): string {
  return `person-${random.int(1, 999)}@example.com`
}

function address(random: Random): string {
  return `https://example.com/${random.int(1000, 9999)}`
}

/** What a made-up value may be asked to be at least. */
const sizesMax = { minLength: 10_000, minItems: 1000, minProperties: 1000 }

/**
 * The faker runs `patternProperties` in the runtime's RegExp, which must not see patterns of others. A list that may be
 * empty tells nothing: it gets an item, where that cannot go on forever.
 */
function prepared(schema: unknown, isPlain: boolean): unknown {
  if (Array.isArray(schema)) return schema.map((part) => prepared(part, isPlain))
  if (typeof schema !== 'object' || schema === null) return schema
  const { type, minItems, maxItems, items } = schema as { [name: string]: unknown }
  for (const [name, most] of Object.entries(sizesMax)) {
    if (Number((schema as Record<string, unknown>)[name]) > most) throw new Error(`${name} is too large to be made up`)
  }
  const isEmptyList = type === 'array' && minItems === undefined && maxItems !== 0 && items !== undefined
  const isEndless = isPlain || JSON.stringify(items)?.includes('"$ref"')
  const own = Object.entries(schema).filter(([name]) => name !== 'patternProperties')
  const parts = own.map(([name, part]) => [name, prepared(part, isPlain)])
  return { ...Object.fromEntries(parts), ...(isEmptyList && !isEndless && { minItems: 1 }) }
}
