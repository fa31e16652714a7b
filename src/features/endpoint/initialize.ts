/** Answers `initialize` and `server/discover` without asking any server (contract, 20.5). */

import { handshakeRevisions, newestHandshake, statelessRevision } from '../../model/mcp.ts'
import { type EndpointRequest, serverInfo } from './endpoint-request.ts'
import { type ListedConnection, listFreshMs } from './kept-lists.ts'

/** Contract 20.5: bytes of the instructions of all connections together. Past it: each is cut to its part. */
const instructionsBytesMax = 2048
/** Contract 20.5: bytes of the text of the view or namespace. Past it: it is cut. */
const ownBytesMax = 1000
/** Contract 20.5: bytes of the line that names connections that are not available. Past it: the line is cut. */
const unavailableBytesMax = 400

const [changing, completions] = [{ listChanged: true }, {}]
const capabilities = { tools: changing, prompts: changing, resources: changing, completions }

export function initializeResult(asked: EndpointRequest, listed: readonly ListedConnection[]): object {
  const { message, namespace, view } = asked
  const instructions = joinedInstructions(view?.instructions ?? namespace.instructions ?? '', listed)
  const said = { capabilities, ...(instructions !== '' && { instructions }) }
  if (message.method === 'server/discover') {
    return { supportedVersions: [statelessRevision], ...said, cacheScope: 'private', ttlMs: listFreshMs }
  }
  const { protocolVersion } = (message.body['params'] ?? {}) as { protocolVersion?: unknown }
  const isKnown = typeof protocolVersion === 'string' && handshakeRevisions.has(protocolVersion)
  return { protocolVersion: isKnown ? protocolVersion : newestHandshake, ...said, serverInfo: serverInfo(asked) }
}

/** The text of the view or namespace, a line about what is not available, and the instructions of connections. */
function joinedInstructions(own: string, listed: readonly ListedConnection[]): string {
  const away = listed.flatMap(({ connectionId, problem }) => (problem ? [`${connectionId} (${problem.error})`] : []))
  const line = away.length === 0 ? [] : [cutTo(unavailableBytesMax, `Not available now: ${away.join(', ')}`)]
  const texts = listed.flatMap(({ connectionId, kept }) =>
    kept?.instructions === undefined ? [] : [{ head: `## ${connectionId}\n`, text: kept.instructions }],
  )
  const first = [...(own === '' ? [] : [cutTo(ownBytesMax, own)]), ...line]
  const taken = first.reduce((sum, one) => sum + Buffer.byteLength(one) + 1, 0)
  return [...first, ...shared(texts, instructionsBytesMax - taken)].join('\n')
}

/** Divides the bytes equally; those that one text does not need are the others'. */
function shared(texts: readonly { readonly head: string; readonly text: string }[], bytes: number): string[] {
  const sizes = texts.map(({ head, text }) => Buffer.byteLength(head + text) + 1)
  const parts: string[] = []
  let left = bytes
  // The shortest first, so that it is known what the longer ones may have.
  const order = sizes.map((_, index) => index).sort((a, b) => (sizes[a] as number) - (sizes[b] as number))
  for (const [done, index] of order.entries()) {
    const part = Math.floor(left / (order.length - done))
    const { head, text } = texts[index] as (typeof texts)[number]
    const cut = cutTo(part - Buffer.byteLength(head) - 1, text)
    if (cut === '') continue
    parts[index] = head + cut
    left -= Buffer.byteLength(head + cut) + 1
  }
  return parts.filter((part) => part !== undefined)
}

/** A text of at most so many bytes of UTF-8; a cut one ends with `…`. '' if not even that fits. */
function cutTo(bytes: number, text: string): string {
  if (Buffer.byteLength(text) <= bytes) return text
  const room = bytes - Buffer.byteLength('…')
  if (room <= 0) return ''
  // In stream mode the decoder leaves out a character that is cut through.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true })
  return `${decoder.decode(Buffer.from(text).subarray(0, room), { stream: true })}…`
}
