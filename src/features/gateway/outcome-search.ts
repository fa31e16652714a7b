/** Finds the outcome of a call in its answer, as its bytes pass (contract, 18.1). */

import type { RpcId } from '../../errors.ts'
import { rpcIdCharsMax } from '../../limits.ts'
import type { CallOutcome } from '../../model/recorded-call.ts'
import { unescaped } from '../../schema/json-tokens.ts'
import { asBuffer } from '../../storage/bytes.ts'

export interface Stated {
  readonly outcome: CallOutcome
  /** Of a JSON-RPC error. */
  readonly code?: number
}

/** Bytes of an id as it is written, in quotes; each character may be an escape of six. Past it: it is none of ours. */
const idBytesMax = 6 * rpcIdCharsMax + 2
/** The same of the name of a member. Past it: as for an id. */
const nameBytesMax = 6 * 'isError'.length

const [quote = 0, backslash = 0, colon, comma] = Buffer.from('"\\:,')
const newline = 0x0a
const [openBrace, openBracket, closeBrace, closeBracket] = Buffer.from('{[}]')

/** Bytes of a string without an escape, after which its end is looked for: that takes as long as reading a few. */
const plainBytes = 32

/**
 * Reads JSON as far as it needs to know the members of a message and of its result: the ends of strings, and the depth.
 * A name deeper within a result, or in a text, is none of these. It notices what a server gets wrong by joining texts:
 * a line break within a string, and nothing between a string and what follows. Most other bytes that are not JSON mean
 * nothing.
 */
export class OutcomeSearch {
  /** Objects and lists that are open. */
  #depth = 0
  /** A value has begun: all that follows it makes the text none. */
  #hasBegun = false
  #isBroken = false
  #isInString = false
  #isEscaped = false
  /** The first bytes of the last string, or of what is taken, and how many it has. Few: streams have many messages. */
  #string = Buffer.alloc(nameBytesMax)
  #length = 0
  /** The next ones in the bytes that are being read, if they are not behind. */
  #quoteAt = -1
  #backslashAt = -1
  #newlineAt = -1
  /** The last byte ended a string, or is a space after one: a colon makes it a name. */
  #isAfterString = false
  /** The member of the message that is being read. */
  #member = ''
  /** The member of the message whose value begins next, `isError` of the result, or `code` of the error. */
  #awaited = ''
  /** The id of the message, or the code of its error, while it is read. */
  #taking: 'id' | 'code' | undefined
  /** As they are written; '' for what is too long, an object or a list. */
  readonly #taken = { id: 'null', code: '' }
  #hasMethod = false
  #hasResult = false
  #hasError = false
  #isToolError = false

  add(bytes: Uint8Array): void {
    const buffer = asBuffer(bytes)
    this.#quoteAt = -1
    this.#backslashAt = -1
    this.#newlineAt = -1
    for (let at = 0; at < buffer.length; at += 1) {
      if (this.#isInString) at = this.#readString(buffer, at)
      else this.#readOutside(buffer[at] as number)
    }
  }

  /** Undefined for bytes that are not the whole answer to the request with this id. */
  stated(id: RpcId): Stated | undefined {
    if (this.#depth !== 0 || this.#isBroken || this.#hasMethod) return undefined
    // A server that could not read the id sends none with its error.
    const isAnswer = this.#taken.id === 'null' ? this.#hasError : this.#idText() === String(id)
    if (id !== null && !isAnswer) return undefined
    const code = this.#taken.code === '' ? Number.NaN : Number(this.#taken.code)
    if (this.#hasError) return { outcome: 'rpc_error', ...(!Number.isNaN(code) && { code }) }
    if (!this.#hasResult) return undefined
    return { outcome: this.#isToolError ? 'tool_error' : 'ok' }
  }

  #idText(): string | undefined {
    const { id } = this.#taken
    if (id.startsWith('"')) return unescaped(id.slice(1, -1))
    // A number may be written in several ways, like 1.0.
    return id !== '' && Number.isFinite(Number(id)) ? String(Number(id)) : undefined
  }

  /** Reads on in a string. Returns the place of the last byte that was read. */
  #readString(buffer: Buffer, from: number): number {
    for (let at = from, plain = from; at < buffer.length; at += 1) {
      const byte = buffer[at] as number
      if (!this.#isEscaped && byte === quote) {
        this.#isInString = false
        this.#isAfterString = true
        if (this.#taking !== undefined) {
          this.#keep(byte)
          this.#endTaking(this.#taking)
        }
        return at
      }
      if (byte === newline) this.#isBroken = true
      this.#isEscaped = !this.#isEscaped && byte === backslash
      this.#keep(byte)
      if (byte === backslash) plain = at
      if (at - plain < plainBytes || this.#isEscaped || this.#mayKeep()) continue
      // Most of a long text has none of them, and the runtime finds them a hundred times faster.
      const next = this.#nextSpecial(buffer, at + 1) - 1
      this.#length += next - at
      plain = next
      at = next
    }
    return buffer.length
  }

  /** Looked for once each, as a text may have thousands of them. */
  #nextSpecial(buffer: Buffer, from: number): number {
    if (this.#quoteAt < from) this.#quoteAt = placeOf(buffer, quote, from)
    if (this.#backslashAt < from) this.#backslashAt = placeOf(buffer, backslash, from)
    if (this.#newlineAt < from) this.#newlineAt = placeOf(buffer, newline, from)
    return Math.min(this.#quoteAt, this.#backslashAt, this.#newlineAt)
  }

  /** Whether the next byte of a string may be needed. */
  #mayKeep(): boolean {
    return this.#length < this.#string.length || (this.#taking !== undefined && this.#length < idBytesMax)
  }

  #keep(byte: number): void {
    const { length } = this.#string
    if (this.#length === length && length < idBytesMax && this.#taking !== undefined)
      this.#string = Buffer.concat([this.#string], idBytesMax)
    if (this.#length < this.#string.length) this.#string[this.#length] = byte
    this.#length += 1
  }

  #endTaking(name: 'id' | 'code'): void {
    this.#taking = undefined
    if (this.#length <= idBytesMax) this.#taken[name] = this.#string.toString('utf8', 0, this.#length)
  }

  /** Asked for each byte: a dense text of a megabyte takes 8 ms (`searchMsPerMegabyte`). */
  #readOutside(byte: number): void {
    if (this.#taking !== undefined) {
      if (byte <= 0x20 || byte === comma || byte === closeBrace) this.#endTaking(this.#taking)
      else this.#keep(byte)
    }
    if (byte <= 0x20) return
    if (this.#depth === 0) [this.#isBroken, this.#hasBegun] = [this.#isBroken || this.#hasBegun, true]
    if (this.#awaited !== '' && byte !== colon) this.#readValue(byte)
    if (this.#isAfterString) {
      this.#isAfterString = false
      if (byte === colon) this.#readName()
      else if (byte !== comma && byte !== closeBrace && byte !== closeBracket) this.#isBroken = true
    }
    if (byte === quote) {
      this.#isInString = true
      if (this.#taking === undefined) this.#length = 0
    } else if (byte === openBrace || byte === openBracket) this.#depth += 1
    else if (byte === closeBrace || byte === closeBracket) this.#depth -= 1
    if (byte === comma || byte === openBrace || byte === openBracket) this.#length = 0
  }

  /** Other names are not decoded: a text may have hundreds of thousands. */
  #readName(): void {
    const isOfMessage = this.#depth === 1
    if (!isOfMessage && !(this.#depth === 2 && (this.#member === 'result' || this.#member === 'error'))) return
    const name = this.#length > nameBytesMax ? '' : nameIn(this.#string.toString('latin1', 0, this.#length))
    if (isOfMessage) {
      this.#member = name
      this.#awaited = ['id', 'method', 'error', 'result'].includes(name) ? name : ''
    } else {
      const wanted = this.#member === 'result' ? 'isError' : 'code'
      this.#awaited = name === wanted ? wanted : ''
    }
  }

  #readValue(firstByte: number): void {
    const awaited = this.#awaited
    this.#awaited = ''
    if (awaited === 'id' || awaited === 'code') this.#take(awaited, firstByte)
    else if (awaited === 'method') this.#hasMethod = true
    // `null` and `true`, which no other value begins like.
    else if (awaited === 'error') [this.#hasError, this.#taken.code] = [firstByte !== 0x6e, '']
    else if (awaited === 'isError') this.#isToolError = firstByte === 0x74
    else [this.#hasResult, this.#isToolError] = [true, false]
  }

  #take(name: 'id' | 'code', firstByte: number): void {
    this.#taken[name] = ''
    if (firstByte === openBrace || firstByte === openBracket) return
    this.#taking = name
    this.#length = 0
    this.#keep(firstByte)
  }
}

/** The place of a byte at or after another place; the length if there is none. */
export function placeOf(bytes: Buffer, byte: number, from: number): number {
  const at = bytes.indexOf(byte, from)
  return at < 0 ? bytes.length : at
}

/** A name with the escapes of ASCII letters decoded: no other makes one that is looked for. */
function nameIn(raw: string): string {
  if (!raw.includes('\\')) return raw
  return raw.replace(/\\u00([0-9a-fA-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}
