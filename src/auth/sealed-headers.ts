/** A connection's own headers, sealed with its namespace and id: copied to another connection, they do not open. */

import type { ConnectionPrivate } from '../storage/connections.ts'
import { openJson, sealJson } from './secrets.ts'

export interface SealedFor {
  readonly namespace: string
  readonly connectionId: string
}

/** A connection that sends its own authorization header is not for anybody to sign in. */
export function hasAuthorization(headers: Readonly<Record<string, string>>): boolean {
  return Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')
}

const textOf = ({ namespace, connectionId }: SealedFor) => `${namespace}/${connectionId}`

/** The part of the private record that has the headers; empty for no headers. */
export function sealHeaders(
  headers: Readonly<Record<string, string>>,
  associatedData: SealedFor,
  key: Buffer,
): ConnectionPrivate {
  if (Object.keys(headers).length === 0) return {}
  return { headers: sealJson(key, headers, textOf(associatedData)) }
}

/** The headers in the clear. Throws Error if they were sealed with another secret or for another connection. */
export function openHeaders(
  { headers }: ConnectionPrivate,
  associatedData: SealedFor,
  key: Buffer,
): Record<string, string> {
  return openJson(key, headers, textOf(associatedData), 'headers') ?? {}
}
