/** Schemas of shapes that occur again and again. */

import { type TLiteral, type TObject, type TProperties, type TSchema, Type } from '@sinclair/typebox'

export const OptionalText = Type.Optional(Type.String())

/** An object that has these properties, and no others. */
export function closedObject<P extends TProperties>(properties: P): TObject<P> {
  return Type.Object(properties, { additionalProperties: false })
}

/** An object that has these properties, and others that are kept as they are. */
export function openObject<P extends TProperties>(properties: P): TObject<P> {
  return Type.Object(properties, { additionalProperties: true })
}

/** The schema with every object and every list of words in it open: its writer may be of a later version. */
export function opened<S extends TSchema>(schema: S): S {
  const copyOf = (part: unknown): unknown => {
    if (Array.isArray(part)) return part.map(copyOf)
    if (typeof part !== 'object' || part === null) return part
    const { anyOf = [] } = part as { anyOf?: readonly { const?: unknown }[] }
    if (anyOf.length > 0 && anyOf.every((one) => typeof one.const === 'string')) return Type.String()
    // Spread for the symbols by which TypeBox knows a schema.
    const copy: Record<string, unknown> = { ...part }
    for (const [key, value] of Object.entries(copy)) copy[key] = copyOf(value)
    if (copy['additionalProperties'] === false) copy['additionalProperties'] = true
    return copy
  }
  return copyOf(schema) as S
}

export function nullable<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()])
}

export function oneOf<const T extends readonly string[]>(values: T, options: { readonly errorMessage?: string } = {}) {
  const literals = values.map((value) => Type.Literal(value)) as { [I in keyof T]: TLiteral<T[I]> }
  return Type.Union(literals as unknown as [TLiteral<T[number]>], options)
}
