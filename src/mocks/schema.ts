/**
 * JSON Schema (2020-12) of a tool: checks arguments and results. Patterns are run by re2js in linear time, like those
 * of policies. One that RE2 does not know, or that is too costly, is not looked at in arguments; of a result nobody could
 * say that it fits.
 */

import { Ajv2020, type ErrorObject } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { RE2JS } from 're2js'
import { patternProblem } from '../policy/rpc-match.ts'

export type JsonSchema = Readonly<Record<string, unknown>>

/** What is wrong with a value, with its place in it; undefined for one that is as the schema says. */
export type Check = (value: unknown) => string | undefined

/** Searched, not anchored, as JSON Schema has it. */
export function patternOf(pattern: string): { test(text: string): boolean; toString(): string } {
  const program = patternProblem(pattern) === undefined ? RE2JS.compile(pattern) : undefined
  return {
    test: (text) => program?.test(text) ?? true,
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

/** Throws UnknownPattern, and what ajv throws for a schema that cannot be used; `isStrict`: for one too that only looks as if it could. */
export function checkOf(schema: JsonSchema, name: 'arguments' | 'result', { isStrict = false } = {}): Check {
  // Whatever draft it names, it is read as 2020-12; an id would clash with that of the next tool.
  const { $schema: _, $id: __, ...own } = schema
  const unknown = new Set<string>()
  const instance = ajv((pattern) => unknown.add(pattern))
  // The first says it; the others say it again for each form that a keyword may have.
  const [wrong] = isStrict && instance.validateSchema(own) !== true ? (instance.errors ?? []) : []
  if (wrong !== undefined) throw new Error(inWords(wrong, 'schema'))
  const validate = instance.compile(own)
  if (name === 'result' && unknown.size > 0) {
    throw new UnknownPattern(`RE2 does not know the pattern ${[...unknown].join(' ')}`)
  }
  return (value) =>
    validate(value)
      ? undefined
      : (validate.errors ?? [])
          .slice(0, errorsShownMax)
          .map((error) => inWords(error, name))
          .join('; ')
}

/** More than a model reads at once. */
const errorsShownMax = 10

/** One for each compiled schema: what one tool defines, another does not know. */
function ajv(onUnknown: (pattern: string) => void): Ajv2020 {
  const engine = (pattern: string) => {
    if (patternProblem(pattern) !== undefined) onUnknown(pattern)
    return patternOf(pattern) as unknown as RegExp
  }
  const instance = new Ajv2020({
    strict: false,
    validateSchema: false,
    addUsedSchema: false,
    allErrors: true,
    code: { regExp: Object.assign(engine, { code: 'patternOf' }) },
  })
  addFormats.default(instance, { mode: 'fast' })
  return instance
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
