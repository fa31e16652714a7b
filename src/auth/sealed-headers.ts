/** A connection's own headers, sealed with its namespace and id: copied to another connection, they do not open. */

import type { ConnectionPrivate } from '../storage/connections.ts'
import { openSealed, seal } from './secrets.ts'

export interface SealedFor {
  readonly namespace: string
  readonly connectionId: string
}

const textOf = ({ namespace, connectionId }: SealedFor) => `${namespace}/${connectionId}`

/** The part of the private record that has the headers; empty for no headers. */
export function sealHeaders(
  headers: Readonly<Record<string, string>>,
  associatedData: SealedFor,
  key: Buffer,
): ConnectionPrivate {
  if (Object.keys(headers).length === 0) return {}
  return { headers: seal(key, JSON.stringify(headers), textOf(associatedData)).toString('base64url') }
}

/** The headers in the clear. Throws Error if they were sealed with another secret or for another connection. */
export function openHeaders(
  { headers }: ConnectionPrivate,
  associatedData: SealedFor,
  key: Buffer,
): Record<string, string> {
  if (headers === undefined) return {}
  const text = openSealed(key, Buffer.from(headers, 'base64url'), textOf(associatedData))
  if (text === undefined) throw new Error('the headers of a connection were sealed with another secret')
  return JSON.parse(text) as Record<string, string>
}
