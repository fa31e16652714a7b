/**
 * Holds values to JSON Schemas (2020-12) of other people: a tool's arguments and results, the configuration of a
 * server. A schema is read once, in steps, and then interpreted: each look at a value counts, so that neither a schema
 * nor a value takes longer than a bound. Patterns run on re2js in linear time, as those of policies do. A pattern that
 * RE2 does not support, or that is too costly, is ignored for arguments. For results it is an error (UnknownPattern),
 * because a generated result could not be checked against it.
 */

import { shorten } from './cut-text.ts'
import { Evaluation, type KeywordRule, patternOf, type ReadSchema, TooCostly } from './evaluation.ts'
import { costToCompile } from './patterns.ts'
import { type JsonSchema, keywordKinds, partsIn, type Schema } from './schema-keywords.ts'
import { rules } from './schema-rules.ts'
import { drained } from './steps.ts'

/** Ours: keywords of somebody else's JSON Schema, with the names and values in them. Past it: a mock answers with an error, and a setup page cannot be used. */
export const schemaSizeMax = 1000
/** Instructions of all patterns of a schema; compiling so many takes 40 ms. Past it: as for `schemaSizeMax`. */
const schemaProgramSizeMax = 20_000
/** Ranges of characters that take the memory of an instruction: a Unicode class has hundreds. */
const rangesPerInstruction = 4
/** Levels of schemas within a schema. Past it: as for `schemaSizeMax`. */
const levelsMax = 128
/** Cost of a part of a schema, in the unit of `sliceCost`. */
const partCost = 20
/** Characters of a place in an error. Past it: it is cut. */
const placeCharsMax = 200

/** The errors of a value, with their paths, as text; undefined for a valid value. Takes some 50 ms at most. */
export type Check = (value: unknown) => string | undefined

/** A result schema has a pattern that RE2 does not support, so results cannot be validated. */
export class UnknownPattern extends Error {
  override readonly name = 'UnknownPattern'
}

type CheckedName = 'arguments' | 'result' | 'input'

/** `readingSchema`, at once. */
export function checkOf(schema: JsonSchema, name: CheckedName): Check {
  return drained(readingSchema(schema, name))
}

/**
 * Reads a schema, in steps. `name`: the root of paths in errors. Throws UnknownPattern, and Error for a schema that is
 * wrong or too large.
 */
export function* readingSchema(schema: JsonSchema, name: CheckedName): Generator<number, Check> {
  // Always read as 2020-12, whatever draft it names. Its own `$id` is dropped: references are resolved within the
  // schema.
  const { $schema: _, $id: __, ...root } = schema
  const read = yield* reading(root)
  const unknown = [...read.patterns].flatMap(([text, { isKnown }]) => (isKnown ? [] : [text]))
  if (name === 'result' && unknown.length > 0)
    throw new UnknownPattern(`RE2 does not know the pattern ${unknown.join(' ')}`)
  return (value) => {
    const evaluation = new Evaluation(read, name)
    try {
      return evaluation.check(root, value, undefined) ? undefined : evaluation.errors.join('; ')
    } catch (error) {
      if (error instanceof TooCostly) return `${name}: ${error.message}`
      throw error
    }
  }
}

function* reading(root: JsonSchema): Generator<number, ReadSchema> {
  const rulesOf = new Map<unknown, [string, KeywordRule][]>()
  const anchors = new Map<unknown, Schema>()
  const references = new Set<string>()
  const patterns = new Map<string, ReturnType<typeof patternOf>>()
  let [size, programSize, isEvaluated] = [0, 0, false]
  const waiting = [{ schema: root, place: 'schema', level: 0 }]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const { schema, place, level } = next
    if (level > levelsMax) throw new Error('its schemas are nested too deeply')
    const own = [...rules].filter(([keyword]) => keyword in schema)
    rulesOf.set(schema, own)
    if ('$id' in schema) throw new Error('it has an $id within: refer to $defs by #/$defs/NAME')
    for (const [keyword, given] of Object.entries(schema)) {
      const kind = keywordKinds.get(keyword)
      if (kind === undefined) continue
      const parts = partsIn(kind, given, schemaSizeMax)
      yield parts * partCost
      size += parts
      if (size > schemaSizeMax)
        throw new Error(`it has too many keywords, names and values; at most ${schemaSizeMax} are checked`)
      if (!kind.holds(given)) throw new Error(`${shorten(`${place}.${keyword}`, placeCharsMax)} must be ${kind.words}`)
      if (keyword === '$ref' || keyword === '$dynamicRef') references.add(given as string)
      if (keyword === '$anchor' || keyword === '$dynamicAnchor') anchors.set(`#${given}`, schema)
      isEvaluated ||= keyword.startsWith('unevaluated')
      for (const text of patternsIn(keyword, given)) {
        yield costToCompile(text)
        const pattern = patternOf(text)
        patterns.set(text, pattern)
        programSize += pattern.size + pattern.ranges / rangesPerInstruction
        if (programSize > schemaProgramSizeMax)
          throw new Error('its patterns are too large: use fewer repetitions and Unicode classes')
      }
      kind.withSchemas?.(given as never, (part, name) => {
        if (typeof part !== 'boolean')
          waiting.push({ schema: part, place: `${place}.${keyword}${name}`, level: level + 1 })
        return part
      })
    }
  }
  const targets = new Map<string, Schema>()
  for (const reference of references) {
    const target = anchors.get(reference) ?? targetOf(root, reference)
    if (typeof target !== 'boolean' && !rulesOf.has(target))
      throw new Error(`its reference ${JSON.stringify(reference.slice(0, placeCharsMax))} leads to no schema within it`)
    targets.set(reference, target as Schema)
  }
  return { rules: rulesOf as ReadSchema['rules'], targets, patterns, isEvaluated }
}

function patternsIn(keyword: string, given: unknown): string[] {
  if (keyword === 'pattern') return [given as string]
  return keyword === 'patternProperties' ? Object.keys(given as object) : []
}

/** The value at a JSON pointer in a URI fragment (RFC 6901, 6); undefined if there is none. */
export function targetOf(root: JsonSchema, reference: string): unknown {
  if (reference !== '#' && !reference.startsWith('#/')) return undefined
  let target: unknown = root
  for (const part of reference.split('/').slice(1)) {
    if (typeof target !== 'object' || target === null) return undefined
    try {
      const name = decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
      target = Object.hasOwn(target, name) ? (target as Record<string, unknown>)[name] : undefined
    } catch {
      return undefined
    }
  }
  return target
}
