/** The keywords of JSON Schema 2020-12 that say something of a value, and the kind of value that each has itself. */

export type JsonSchema = Readonly<Record<string, unknown>>
export type Schema = JsonSchema | boolean
/** Schemas, or other parts, by their names. */
export type Named<Part = Schema> = Readonly<Record<string, Part>>

export const isObject = (value: unknown): value is Named<unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const isOfType: Readonly<Record<string, (value: unknown) => boolean>> = {
  null: (value) => value === null,
  boolean: (value) => typeof value === 'boolean',
  string: (value) => typeof value === 'string',
  number: (value) => typeof value === 'number',
  integer: (value) => Number.isInteger(value),
  array: Array.isArray,
  object: isObject,
}

const isSchema = (value: unknown): value is Schema => typeof value === 'boolean' || isObject(value)
const isText = (value: unknown): value is string => typeof value === 'string'
const isNumber = (value: unknown): value is number => typeof value === 'number'
const isCount = (value: unknown) => Number.isInteger(value) && (value as number) >= 0
const areTexts = (value: unknown) => Array.isArray(value) && value.every(isText)
const isType = (value: unknown) => isText(value) && Object.hasOwn(isOfType, value)
const isTypes = (value: unknown) =>
  Array.isArray(value) && value.length > 0 && value.every(isType) && new Set(value).size === value.length

/** A kind of value that a keyword may have. */
interface Kind {
  readonly words: string
  readonly holds: (value: unknown) => boolean
  /** The same with `change` of each schema in it, which has a place behind the keyword; undefined for plain values. */
  readonly withSchemas?: (value: never, change: ChangeSchema) => unknown
}

type ChangeSchema = (schema: Schema, place: string) => unknown

const one: Kind = { words: 'a schema', holds: isSchema, withSchemas: (schema: Schema, change) => change(schema, '') }
const list: Kind = {
  words: 'a list of schemas',
  holds: (value) => Array.isArray(value) && value.length > 0 && value.every(isSchema),
  withSchemas: (schemas: readonly Schema[], change) => schemas.map((schema, index) => change(schema, `.${index}`)),
}
const named: Kind = {
  words: 'an object of schemas',
  holds: (value) => isObject(value) && Object.values(value).every(isSchema),
  withSchemas: (schemas: Named, change) =>
    Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, change(schema, `.${name}`)])),
}
/** A schema, or the names of other members, by the name of a member. */
const dependencies: Kind = {
  words: 'an object of schemas, or of lists of names',
  holds: (value) => isObject(value) && Object.values(value).every((part) => isSchema(part) || areTexts(part)),
  withSchemas: (parts: Named<unknown>, change) =>
    Object.fromEntries(
      Object.entries(parts).map(([name, part]) => [name, isSchema(part) ? change(part, `.${name}`) : part]),
    ),
}
const texts: Kind = { words: 'a list of texts', holds: areTexts }
const dependentTexts: Kind = {
  words: 'an object of lists of texts',
  holds: (value) => isObject(value) && Object.values(value).every(areTexts),
}
const text: Kind = { words: 'a text', holds: isText }
const count: Kind = { words: 'a whole number, at least 0', holds: isCount }
const number: Kind = { words: 'a number', holds: isNumber }
const flag: Kind = { words: 'true or false', holds: (value) => typeof value === 'boolean' }
const type: Kind = {
  words: `one of ${Object.keys(isOfType).join(', ')}, or a list of these, each once`,
  holds: (value) => isType(value) || isTypes(value),
}

const kindOf = (kind: Kind, ...keywords: string[]) => keywords.map((keyword) => [keyword, kind] as const)

/** By keyword. All others say nothing of a value. */
export const keywordKinds: ReadonlyMap<string, Kind> = new Map([
  ...kindOf(one, 'additionalProperties', 'unevaluatedProperties', 'propertyNames', 'items', 'unevaluatedItems'),
  ...kindOf(one, 'contains', 'not', 'if', 'then', 'else'),
  ...kindOf(list, 'allOf', 'anyOf', 'oneOf', 'prefixItems'),
  ...kindOf(named, 'properties', 'patternProperties', '$defs', 'definitions', 'dependentSchemas'),
  ...kindOf(dependencies, 'dependencies'),
  ...kindOf(texts, 'required'),
  ...kindOf(dependentTexts, 'dependentRequired'),
  ...kindOf(text, 'pattern', 'format', '$ref', '$dynamicRef', '$anchor', '$dynamicAnchor'),
  ...kindOf(count, 'minLength', 'maxLength', 'minItems', 'maxItems', 'minContains', 'maxContains'),
  ...kindOf(count, 'minProperties', 'maxProperties'),
  ...kindOf(number, 'minimum', 'maximum', 'exclusiveMinimum', 'exclusiveMaximum'),
  ...kindOf({ words: 'a number above 0', holds: (value) => isNumber(value) && value > 0 }, 'multipleOf'),
  ...kindOf(flag, 'uniqueItems', 'nullable'),
  ...kindOf({ words: 'a list', holds: Array.isArray }, 'enum'),
  ...kindOf({ words: 'a value', holds: () => true }, 'const'),
  ...kindOf(type, 'type'),
])

/** Characters of a name or text that are a part. */
const charactersPerPart = 50

/** The parts of what a keyword has, without those of schemas in it: names, values, and pieces of long texts. */
export function partsIn(kind: Kind, given: unknown, most: number): number {
  let parts = 0
  const waiting: unknown[] = [given]
  while (waiting.length > 0 && parts <= most) {
    const value = waiting.pop()
    parts += 1 + (isText(value) ? Math.floor(value.length / charactersPerPart) : 0)
    if (typeof value !== 'object' || value === null) continue
    // A schema counts by itself.
    const isList = kind === dependencies && Array.isArray(value)
    const isInside = kind.withSchemas !== undefined && value !== given && !isList
    if (isInside) continue
    if (Array.isArray(value)) waiting.push(...value.slice(0, most + 1))
    else
      for (const [name, part] of Object.entries(value).slice(0, most + 1)) {
        parts += Math.floor(name.length / charactersPerPart)
        waiting.push(part)
      }
  }
  return parts
}
