/**
 * Validates values against JSON Schemas (2020-12) of other people: a tool's arguments and results, the configuration of
 * a server. Patterns run on re2js in linear time, as
 * those of policies do. A pattern that RE2 does not support, or that is too costly, is ignored for arguments. For
 * results it is an error (UnknownPattern), because a generated result could not be checked against it.
 */

import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { RE2JS } from 're2js'
import { argumentErrorsShownMax, mockPatternCostMax } from '../limits.ts'
import { patternProblem } from './patterns.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

/** The errors of a value, with their paths, as text; undefined for a valid value. */
export type Check = (value: unknown) => string | undefined

/** The remaining cost that patterns may take on one value, in instructions times characters. */
interface Budget {
  left: number
}

/**
 * A pattern that matches anywhere in the text, as JSON Schema requires. An unsupported pattern matches every text. Once
 * the budget is used up nothing matches.
 */
export function patternOf(
  pattern: string,
  budget: Budget = { left: mockPatternCostMax },
): { test(text: string): boolean; toString(): string } {
  const program = patternProblem(pattern) === undefined ? RE2JS.compile(pattern) : undefined
  const size = program?.programSize() ?? 0
  return {
    test(text) {
      budget.left -= size * (text.length + 1)
      return budget.left >= 0 && (program?.test(text) ?? true)
    },
    // ajv identifies a pattern by this text.
    toString: () => pattern,
  }
}

/** Keyed by schema object; schemas are parsed anew with each version of the registry, so old entries are collected. */
const known = { arguments: new WeakMap<JsonSchema, Check>(), result: new WeakMap<JsonSchema, Check>() }

/** `checkOf`, compiled once per schema object. */
export function knownCheckOf(schema: JsonSchema, name: 'arguments' | 'result'): Check {
  const kept = known[name].get(schema)
  if (kept !== undefined) return kept
  const check = checkOf(schema, name)
  known[name].set(schema, check)
  return check
}

/** A result schema has a pattern that RE2 does not support, so results cannot be validated. */
export class UnknownPattern extends Error {
  override readonly name = 'UnknownPattern'
}

/**
 * Compiles a schema. `name` is the root of the paths in errors. `isStrict` also validates the schema itself, against
 * the meta-schema. Throws UnknownPattern, and Error for a schema that ajv cannot compile.
 */
export function checkOf(schema: JsonSchema, name: 'arguments' | 'result' | 'input', { isStrict = false } = {}): Check {
  // Always read as 2020-12, whatever draft it names. Its own `$id` is dropped: references are resolved within the
  // schema.
  const { $schema: _, $id: __, ...rest } = schema
  // The base of references such as `#/$defs/…`.
  const own = { ...rest, $id: 'tool:schema' }
  const unknown = new Set<string>()
  const budget: Budget = { left: Number.POSITIVE_INFINITY }
  const made = (allErrors: boolean) => ajv({ allErrors, budget, onUnknown: (pattern) => unknown.add(pattern) })
  const instance = made(true)
  // Only the first error is shown; the others repeat it for each form that a keyword may take.
  const [wrong] = isStrict && instance.validateSchema(own) !== true ? (instance.errors ?? []) : []
  if (wrong !== undefined) throw new Error(inWords(wrong, 'schema'))
  const ofSmall = instance.compile(own)
  let ofLarge: ValidateFunction | undefined
  if (name === 'result' && unknown.size > 0) {
    throw new UnknownPattern(`RE2 does not know the pattern ${[...unknown].join(' ')}`)
  }
  return (value) => {
    budget.left = mockPatternCostMax
    // For a large value, validation stops at the first error: there might be one for each of its parts.
    const isLarge = JSON.stringify(value).length > valueCharsSmall
    if (isLarge) ofLarge ??= made(false).compile(own)
    const validate = isLarge && ofLarge !== undefined ? ofLarge : ofSmall
    if (validate(value)) return undefined
    if (budget.left < 0) return `${name}: take too long to be held to the patterns of the schema: send less text`
    return (validate.errors ?? [])
      .slice(0, argumentErrorsShownMax)
      .map((error) => inWords(error, name))
      .join('; ')
  }
}

/** Characters of JSON up to which all errors of a value are collected. */
const valueCharsSmall = 16 * 1024

interface AjvOptions {
  readonly allErrors: boolean
  readonly budget: Budget
  readonly onUnknown: (pattern: string) => void
}

/** A new instance for each schema, so that no definitions are shared between tools. */
function ajv({ allErrors, budget, onUnknown }: AjvOptions): Ajv2020 {
  const engine = (pattern: string) => {
    if (patternProblem(pattern) !== undefined) onUnknown(pattern)
    return patternOf(pattern, budget) as unknown as RegExp
  }
  const instance = new Ajv2020({
    strict: false,
    validateSchema: false,
    addUsedSchema: false,
    allErrors,
    code: { regExp: Object.assign(engine, { code: 'patternOf' }) },
  })
  addFormats.default(instance, { mode: 'fast' })
  // ajv's own implementation compares all pairs of items, which is quadratic; this one compares digests.
  instance.removeKeyword('uniqueItems')
  instance.addKeyword({
    keyword: 'uniqueItems',
    type: 'array',
    schemaType: 'boolean',
    errors: false,
    error: { message: 'must not have the same item twice' },
    validate: (isAsked: boolean, items: readonly unknown[]) =>
      !isAsked || new Set(items.map(digestOf)).size === items.length,
  })
  return instance
}

/** Digests by object, so that nested lists with `uniqueItems` do not compute those of inner values repeatedly. */
const digests = new WeakMap<object, string>()

/** Equal for values that are equal as JSON, regardless of key order. */
function digestOf(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const known = digests.get(value)
  if (known !== undefined) return known
  const parts = Array.isArray(value)
    ? value.map(digestOf)
    : Object.keys(value)
        .sort()
        .map((key) => `${JSON.stringify(key)}:${digestOf((value as Record<string, unknown>)[key])}`)
  const digest = `${Array.isArray(value) ? '[' : '{'}${Bun.SHA256.hash(parts.join(), 'base64')}`
  digests.set(value, digest)
  return digest
}

/** An ajv error as text, with the path in dot notation. */
function inWords(
  { instancePath, keyword, params, message = 'is not as it should be' }: ErrorObject,
  name: string,
): string {
  const place = [name, ...instancePath.split('/').slice(1)].join('.')
  if (keyword === 'additionalProperties')
    return `${place} has an unknown field ${JSON.stringify(params['additionalProperty'])}`
  if (keyword === 'enum') return `${place} must be one of ${JSON.stringify(params['allowedValues'])}`
  return `${place} ${message.replace('must NOT', 'must not')}`
}
