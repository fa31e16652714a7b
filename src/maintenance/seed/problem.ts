/** A problem of fixtures: in which file, where in it, of which record, and what is wrong. */

import { recordNameCharsMax } from '../../limits.ts'
import type { Problem } from '../../schema/check.ts'

export interface FixtureProblem extends Problem {
  readonly file: string
  /** What the record calls itself, where it can be told: positions are hard to count. */
  readonly record?: string | undefined
}

/** `a.json: connections[13].mcpUrl (acme/notes): is missing`. */
export function fixtureProblemLine({ file, place, record, message }: FixtureProblem): string {
  const where = record === undefined || place === '' ? place : `${place} (${record})`
  return [file, where, message].filter((part) => part !== '').join(': ')
}

/** By kind: the fields that name a record to a person. Never a key itself. */
const naming: Readonly<Record<string, readonly string[]>> = {
  organizations: ['organizationId'],
  namespaces: ['namespace'],
  apiKeys: ['userId', 'name'],
  servers: ['qualifiedName'],
  connections: ['namespace', 'connectionId'],
  mocks: ['server', 'tool'],
}

/** Of the record at a place like `connections[13].mcpUrl` of a document; undefined where it has no name. */
export function recordAt(document: unknown, place: string): string | undefined {
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
