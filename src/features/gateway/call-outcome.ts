/** How a call of a tool ended, read from its answer while that is passed on (contract, 18.1). */

import type { RpcId } from '../../errors.ts'
import type { Allowance } from '../../fairness/allowance.ts'
import { mediaType } from '../../http/body.ts'
import { eventBytesAtOnce } from '../../limits.ts'
import { nextTurn } from '../../next-turn.ts'
import { parseForeign } from '../../schema/json.ts'
import { asBuffer, textOf } from '../../storage/bytes.ts'
import { OutcomeSearch, placeOf, type Stated } from './outcome-search.ts'
import { ownTurn, waitingBytesMin } from './relayed-stream.ts'

/** Bytes or characters of a whole answer that is parsed, as most have fewer. Past it: it is searched. */
const parsedBytesMax = 2048

/** Milliseconds for a megabyte that is searched. Counted against `ownerTimeShare`. Past it: the owner waits. */
const searchMsPerMegabyte = 8

/** Bytes of a line that tells the type of an event. Past it: the event is no message. */
const typeBytesMax = 100

/** Reads an answer in pieces. */
export interface OutcomeReader {
  /** The outcome, as soon as an event has stated it. */
  readonly found: Stated | undefined
  add(piece: Uint8Array): Promise<void>
  /** At the end. Undefined if the call was not answered. */
  stated(): Stated | undefined
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

const [lineFeed, carriageReturn] = [0x0a, 0x0d]
const [byteOrderMark, lineEnd, nothing] = [Buffer.of(0xef, 0xbb, 0xbf), Buffer.from('\n'), Buffer.alloc(0)]
/** Bytes that tell what a line is, after a byte order mark of three bytes. */
const headBytes = 3 + 'event:'.length

/**
 * Reads only what tells the outcome, because every call whose answer is a stream passes here: lines of `data` until an
 * empty line ends the event (WHATWG HTML, 9.2.6). Nothing is kept but the beginnings of lines.
 */
class EventsReader implements OutcomeReader {
  readonly #id: RpcId
  readonly #owner: Owner
  found: Stated | undefined
  /** Of the data of the event; undefined before there is some. */
  #search: OutcomeSearch | undefined
  /** Of the event: clients of MCP leave one alone that has another than `message`. */
  #type = ''
  /** The beginning of the line, until it is known what the line is. */
  #head = nothing
  #line: 'unknown' | 'data' | 'type' | 'other' = 'unknown'
  #isFirst = true
  /** The last byte was a carriage return: a line feed belongs to it. */
  #isAfterReturn = false

  constructor(id: RpcId, owner: Owner) {
    this.#id = id
    this.#owner = owner
  }

  async add(piece: Uint8Array): Promise<void> {
    if (this.found !== undefined) return
    this.#owner.spend((piece.length / 2 ** 20) * searchMsPerMegabyte)
    for await (const part of partsOf(piece, this.#owner)) this.#readLines(asBuffer(part))
  }

  stated(): Stated | undefined {
    return this.found
  }

  #readLines(part: Buffer): void {
    // Looked for once each, as a part may have thousands of either.
    let [feed, carriage] = [-1, -1]
    for (let at = 0; at < part.length; ) {
      if (feed < at) feed = placeOf(part, lineFeed, at)
      if (carriage < at) carriage = placeOf(part, carriageReturn, at)
      const end = Math.min(feed, carriage)
      if (end > at) this.#readInLine(part.subarray(at, end))
      if (end === feed && end < part.length && !(this.#isAfterReturn && end === at)) this.#endLine()
      if (end === carriage && end < part.length) this.#endLine()
      if (end < part.length) this.#isAfterReturn = end === carriage
      at = end + 1
    }
  }

  #readInLine(bytes: Buffer): void {
    this.#isAfterReturn = false
    let rest = bytes
    if (this.#line === 'unknown') {
      const missing = headBytes - this.#head.length
      this.#head = Buffer.concat([this.#head, bytes.subarray(0, missing)])
      rest = bytes.subarray(missing)
      if (this.#head.length === headBytes) this.#beginLine()
    }
    this.#readRest(rest)
  }

  #beginLine(): void {
    const marked = this.#isFirst && this.#head.subarray(0, 3).equals(byteOrderMark)
    const head = marked ? this.#head.subarray(3) : this.#head
    const name = /^(?:data:|event(?::|$))/.exec(head.toString('latin1'))?.[0] ?? ''
    this.#line = name === '' ? 'other' : name === 'data:' ? 'data' : 'type'
    if (this.#line === 'type') this.#type = ''
    // Lines of one event are joined with a line feed, which is a space in JSON.
    if (this.#line === 'data') this.#search ??= new OutcomeSearch()
    this.#readRest(head.subarray(name.length))
  }

  #readRest(bytes: Buffer): void {
    if (this.#line === 'data') this.#search?.add(bytes)
    else if (this.#line === 'type' && this.#type.length <= typeBytesMax)
      this.#type += bytes.toString('latin1', 0, typeBytesMax + 1)
  }

  #endLine(): void {
    const marked = this.#isFirst && this.#head.equals(byteOrderMark)
    const isEmpty = this.#line === 'unknown' && (this.#head.length === 0 || marked)
    if (this.#line === 'unknown' && !isEmpty) this.#beginLine()
    if (this.#line === 'data') this.#search?.add(lineEnd)
    if (isEmpty) this.#endEvent()
    this.#line = 'unknown'
    this.#head = nothing
    this.#isFirst = false
  }

  #endEvent(): void {
    if (['', 'message'].includes(this.#type.replace(/^ /, ''))) this.found ??= this.#search?.stated(this.#id)
    this.#search = undefined
    this.#type = ''
  }
}

function ofWhole(id: RpcId, owner: Owner): OutcomeReader {
  const search = new OutcomeSearch()
  return {
    found: undefined,
    async add(piece) {
      owner.spend((piece.length / 2 ** 20) * searchMsPerMegabyte)
      for await (const part of partsOf(piece, owner)) search.add(part)
    },
    stated: () => search.stated(id) ?? unanswered,
  }
}

/**
 * The outcome that a JSON-RPC response to the request with this id states. Not in turns of its owner, where it could be
 * refused: a call that has ended is recorded.
 */
export async function statedIn(owner: Owner, body: Uint8Array | string, id: RpcId): Promise<Stated> {
  if (body.length <= parsedBytesMax) return statedBy(typeof body === 'string' ? body : textOf(body), id) ?? unanswered
  const bytes = typeof body === 'string' ? Buffer.from(body) : asBuffer(body)
  owner.spend((bytes.length / 2 ** 20) * searchMsPerMegabyte)
  const search = new OutcomeSearch()
  for (let at = 0; at < bytes.length; at += eventBytesAtOnce) {
    if (at > 0) await nextTurn()
    search.add(bytes.subarray(at, at + eventBytesAtOnce))
  }
  return search.stated(id) ?? unanswered
}

/** The same as `OutcomeSearch` finds, in a quarter of its time, which grows with the number of values here. */
function statedBy(text: string, id: RpcId): Stated | undefined {
  let message: Partial<Record<'method' | 'id' | 'error' | 'result', unknown>>
  try {
    message = parseForeign(text) ?? {}
  } catch {
    return undefined
  }
  const { method, error, result } = message
  if (method !== undefined || !isAnswerTo(id, message)) return undefined
  if (error !== undefined && error !== null) {
    const { code } = error as { code?: unknown }
    return { outcome: 'rpc_error', ...(typeof code === 'number' && { code }) }
  }
  if (result === undefined) return undefined
  return { outcome: (result as { isError?: unknown } | null)?.isError === true ? 'tool_error' : 'ok' }
}

/** Whether a message answers the request with this id, as clients take it: "7" for 7, and an error without an id. */
export function isAnswerTo(
  id: RpcId,
  { id: given, error }: { readonly id?: unknown; readonly error?: unknown },
): boolean {
  // A notification has no id, so any answer is to it.
  if (id === null) return true
  if (given === null || given === undefined) return error !== undefined && error !== null
  return (typeof given === 'string' || Number.isFinite(given)) && String(given) === String(id)
}
