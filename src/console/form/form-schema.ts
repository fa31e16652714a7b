/** JSON Schemas as a form reads them: in one piece, with a first value, and what is certainly wrong with a value. */

import { isMultiple } from '../../schema/is-multiple.ts'
import { asObject, isNumber, numberOf } from '../json.ts'

export interface Schema {
  readonly [keyword: string]: unknown
  readonly type?: string | readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly required?: readonly string[]
  readonly items?: boolean | Schema
  readonly prefixItems?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly allOf?: readonly Schema[]
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly nullable?: boolean
  readonly title?: string
  readonly description?: string
  readonly default?: unknown
  readonly examples?: readonly unknown[]
  readonly format?: string
  readonly readOnly?: boolean
  readonly writeOnly?: boolean
  readonly $ref?: string
}

/** References and parts that are followed for one schema. Past it: its value is edited as JSON. */
const followedMax = 100

/** Schemas that are visited for a first value. Past it: members are left out. */
const visitedMax = 1000
/** Levels of objects in a first value. Past it: members are left out. */
const levelsMax = 8

const isSchema = (value: unknown): value is Schema => typeof value === 'object' && value !== null

/** The part of the document that a reference names. */
function named(ref: string, root: Schema): Schema | undefined {
  const path = /^#((?:\/(?:\$defs|definitions)\/.+)?)$/.exec(ref)?.[1]
  if (path === undefined) return undefined
  let at: unknown = root
  for (const part of path.split('/').slice(1).map(unescaped))
    at = isSchema(at) && Object.hasOwn(at, part) ? at[part] : undefined
  return isSchema(at) ? at : undefined
}

const unescaped = (part: string) => {
  try {
    return decodeURIComponent(part).replaceAll('~1', '/').replaceAll('~0', '~')
  } catch {
    return part
  }
}

/**
 * A schema with its reference followed and the parts of `allOf` put into it, without keywords of another shape.
 * The targets of its references are appended to `targets`.
 */
export function whole(schema: Schema, root: Schema, targets: Schema[] = [], left = { count: followedMax }): Schema {
  left.count -= 1
  if (left.count < 0) return {}
  const { $ref, allOf, ...own } = schema
  const target = typeof $ref === 'string' ? named($ref, root) : undefined
  if (target !== undefined) targets.push(target)
  const parts = [...(target === undefined ? [] : [target]), ...(Array.isArray(allOf) ? allOf.filter(isSchema) : [])]
  return parts
    .map((part) => whole(part, root, targets, left))
    .reduceRight((sum, part) => joined(part, sum), shaped(own))
}

const isText = (value: unknown) => typeof value === 'string'
const shapes: Readonly<Record<string, (value: unknown) => boolean>> = {
  ...{ title: isText, description: isText, format: isText, items: isAnySchema, additionalProperties: isAnySchema },
  ...{ enum: Array.isArray, examples: Array.isArray, anyOf: Array.isArray, oneOf: Array.isArray },
  prefixItems: (value) => Array.isArray(value) && value.every(isSchema),
  required: (value) => Array.isArray(value) && value.every(isText),
  type: (value) => isText(value) || (Array.isArray(value) && value.every(isText)),
}

function isAnySchema(value: unknown): boolean {
  return typeof value === 'boolean' || isSchema(value)
}

/** Strangers write schemas: a keyword that has another shape says nothing. */
function shaped(schema: Schema): Schema {
  const said = Object.entries(schema).filter(([name, value]) => shapes[name]?.(value) ?? true)
  const { properties, ...others } = Object.fromEntries(said) as Schema
  if (!isSchema(properties)) return others
  const members = Object.entries<unknown>(properties).map(([name, one]) => [name, one === true ? {} : one] as const)
  const kept = members.filter((member): member is [string, Schema] => isSchema(member[1]))
  return { ...others, properties: Object.fromEntries(kept) }
}

/** `second` wins where both say something; members and required names are those of both. */
export function joined(first: Schema, second: Schema): Schema {
  const required = [...(first.required ?? []), ...(second.required ?? [])]
  const properties = { ...first.properties, ...second.properties }
  return {
    ...{ ...first, ...second },
    ...(required.length > 0 && { required: [...new Set(required)] }),
    ...(Object.keys(properties).length > 0 && { properties }),
  }
}

const kinds = ['object', 'array', 'string', 'number', 'integer', 'boolean', 'null'] as const
export type Kind = (typeof kinds)[number] | 'enum' | 'json'

const typesOf = ({ type }: Schema) => [type ?? []].flat().filter((one) => one !== 'null')

/** How a value of this schema is edited. Of a list of types: the one besides null. */
export function kindOf(schema: Schema): Kind {
  if (schema.enum !== undefined || schema.const !== undefined) return 'enum'
  const [type, ...others] = typesOf(schema)
  if (type !== undefined) return kinds.find((kind) => kind === type && others.length === 0) ?? 'json'
  if (schema.type !== undefined) return 'null'
  return schema.properties === undefined ? 'json' : 'object'
}

/** The kinds of value among which somebody chooses: of `anyOf`, `oneOf` or a list of types. Empty: there is no choice. */
export function variantsOf(schema: Schema): readonly Schema[] {
  const variants = (schema.anyOf ?? schema.oneOf)?.filter(isSchema)
  if (variants !== undefined) return variants
  const types = typesOf(schema)
  return types.length > 1 ? types.map((type) => ({ ...schema, type })) : []
}

/** Whether null is a value, beside those of its kind. */
export const isNullable = ({ type, nullable }: Schema) =>
  nullable === true || (Array.isArray(type) && type.includes('null') && type.length > 1)

/** All values of a schema that has a fixed list of them: boolean, null, enum or const. */
export function choicesOf(schema: Schema): readonly unknown[] {
  const kind = kindOf(schema)
  if (kind === 'boolean') return [true, false]
  return kind === 'null' ? [null] : (schema.enum ?? [schema.const])
}

/** A schema's default, or its members that are required or have one. Undefined: the value is left out at first. */
export function firstValue(
  given: Schema,
  root: Schema,
  isRequired: boolean,
  visited = { level: 0, left: { count: visitedMax } },
): unknown {
  const { level, left } = visited
  left.count -= 1
  const schema = whole(given, root)
  if (schema.default !== undefined) return schema.default
  if (isRequired && schema.const !== undefined) return schema.const
  if (isRequired && kindOf(schema) === 'array') return []
  if (level > levelsMax || left.count < 0) return undefined
  const [variant] = isRequired && kindOf(schema) === 'json' ? variantsOf(schema) : []
  if (variant !== undefined) return firstValue(variant, root, true, { level: level + 1, left })
  if (kindOf(schema) !== 'object') return undefined
  const members = Object.entries(schema.properties ?? {}).flatMap(([name, member]) => {
    const value = firstValue(member, root, schema.required?.includes(name) === true, { level: level + 1, left })
    return value === undefined ? [] : [[name, value]]
  })
  return isRequired || members.length > 0 ? Object.fromEntries(members) : undefined
}

/** The value of an item whose field is empty: a text may be, and of any other the field says that it is required. */
export const emptied = (schema: Schema, root: Schema) => (kindOf(whole(schema, root)) === 'string' ? '' : null)

/** The value of an item that somebody adds. */
export function addedValue(schema: Schema, root: Schema): unknown {
  const first = firstValue(schema, root, true)
  if (first !== undefined) return first
  return { object: {}, array: [], string: '', boolean: false }[kindOf(whole(schema, root)) as string] ?? null
}

/**
 * Finds the kind of a value. The variant that names most of the value's members wins; among equals, the one that
 * somebody has picked, or else the first. If the value fits no variant, the first one wins.
 */
export function variantOf(value: unknown, variants: readonly Schema[], root: Schema, picked?: number): number {
  const named = variants.map((one) => {
    const schema = whole(one, root)
    if (!mayBe(value, schema, root)) return -1
    return Object.keys(asObject(value) ?? {}).filter((name) => Object.hasOwn(schema.properties ?? {}, name)).length
  })
  const most = Math.max(...named)
  return picked !== undefined && named[picked] === most ? picked : named.indexOf(most)
}

function mayBe(value: unknown, schema: Schema, root: Schema): boolean {
  if (value === undefined) return true
  const kind = kindOf(schema)
  if (kind === 'enum') return choicesOf(schema).some((one) => JSON.stringify(one) === JSON.stringify(value))
  if (kind === 'json') return true
  if (kind === 'number' || kind === 'integer') return isNumber(value)
  if (kind === 'null') return value === null
  if (kind === 'array') return Array.isArray(value)
  if (kind !== 'object') return typeof value === kind
  const object = asObject(value)
  if (object === undefined) return false
  return Object.entries(schema.properties ?? {}).every(
    ([name, member]) => object[name] === undefined || mayBe(object[name], whole(member, root), root),
  )
}

/** The words for a value that is certainly wrong; the server decides everything else. */
export function wrongWith(schema: Schema, value: unknown, isRequired: boolean): string | undefined {
  if (value === undefined) return isRequired ? 'is required' : undefined
  if (typeof value === 'string') {
    const length = [...value].length
    const [least, most] = [numberOf(schema['minLength']), numberOf(schema['maxLength'])]
    if (least !== undefined && length < least) return `must have at least ${least} characters`
    if (most !== undefined && length > most) return `must have at most ${most} characters`
  }
  const given = numberOf(value)
  if (given !== undefined) {
    const [least, most] = [numberOf(schema['minimum']), numberOf(schema['maximum'])]
    const [above, below] = [numberOf(schema['exclusiveMinimum']), numberOf(schema['exclusiveMaximum'])]
    if (kindOf(schema) === 'integer' && !Number.isInteger(given)) return 'must be a whole number'
    if (least !== undefined && given < least) return `must be at least ${least}`
    if (most !== undefined && given > most) return `must be at most ${most}`
    if (above !== undefined && given <= above) return `must be more than ${above}`
    if (below !== undefined && given >= below) return `must be less than ${below}`
    const step = numberOf(schema['multipleOf'])
    if (step !== undefined && step > 0 && !isMultiple(given, step)) return `must be a multiple of ${step}`
  }
  return undefined
}

/** The bounds of a schema in words: hints, since the server decides. */
export function boundsOf(schema: Schema): string {
  const range = (least: string, most: string, of: string) => {
    const [from, to] = [numberOf(schema[least]), numberOf(schema[most])]
    if (from === undefined && to === undefined) return []
    const words = from === undefined ? `at most ${to}` : to === undefined ? `at least ${from}` : `${from} to ${to}`
    return [`${words}${of}`]
  }
  const one = (name: string, words: string) => (schema[name] === undefined ? [] : [`${words} ${String(schema[name])}`])
  const example = exampleTimes[schema.format ?? '']
  return [
    ...(example === undefined ? [] : [`like ${example}`]),
    ...range('minimum', 'maximum', ''),
    ...one('exclusiveMinimum', 'more than'),
    ...one('exclusiveMaximum', 'less than'),
    ...one('multipleOf', 'a multiple of'),
    ...range('minLength', 'maxLength', ' characters'),
    ...range('minItems', 'maxItems', ' items'),
    ...one('pattern', 'matches'),
  ].join(', ')
}

const exampleTimes: Readonly<Record<string, string>> = { 'date-time': '2030-01-31T12:00:00Z', time: '12:00:00Z' }

/** The JSON Pointer of a member. */
export const pointer = (at: string, name: string | number) =>
  `${at}/${String(name).replaceAll('~', '~0').replaceAll('/', '~1')}`

/** A schema and all that its variants, and theirs, may be. */
function variants(given: Schema, root: Schema, depth = 0): readonly Schema[] {
  const schema = whole(given, root)
  if (depth > 4) return [schema]
  const choices = [...(schema.anyOf ?? []), ...(schema.oneOf ?? [])].filter(isSchema)
  return [schema, ...choices.flatMap((one) => variants(one, root, depth + 1))]
}

const isSecret = ({ format, writeOnly }: Schema) => format === 'password' || writeOnly === true

/** The value without what may be secret in it: it is neither kept nor shown. */
export function withoutSecrets(value: unknown, given: Schema, root: Schema, depth = 0): unknown {
  if (typeof value !== 'object' || value === null || isNumber(value)) return value
  // So deep that nobody knows what it is.
  if (depth > 16) return undefined
  const parts = variants(given, root)
  const kept = (member: unknown, name: string, index: number): unknown => {
    const schemas = parts.flatMap(({ properties, items, prefixItems, additionalProperties, patternProperties }) => {
      if (Array.isArray(value)) return [prefixItems?.[index] ?? items]
      if (Object.hasOwn(properties ?? {}, name)) return [properties?.[name]]
      return [additionalProperties, ...(isSchema(patternProperties) ? Object.values(patternProperties) : [])]
    })
    const known = schemas.filter(isSchema)
    if (known.some((one) => variants(one, root).some(isSecret))) return undefined
    return known.reduce((left, one) => withoutSecrets(left, one, root, depth + 1), member)
  }
  if (Array.isArray(value)) return value.map((item, index) => kept(item, '', index) ?? null)
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, kept(member, name, 0)]))
}
