/**
 * Pins at the endpoint of one connection (contract, 20.12): its lists and greetings are compared, and a call of a tool
 * that is not accepted is refused.
 */

import type { AuthorizedConnection, RequestContext } from '../../auth/authorizer.ts'
import { PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { parsedResponseCharsMax } from '../../limits.ts'
import type { PinsSetting } from '../../model/pins.ts'
import { fieldFinder } from '../../policy/rpc-match.ts'
import { cutText } from '../../schema/cut-text.ts'
import { parsingText } from '../../schema/json.ts'
import { replacingValues } from '../../schema/replace-values.ts'
import type { ConnectionPins, Seen } from '../pins/pin-record.ts'
import {
  hashesByName,
  hashingDefinition,
  hashOf,
  instructionsHash,
  type SeenDefinition,
} from '../pins/pinned-definitions.ts'
import { isUsable, type Pins } from '../pins/pins.ts'
import type { AuthorizedCall } from './authorized-call.ts'
import { filterTools, parsedResponseBounds, parsingResponse, tooLargeToParse } from './filter-tools.ts'
import type { Message } from './message.ts'
import type { Rewrite } from './relayed-stream.ts'
import { instructionsCharsMax } from './sessions.ts'

/** `error=` is left out: clients would take it for a missing OAuth scope, ask for it, and hide the message. */
export const notAsked = { 'www-authenticate': 'Bearer realm="postern"' }

/** Reads the lists of connections for the platform itself. */
export interface FirstLists {
  /** Reads what a connection lists, and resolves with it as it is then. Throws as a request to its server. */
  readFirst(context: RequestContext, connection: AuthorizedConnection): Promise<AuthorizedConnection>
}

export interface PinDeps {
  /** The definitions of each connection that somebody accepted. */
  readonly pins: Pins
  readonly firstLists: FirstLists
}

/** The setting that holds for a request; `off` for one of the platform, which reads what pins are compared with. */
export function pinsFor({ pins }: PinDeps, { context, connection, endpoint }: AuthorizedCall) {
  const isOwn = endpoint !== undefined && endpoint.rewrite === undefined
  return isOwn ? 'off' : pins.settingOf(context, connection)
}

/**
 * Throws `upstream_error` if the pins have come to `block` since the request was sent: its answer is not compared with
 * them as it would be now, and may be a stream that lasts for an hour. `pins`: as they were set then.
 */
export async function requireSamePins(
  deps: PinDeps,
  now: AuthorizedCall,
  { message, pins }: { readonly message: Message; readonly pins: PinsSetting },
): Promise<void> {
  if (pins === 'block' || (await pinsFor(deps, now)) !== 'block') return
  // Not to be sent again without a look: the server may have executed a call.
  const text =
    'The answer is withheld, because the pins of the connection were set to block meanwhile. Its server may have executed the request: list its tools before you repeat it'
  throw new PlatformError('upstream_error', text, { id: message.id })
}

/** Throws `forbidden` if the called tool is not accepted, and what reading the connection's first lists throws. */
export async function requireAccepted(deps: PinDeps, call: AuthorizedCall, { body, id }: Message): Promise<void> {
  const { context, connection } = call
  const known = await deps.pins.of(context, connection)
  const isRead = known.tools !== undefined
  const { tools } = isRead ? known : await deps.pins.of(context, await deps.firstLists.readFirst(context, connection))
  const pin = tools?.get((body['params'] as { readonly name: string }).name)
  if (isUsable(pin)) return
  const { namespace, connectionId } = connection
  const why = pin === undefined || pin.accepted === null ? 'it is new' : 'its definition has changed'
  const where = `${namespace}/${connectionId}`
  const hash = pin?.present == null ? '' : ` (pin ${pin.present})`
  const way = `with \`postern connection accept ${connectionId} -n ${namespace}\`, or at .pins`
  const text = `The tool is not accepted, because ${why}${hash}: somebody who may write ${where} can accept it ${way}`
  throw new PlatformError('forbidden', text, { id, constraint: 'pins', rpcHeaders: notAsked })
}

/** Whether a call of this tool would be refused, because the pins of the connection block and it is not accepted. */
export async function isHeldBack(
  { pins }: PinDeps,
  context: RequestContext,
  connection: AuthorizedConnection,
  name: string,
): Promise<boolean> {
  if ((await pins.settingOf(context, connection)) !== 'block') return false
  const { tools } = await pins.of(context, connection)
  return tools !== undefined && !isUsable(tools.get(name))
}

/** The lists and greetings that are compared, by the method that they answer. */
const compared = new Map([
  ['tools/list', compareList],
  ['initialize', compareGreeting],
  ['server/discover', compareGreeting],
])

/**
 * Compares the answer to a message with the pins and, where they block, hides what is not accepted; any answer may
 * bring a list then. Undefined for an answer that passes as it is.
 */
export function comparing(
  deps: PinDeps,
  call: AuthorizedCall,
  message: Message,
  setting: PinsSetting,
): Rewrite | undefined {
  const compare = compared.get(message.method ?? '')
  if (setting === 'off' || (setting === 'warn' && compare === undefined)) return undefined
  return async (data) => {
    if (data === '') return data
    try {
      // Such a text cannot be parsed anyway, and hashing it would take tens of milliseconds.
      if (data.length > parsedResponseCharsMax) throw tooLargeToParse()
      // A reply of the client has no answer: what bears its id answers another request.
      const rawId = message.method === undefined ? '' : JSON.stringify(message.id)
      if (setting === 'block') await requirePlain(call, data, rawId)
      return compare === undefined ? data : await compare(deps, call, message, { data, setting })
    } catch (thrown) {
      // Pins that only warn never cost an answer.
      if (setting === 'warn') {
        const hash = hashOf(withoutId(data, JSON.stringify(message.id)).slice(0, parsedResponseCharsMax))
        await deps.pins.noteUnreadable(call.connection, hash).catch(() => {})
        return data
      }
      throw thrown instanceof PlatformError ? thrown.with({ id: message.id }) : thrown
    }
  }
}

/**
 * Requires that all readers find the same in a message, and no answer to another request of the client: a list could
 * come with that. `rawId`: the request's id as JSON; left out for a message without one. Throws `upstream_error`.
 */
export async function requirePlain({ context }: AuthorizedCall, data: string, rawId?: string): Promise<void> {
  await allowanceOf(context.request).run(readingMembers(data, rawId))
}

/** Names that readers may take for one another: some ignore case, or take the first of two. */
const telling = ['jsonrpc', 'id', 'method', 'params', 'result', 'error', 'tools', 'nextCursor', 'instructions']
const tellingField = fieldFinder(telling)

function* readingMembers(data: string, rawId: string | undefined): Generator<number, void> {
  const refuse = (why: string): never => {
    throw new PlatformError(
      'upstream_error',
      `The MCP server’s answer ${why}; postern refuses it because \`pins\` is \`block\` for this connection`,
    )
  }
  if (!/^[ \t\r\n]*\{/.test(data)) refuse('is not a JSON-RPC message')
  const seen = new Set<string>()
  let [hasMethod, hasResult, hasError] = [false, false, false]
  let id = 'null'
  yield* replacingValues(data, (path, raw) => {
    const [first, name] = path
    const isTop = path.length === 1
    const isOfResult = path.length === 2 && first === 'result' && typeof name === 'string'
    const member = String(isTop ? first : name)
    const field = isTop || isOfResult ? tellingField(member) : undefined
    if (field === undefined) return undefined
    const known = `${path.length} ${field}`
    if (seen.has(known) || !telling.includes(member)) refuse('has a JSON field twice, or with other capital letters')
    seen.add(known)
    if (!isTop) return undefined
    hasMethod ||= member === 'method'
    hasResult ||= member === 'result'
    hasError ||= member === 'error'
    if (member === 'id') id = raw
    return undefined
  })
  // A server that could not read the id answers with an error of none, and with nothing else.
  const isOfNone = id === 'null' && !hasResult
  const isOurs = rawId === undefined || isOfNone || (id === rawId && id !== 'null')
  if ((hasResult || hasError) && (hasMethod || !isOurs)) refuse('answers another request')
}

/** Requires that all readers find the same in an answer, as `requirePlain`: no name twice, or in other letters. */
async function requireOneReading(context: RequestContext, data: string, id: Message['id']): Promise<void> {
  const allowance = allowanceOf(context.request)
  await allowance.run(readingMembers(data, JSON.stringify(id)))
  const read = await allowance.parse(data.length, parsingText(data, parsedResponseBounds))
  if ('problem' in read) throw new SyntaxError(read.problem.message)
}

interface Answer {
  readonly data: string
  readonly setting: PinsSetting
}

async function compareList(
  { pins, firstLists }: PinDeps,
  { context, connection: asked }: AuthorizedCall,
  { body, id }: Message,
  { data, setting }: Answer,
): Promise<string> {
  const { cursor } = (body['params'] ?? {}) as { cursor?: unknown }
  let connection = asked
  const known = await pins.of(context, connection)
  const answer = hashOf(`${cursor === undefined}${withoutId(data, JSON.stringify(id))}`)
  if (setting === 'warn' && pins.isCompared(connection, answer, known)) return data
  const allowance = allowanceOf(context.request)
  if (setting === 'warn') await requireOneReading(context, data, id)
  const seen = await allowance.parse(data.length, readingList(data, known))
  if (seen === undefined) return data
  const isComplete = cursor === undefined && seen.isLast
  if (known.tools === undefined && !isComplete) {
    // Pins begin with a complete list, and a page says nothing of the others.
    const first = firstLists.readFirst(context, connection)
    if (setting === 'block') connection = await first
    // A server may list its tools to others, and not to the platform.
    else first.catch(() => pins.noteUnreadable(asked, answer)).catch(() => {})
  }
  const after = await pins.see(context, connection, { tools: { list: seen.list, isComplete } })
  if (after === known) pins.noteCompared(connection, answer, known)
  if (setting !== 'block') return data
  const hashes = hashesByName(seen.list)
  const isAccepted = (name: string) => after.tools?.get(name)?.accepted === hashes.get(name)
  return allowance.parse(data.length, filterTools(data, [], isAccepted))
}

/** The text of an answer without its id, where that is at the beginning or the end: it differs in each answer. */
function withoutId(data: string, id: string): string {
  const head = `{"jsonrpc":"2.0","id":${id},`
  const tail = `,"jsonrpc":"2.0","id":${id}}`
  if (data.startsWith(head)) return data.slice(head.length)
  return data.endsWith(tail) ? data.slice(0, -tail.length) : data
}

interface SeenPage {
  readonly list: readonly SeenDefinition[]
  /** Whether no page follows. */
  readonly isLast: boolean
}

/** The tools of an answer, as work in steps; undefined if it has no list. */
function* readingList(data: string, { tools: known }: ConnectionPins): Generator<number, SeenPage | undefined> {
  const { result } = ((yield* parsingResponse(data)) ?? {}) as { result?: unknown }
  if (typeof result !== 'object' || result === null || !Object.hasOwn(result, 'tools')) return undefined
  const { tools, nextCursor } = result as { tools: unknown; nextCursor?: unknown }
  const list: SeenDefinition[] = []
  for (const tool of Array.isArray(tools) ? tools : []) {
    if (typeof tool?.name !== 'string') continue
    const { name, hash, text } = yield* hashingDefinition(tool)
    // The text of what was accepted is kept already.
    list.push(known?.get(name)?.accepted === hash ? { name, hash } : { name, hash, text })
  }
  // Some servers send an empty cursor with the last page.
  return { list, isLast: typeof nextCursor !== 'string' || nextCursor === '' }
}

async function compareGreeting(
  { pins }: PinDeps,
  { context, connection }: AuthorizedCall,
  { id }: Message,
  { data, setting }: Answer,
): Promise<string> {
  const allowance = allowanceOf(context.request)
  const known = await pins.of(context, connection)
  const answer = hashOf(withoutId(data, JSON.stringify(id)))
  if (setting === 'warn' && pins.isCompared(connection, answer, known)) return data
  if (setting === 'warn') await requireOneReading(context, data, id)
  const read = await allowance.parse(data.length, readingInstructions(data))
  if (read === undefined) return data
  const after = await pins.see(context, connection, { instructions: read })
  if (after === known) pins.noteCompared(connection, answer, known)
  if (setting !== 'block') return data
  // Written again also where all is accepted: a client’s parser might find other instructions than ours did.
  const isAccepted = read !== null && after.instructions?.accepted === read.hash
  return allowance.parse(data.length, writingGreeting(data, isAccepted))
}

/** The instructions of a greeting, as work in steps: null without any, undefined if it is no greeting. */
function* readingInstructions(data: string): Generator<number, Seen['instructions']> {
  const { result } = ((yield* parsingResponse(data)) ?? {}) as { result?: { instructions?: unknown } | null }
  if (typeof result !== 'object' || result === null) return undefined
  const { instructions } = result
  if (typeof instructions !== 'string') return null
  return { hash: instructionsHash(instructions), text: cutText(instructions, instructionsCharsMax) }
}

function* writingGreeting(data: string, isAccepted: boolean): Generator<number, string> {
  const message = (yield* parsingResponse(data)) as { readonly result: object }
  return JSON.stringify({ ...message, result: { ...message.result, ...(!isAccepted && { instructions: undefined }) } })
}
