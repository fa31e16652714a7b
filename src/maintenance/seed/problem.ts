/** A problem in fixtures: file, place in the file, record, and what is wrong. */

import type { Problem } from '../../schema/check.ts'

/** Characters of a record's name in a problem. Past it: only the place is given. */
const recordNameCharsMax = 128

export interface FixtureProblem extends Problem {
  readonly file: string
  /** The record's own name, if it has one: positions are hard to count. */
  readonly record?: string | undefined
}

/** Where a problem is: the file, the place in it, and the record at that place. */
export function positionIn(file: string, document: unknown, place: string): Omit<FixtureProblem, 'message'> {
  return { file, place, record: recordAt(document, place) }
}

/** One line: `a.json: connections[13].mcpUrl (acme/notes): is missing`. */
export function fixtureProblemLine({ file, place, record, message }: FixtureProblem): string {
  const where = record === undefined || place === '' ? place : `${place} (${record})`
  return [file, where, message].filter((part) => part !== '').join(': ')
}

/** The fields that identify a record to a person, by kind. Never the text of an API key. */
const naming: Readonly<Record<string, readonly string[]>> = {
  organizations: ['organizationId'],
  namespaces: ['namespace'],
  apiKeys: ['userId', 'name'],
  servers: ['qualifiedName'],
  connections: ['namespace', 'connectionId'],
  mocks: ['server', 'tool'],
}

/**
 * The name of the record at a place like `connections[13].mcpUrl`. Undefined if it has none, or one that is too long.
 * `document` may be invalid, so nothing about its shape is assumed.
 */
function recordAt(document: unknown, place: string): string | undefined {
  const [, kind = '', index = ''] = /^([A-Za-z]+)\[(\d+)\]/.exec(place) ?? []
  const fields = Object.hasOwn(naming, kind) ? naming[kind] : undefined
  if (fields === undefined || typeof document !== 'object' || document === null) return undefined
  const record: unknown = (document as Record<string, unknown[] | undefined>)[kind]?.[Number(index)]
  if (typeof record !== 'object' || record === null) return undefined
  const names = fields
    .map((field) => (Object.hasOwn(record, field) ? (record as Record<string, unknown>)[field] : undefined))
    .filter((name) => typeof name === 'string')
  const name = names.join('/')
  return name === '' || name.length > recordNameCharsMax ? undefined : name
}
