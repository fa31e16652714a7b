/**
 * Four tools in place of a long list (contract, 20.9): one finds tools, three call them, so that a client may approve
 * what only reads by itself.
 */

import type { RequestContext } from '../../auth/authorizer.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import { sliceCost } from '../../limits.ts'
import { rpcCodes } from '../../model/mcp.ts'
import { shorten } from '../../schema/cut-text.ts'
import type { Check } from '../../schema/json-schema.ts'
import { type JsonPath, replacingValues } from '../../schema/replace-values.ts'
import type { JsonSchema } from '../../schema/schema-keywords.ts'
import { textOf, utf8Of } from '../../storage/bytes.ts'
import { type Message, parsingMessage } from '../gateway/message.ts'
import { isHeldBack } from '../gateway/pinned-answers.ts'
import { targetOfName } from './called-name.ts'
import { isPath, type Target } from './endpoint-call.ts'
import type { EndpointDeps } from './endpoint-deps.ts'
import {
  answer,
  decideOnUse,
  type EndpointRequest,
  requireAllowed,
  rpcError,
  unknown,
  writtenResult,
} from './endpoint-request.ts'
import { countingByConnection, type JoinedList, type Shown, withShown } from './joined-lists.ts'
import type { ListedDefinition } from './rendered-offer.ts'
import {
  type CallTool,
  callToolOf,
  callTools,
  foundByDefault,
  foundMax,
  isPart,
  searching,
  signatureOf,
} from './tool-search.ts'

/** Contract 20.9: characters of the description of `search_tools`. Past it: it is cut. */
const descriptionCharsMax = 1024

/** Contract 20.9: characters of complete definitions in the answer to a search. Past it: the answer has only the signature of each further tool. */
const fullCharsMax = 2 ** 20
/** Values of a body (`Allowance.takeValues`) that a tool takes as much as, where it is searched. */
const valuesOfTool = 4

const text = (words: string) => [{ type: 'text', text: words }]

const callSchema = {
  type: 'object',
  properties: {
    name: { type: 'string', description: 'The name that search_tools gave.' },
    arguments: { type: 'object', description: 'The arguments of the tool.' },
  },
  required: ['name'],
}
const hints = {
  call_read: { readOnlyHint: true },
  call_write: { readOnlyHint: false, destructiveHint: false },
  call_destructive: { readOnlyHint: false, destructiveHint: true },
}
const callDescriptions: Readonly<Record<CallTool, string>> = {
  call_read: 'Calls a tool that only reads.',
  call_write: 'Calls a tool that changes something and deletes nothing.',
  call_destructive: 'Calls a tool that may delete or overwrite something.',
}

/** The definitions that a list with a search has, as work in steps. `always`: names that it shows besides. */
export function* searchDefinitions(
  shown: readonly Shown[],
  joined: JoinedList,
  always: readonly string[],
): Work<readonly object[]> {
  const counts = yield* countingByConnection(joined)
  const named = shown.map(({ connectionId }) => `${connectionId} (${counts.get(connectionId) ?? 0})`)
  const { length } = joined.definitions
  const description = `Searches ${length} ${length === 1 ? 'tool' : 'tools'}${named.length === 0 ? '' : ': '}${named.join(', ')}.`
  const besides: object[] = []
  for (const name of always) {
    yield joined.definitions.length
    const found = joined.definitions.find(({ listed }) => listed === name)
    if (found !== undefined) besides.push(JSON.parse(yield* found.writing()))
  }
  return [
    {
      name: 'search_tools',
      description: shorten(description, descriptionCharsMax),
      inputSchema: {
        type: 'object',
        properties: {
          query: { type: 'string', description: 'Words that the tool’s name or description has.' },
          limit: { type: 'integer', minimum: 1, maximum: foundMax, default: foundByDefault },
          detail: { type: 'string', enum: ['signature', 'full'], default: 'signature' },
        },
        required: ['query'],
      },
      annotations: { readOnlyHint: true },
    },
    ...callTools.map((name) => ({
      ...{ name, description: callDescriptions[name], inputSchema: callSchema, annotations: hints[name] },
    })),
    ...besides,
  ]
}

/** Answers a call of `search_tools`. Throws 403, 400, 429. */
export async function searchTools(deps: EndpointDeps, asked: EndpointRequest): Promise<Response> {
  const { message, context } = asked
  // Asked as for a list, a part of which it is.
  await requireAllowed(deps, asked, { ...message.body, method: 'tools/list', params: {} }) // 403
  const given = argumentsOf(message)
  const { query, limit = foundByDefault, detail = 'signature' } = given
  const isLimit = typeof limit === 'number' && Number.isInteger(limit) && limit >= 1 && limit <= foundMax
  if (typeof query !== 'string' || !isLimit || (detail !== 'signature' && detail !== 'full')) {
    const words = `arguments: must be {"query": text, "limit": 1 to ${foundMax}, "detail": "signature" or "full"}`
    return answer(asked, { isError: true, content: text(words) })
  }
  const allowance = allowanceOf(context.request)
  const members = await withShown(deps, asked, async (shown) => {
    const index = await deps.indexes.of(allowance, shown, asked.options.length) // 429
    // A search in a part of the tools notes each of them, which is garbage for others to wait for.
    const noted = isPart(shown) ? shown.reduce((sum, { lists }) => sum + (lists?.tools.length ?? 0), 0) : 0
    allowance.takeValues(valuesOfTool * noted) // 429
    return allowance.run(writingFound(searching(shown, index, query, limit), detail === 'full'))
  })
  return answer(asked, writtenResult(asked, members))
}

/** The members of a result with these tools, as text and as structure. */
export function* writingFound(search: Work<readonly ListedDefinition[]>, isFull: boolean): Work<string> {
  const tools: string[] = []
  const quoted: string[] = []
  let left = fullCharsMax
  for (const one of yield* search) {
    // Twice: it is read, and its text is written as part of a text.
    yield 2 * one.size
    const isWhole = isFull && one.size <= left
    if (isWhole) left -= one.size
    const tool = isWhole ? yield* one.writing() : JSON.stringify(shortForm(one))
    tools.push(tool)
    quoted.push(JSON.stringify(tool).slice(1, -1))
  }
  const content = `[{"type":"text","text":"{\\"tools\\":[${quoted.join()}]}"}]`
  return `"content":${content},"structuredContent":{"tools":[${tools.join()}]}`
}

function shortForm({ listed, definition }: ListedDefinition) {
  return { name: listed, call: callToolOf(definition), signature: signatureOf(listed, definition) }
}

/** The tool that a `call_*` is for, with the call as a client would have sent it, or an answer. Throws 400, 429. */
export async function foundTarget(
  deps: EndpointDeps,
  asked: EndpointRequest,
  as: CallTool,
): Promise<{ readonly asked: EndpointRequest; readonly target: Target } | Response> {
  const { name, arguments: given = {} } = argumentsOf(asked.message)
  if (typeof name !== 'string' || typeof given !== 'object' || given === null || Array.isArray(given))
    return rpcError(asked, rpcCodes.invalidParams, 'arguments: must be {"name": text, "arguments": object}')
  const described = { ...asked, message: await describedCall(asked, name), via: 'search' as const }
  const target = await targetOfName(deps, described, { kind: 'tools', name, path: ['params', 'name'] })
  if (target instanceof Response) return target
  if (target === undefined) return unknown(asked, 'tool', name)
  const { connectionId, stored } = target.connection
  const params = { ...(described.message.body['params'] as object), name: target.named?.own }
  const { decision } = await decideOnUse(described, {
    metadata: { connectionId, metadata: stored.connection.metadata },
    rpc: { ...described.message.body, params },
  })
  // The answers below describe the tool. The endpoint refuses and records a denied call as it does every other.
  if (!decision.allowed) return { asked: described, target }
  const definition = await target.definition?.()
  // The pins hide this tool. The call is refused with the reason, in place of an answer that names the tool's class.
  const { own = '' } = target.named ?? {}
  if (definition === undefined && (await isHeldBack(deps, described.context, target.connection, own)))
    return { asked: described, target }
  const use = callToolOf(definition)
  if (use !== as) {
    const words = `${name} is ${use.slice('call_'.length)}: use ${use}`
    return answer(asked, { isError: true, content: text(words), structuredContent: { error: 'wrong_class', use } })
  }
  const { inputSchema } = (definition ?? {}) as { inputSchema?: JsonSchema }
  const problem = inputSchema && (await argumentsProblem(asked.context, inputSchema, given))
  if (problem !== undefined) {
    const structuredContent = { error: 'invalid_arguments', message: problem, inputSchema }
    return answer(asked, { isError: true, content: text(problem), structuredContent })
  }
  return { asked: described, target }
}

const argumentsOf = ({ body }: Message) =>
  ((body['params'] as { arguments?: unknown }).arguments ?? {}) as Readonly<Record<string, unknown>>

/** Besides the tool's name and arguments: with the last two a client sends a call again after `input_required`. */
const passedMembers = ['_meta', 'inputResponses', 'requestState']

/** The call that the arguments describe, as a client would have sent it. */
async function describedCall({ context, message }: EndpointRequest, name: string): Promise<Message> {
  const { request } = context
  const given = await rawAt(context, message, ['params', 'arguments', 'arguments'])
  const params = [`"name":${JSON.stringify(name)}`, `"arguments":${given ?? '{}'}`]
  // Looking for it takes as long as the message is.
  for (const member of passedMembers)
    if (Object.hasOwn(message.body['params'] as object, member))
      params.push(`"${member}":${await rawAt(context, message, ['params', member])}`)
  const id = await rawAt(context, message, ['id'])
  const json = `{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":{${params.join()}}}`
  const read = await allowanceOf(request).run(parsingMessage(utf8Of(json)))
  return { ...read, era: message.era }
}

/** The JSON of a value as its client wrote it; undefined if it is not there. */
async function rawAt({ request }: RequestContext, { bytes }: Message, wanted: JsonPath): Promise<string | undefined> {
  const whole = textOf(bytes)
  // No JSON has this character.
  const mark = '\u0000'
  const marked = await allowanceOf(request).run(
    replacingValues(whole, (path) => (isPath(path, wanted) ? mark : undefined)),
  )
  const at = marked.indexOf(mark)
  return at < 0 ? undefined : whole.slice(at, whole.length - (marked.length - at - 1))
}

/** The problem with arguments; a schema that cannot be compiled is left to its server. */
async function argumentsProblem({ request }: RequestContext, schema: JsonSchema, given: unknown) {
  // On first use: the library is large.
  const { readingSchema } = await import('../../schema/json-schema.ts')
  function* checking(): Work<string | undefined> {
    let check: Check
    try {
      check = yield* readingSchema(schema, 'arguments')
    } catch {
      return undefined
    }
    // Its patterns may take some forty milliseconds.
    yield sliceCost
    return check(given)
  }
  return allowanceOf(request).run(checking()) // 429
}
