/**
 * Mocked MCP servers: the registered server's tools, resources and prompts, without a network. The official package
 * handles the protocol in both eras (protocol.ts). A valid `tools/call`, the most frequent request, is answered here
 * from a cache of serialized results.
 */

import { LRUCache } from 'lru-cache'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import type { ClientSockets } from '../../http/client-sockets.ts'
import { rpcErrorBody } from '../../http/error-response.ts'
import { noStoreJson } from '../../http/respond.ts'
import { sliceCost } from '../../limits.ts'
import { rpcCodes, unknownRevision } from '../../model/mcp.ts'
import type { RecordedAnswer } from '../../model/recorded-answer.ts'
import { hasAtMostValues } from '../../schema/count-values.ts'
import { shorten } from '../../schema/cut-text.ts'
import { reading } from '../../schema/json.ts'
import { readingServer, readMock } from '../../storage/directory-records.ts'
import {
  type Arguments,
  type MockAnswer,
  type MockCall,
  type MockedCall,
  type MockServer,
  serverIdentity,
  type Tool,
} from './call.ts'

/** Bytes of JSON of decoded servers, which take 25 times as much. Past it: the least recently used one is evicted. */
const mockServersKeptBytesMax = 2 * 2 ** 20
/** Bytes of all cached answers. Past it: the least recently used one is generated again, with the same content. */
const mockAnswersBytesMax = 16 * 2 ** 20

/** An answer with its result serialized for each era. One with `error` is sent by the official package instead. */
interface Ready {
  readonly answer: MockAnswer
  readonly handshake: string
  readonly stateless: string
}

/** Cost of a byte of a stored server that is hashed, in the unit of `sliceCost`. Past it: as for `sliceCost`. */
const hashedByteCost = 0.05
/** Cost of a character of an answer's text that is written, in the unit of `sliceCost`. Past it: as for `sliceCost`. */
const writtenCharacterCost = 0.15

/** How much longer the official package takes to show a server than it takes to parse it. */
const protocolWorkFactor = 5
/** Milliseconds for a megabyte of that work. Counted against `ownerTimeShare`. Past it: the owner waits. */
const protocolMsPerMegabyte = 8
/** The same for the arguments of a call, which are written and hashed in one piece. */
const argumentsMsPerMegabyte = 40

/**
 * Values in the parameters of a message that the official package answers: it validates them in one piece, and 20,000
 * take 66 to 170 ms. Past it: an error. Calls of the mock's tools are not among them.
 */
const protocolValuesMax = 1000

/** Built once; a Response copies its headers. */
const headers = new Headers(noStoreJson)
const serverInfoKey = 'io.modelcontextprotocol/serverInfo'

/** The whole response to a message. */
type MockResponse = Pick<Response, 'status' | 'headers'> & { readonly body: string }

/** A server with the answers that were recorded for it, as they are stored. */
interface Stored {
  readonly json: Uint8Array
  readonly answers: readonly Uint8Array[]
}

const sizeOf = (stored: Stored | undefined): number =>
  stored === undefined ? 0 : stored.answers.reduce((sum, { length }) => sum + length, stored.json.length)

/** A mocked server in decoded form. */
interface KeptServer {
  readonly server: MockServer
  /** Of the directory in which it was read last. */
  readonly version: string
}

/** Mocked servers in decoded form, by their names: each is read once in a version of the directory. */
class MockServers {
  readonly #kept = new LRUCache<string, KeptServer>({
    maxSize: mockServersKeptBytesMax,
    sizeCalculation: ({ server: { bytes } }) => bytes + 1000,
  })

  known({ directory, server }: MockCall): MockServer | undefined {
    const kept = this.#kept.get(server)
    return kept?.version === directory.version ? kept.server : undefined
  }

  /** Undefined if the server is gone. Rejects with `rate_limited`. */
  async read(call: MockCall): Promise<MockServer | undefined> {
    const { directory, request, server: name } = call
    const allowance = allowanceOf(request)
    // Of many calls of an owner at once, the first reads it.
    const found = await allowance.readRecords(async () => {
      const json = this.known(call) === undefined ? await directory.serverJson(name) : undefined
      return json && { json, answers: await directory.recordedAnswers(name) }
    }, sizeOf) // 429
    if (found === undefined) return this.known(call)
    const hash = await allowance.run(hashing(found)) // 429
    const kept = this.#kept.get(name)
    // Another version of the directory rarely changes it.
    if (kept?.server.hash !== hash) return allowance.parse(sizeOf(found), this.#reading(call, found, hash)) // 429
    this.#kept.set(name, { server: kept.server, version: directory.version })
    return kept.server
  }

  *#reading(call: MockCall, stored: Stored, hash: string): Work<MockServer> {
    const kept = this.known(call)
    if (kept !== undefined) return kept
    const detail = yield* readingServer(stored.json)
    const tools = new Map((detail.tools ?? []).map((tool) => [tool.name, tool]))
    const recorded: RecordedAnswer[] = []
    for (const answer of stored.answers) recorded.push(yield* reading(answer.length, () => readMock(answer)))
    const server = { hash, bytes: sizeOf(stored), detail, tools, recorded }
    this.#kept.set(call.server, { server, version: call.directory.version })
    return server
  }
}

/** As work in steps: a server may have recorded tens of megabytes. */
function* hashing({ json, answers }: Stored): Work<string> {
  const hasher = new Bun.CryptoHasher('sha256')
  for (const part of [json, ...answers]) {
    yield part.length * hashedByteCost
    hasher.update(`${part.length}\0`).update(part)
  }
  return hasher.digest('base64url')
}

function* making(choosing: Work<MockAnswer>, { detail }: MockServer): Work<Ready> {
  const answer = yield* choosing
  const result = 'result' in answer ? answer.result : {}
  const { _meta } = result as { _meta?: object }
  const stateless = { ...result, resultType: 'complete', _meta: { [serverInfoKey]: serverIdentity(detail), ..._meta } }
  const cost = Math.min(textCharsOf(result) * writtenCharacterCost, sliceCost)
  yield cost
  const handshake = JSON.stringify(result)
  yield cost
  return { answer, handshake, stateless: JSON.stringify(stateless) }
}

/** Gives the response to a message. Undefined if the server is gone. */
export type AnswerMock = ReturnType<typeof createMocks>

/** Answers messages in place of registered servers. */
export function createMocks(sockets: Pick<ClientSockets, 'wait'>) {
  const answers = new LRUCache<string, Ready>({
    maxSize: mockAnswersBytesMax,
    // Bytes, roughly: texts can take two bytes per character.
    sizeCalculation: ({ handshake, stateless }, key) => key.length + 2 * (handshake.length + stateless.length) + 500,
  })
  const servers = new MockServers()

  async function ready(call: MockedCall): Promise<Ready> {
    const { request, server, scenario, tool, given } = call
    // The key contains the arguments as sent. Another order of their members is another key, with the same result.
    const key = `${server.hash}\0${scenario}\0${tool.name}\0${JSON.stringify(given)}`
    allowanceOf(request).spend((key.length / 2 ** 20) * argumentsMsPerMegabyte)
    const kept = answers.get(key)
    if (kept !== undefined) return kept
    // On first use: most processes mock nothing, and its libraries are large.
    const { choosing } = await import('./choose-answer.ts')
    // The key is about as long as the arguments.
    const made = await allowanceOf(request).run(making(choosing(call, key.length), server)) // 429
    answers.set(key, made)
    return made
  }

  return async (call: MockCall): Promise<MockResponse | undefined> => {
    const { scenario, message, request } = call
    const server = servers.known(call) ?? (await servers.read(call))
    if (server === undefined) return undefined
    // Otherwise the official package must answer, with the error for an unsupported revision.
    const asked = unknownRevision(call.message, call.headers) === undefined ? toolCallOf(call, server) : undefined
    if (asked !== undefined) {
      const one = await ready({ request, server, scenario, ...asked })
      if (one.answer.delayMs > 0) await sockets.wait(one.answer.delayMs, request)
      if ('result' in one.answer) {
        const id = JSON.stringify(message.id)
        const body = `{"jsonrpc":"2.0","id":${id},"result":${one[message.era]}}`
        return { status: 200, headers, body }
      }
    }
    if (!hasAtMostValues(message.body['params'], protocolValuesMax)) {
      const text = `params: has more than ${protocolValuesMax} values, which a mock does not look at`
      // A notification has no answer but its status (MCP, streamable HTTP).
      return {
        status: message.id === null ? 400 : 200,
        headers,
        body: rpcErrorBody(rpcCodes.invalidParams, text, message.id),
      }
    }
    const { serve } = await import('./protocol.ts')
    // The official package takes as long as what it is given, and what it shows of the server, is large; it cannot be
    // interrupted.
    const work = (server.bytes + message.bytes.length) * protocolWorkFactor
    await allowanceOf(request).run(reading(work, () => undefined)) // 429
    await allowanceOf(request).pace((work / 2 ** 20) * protocolMsPerMegabyte)
    const answer = await serve(call, server.detail, async (name, given) => {
      const tool = server.tools.get(name)
      if (tool !== undefined) return (await ready({ request, server, scenario, tool, given })).answer
      const message = `there is no tool ${JSON.stringify(shorten(name))}`
      return { delayMs: 0, error: { code: rpcCodes.invalidParams, message } }
    })
    return { status: answer.status, headers: answer.headers, body: await answer.text() }
  }
}

/** Characters of the texts of a result, which has its structured content as a text, too. */
function textCharsOf({ content }: { readonly content?: unknown }): number {
  if (!Array.isArray(content)) return 0
  return content.reduce((sum: number, part: { readonly text?: unknown } | null) => {
    return sum + (typeof part?.text === 'string' ? part.text.length : 0)
  }, 0)
}

/** The call, if the message is a well-formed `tools/call` of an existing tool. */
function toolCallOf(
  { message: { method, id, body } }: MockCall,
  { tools }: MockServer,
): { tool: Tool; given: Arguments } | undefined {
  if (method !== 'tools/call' || id === null) return undefined
  const { name, arguments: given = {} } = (body['params'] ?? {}) as { name?: unknown; arguments?: unknown }
  const tool = typeof name === 'string' ? tools.get(name) : undefined
  if (tool === undefined || typeof given !== 'object' || given === null || Array.isArray(given)) return undefined
  return { tool, given: given as Arguments }
}
