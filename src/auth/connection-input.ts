/**
 * The values that a person entered for the server of a connection, sealed with the connection as its own headers are.
 */

import { type InputValues, noInput, type UpstreamTarget, withInput } from '../model/input-fields.ts'
import type { ConnectionPrivate, StoredConnection } from '../storage/connections.ts'
import { openHeaders, type SealedFor } from './sealed-headers.ts'
import { openJson, sealJson } from './secrets.ts'

// Another text than that of headers, so that neither opens as the other.
const textOf = ({ namespace, connectionId }: SealedFor) => `input ${namespace}/${connectionId}`

/** The part of the private record that has the values; empty for none. */
export function sealInput(input: InputValues, associatedData: SealedFor, key: Buffer): ConnectionPrivate {
  if (Object.keys({ ...input.headers, ...input.query }).length === 0) return {}
  return { input: sealJson(key, input, textOf(associatedData)) }
}

/** Throws Error if the values were sealed with another secret or for another connection. */
export function openInput({ input }: ConnectionPrivate, associatedData: SealedFor, key: Buffer): InputValues {
  return openJson(key, input, textOf(associatedData), 'values') ?? noInput
}

/** The target of a stored connection, with its own headers and what was entered, in the clear. */
export function targetOf(
  { connection, privatePart }: Pick<StoredConnection, 'connection' | 'privatePart'>,
  associatedData: SealedFor,
  headersKey: Buffer,
): UpstreamTarget {
  const headers = openHeaders(privatePart, associatedData, headersKey)
  return withInput(connection.mcpUrl, headers, openInput(privatePart, associatedData, headersKey))
}
