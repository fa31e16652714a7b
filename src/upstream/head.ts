/** HTTP/1.1 message heads: the fields of a request to send, and the headers of a received response. */

import { socketIdleMs, upstreamHeadBytesMax } from '../limits.ts'

export interface OutgoingRequest {
  readonly method: string
  /** Path and query. */
  readonly path: string
  readonly host: string
  /** Names in lower case. `Host`, `Content-Length` and connection-specific headers are not among them. */
  readonly headers: Readonly<Record<string, string>>
  /** In place of a `via` among them: loops are detected by it. */
  readonly via: string
  readonly body: Uint8Array | string | undefined
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** The request as it is sent. Throws TypeError for the name or value of a header that RFC 9110 does not allow. */
export function wireRequest({ method, path, host, headers, via, body }: OutgoingRequest): Buffer {
  // Responses are not decompressed, so none is requested.
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\naccept-encoding: identity\r\n`
  for (const name in headers) {
    const value = headers[name] as string
    if (name === 'accept-encoding' || name === 'via') continue
    if (!headerName.test(name) || !headerValue.test(value)) throw new TypeError(`${name} cannot be sent`)
    head += `${name}: ${value}\r\n`
  }
  if (!headerValue.test(via)) throw new TypeError('via cannot be sent')
  head += `via: ${via}\r\n`
  const content = typeof body === 'string' ? Buffer.from(body) : body
  head += content === undefined ? '\r\n' : `content-length: ${content.length}\r\n\r\n`
  // In one write: the second of two small writes could wait for the acknowledgement of the first (Nagle).
  const bytes = Buffer.allocUnsafe(head.length + (content?.length ?? 0))
  bytes.write(head, 'latin1')
  if (content !== undefined) bytes.set(content, head.length)
  return bytes
}

/** Headers by lower-case name, of names and values in turn; joins repeated ones. Throws past `upstreamHeadBytesMax`. */
export function headersOf(raw: readonly string[]): Record<string, string> {
  // Without a prototype, because an upstream may send a header named `__proto__`.
  const headers: Record<string, string> = Object.create(null)
  let length = 0
  for (let i = 0; i < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase()
    const value = raw[i + 1] as string
    const before = headers[name]
    headers[name] = before === undefined ? value : `${before}, ${value}`
    length += name.length + value.length
  }
  if (length > upstreamHeadBytesMax) throw new Error('its head is too long')
  return headers
}

/**
 * How long an unused connection may be kept, in milliseconds: one second less than the server's `Keep-Alive: timeout`,
 * so that we do not send a request while the server is closing the connection.
 */
export function keepMsOf({ 'keep-alive': hint }: Readonly<Record<string, string>>): number {
  if (hint === undefined) return socketIdleMs
  const seconds = /\btimeout=(\d{1,4})\b/i.exec(hint)?.[1]
  return seconds === undefined ? socketIdleMs : Math.min(socketIdleMs, (Number(seconds) - 1) * 1000)
}
