/**
 * The sealed parts of a connection's private record: its own headers, the values that a person entered for its server,
 * its OAuth client, and the tokens of somebody who has signed in. Each is sealed with the connection's name and its
 * own: copied to another connection or part, it does not open.
 */

import type { ConnectionRef } from '../model/connection.ts'
import { type InputValues, noInput, type UpstreamTarget, withInput } from '../model/input-fields.ts'
import type { ConnectionPrivate, StoredConnection } from '../storage/connections.ts'
import { openText, sealText } from './secrets.ts'

type OwnHeaders = Readonly<Record<string, string>>
type Part = 'headers' | 'input' | 'oauth' | 'tokens'

/** Never changed: nothing that is stored would open. */
function textOf(part: Part, { namespace, connectionId }: ConnectionRef): string {
  const place = `${namespace}/${connectionId}`
  if (part === 'headers') return place
  return part === 'input' ? `input ${place}` : `${place} ${part}`
}

/** In base64url. `key`: `headersKey` of the secrets for headers and input, `signInKey` for the others. */
export function sealPart(part: Part, value: object, ref: ConnectionRef, key: Buffer): string {
  return sealText(key, JSON.stringify(value), textOf(part, ref))
}

/** Undefined if there is none. Throws Error if it was sealed with another secret or for another connection. */
export function openPart<T>(part: Part, sealed: ConnectionPrivate, ref: ConnectionRef, key: Buffer): T | undefined {
  const { [part]: given } = sealed
  if (given === undefined) return undefined
  const text = openText(key, given, textOf(part, ref))
  if (text === undefined) throw new Error(`private parts of a connection (${part}) were sealed with another secret`)
  return JSON.parse(text) as T
}

/** The part of the private record that has the headers; empty for no headers. */
export function sealHeaders(headers: OwnHeaders, ref: ConnectionRef, key: Buffer): ConnectionPrivate {
  return Object.keys(headers).length === 0 ? {} : { headers: sealPart('headers', headers, ref, key) }
}

export function openHeaders(sealed: ConnectionPrivate, ref: ConnectionRef, key: Buffer): OwnHeaders {
  return openPart('headers', sealed, ref, key) ?? {}
}

/** A connection that sends its own authorization header is not for anybody to sign in. */
export function hasAuthorization(headers: OwnHeaders): boolean {
  return Object.keys(headers).some((name) => name.toLowerCase() === 'authorization')
}

/** The part of the private record that has the values; empty for none. */
export function sealInput(input: InputValues, ref: ConnectionRef, key: Buffer): ConnectionPrivate {
  const isEmpty = Object.keys({ ...input.headers, ...input.query }).length === 0
  return isEmpty ? {} : { input: sealPart('input', input, ref, key) }
}

export function openInput(sealed: ConnectionPrivate, ref: ConnectionRef, key: Buffer): InputValues {
  return openPart('input', sealed, ref, key) ?? noInput
}

/** The target of a stored connection, with its own headers and what was entered, in the clear. */
export function targetOf(
  { connection, privatePart }: Pick<StoredConnection, 'connection' | 'privatePart'>,
  ref: ConnectionRef,
  headersKey: Buffer,
): UpstreamTarget {
  const headers = openHeaders(privatePart, ref, headersKey)
  return withInput(connection.mcpUrl, headers, openInput(privatePart, ref, headersKey))
}
