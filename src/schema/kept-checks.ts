/** Compiled schemas, kept by their content: a schema is parsed anew with each version of the directory. */

import { LRUCache } from 'lru-cache'
import { type Check, checkOf } from './json-schema.ts'
import { type JsonSchema, schemaSize, schemaSizeMax } from './schema-costs.ts'

/**
 * Cost of a keyword in the unit of `sliceCost`, 25 microseconds: once to write its code, and once to run that first, for
 * which the runtime compiles it. Past it: as for `sliceCost`.
 */
const schemaCompileCost = 600
/**
 * Keywords of the schemas that are kept compiled, about five kilobytes each. Past it: the least recently used one is
 * compiled again.
 */
const keptSchemasSizeMax = 15_000
/** Characters of a schema's JSON that take as much memory as a keyword: texts that describe it cost nothing to compile. */
const charactersPerKeyword = 1250

/** Compiling a schema takes up to 50 ms, and fifty calls may name the same. */
const kept = new LRUCache<string, { readonly check: Check; readonly size: number }>({
  maxSize: keptSchemasSizeMax,
  sizeCalculation: ({ size }) => size + 10,
})

/** `checkOf` as work in turns, compiled once for each content. Throws what `checkOf` throws. */
export function* keptCheckOf(schema: JsonSchema, name: 'arguments' | 'result' | 'input'): Generator<number, Check> {
  const size = schemaSize(schema)
  // It is not compiled, and may have megabytes to write and hash.
  if (size > schemaSizeMax) return checkOf(schema, name)
  const json = JSON.stringify(schema)
  const key = `${name} ${Bun.SHA256.hash(json, 'base64')}`
  const known = kept.get(key)
  if (known !== undefined) return known.check
  yield size * schemaCompileCost
  const check = checkOf(schema, name)
  kept.set(key, { check, size: size + Math.ceil(json.length / charactersPerKeyword) })
  yield size * schemaCompileCost
  return check
}
