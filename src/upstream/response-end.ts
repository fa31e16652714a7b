/**
 * Was the end of the response the last thing that came? `node:http` does not tell: what it reads past the end, as
 * long as it is not a head of its own, is dropped with its parser, and the rest would be taken for the next response.
 * So the bytes are counted beside it.
 *
 * A response of known length ends where its head ends and so many bytes later. One in chunks ends with an empty line
 * (RFC 9112, 7.1); what could follow it and end with one too is an empty line, which every reader skips, or a whole
 * head, and for that `node:http` destroys the socket.
 */

import { upstreamHeadBytesMax } from '../limits.ts'

export interface ResponseEnd {
  /** Of a new exchange nothing has come yet. */
  begin(): void
  /** Before the parser reads it. */
  add(chunk: Buffer): void
  /** Of a head that is not there yet, has too much come? */
  isTooLong(): boolean
  /** The parser has read an informational head, or that of the response. */
  endHead(isInformational: boolean): void
  /** The parser has read the whole response: is there nothing past it? */
  isLast(status: number, headers: Readonly<Record<string, string>>): boolean
}

const emptyLine = '\r\n\r\n'

export function createResponseEnd(): ResponseEnd {
  /** What came, as long as a head is expected; joined when one is there, not at every chunk of a byte. */
  let heads: Buffer[] = []
  let headBytes = 0
  let isHeadExpected = true
  let bytes = 0
  /** The last four. */
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
      // Never past the true end: after a response that begins with an empty line, the socket is closed.
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
