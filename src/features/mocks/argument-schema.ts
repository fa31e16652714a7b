/**
 * JSON Schema (2020-12) of a tool: checks arguments and results. Patterns are run by re2js in linear time, like those
 * of policies. One that RE2 does not know, or that is too costly, is not looked at in arguments; of a result nobody
 * could say that it fits.
 */

import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { RE2JS } from 're2js'
import { argumentErrorsShownMax, mockPatternCostMax } from '../../limits.ts'
import { patternProblem } from '../../policy/patterns.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

/** What is wrong with a value, with its place in it; undefined for one that is as the schema says. */
export type Check = (value: unknown) => string | undefined

/** What patterns may still cost, in instructions times characters: one of them is cheap, and values are many. */
interface Budget {
  left: number
}

/** Searched, not anchored, as JSON Schema has it. Past the budget nothing matches. */
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
    // ajv takes two patterns with the same text for one.
    toString: () => pattern,
  }
}

/** By schema, which is read anew with its server. */
const known = { arguments: new WeakMap<JsonSchema, Check>(), result: new WeakMap<JsonSchema, Check>() }

/** The same, compiled once. */
export function knownCheckOf(schema: JsonSchema, name: 'arguments' | 'result'): Check {
  const kept = known[name].get(schema)
  if (kept !== undefined) return kept
  const check = checkOf(schema, name)
  known[name].set(schema, check)
  return check
}

/** Nobody could say of a result that it fits: RE2 does not know a pattern of its schema. */
export class UnknownPattern extends Error {
  override readonly name = 'UnknownPattern'
}

/**
 * Throws UnknownPattern, and what ajv throws for a schema that cannot be used; `isStrict`: for one too that only
 * looks as if it could.
 */
export function checkOf(schema: JsonSchema, name: 'arguments' | 'result', { isStrict = false } = {}): Check {
  // Whatever draft it names, it is read as 2020-12; an id would clash with that of the next tool.
  const { $schema: _, $id: __, ...rest } = schema
  // What `#` refers to.
  const own = { ...rest, $id: 'tool:schema' }
  const unknown = new Set<string>()
  const budget: Budget = { left: Number.POSITIVE_INFINITY }
  const made = (allErrors: boolean) => ajv({ allErrors, budget, onUnknown: (pattern) => unknown.add(pattern) })
  const instance = made(true)
  // The first says it; the others say it again for each form that a keyword may have.
  const [wrong] = isStrict && instance.validateSchema(own) !== true ? (instance.errors ?? []) : []
  if (wrong !== undefined) throw new Error(inWords(wrong, 'schema'))
  const ofSmall = instance.compile(own)
  let ofLarge: ValidateFunction | undefined
  if (name === 'result' && unknown.size > 0) {
    throw new UnknownPattern(`RE2 does not know the pattern ${[...unknown].join(' ')}`)
  }
  return (value) => {
    budget.left = mockPatternCostMax
    // Of a large value the first mistake is told: it may have one for each of its parts.
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

const valueCharsSmall = 16 * 1024

interface AjvOptions {
  readonly allErrors: boolean
  readonly budget: Budget
  readonly onUnknown: (pattern: string) => void
}

/** One for each compiled schema: what one tool defines, another does not know. */
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
  // The package's own compares each item with each other one.
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

/** By object, as long as its call is there: each part is looked at once, however deep lists stand in each other. */
const digests = new WeakMap<object, string>()

/** The same for values that are equal as JSON. */
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
