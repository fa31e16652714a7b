/**
 * Validates values against JSON Schemas (2020-12) of other people: a tool's arguments and results, the configuration of
 * a server. Patterns run on re2js in linear time, as those of policies do. A pattern that RE2 does not support, or that
 * is too costly, is ignored for arguments. For results it is an error (UnknownPattern), because a generated result
 * could not be checked against it.
 */

import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { schemaStepsMax } from '../limits.ts'
import { rangesOf } from './pattern-ranges.ts'
import { compile, patternProblem } from './patterns.ts'

/** Ours: keywords of somebody else's JSON Schema, with the names and values in them; compiling so many takes 20 to 60 ms. Past it: a mock answers with an error, and a setup page cannot be used. */
export const schemaSizeMax = 1000

/** Ours: characters of a text that may fit a `format`; for some formats, the time grows with the square of the length. Past it: the text fits no `format`. */
export const formatCharsMax = 2048
/** Ours: cost of all patterns of a schema on one value, in instructions times characters; about 40 ms. Past it: the arguments are refused. */
export const mockPatternCostMax = 1_000_000

/**
 * Keywords that take as long to compile as a pattern does, besides one for ten of its characters, or as another
 * target of references; so a schema has at most 100 of them. Past it: as for `schemaSizeMax`.
 */
export const schemaSizePerPattern = 10
/**
 * Instructions of all patterns of a JSON Schema of others; compiling so many takes 40 ms. Past it: as for
 * `schemaSizeMax`.
 */
const schemaProgramSizeMax = 20_000
/** Characters of a text that count as another part of a value. Past it: another one. */
const schemaPieceChars = 250
/** Cost of a character that is held to a `format`, in the unit of patterns. Past it: as for `mockPatternCostMax`. */
const formatCharacterCost = 10
/** Steps of a check up to which all errors of a value are looked for. Past it: only the first is. */
const schemaStepsForAllErrors = 20_000
/** Errors in arguments that a response lists. Past it: omitted. */
const argumentErrorsShownMax = 10

export type JsonSchema = Readonly<Record<string, unknown>>

/** The errors of a value, with their paths, as text; undefined for a valid value. */
export type Check = (value: unknown) => string | undefined

/** The effort that may still be spent on one value. */
interface Budget {
  /** By patterns, in instructions times characters. */
  left: number
  /** By keywords: the size of the schema for each part of the value, and for each reference that is followed. */
  steps: number
  /**
   * Digests by object, so that nested lists with `uniqueItems` do not compute those of inner values repeatedly. Emptied
   * after each value: collecting millions of entries of a WeakMap stopped everything for over 100 ms.
   */
  readonly digests: Map<object, string>
}

/**
 * A pattern that matches anywhere in the text, as JSON Schema requires. An unsupported pattern matches every text. Once
 * the budget is used up nothing matches.
 */
export function patternOf(pattern: string, budget: Pick<Budget, 'left'> = { left: mockPatternCostMax }) {
  const { program, size } = patternProblem(pattern) === undefined ? compile(pattern) : unsupported
  return {
    size,
    test(text: string): boolean {
      budget.left -= size * (text.length + 1)
      return budget.left >= 0 && (program?.test(text) ?? true)
    },
    // ajv identifies a pattern by this text.
    toString: () => pattern,
  }
}

/** A result schema has a pattern that RE2 does not support, so results cannot be validated. */
export class UnknownPattern extends Error {
  override readonly name = 'UnknownPattern'
}

const unsupported = { program: undefined, size: 0 }

const noBudget = { left: Number.POSITIVE_INFINITY, steps: Number.POSITIVE_INFINITY }

/** A value has too many parts for its schema: checking it would take too long. */
class TooCostly extends Error {}

/** Holds schemas to the meta-schema, which takes 20 ms to compile: once for all. The check throws Error. */
export function createSchemaCheck(): (schema: JsonSchema) => void {
  const instance = ajv(false, { ...noBudget, digests: new Map() }, 0, new Set())
  return (schema) => {
    // Only the first error is shown; the others repeat it for each form that a keyword may take.
    const [wrong] = instance.validateSchema(schema) === true ? [] : (instance.errors ?? [])
    if (wrong !== undefined) throw new Error(inWords(wrong, 'schema'))
  }
}

type CheckedName = 'arguments' | 'result' | 'input'

/**
 * Compiles a schema, which takes up to 50 ms: the user of this file has it done in turns, and keeps the check
 * (`kept-checks.ts`). `name` is the root of the paths in errors. `requireValid`: as `createSchemaCheck` makes it. Throws
 * UnknownPattern, and Error for a schema that is too large, or that ajv cannot compile.
 */
export function checkOf(schema: JsonSchema, name: CheckedName, requireValid = (_: JsonSchema) => {}): Check {
  const size = schemaSize(schema)
  if (size > schemaSizeMax) throw new Error(`it has ${size} keywords and names; at most ${schemaSizeMax} are checked`)
  // Always read as 2020-12, whatever draft it names. Its own `$id` is dropped: references are resolved within the
  // schema.
  const { $schema: _, $id: __, ...rest } = schema
  requireValid(rest)
  // The base of references such as `#/$defs/…`.
  const own = { ...(countedReferences(rest) as object), $id: 'tool:schema' }
  const unknown = new Set<string>()
  const budget: Budget = { ...noBudget, digests: new Map() }
  const instance = ajv(false, budget, size, unknown)
  const first = instance.compile(own)
  let all: ValidateFunction | undefined
  if (name === 'result' && unknown.size > 0) {
    throw new UnknownPattern(`RE2 does not know the pattern ${[...unknown].join(' ')}`)
  }
  return (value) => {
    budget.left = mockPatternCostMax
    const cost = partsOf(value) * size
    budget.steps = schemaStepsMax - cost
    try {
      if (budget.steps < 0) throw new TooCostly()
      if (first(value)) return undefined
      if (budget.left < 0) return `${name}: take too long to check against the patterns of the schema: send less text`
      let { errors } = first
      // There might be an error for each part of the value and each keyword.
      if (cost <= schemaStepsForAllErrors) {
        all ??= ajv(true, budget, size, unknown).compile(own)
        budget.left = mockPatternCostMax
        budget.steps = schemaStepsMax
        if (!all(value)) errors = all.errors
      }
      return (errors ?? [])
        .slice(0, argumentErrorsShownMax)
        .map((error) => inWords(error, name))
        .join('; ')
    } catch (error) {
      if (error instanceof TooCostly || error instanceof RangeError)
        return `${name}: are too large to check by this schema: send fewer values`
      // ajv makes code that fails, of some schemas with `patternProperties` beside `anyOf`.
      return `${name}: cannot be checked by this schema: simplify its patternProperties, or what is beside them`
    } finally {
      budget.digests.clear()
    }
  }
}

/** Keywords that say nothing of a value. */
const annotations = new Set(['title', 'description', 'examples', 'default', '$comment', 'deprecated'])

/**
 * The cost of compiling a schema: its keywords, the names and values in them, and more for each pattern and each target
 * of references. Ends soon past `schemaSizeMax`.
 */
export function schemaSize(schema: unknown): number {
  let size = 0
  const targets = new Set<string>()
  const waiting: unknown[] = [schema]
  for (let value = waiting.pop(); value !== undefined && size <= schemaSizeMax; value = waiting.pop()) {
    size += 1
    if (Array.isArray(value)) waiting.push(...value.slice(0, schemaSizeMax))
    else if (typeof value === 'object' && value !== null) {
      for (const [name, part] of Object.entries(value)) {
        if (annotations.has(name) && typeof part !== 'object') continue
        if (name === 'pattern' || name === 'patternProperties') size += patternSize(part)
        if (name === '$ref' && typeof part === 'string' && !targets.has(part)) {
          targets.add(part)
          size += schemaSizePerPattern
        }
        waiting.push(part ?? 0)
      }
    }
  }
  return size
}

/** A pattern costs as much to compile as so many keywords. */
function patternSize(patterns: unknown): number {
  const texts = typeof patterns === 'string' ? [patterns] : Object.keys((patterns ?? {}) as object)
  return texts.reduce(
    (sum, text) => sum + schemaSizePerPattern + Math.ceil(text.length / 10) + Math.ceil(rangesOf(text) / 100),
    0,
  )
}

/** The values in a value, itself included; a long text is as many as it has pieces. Ends soon past `schemaStepsMax`. */
function partsOf(value: unknown): number {
  let parts = 0
  const waiting: unknown[] = [value]
  while (waiting.length > 0 && parts <= schemaStepsMax) {
    const next = waiting.pop()
    parts += 1
    if (typeof next === 'string') parts += Math.floor(next.length / schemaPieceChars)
    if (typeof next === 'object' && next !== null) for (const part of Object.values(next)) waiting.push(part)
  }
  return parts
}

/**
 * The schema with a step beside each reference: a schema that refers to itself twice may look at one value more often
 * than there are atoms. The values of `const` and `enum` are not schemas.
 */
function countedReferences(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(countedReferences)
  if (typeof schema !== 'object' || schema === null) return schema
  const { $ref, $dynamicRef } = schema as Record<string, unknown>
  const isReference = typeof $ref === 'string' || typeof $dynamicRef === 'string'
  const parts = Object.entries(schema).map(([name, part]) =>
    name === 'const' || name === 'enum' ? [name, part] : [name, countedReferences(part)],
  )
  return Object.fromEntries(isReference ? [[stepKeyword, true], ...parts] : parts)
}

const stepKeyword = 'x-postern-step'
/** Following a reference takes as long as so many keywords, besides those of the schema. */
const referenceSteps = 100

/**
 * A new instance for each schema, so that no definitions are shared between tools. `size`: `schemaSize` of the schema.
 * Patterns that RE2 does not support are added to `unknown`.
 */
function ajv(allErrors: boolean, budget: Budget, size: number, unknown: Set<string>): Ajv2020 {
  let programSize = 0
  const engine = (pattern: string) => {
    if (patternProblem(pattern) !== undefined) unknown.add(pattern)
    const made = patternOf(pattern, budget)
    programSize += made.size
    if (programSize > schemaProgramSizeMax) throw new Error('its patterns are too large: shorten their repetitions')
    return made as unknown as RegExp
  }
  const instance = new Ajv2020({
    strict: false,
    validateSchema: false,
    addUsedSchema: false,
    allErrors,
    // Otherwise what is referred to is compiled once for each reference, and all of it is optimized.
    inlineRefs: false,
    code: { regExp: Object.assign(engine, { code: 'patternOf' }), optimize: false },
  })
  addFormats.default(instance, { mode: 'fast' })
  boundFormats(instance, budget)
  // ajv's own implementation compares all pairs of items, which is quadratic; this one compares digests.
  instance.removeKeyword('uniqueItems')
  instance.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    errors: false,
    error: { message: 'must not have the same item twice' },
    validate: (isAsked: boolean, items: readonly unknown[]) =>
      !isAsked || new Set(items.map((item) => digestOf(item, budget))).size === items.length,
  })
  instance.addKeyword({
    keyword: stepKeyword,
    schemaType: 'boolean',
    errors: false,
    before: '$ref',
    validate() {
      budget.steps -= size + referenceSteps
      if (budget.steps < 0) throw new TooCostly()
      return true
    },
  })
  return instance
}

/**
 * Formats are the runtime's regular expressions, whose time may be the square of a text's length. A longer text fits no
 * format but those that any text fits, and each look costs as a pattern does.
 */
function boundFormats(instance: Ajv2020, budget: Budget): void {
  for (const [name, format] of Object.entries(instance.formats)) {
    const { validate = format, type } = format as { validate?: unknown; type?: string }
    if (type === 'number' || (!(validate instanceof RegExp) && typeof validate !== 'function')) continue
    const fits = validate instanceof RegExp ? (text: string) => validate.test(text) : validate
    // A document may be in it, and its time is that of the length.
    const isOfDocuments = name === 'byte'
    instance.addFormat(name, (text: string) => {
      if (text.length > formatCharsMax && !isOfDocuments) return false
      budget.left -= (text.length + 1) * (isOfDocuments ? 1 : formatCharacterCost)
      return budget.left >= 0 && fits(text) === true
    })
  }
}

/** A digest of an object or list takes as long as so many steps; that of any other value a tenth. */
const digestSteps = 120

/**
 * Equal for values that are equal as JSON, regardless of key order. The content of a short one is not hashed. Throws
 * TooCostly when the budget is used up.
 */
function digestOf(value: unknown, budget: Budget): string {
  const isPlain = typeof value !== 'object' || value === null
  budget.steps -= isPlain ? digestSteps / 10 : digestSteps
  if (budget.steps < 0) throw new TooCostly()
  if (isPlain) return JSON.stringify(value)
  const { digests } = budget
  const known = digests.get(value)
  if (known !== undefined) return known
  const isList = Array.isArray(value)
  const parts = isList
    ? value.map((item) => digestOf(item, budget))
    : Object.entries(value)
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([key, one]) => `${JSON.stringify(key)}:${digestOf(one, budget)}`)
  const text = parts.join()
  const content = text.length <= 64 ? text : `#${Bun.SHA256.hash(text, 'base64')}`
  const digest = isList ? `[${content}]` : `{${content}}`
  digests.set(value, digest)
  return digest
}

/** An ajv error as text, with the path in dot notation. */
function inWords({ instancePath, keyword, params, message = 'does not fit the schema' }: ErrorObject, name: string) {
  const place = [name, ...instancePath.split('/').slice(1)].join('.')
  if (keyword === 'additionalProperties')
    return `${place} has an unknown field ${JSON.stringify(params['additionalProperty'])}`
  if (keyword === 'enum') return `${place} must be one of ${JSON.stringify(params['allowedValues'])}`
  return `${place} ${message.replace('must NOT', 'must not')}`
}
