/** Checks a value by a compiled schema, and describes where and how it fails. */

import { FormatRegistry, type Static, type TSchema } from '@sinclair/typebox'
import { type TypeCheck, TypeCompiler } from '@sinclair/typebox/compiler'
import { type ValueError, type ValueErrorIterator, ValueErrorType } from '@sinclair/typebox/value'
import { didYouMean } from './near-name.ts'

/** Errors of a variant that are compared to find the intended one; a list may have thousands. Past it: not compared. */
const unionErrorsReadMax = 50

/** `place`: such as `policy[0].ttl`; '' for the value itself. `message` continues the sentence that `place` begins. */
export interface Problem {
  readonly place: string
  readonly message: string
}

export interface Validator<T> {
  readonly isValid: (value: unknown) => value is T
  /** The problems of an invalid value, at most `limit`, in document order. */
  readonly problems: (value: unknown, limit?: number) => Problem[]
  /** The first of them. */
  readonly firstProblem: (value: unknown) => Problem
}

FormatRegistry.Set('date-time', isDateTime)
FormatRegistry.Set('uuid', (text) => /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text))

/** A date and time of RFC 3339. The runtime takes the 30th of February for a day of March. */
export function isDateTime(text: string): boolean {
  if (!dateTime.test(text) || Number.isNaN(Date.parse(text))) return false
  const day = text.slice(0, 10)
  return new Date(`${day}T00:00:00Z`).toISOString().startsWith(day)
}
const dateTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/

/** A validator, compiled at its first use: most commands use few schemas. */
export function validatorOf<S extends TSchema>(schema: S): Validator<Static<S>> {
  let compiled: TypeCheck<S> | undefined
  const check = () => {
    compiled ??= TypeCompiler.Compile(schema)
    return compiled
  }
  function problems(value: unknown, limit = 20): Problem[] {
    const found: Problem[] = []
    const seen = new Set<string>()
    for (const error of check().Errors(value)) {
      if (isMiscounted(error)) continue
      const problem = describeError(bestUnionError(error))
      // TypeBox also reports a missing field as one of the wrong type. The first report is clearer.
      if (!seen.has(problem.place)) found.push(problem)
      seen.add(problem.place)
      if (found.length >= limit) break
    }
    return found
  }

  return {
    isValid: (value): value is Static<S> => check().Check(value) || isOnlyMiscounted(check().Errors(value)),
    problems,
    firstProblem: (value) => problems(value, 1)[0] ?? { place: '', message: 'cannot be read' },
  }
}

/** JSON Schema's maxLength counts code points; TypeBox counts UTF-16 units. Such an error may be wrong. */
function isMiscounted({ type, value, schema }: ValueError): boolean {
  if (typeof value !== 'string') return false
  if (type === ValueErrorType.StringMaxLength) return [...value].length <= schema['maxLength']
  const variants: TSchema[] = type === ValueErrorType.Union ? (schema['anyOf'] ?? []) : []
  return variants.some(({ maxLength, ...rest }) => {
    const isShort = maxLength !== undefined && [...value].length <= maxLength
    return isShort && TypeCompiler.Compile(rest as TSchema).Check(value)
  })
}

/** A value that TypeBox refused without an error stays refused. */
function isOnlyMiscounted(errors: ValueErrorIterator): boolean {
  const first = errors.First()
  return first !== undefined && isMiscounted(first) && Iterator.from(errors).every(isMiscounted)
}

/** A problem as one line: `policy[0].ttl: at most 24 hours`. */
export function problemText(problem: Problem): string {
  return problem.place === '' ? problem.message : `${problem.place}: ${problem.message}`
}

/** The same for the body of a request. */
export function bodyProblemText(problem: Problem): string {
  return problem.place === '' ? `the body ${problem.message}` : problemText(problem)
}

/** `['policy', 0, 'a b']` -> `policy[0]["a b"]`. */
export function placeOf(parts: readonly (string | number)[]): string {
  let place = ''
  for (const part of parts) {
    if (typeof part === 'number') place += `[${part}]`
    else if (/^[A-Za-z_$][\w$-]*$/.test(part)) place += place === '' ? part : `.${part}`
    else place += `[${JSON.stringify(part)}]`
  }
  return place
}

/**
 * For a union, the error of the variant that was probably intended: of the same JSON type, with the same discriminator
 * (`type`, `state`), and with the fewest missing or unknown fields.
 */
function bestUnionError(error: ValueError): ValueError {
  if (error.type !== ValueErrorType.Union) return error
  const variants: TSchema[] = error.schema['anyOf'] ?? []
  if (variants.every((variant) => 'const' in variant)) return error
  const candidates = error.errors.flatMap((found, index) => {
    const variant = variants[index]
    if (variant === undefined || !sameJsonType(variant, error.value)) return []
    const errors = [...Iterator.from(found).take(unionErrorsReadMax)].map(bestUnionError)
    const discriminator = errors.find((one) => one.type === ValueErrorType.Literal && one.path !== error.path)
    const strangers = errors.filter(({ type }) => presence.includes(type)).length
    const [first] = errors
    return first === undefined ? [] : [{ first, discriminator, strangers }]
  })
  const [best] = candidates
    .filter(({ discriminator }) => discriminator === undefined)
    .sort((a, b) => a.strangers - b.strangers)
  if (best !== undefined) return best.first
  const discriminators = candidates.flatMap(({ discriminator }) => discriminator ?? [])
  const [discriminator] = discriminators
  if (discriminator === undefined) return error
  // No variant has this discriminator: list the possible values.
  const values = discriminators.map((one) => JSON.stringify(one.schema['const']))
  return { ...discriminator, schema: { ...discriminator.schema, errorMessage: `must be one of ${values.join(', ')}` } }
}

/** The errors of a field that is missing, or is not known. */
const presence = [ValueErrorType.ObjectRequiredProperty, ValueErrorType.ObjectAdditionalProperties]

function sameJsonType(schema: TSchema, value: unknown): boolean {
  if ('const' in schema) return typeof schema['const'] === typeof value
  if (schema['anyOf'] !== undefined) return schema['anyOf'].some((variant: TSchema) => sameJsonType(variant, value))
  const type = schema['type'] === 'integer' ? 'number' : schema['type']
  if (value === null) return type === 'null'
  return Array.isArray(value) ? type === 'array' : typeof value === type
}

function describeError(error: ValueError): Problem {
  const { schema, type } = error
  const parts = pointerParts(error.path)
  const name = parts.at(-1)
  if (type === ValueErrorType.ObjectAdditionalProperties) {
    if (schema['keyMessage'] !== undefined) return { place: placeOf(parts), message: schema['keyMessage'] }
    const known = Object.keys(schema['properties'] ?? {})
    const advice = didYouMean(String(name), known) || `; known are ${known.join(', ')}`
    return { place: placeOf(parts.slice(0, -1)), message: `has the unknown field ${JSON.stringify(name)}${advice}` }
  }
  return { place: placeOf(parts), message: complaint(error) }
}

function complaint({ schema, type, value }: ValueError): string {
  const known = complaints[type]?.(schema)
  if (known !== undefined) return known
  if (value === undefined) return 'is missing'
  if (typeof schema['errorMessage'] === 'string') return schema['errorMessage']
  if (type === ValueErrorType.StringFormat) return 'must be a date and time like 2026-03-02T09:14:07.000Z'
  if (type === ValueErrorType.Literal) return `must be ${JSON.stringify(schema['const'])}`
  return `must be ${type === ValueErrorType.Union ? choices(schema) : kind(schema)}`
}

/** The errors with one text for every schema, also for one with a message of its own. */
const complaints: Partial<Record<ValueErrorType, (schema: TSchema) => string>> = {
  [ValueErrorType.ObjectRequiredProperty]: () => 'is missing',
  [ValueErrorType.ObjectMinProperties]: () => 'is empty: leave it out, or say what it restricts',
  [ValueErrorType.ObjectMaxProperties]: ({ maxProperties }) => `at most ${maxProperties} entries`,
  [ValueErrorType.ArrayMinItems]: () => 'is an empty list: give at least one item, or leave an optional list out',
  [ValueErrorType.ArrayMaxItems]: ({ maxItems }) => `at most ${maxItems} items`,
  [ValueErrorType.StringMaxLength]: ({ maxLength }) => `at most ${maxLength} characters`,
  [ValueErrorType.StringMinLength]: () => 'is empty',
}

function choices(schema: TSchema): string {
  const variants: TSchema[] = schema['anyOf'] ?? []
  const words = variants.map((variant) => ('const' in variant ? JSON.stringify(variant['const']) : kind(variant)))
  return [...new Set(words)].join(' or ')
}

function kind({ type }: TSchema): string {
  return type === undefined ? 'something else' : (kinds[type] ?? `a ${type}`)
}

const kinds: Readonly<Record<string, string>> = {
  object: 'an object',
  array: 'a list',
  integer: 'a whole number',
  null: 'null',
}

/** Parts of a JSON pointer. Digits are taken as array indexes. */
function pointerParts(pointer: string): (string | number)[] {
  return pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'))
    .map((part) => (/^(?:0|[1-9]\d*)$/.test(part) ? Number(part) : part))
}
