/** How a call of a tool ended, read from its answer while that is passed on (contract, 18.1). */

import type { RpcId } from '../../errors.ts'
import type { Allowance } from '../../fairness/allowance.ts'
import { mediaType } from '../../http/body.ts'
import { eventBytesAtOnce } from '../../limits.ts'
import { nextTurn } from '../../next-turn.ts'
import { asBuffer } from '../../storage/bytes.ts'
import { OutcomeSearch, type Stated } from './outcome-search.ts'
import { openSink, ownTurn, waitingBytesMin } from './relayed-stream.ts'

/**
 * Bytes of an event that are kept: thousands of streams may have one that is not complete. Past it: they are searched
 * as they arrive.
 */
const eventOutcomeBytesMax = 64 * 1024

/** Milliseconds for a megabyte that is searched. Counted against `ownerTimeShare`. Past it: the owner waits. */
const searchMsPerMegabyte = 8

/** Bytes of a line that tells the type of an event. Past it: the event is no message. */
const typeBytesMax = 100

/** Reads an answer in pieces. */
export interface OutcomeReader {
  add(piece: Uint8Array): Promise<void>
  /** The outcome, as soon as an event has stated it. */
  found(): Stated | undefined
  /** At the end. Undefined if the call was not answered. */
  stated(): Promise<Stated | undefined>
}

/** A call that nothing answered. */
export const unanswered: Stated = { outcome: 'upstream_error' }

/** The owner in whose time and turns an answer is searched. */
type Owner = Pick<Allowance, 'spend' | 'run'>

/** The parts of a piece, each in a turn of its owner: a client that was slow may receive megabytes at once. */
async function* partsOf(piece: Uint8Array, owner: Owner): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < piece.length; at += eventBytesAtOnce) {
    if (piece.length >= waitingBytesMin) await owner.run(ownTurn())
    yield piece.subarray(at, at + eventBytesAtOnce)
  }
}

/** Reads the answer to the request with this id. Other messages of an event stream say nothing about it. */
export function createOutcomeReader(id: RpcId, contentType: string | null, owner: Owner): OutcomeReader {
  return mediaType(contentType) === 'text/event-stream' ? new EventsReader(id, owner) : ofWhole(id, owner)
}

/**
 * Reads only what tells the outcome, because every call whose answer is a stream passes here: lines of `data` until an
 * empty line ends the event (WHATWG HTML, 9.2.6). A large event is searched as it arrives, and not kept.
 */
class EventsReader implements OutcomeReader {
  readonly #id: RpcId
  readonly #owner: Owner
  #found: Stated | undefined
  /** The line that is not complete. */
  readonly #line = openSink()
  #bytes = 0
  #data: string[] = []
  #large: OutcomeSearch | undefined
  /** Of the event: clients of MCP leave one alone that has another than `message`. */
  #type = ''
  #isFirst = true
  /** The beginning of the next line was searched already. */
  #isContinued = false
  /** Of a line that is searched in parts. */
  #isData = false

  constructor(id: RpcId, owner: Owner) {
    this.#id = id
    this.#owner = owner
  }

  async add(piece: Uint8Array): Promise<void> {
    if (this.#found !== undefined) return
    for await (const part of partsOf(piece, this.#owner)) {
      await this.#add(part)
      if (this.#found !== undefined) return
    }
  }

  found(): Stated | undefined {
    return this.#found
  }

  async stated(): Promise<Stated | undefined> {
    const rest = this.#line.flush()
    // At the end of the stream no line feed follows.
    if (this.#found === undefined && rest.at(-1) === carriageReturn) await this.#read(asBuffer(rest).toString())
    return this.#found
  }

  async #add(piece: Uint8Array): Promise<void> {
    const line = this.#line
    line.write(piece)
    this.#bytes += piece.length
    if (piece.includes(lineFeed) || piece.includes(carriageReturn)) {
      const whole = line.flush()
      // A carriage return at the end may be half of a line break.
      const last = whole.at(-1) === carriageReturn ? whole.length - 2 : whole.length - 1
      const end = Math.max(whole.lastIndexOf(lineFeed, last), whole.lastIndexOf(carriageReturn, last)) + 1
      line.write(whole.subarray(end))
      await this.#read(Buffer.from(whole.buffer, whole.byteOffset, end).toString())
    }
    if (this.#bytes <= eventOutcomeBytesMax) return
    this.#large ??= searchOf(this.#data)
    this.#data = []
    const rest = line.flush()
    // The next byte may tell what the line is.
    const isShort = !this.#isContinued && rest.length <= 6
    const mayBeType = isShort || (!this.#isContinued && asBuffer(rest).subarray(0, 6).equals(typeName))
    // No event of such a type is a message.
    if (mayBeType && rest.length > typeBytesMax) this.#type = 'long'
    else if (mayBeType) return line.write(rest)
    // A byte stays: a line break that follows ends this line, and is no empty line.
    this.#search(rest.subarray(0, -1), !this.#isContinued)
    this.#isContinued = true
    line.write(rest.subarray(-1))
  }

  /** Whole lines. */
  async #read(text: string): Promise<void> {
    // A stream may begin with a byte order mark.
    const lines = (this.#isFirst ? text.replace(/^\ufeff/, '') : text).split(/\r\n|\n|\r/)
    this.#isFirst = false
    // The text ends with a line break, so the last part is empty.
    lines.pop()
    for (const line of lines) {
      const isBeginning = !this.#isContinued
      const isType = (line === 'event' || line.startsWith('event:')) && isBeginning
      this.#isContinued = false
      if (line === '') await this.#endEvent()
      else if (isType) this.#type = line.slice(line[6] === ' ' ? 7 : 6)
      else if (this.#large !== undefined) this.#search(Buffer.from(line), isBeginning)
      else if (line.startsWith('data:')) this.#data.push(line.slice(line[5] === ' ' ? 6 : 5))
    }
  }

  async #endEvent(): Promise<void> {
    const isMessage = this.#type === '' || this.#type === 'message'
    if (isMessage && this.#large !== undefined) this.#found ??= this.#large.stated(this.#id)
    else if (isMessage && this.#data.length > 0)
      this.#found ??= await statedInEvent(this.#owner, this.#data.join('\n'), this.#id)
    this.#data = []
    this.#bytes = 0
    this.#large = undefined
    this.#type = ''
  }

  #search(part: Uint8Array, isBeginning: boolean): void {
    if (isBeginning) this.#isData = asBuffer(part).subarray(0, 5).equals(dataName)
    if (!this.#isData) return
    this.#owner.spend((part.length / 2 ** 20) * searchMsPerMegabyte)
    this.#large?.add(isBeginning ? part.subarray(5) : part)
  }
}

const [dataName, typeName] = [Buffer.from('data:'), Buffer.from('event:')]
const lineFeed = 0x0a
const carriageReturn = 0x0d

function ofWhole(id: RpcId, owner: Owner): OutcomeReader {
  const search = new OutcomeSearch()
  return {
    async add(piece) {
      owner.spend((piece.length / 2 ** 20) * searchMsPerMegabyte)
      for await (const part of partsOf(piece, owner)) search.add(part)
    },
    found: () => undefined,
    stated: async () => search.stated(id) ?? unanswered,
  }
}

/**
 * The outcome that a JSON-RPC response to the request with this id states. Not in turns of its owner, where it could be
 * refused: a call that has ended is recorded.
 */
export async function statedIn(owner: Owner, body: Uint8Array | string, id: RpcId): Promise<Stated> {
  return (await searched(owner, body, id)) ?? unanswered
}

async function searched(owner: Owner, text: Uint8Array | string, id: RpcId): Promise<Stated | undefined> {
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  owner.spend((bytes.length / 2 ** 20) * searchMsPerMegabyte)
  const search = new OutcomeSearch()
  for (let at = 0; at < bytes.length; at += eventBytesAtOnce) {
    if (at > 0) await nextTurn()
    search.add(bytes.subarray(at, at + eventBytesAtOnce))
  }
  return search.stated(id)
}

/** A JSON name may have escapes; those of ASCII letters all begin so. */
const escaped = '\\u00'

/** Most events before the answer are notifications, and need not be parsed. */
async function statedInEvent(owner: Owner, text: string, id: RpcId): Promise<Stated | undefined> {
  const mayBeAnswer = text.includes('"result"') || text.includes('"error"') || text.includes(escaped)
  return mayBeAnswer ? searched(owner, text, id) : undefined
}

/**
 * Whether a message answers the request with this id, as clients take it: "7" for 7, and without an id an error, as a
 * server that could not read the id sends none.
 */
export function isAnswerTo(
  id: RpcId,
  { id: given, error }: { readonly id?: unknown; readonly error?: unknown },
): boolean {
  // A notification has no id, so any answer is to it.
  if (id === null) return true
  if (given === null || given === undefined) return error !== undefined && error !== null
  return typeof given !== 'object' && String(given) === String(id)
}

function searchOf(beginnings: readonly (string | Uint8Array)[]): OutcomeSearch {
  const search = new OutcomeSearch()
  for (const one of beginnings) search.add(typeof one === 'string' ? Buffer.from(one) : one)
  return search
}
