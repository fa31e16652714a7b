/**
 * The costs of JSON Schemas of other people, counted before a schema is compiled, and while a value is held to it.
 * ajv's code cannot be interrupted, so each schema within another one says how many steps it takes.
 */

import { rangesOf } from './pattern-ranges.ts'

/** Ours: keywords of somebody else's JSON Schema, with the names and values in them; compiling so many takes 20 to 60 ms. Past it: a mock answers with an error, and a setup page cannot be used. */
export const schemaSizeMax = 1000

/**
 * Keywords that take as long to compile as a pattern does, besides one for ten of its characters, or as another
 * target of references; so a schema has at most 100 of them. Past it: as for `schemaSizeMax`.
 */
export const schemaSizePerPattern = 10
/**
 * Keywords whose schemas are for members that only a value names. The code repeats the way to such a member with each
 * error of its schema.
 */
const unnamedMembers = new Set([
  ...['additionalProperties', 'patternProperties', 'unevaluatedProperties', 'propertyNames'],
  ...['items', 'additionalItems', 'unevaluatedItems', 'contains'],
])
/** Such keywords around a schema that make a keyword in it count once more. Past it: as for `schemaSizeMax`. */
const unnamedPerKeyword = 4
/** Such keywords around a schema. Past it: as for `schemaSizeMax`. */
const unnamedMax = 32
/** Levels of JSON around a schema that make a keyword in it count once more. Past it: as for `schemaSizeMax`. */
const levelsPerKeyword = 16
/** Levels of JSON around a schema. Past it: as for `schemaSizeMax`. */
const levelsMax = 128

/** Characters of a name, or of a text in a schema, that take as long as another step. Past it: another step. */
const schemaPieceChars = 50
/** The same of a text that is checked: `minLength` and `maxLength` look at each. Past it: another step. */
const checkedPieceChars = 10

export type JsonSchema = Readonly<Record<string, unknown>>

/** Keywords whose schemas are compiled where something refers to them. */
const definitions = new Set(['$defs', 'definitions'])
/** Keywords that say nothing of a value. */
const annotations = new Set(['title', 'description', 'examples', 'default', '$comment', 'deprecated'])

interface Place {
  readonly value: unknown
  /** A schema, an object of schemas by their names, or neither. */
  readonly kind: 'schema' | 'named' | 'value'
  /** How many levels of JSON are around it. */
  readonly levels: number
  /** How many of these levels belong to keywords of `unnamedMembers`. */
  readonly unnamed: number
}

/**
 * The cost of compiling a schema: its keywords, the names and values in them, and more for those deep within, each
 * pattern, each target of references and long names: the code repeats the names on the way to each keyword. Infinite
 * for one that is nested too deeply. Ends soon past `schemaSizeMax`.
 */
export function schemaSize(schema: unknown): number {
  let size = 0
  const targetFor = referrer(schema)
  const targets = new Set<unknown>()
  const waiting: Place[] = []
  /** Schemas that are compiled by themselves, with all that is in them. */
  const units = new Set<unknown>()
  const addUnit = (value: unknown) => {
    if (!units.has(value)) waiting.push({ value, kind: 'schema', levels: 0, unnamed: 0 })
    units.add(value)
  }
  const addReference = (reference: string) => {
    const target = targetFor(reference) ?? reference
    if (!targets.has(target)) size += schemaSizePerPattern
    targets.add(target)
    addUnit(target)
  }
  addUnit(schema)
  for (let next = waiting.pop(); next !== undefined && size <= schemaSizeMax; next = waiting.pop()) {
    const { value, kind, levels, unnamed } = next
    if (levels > levelsMax || unnamed > unnamedMax) return Number.POSITIVE_INFINITY
    size += Math.ceil(Math.max(1, unnamed / unnamedPerKeyword, levels / levelsPerKeyword))
    if (typeof value === 'string') size += Math.floor(value.length / schemaPieceChars)
    if (Array.isArray(value)) {
      for (const part of value.slice(0, schemaSizeMax)) waiting.push({ value: part, kind, levels: levels + 1, unnamed })
      continue
    }
    for (const [name, part] of isObject(value) ? Object.entries(value) : []) {
      if (annotations.has(name) && typeof part !== 'object') continue
      size += Math.floor(name.length / schemaPieceChars)
      if (kind === 'schema') size += keywordSize(name, part)
      if (kind === 'schema' && isReference(name, part)) addReference(part)
      if (kind === 'schema' && definitions.has(name)) valuesIn(part).slice(0, schemaSizeMax).forEach(addUnit)
      else waiting.push(memberOf(next, name, part))
    }
  }
  return size
}

function memberOf({ kind, levels, unnamed }: Place, name: string, value: unknown): Place {
  const isUnnamed = kind === 'schema' && unnamedMembers.has(name)
  return { value, kind: kindOf(kind, name), levels: levels + 1, unnamed: unnamed + (isUnnamed ? 1 : 0) }
}

function kindOf(around: Place['kind'], name: string): Place['kind'] {
  if (around === 'schema') return schemas.has(name) ? 'schema' : namedSchemas.has(name) ? 'named' : 'value'
  return around === 'named' ? 'schema' : 'value'
}

const isReference = (name: string, part: unknown): part is string =>
  typeof part === 'string' && (name === '$ref' || name === '$dynamicRef')

/** How much longer a keyword takes than one. */
function keywordSize(name: string, part: unknown): number {
  if (name === 'pattern' || name === 'patternProperties') return patternSize(part)
  return name === 'dependentRequired' || name === 'dependencies' ? dependentSize(part) : 0
}

/**
 * Ranges and instructions of a pattern that take as long to compile as a keyword: a schema has 50,000 of them at most,
 * in some 20 ms.
 */
const rangesPerKeyword = 50

/** A pattern costs as much to compile as so many keywords. */
function patternSize(patterns: unknown): number {
  const texts = typeof patterns === 'string' ? [patterns] : Object.keys((patterns ?? {}) as object)
  return texts.reduce(
    (sum, text) =>
      sum + schemaSizePerPattern + Math.ceil(text.length / 10) + Math.ceil(rangesOf(text) / rangesPerKeyword),
    0,
  )
}

/** Names in a list that depends, the square of which takes as long to compile as so many keywords. */
const dependentNamesSquared = 200

/** The cost of lists of names that depend: the code compares each with all of its list. */
function dependentSize(lists: unknown): number {
  const lengths = valuesIn(lists).map((list) => (Array.isArray(list) ? list.length : 0))
  return lengths.reduce((sum, length) => sum + Math.floor(length ** 2 / dependentNamesSquared), 0)
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null

/** None of a text, which would be millions of letters. */
const valuesIn = (value: unknown): unknown[] => (isObject(value) ? Object.values(value) : [])

/** The values in a value, itself included, and the pieces of its texts. */
function partsOf(value: unknown): number {
  if (typeof value === 'string') return 1 + Math.floor(value.length / schemaPieceChars)
  if (typeof value !== 'object' || value === null) return 1
  return Object.values(value).reduce((sum: number, part) => sum + partsOf(part), 1)
}

/** Keywords whose values are schemas, by how they hold them (JSON Schema 2020-12, 10 and 11). */
const schemas = new Set([
  ...['additionalProperties', 'items', 'additionalItems', 'contains', 'not', 'if', 'then', 'else', 'propertyNames'],
  ...['unevaluatedItems', 'unevaluatedProperties', 'allOf', 'anyOf', 'oneOf', 'prefixItems'],
])
const namedSchemas = new Set([
  ...['properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas', 'dependencies'],
])
/** Other keywords that say something of a value, or name a schema. */
const otherKeywords = new Set([
  ...['type', 'enum', 'const', 'format', 'pattern', 'minLength', 'maxLength', 'multipleOf', 'nullable'],
  ...['minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum', 'required', 'dependentRequired'],
  ...['minItems', 'maxItems', 'uniqueItems', 'minContains', 'maxContains', 'minProperties', 'maxProperties'],
  ...['$ref', '$anchor'],
])

/**
 * In a schema without an `$id` within, dynamic references lead where others do (JSON Schema 2020-12, 8.2.3.2). ajv
 * compiles an anchor of theirs once for each around it.
 */
const staticNames: ReadonlyMap<string, string> = new Map([
  ['$dynamicRef', '$ref'],
  ['$dynamicAnchor', '$anchor'],
])

/** Ours: references of a schema times characters of its names, where it asks which properties or items were evaluated; compiling repeats them. Past it: as for `schemaSizeMax`. */
const evaluatedNamesMax = 100_000

/**
 * The schema with its steps in each schema within it (`stepKeyword`), and without other keywords than those of JSON
 * Schema: references would find schemas in them whose steps are not counted. Throws Error for an `$id` within, which
 * gives references another meaning, and for a reference that leads to no schema within. `isEvaluated`: whether it asks
 * which properties or items were evaluated.
 */
export function countedSchema(schema: JsonSchema): { readonly counted: JsonSchema; readonly isEvaluated: boolean } {
  const all = new Set<unknown>()
  const counted = counting(schema, all) as JsonSchema
  requireKnownReferences(counted, all)
  const parts = [...all] as Record<string, unknown>[]
  // ajv does not find an anchor of the whole schema.
  const { $anchor } = counted
  if ($anchor !== undefined) for (const part of parts) if (part['$ref'] === `#${$anchor}`) part['$ref'] = '#'
  const isEvaluated = parts.some((part) => 'unevaluatedProperties' in part || 'unevaluatedItems' in part)
  if (isEvaluated) requireFewEvaluated(parts)
  return { counted, isEvaluated }
}

/** Throws Error where compiling what references evaluate would take long: each repeats the names of its target. */
function requireFewEvaluated(parts: readonly Record<string, unknown>[]): void {
  const names = parts.reduce((sum, { properties }) => sum + Object.keys(properties ?? {}).join().length, 0)
  const references = parts.filter((part) => '$ref' in part).length
  if (references * names > evaluatedNamesMax)
    throw new Error('it has unevaluatedProperties or unevaluatedItems beside too many references and names')
}

/** `all`: receives each schema that is counted. */
function counting(schema: unknown, all: Set<unknown>): unknown {
  if (Array.isArray(schema)) return schema.map((one) => counting(one, all))
  if (typeof schema !== 'object' || schema === null) return schema
  if ('$id' in schema) throw new Error('it has an $id within: refer to $defs by #/$defs/NAME')
  const counted: Record<string, unknown> = { [stepKeyword]: stepsOf(schema) }
  for (const [given, part] of Object.entries(schema)) {
    const name = staticNames.get(given) ?? given
    if (name !== given && name in schema) throw new Error(`it has both ${name} and ${given} in one schema`)
    if (schemas.has(name)) counted[name] = counting(part, all)
    else if (otherKeywords.has(name)) counted[name] = part
    else if (namedSchemas.has(name) && typeof part === 'object' && part !== null)
      counted[name] = countingNamed(part, name, all)
  }
  all.add(counted)
  return counted
}

/** Schemas by their names; `dependencies` may have lists of names in their place. Anything else is left out. */
function countingNamed(named: object, keyword: string, all: Set<unknown>): object {
  const made = Object.entries(named).flatMap(([name, part]): [string, unknown][] => {
    if (Array.isArray(part)) return keyword === 'dependencies' ? [[name, part]] : []
    return typeof part === 'boolean' || (typeof part === 'object' && part !== null) ? [[name, counting(part, all)]] : []
  })
  return Object.fromEntries(made)
}

/**
 * The steps of a schema for a value as a whole (its keywords, and the names and values in them), and for each member,
 * item or piece of it. Each name that no property has is compared with all of them.
 */
export function stepsOf(schema: object): readonly [whole: number, each: number] {
  const lengthOf = (part: unknown) => (typeof part === 'object' && part !== null ? Object.keys(part).length : 0)
  const parts = Object.entries(schema)
  const whole = parts.map(([name, part]) => (name === 'const' || name === 'enum' ? partsOf(part) : 1 + lengthOf(part)))
  const { properties, patternProperties } = schema as Record<string, unknown>
  const compares = 'additionalProperties' in schema || 'unevaluatedProperties' in schema
  return [
    whole.reduce((sum, one) => sum + one, 1),
    parts.length + lengthOf(patternProperties) + (compares ? lengthOf(properties) : 0),
  ]
}

/** Throws Error for a reference that does not lead to one of all counted schemas: its steps would not be counted. */
function requireKnownReferences(schema: JsonSchema, all: ReadonlySet<unknown>): void {
  const parts = [...all] as Record<string, unknown>[]
  const anchors = new Set(parts.map(({ $anchor }) => $anchor))
  for (const { $ref: reference } of parts) {
    if (typeof reference !== 'string') continue
    const isAnchor = isAnchorReference.test(reference)
    const target = isAnchor ? undefined : targetOf(schema, reference)
    const isKnown = isAnchor ? anchors.has(reference.slice(1)) : typeof target === 'boolean' || all.has(target)
    if (!isKnown)
      throw new Error(`its reference ${JSON.stringify(reference.slice(0, 100))} leads to no schema within it`)
  }
}

const isAnchorReference = /^#[^/]/

/**
 * Finds what references in somebody's schema lead to, before it is counted: undefined for what is nothing within it.
 * Its anchors are looked for once, where one is named.
 */
function referrer(schema: unknown): (reference: string) => unknown {
  let anchors: Map<unknown, unknown> | undefined
  return (reference) => {
    if (!isAnchorReference.test(reference)) return targetOf(schema as JsonSchema, reference)
    anchors ??= anchorsIn(schema)
    return anchors.get(reference.slice(1))
  }
}

function anchorsIn(schema: unknown): Map<unknown, unknown> {
  const found = new Map<unknown, unknown>()
  const waiting: unknown[] = [schema]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { $anchor, $dynamicAnchor } = next as JsonSchema
    for (const anchor of [$anchor, $dynamicAnchor]) if (anchor !== undefined) found.set(anchor, next)
    for (const part of valuesIn(next)) if (isObject(part)) waiting.push(part)
  }
  return found
}

/** The value at a JSON pointer in a fragment; undefined if there is none. */
function targetOf(schema: JsonSchema, reference: string): unknown {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined
  let target: unknown = schema
  for (const part of reference.split('/').slice(1)) {
    const name = decodedPart(part)
    const isThere = typeof target === 'object' && target !== null && name !== undefined && Object.hasOwn(target, name)
    target = isThere ? (target as Record<string, unknown>)[name] : undefined
  }
  return target
}

/** A part of a JSON pointer in a URI fragment (RFC 6901, 6); undefined if it cannot be decoded. */
function decodedPart(part: string): string | undefined {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return undefined
  }
}

/** The keyword that says how many steps a schema takes. */
export const stepKeyword = 'x-postern-step'
/** Applying a schema takes as long as so many steps, whatever it has; an error that it makes is collected, too. */
export const applicationSteps = 32

/** How often a keyword may look at a value: once for each member, item or piece of a text. */
export function widthOf(value: unknown): number {
  if (typeof value === 'string') return Math.floor(value.length / checkedPieceChars)
  if (Array.isArray(value)) return value.length
  return typeof value === 'object' && value !== null ? Object.keys(value).length : 0
}
