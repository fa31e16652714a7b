/** Finds the outcome of a call in an answer that is too large to be parsed, as its bytes pass (contract, 18.1). */

import type { CallOutcome } from '../../model/recorded-call.ts'
import { parseForeign } from '../../schema/json.ts'
import { asBuffer } from '../../storage/bytes.ts'

export interface Stated {
  readonly outcome: CallOutcome
  /** Of a JSON-RPC error. */
  readonly code?: number
}

/** Bytes of a name as it is written; each character may be an escape of six. Past it: the name is none of ours. */
const nameBytesMax = 6 * 'isError'.length

const [quote, backslash, colon, comma] = Buffer.from('"\\:,')
const [openBrace, openBracket, closeBrace, closeBracket] = Buffer.from('{[}]')

/**
 * Reads JSON as far as it needs to know the members of a message and of its result: the ends of strings, and the depth.
 * A name deeper within a result, or in a text, is none of these. Bytes that are not JSON mean nothing.
 */
export class OutcomeSearch {
  /** Objects and lists that are open. */
  #depth = 0
  #isInString = false
  #isEscaped = false
  /** The first bytes of the last string, and how many it has. */
  readonly #string = Buffer.alloc(nameBytesMax)
  #length = 0
  /** The member of the message that is being read. */
  #member = ''
  /** The name whose value begins next: `error`, or `isError` of the result. */
  #awaited = ''
  #hasResult = false
  #hasError = false
  #isToolError = false

  add(bytes: Uint8Array): void {
    const buffer = asBuffer(bytes)
    for (let at = 0; at < buffer.length; at += 1) {
      if (this.#isInString) at = this.#readString(buffer, at)
      else this.#readOutside(buffer[at] as number)
    }
  }

  /** Undefined for bytes that are not an answer. */
  stated(): Stated | undefined {
    if (this.#hasError) return { outcome: 'rpc_error' }
    if (!this.#hasResult) return undefined
    return { outcome: this.#isToolError ? 'tool_error' : 'ok' }
  }

  /** Reads on in a string. Returns the place of the last byte that was read. */
  #readString(buffer: Buffer, from: number): number {
    for (let at = from; at < buffer.length; at += 1) {
      const byte = buffer[at] as number
      if (!this.#isEscaped && byte === quote) {
        this.#isInString = false
        return at
      }
      this.#isEscaped = !this.#isEscaped && byte === backslash
      if (this.#length < nameBytesMax) this.#string[this.#length] = byte
      this.#length += 1
    }
    return buffer.length
  }

  #readOutside(byte: number): void {
    if (byte <= 0x20) return
    if (this.#awaited !== '' && byte !== colon) this.#readValue(byte)
    if (byte === quote) [this.#isInString, this.#length] = [true, 0]
    else if (byte === colon) this.#readName()
    else if (byte === openBrace || byte === openBracket) this.#depth += 1
    else if (byte === closeBrace || byte === closeBracket) this.#depth -= 1
    if (byte === comma || byte === openBrace || byte === openBracket) this.#length = 0
  }

  #readName(): void {
    if (this.#depth > 2) return
    const name = this.#length > nameBytesMax ? '' : nameIn(this.#string.subarray(0, this.#length))
    if (this.#depth === 1) this.#member = name
    const isOurs = this.#depth === 1 ? name === 'error' || name === 'result' : name === 'isError'
    if (this.#depth === 1 || (this.#depth === 2 && this.#member === 'result')) this.#awaited = isOurs ? name : ''
  }

  #readValue(firstByte: number): void {
    // Of `null` and `true`, which no other value begins like.
    if (this.#awaited === 'error') this.#hasError = firstByte !== 0x6e
    else if (this.#awaited === 'isError') this.#isToolError = firstByte === 0x74
    else [this.#hasResult, this.#isToolError] = [true, false]
    this.#awaited = ''
  }
}

function nameIn(bytes: Buffer): string {
  const text = bytes.toString('latin1')
  try {
    return text.includes('\\') ? String(parseForeign(`"${text}"`)) : text
  } catch {
    return ''
  }
}
