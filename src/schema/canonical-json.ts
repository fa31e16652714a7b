/** JSON in canonical form (RFC 8785): members in the order of their names' UTF-16 units, no white space. */

import { sliceCost } from '../limits.ts'
import { isContainer } from './json.ts'
import { valuesPerStep } from './steps.ts'

/** Writes a value that `JSON.parse` returned, in steps. `written`: counts the values for all calls for one text. */
export function* writingCanonical(value: unknown, written = { values: 0 }): Generator<number, string> {
  if (!isContainer(value)) return JSON.stringify(value) ?? 'null'
  const isList = Array.isArray(value)
  const members = isList ? value.entries() : Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  const parts: string[] = []
  for (const [name, one] of members) {
    written.values += 1
    if (written.values % valuesPerStep === 0) yield sliceCost
    const text = isContainer(one) ? yield* writingCanonical(one, written) : (JSON.stringify(one) ?? 'null')
    parts.push(isList ? text : `${JSON.stringify(name)}:${text}`)
  }
  return isList ? `[${parts.join(',')}]` : `{${parts.join(',')}}`
}
