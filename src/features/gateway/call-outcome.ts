/** How a call of a tool ended, read from its answer while that is passed on (door contract, 9.1). */

import type { RpcId } from '../../errors.ts'
import { mediaType } from '../../http/body.ts'
import { callOutcomeBytesMax } from '../../limits.ts'
import type { CallOutcome } from '../../ops/call-log.ts'
import { createEventReader } from './stream.ts'

export interface Stated {
  readonly outcome: CallOutcome
  /** Of a JSON-RPC error. */
  readonly code?: number
}

/** Reads an answer in pieces. */
export interface OutcomeReader {
  add(bytes: Uint8Array): Promise<void>
  /** What was stated so far; undefined if the call was not answered. */
  stated(): Stated | undefined
}

/** A call that nothing answered. */
export const unanswered: Stated = { outcome: 'upstream_error' }

const ok: Stated = { outcome: 'ok' }

/** Reads the answer to the request with this id. Other messages of an event stream say nothing about it. */
export function createOutcomeReader(id: RpcId, contentType: string | null): OutcomeReader {
  return mediaType(contentType) === 'text/event-stream' ? ofEvents(id) : ofWhole()
}

function ofEvents(id: RpcId): OutcomeReader {
  let found: Stated | undefined
  const read = createEventReader((data) => {
    found ??= data.length > callOutcomeBytesMax ? statedInLarge(Buffer.from(data)) : statedInMessage(data, id)
  })
  let isReadable = true
  return {
    async add(bytes) {
      if (found !== undefined || !isReadable) return
      await read(bytes).catch(() => {
        isReadable = false
      })
    },
    stated: () => found,
  }
}

function ofWhole(): OutcomeReader {
  let pieces: Uint8Array[] = []
  let bytes = 0
  const large = createSearch()
  return {
    async add(piece) {
      bytes += piece.length
      if (bytes <= callOutcomeBytesMax) return void pieces.push(piece)
      for (const one of [...pieces, piece]) large.add(one)
      pieces = []
    },
    stated: () => (bytes > callOutcomeBytesMax ? large.stated() : statedIn(Buffer.concat(pieces))),
  }
}

/** What a JSON-RPC response states. It is parsed only if it may be an error: most answers are results. */
export function statedIn(body: Uint8Array | string): Stated {
  const text = typeof body === 'string' ? body : Buffer.from(body.buffer, body.byteOffset, body.byteLength)
  // A name may be written with escapes: of ASCII letters they all begin with `\u00`.
  const mayBeError = text.includes('"error"') || text.includes('"isError"') || text.includes('\\u00')
  if (!mayBeError && text.includes('"result"')) return ok
  if (text.length > callOutcomeBytesMax) return statedInLarge(Buffer.from(text))
  return statedInMessage(text.toString()) ?? unanswered
}

/** Undefined for text that is not a JSON-RPC response, or not one to this request. */
function statedInMessage(text: string, id?: RpcId): Stated | undefined {
  let message: { id?: unknown; error?: { code?: unknown } | null; result?: { isError?: unknown } | null }
  try {
    message = JSON.parse(text)
  } catch {
    return undefined
  }
  if (typeof message !== 'object' || message === null || (id !== undefined && message.id !== id)) return undefined
  const { error, result } = message
  if (error !== undefined && error !== null) {
    const { code } = error
    return { outcome: 'rpc_error', ...(typeof code === 'number' && { code }) }
  }
  if (result === undefined) return undefined
  return result?.isError === true ? { outcome: 'tool_error' } : ok
}

function statedInLarge(body: Buffer): Stated {
  const search = createSearch()
  search.add(body)
  return search.stated()
}

/**
 * Looks for the members of an answer that is too large to be parsed. Their names with these quotes are in no text,
 * where quotes are escaped. A member `isError` deep within the result is taken for the result's own.
 */
function createSearch() {
  let isError = false
  let hasResult = false
  /** What a name may have begun in. */
  let rest = Buffer.alloc(0)
  return {
    add(bytes: Uint8Array): void {
      const both = Buffer.concat([rest, bytes])
      hasResult ||= both.includes('"result"')
      const name = '"isError"'
      for (let at = both.indexOf(name); at !== -1 && !isError; at = both.indexOf(name, at + name.length)) {
        isError = /^\s*:\s*true/.test(both.toString('latin1', at + name.length, at + restBytes))
      }
      rest = both.subarray(-restBytes)
    },
    stated(): Stated {
      if (isError) return { outcome: 'tool_error' }
      return hasResult ? ok : { outcome: 'rpc_error' }
    },
  }
}

/** A name, white space and a value: as much as is kept of one piece for the next. */
const restBytes = 48
