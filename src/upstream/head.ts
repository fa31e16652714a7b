/** The heads of messages: what is written of a request, and what is kept of a response. */

import { socketIdleMs, upstreamHeadBytesMax } from '../limits.ts'
import type { HttpRequest } from './http-connection.ts'

export interface OutgoingRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly host: string
  /** Names in small letters. What HTTP itself has to say is not among them. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | string | undefined
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** Throws TypeError for a header that cannot be sent. */
export function wireRequest({ method, path, host, headers, body }: OutgoingRequest): HttpRequest {
  // Nothing is unpacked here.
  const fields = ['host', host, 'accept-encoding', 'identity']
  for (const name in headers) {
    const value = headers[name] as string
    if (name === 'accept-encoding') continue
    if (!headerName.test(name) || !headerValue.test(value)) throw new TypeError(`${name} cannot be sent`)
    fields.push(name, value)
  }
  const content = typeof body === 'string' ? Buffer.from(body) : body
  if (content !== undefined) fields.push('content-length', String(content.length))
  return { method, path, fields, content }
}

/** Of names and values in turn. Throws for a head that is too long. */
export function headersOf(raw: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  let length = 0
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase()
    const value = raw[i + 1] as string
    const before = headers[name]
    headers[name] = before === undefined ? value : `${before}, ${value}`
    length += name.length + value.length
  }
  if (length > upstreamHeadBytesMax) throw new Error('its head is too long')
  return headers
}

/** How long the socket may be kept; a second less than the other side says, which may be closing it while we write. */
export function keepMsOf({ 'keep-alive': hint }: Readonly<Record<string, string>>): number {
  if (hint === undefined) return socketIdleMs
  const seconds = /\btimeout=(\d{1,4})\b/i.exec(hint)?.[1]
  return seconds === undefined ? socketIdleMs : Math.min(socketIdleMs, (Number(seconds) - 1) * 1000)
}
