/**
 * Validates values against JSON Schemas (2020-12) of other people: a tool's arguments and results, the configuration of
 * a server. Patterns run on re2js in linear time, as those of policies do. A pattern that RE2 does not support, or that
 * is too costly, is ignored for arguments. For results it is an error (UnknownPattern), because a generated result
 * could not be checked against it.
 */

import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { schemaStepsMax } from '../limits.ts'
import { shorten } from './cut-text.ts'
import { compile, isFound, patternProblem } from './patterns.ts'
import {
  applicationSteps,
  countedSchema,
  type JsonSchema,
  schemaSize,
  schemaSizeMax,
  stepKeyword,
  type stepsOf,
  widthOf,
} from './schema-costs.ts'

/** Ours: characters of a text that may fit a `format`; for some formats, the time grows with the square of the length. Past it: the text fits no `format`. */
export const formatCharsMax = 2048
/** Ours: cost of all patterns of a schema on one value, in instructions times characters; about 40 ms. Past it: the arguments are refused. */
export const mockPatternCostMax = 1_000_000

/**
 * Instructions of all patterns of a JSON Schema of others; compiling so many takes 40 ms. Past it: as for
 * `schemaSizeMax`.
 */
const schemaProgramSizeMax = 20_000
/** Ours: characters of a name in a value that is held to a JSON Schema; every error repeats the names on its way. Past it: the value is refused. */
export const checkedNameCharsMax = 2048
/** Cost of a character that is held to a `format`, in the unit of patterns. Past it: as for `mockPatternCostMax`. */
const formatCharacterCost = 10
/** Characters of the text that make each of them cost one more: that of `url` takes the square of its length. */
const formatCharsPerCost = 64
/** Size (`schemaSize`) of a schema of which all errors of a value are looked for: it is compiled once more. Past it: as for `schemaStepsForAllErrors`. */
const allErrorsSizeMax = 250
/** Steps in which all errors of a value are looked for. Past it: only the first is given. */
const schemaStepsForAllErrors = 20_000
/** Errors in arguments that a response lists. Past it: omitted. */
const argumentErrorsShownMax = 10
/** Characters of one of these errors. Past it: it is cut. */
const argumentErrorCharsMax = 400

/** The errors of a value, with their paths, as text; undefined for a valid value. */
export type Check = (value: unknown) => string | undefined

/** The effort that may still be spent on one value. */
interface Budget {
  /** By patterns, in instructions times characters. */
  left: number
  /** By keywords: those of each schema that is applied, for each member, item or piece of what it is applied to. */
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
      return budget.left >= 0 && (program === undefined || isFound(program, text))
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
  const instance = ajv({ allErrors: false, isEvaluated: true }, { ...noBudget, digests: new Map() }, new Set())
  return (schema) => {
    // Only the first error is shown; the others repeat it for each form that a keyword may take.
    const [wrong] = instance.validateSchema(schema) === true ? [] : (instance.errors ?? [])
    if (wrong !== undefined) throw new Error(inWords(wrong, 'schema'))
  }
}

type CheckedName = 'arguments' | 'result' | 'input'

/**
 * Compiles a schema, which takes up to 50 ms: the user of this file has it done in turns, and keeps the check
 * (`kept-checks.ts`). `name` is the root of the paths in errors. `requireValid`: as `createSchemaCheck` makes it.
 * Throws UnknownPattern, and Error for a schema that is too large, or that ajv cannot compile.
 */
export function checkOf(schema: JsonSchema, name: CheckedName, requireValid = (_: JsonSchema) => {}): Check {
  const size = schemaSize(schema)
  if (size === Number.POSITIVE_INFINITY) throw new Error('its schemas are nested too deeply')
  if (size > schemaSizeMax)
    throw new Error(
      `it has ${size} keywords and names, counting deep ones several times; at most ${schemaSizeMax} are checked`,
    )
  // Always read as 2020-12, whatever draft it names. Its own `$id` is dropped: references are resolved within the
  // schema.
  const { $schema: _, $id: __, ...rest } = schema
  requireValid(rest)
  const { counted, isEvaluated } = countedSchema(rest)
  // The base of references such as `#/$defs/…`.
  const own = { ...counted, $id: 'tool:schema' }
  const unknown = new Set<string>()
  const budget: Budget = { ...noBudget, digests: new Map() }
  const first = ajv({ allErrors: false, isEvaluated }, budget, unknown).compile(own)
  let all: ValidateFunction | undefined
  if (name === 'result' && unknown.size > 0) {
    throw new UnknownPattern(`RE2 does not know the pattern ${[...unknown].join(' ')}`)
  }
  /** Runs a check within so many steps, and so much left for patterns. Throws TooCostly past the steps. */
  const run = (check: ValidateFunction, value: unknown, steps: number, left: number): boolean => {
    budget.left = left
    budget.steps = steps
    return check(value)
  }
  /** All errors of a value, or the first where looking for all would take too long. */
  const errorsOf = (value: unknown): ErrorObject[] => {
    const { errors } = first
    if (size > allErrorsSizeMax) return errors ?? []
    try {
      all ??= ajv({ allErrors: true, isEvaluated }, budget, unknown).compile(own)
      if (!run(all, value, schemaStepsForAllErrors, budget.left) && budget.left >= 0) return all.errors ?? []
    } catch (error) {
      if (!(error instanceof TooCostly)) throw error
    }
    return errors ?? []
  }
  return (value) => {
    try {
      if (hasLongName(value)) return `${name}: have a name of more than ${checkedNameCharsMax} characters`
      if (run(first, value, schemaStepsMax, mockPatternCostMax)) return undefined
      if (budget.left < 0) return `${name}: take too long to check against the patterns of the schema: send less text`
      return errorsOf(value)
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

/** Whether an object within the value has a name of more than `checkedNameCharsMax` characters. */
function hasLongName(value: unknown): boolean {
  const waiting: unknown[] = [value]
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (typeof next !== 'object' || next === null) continue
    const parts: readonly unknown[] = Array.isArray(next) ? next : Object.values(next)
    for (const part of parts) if (typeof part === 'object') waiting.push(part)
    if (!Array.isArray(next) && Object.keys(next).some((name) => name.length > checkedNameCharsMax)) return true
  }
  return false
}

/**
 * A new instance for each schema, so that no definitions are shared between tools. Patterns that RE2 does not support
 * are added to `unknown`.
 */
function ajv(
  { allErrors, isEvaluated }: { readonly allErrors: boolean; readonly isEvaluated: boolean },
  budget: Budget,
  unknown: Set<string>,
): Ajv2020 {
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
    // It writes names of others as they are, and once for each keyword.
    logger: false,
    allErrors,
    // Otherwise what is referred to is compiled once for each reference, and all of it is optimized.
    inlineRefs: false,
    code: { regExp: Object.assign(engine, { code: 'patternOf' }), optimize: false },
  })
  // Otherwise it writes a line for each property of each reference's target: 1.2 s of compiling, and 70 MB.
  instance.opts.unevaluated = isEvaluated
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
    schemaType: 'array',
    errors: false,
    before: '$ref',
    validate([whole, each]: ReturnType<typeof stepsOf>, value: unknown) {
      budget.steps -= applicationSteps + whole + each * widthOf(value)
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
      budget.left -= (text.length + 1) * (isOfDocuments ? 1 : formatCharacterCost + text.length / formatCharsPerCost)
      return budget.left >= 0 && fits(text) === true
    })
  }
}

/** A digest of an object or list takes as long as so many steps; that of any other value a quarter. */
const digestSteps = 100

/**
 * Equal for values that are equal as JSON, regardless of key order. The content of a short one is not hashed. Throws
 * TooCostly when the budget is used up.
 */
function digestOf(value: unknown, budget: Budget): string {
  const isPlain = typeof value !== 'object' || value === null
  budget.steps -= isPlain ? digestSteps / 4 : digestSteps
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
function inWords(error: ErrorObject, name: string): string {
  return shorten(wholeWords(error, name), argumentErrorCharsMax)
}

function wholeWords({ instancePath, keyword, params, message = 'does not fit the schema' }: ErrorObject, name: string) {
  const place = [name, ...instancePath.split('/').slice(1)].join('.')
  if (keyword === 'additionalProperties')
    return `${place} has an unknown field ${JSON.stringify(params['additionalProperty'])}`
  if (keyword === 'enum') return `${place} must be one of ${JSON.stringify(params['allowedValues'])}`
  return `${place} ${message.replace('must NOT', 'must not')}`
}
