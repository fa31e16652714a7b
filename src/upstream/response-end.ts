/**
 * Detects bytes after the end of a response, which must not be read as the next response. `node:http` silently drops
 * them unless they begin another head, so the bytes are counted beside it.
 *
 * A response with `Content-Length` ends that many bytes after its head. A chunked one ends with an empty line (RFC
 * 9112, 7.1). Only two things could follow and end the same way: an empty line, which parsers skip, or a complete head,
 * for which `node:http` destroys the socket.
 */

import { upstreamHeadBytesMax } from '../limits.ts'

export interface ResponseEnd {
  /** Resets for a new exchange. */
  begin(): void
  /** Must be called with each chunk before the parser reads it. */
  add(chunk: Buffer): void
  /** Whether the head is still incomplete after `upstreamHeadBytesMax` bytes. */
  isTooLong(): boolean
  /** The parser has read a head: an informational one (1xx), or that of the response. */
  endHead(isInformational: boolean): void
  /** The parser has read the whole response. True if no bytes follow it. */
  isLast(status: number, headers: Readonly<Record<string, string>>): boolean
}

const emptyLine = '\r\n\r\n'

export function createResponseEnd(): ResponseEnd {
  /** Chunks received while a head is expected. Joined once at its end: joining at each chunk would be quadratic. */
  let heads: Buffer[] = []
  let headBytes = 0
  let isHeadExpected = true
  let bytes = 0
  /** The last four bytes. */
  let tail = ''

  return {
    begin() {
      heads = []
      headBytes = 0
      isHeadExpected = true
      bytes = 0
      tail = ''
    },
    add(chunk) {
      bytes += chunk.length
      tail = (tail + chunk.toString('latin1', Math.max(chunk.length - 4, 0))).slice(-4)
      if (isHeadExpected) heads.push(chunk)
    },
    isTooLong: () => isHeadExpected && bytes > upstreamHeadBytesMax,
    endHead(isInformational) {
      const joined = heads.length === 1 ? (heads[0] as Buffer) : Buffer.concat(heads)
      // Can only be too low, if the response begins with an empty line. Then the connection is closed, not reused.
      headBytes = joined.indexOf(emptyLine, headBytes) + emptyLine.length
      isHeadExpected = isInformational
      heads = isHeadExpected ? [joined] : []
    },
    isLast(status, { 'content-length': length = '', 'transfer-encoding': codings }) {
      if (codings !== undefined) return tail === emptyLine
      const isEmpty = status === 204 || status === 304
      return bytes === headBytes + (isEmpty ? 0 : Number.parseInt(length, 10))
    },
  }
}
