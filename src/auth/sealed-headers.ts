/** The headers of a connection, sealed for it alone: moved to another one, they do not open. */

import type { ConnectionPrivate } from '../storage/connections.ts'
import { openSealed, seal } from './secrets.ts'

export interface SealedFor {
  readonly namespace: string
  readonly connectionId: string
}

const textOf = ({ namespace, connectionId }: SealedFor) => `${namespace}/${connectionId}`

export function sealHeaders(
  headers: Readonly<Record<string, string>>,
  associatedData: SealedFor,
  key: Buffer,
): ConnectionPrivate {
  if (Object.keys(headers).length === 0) return {}
  return { headers: seal(key, JSON.stringify(headers), textOf(associatedData)).toString('base64url') }
}

/** As they go upstream. Throws where they were sealed with another secret. */
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
