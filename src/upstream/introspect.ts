/** Asks an MCP server what it has: tools, resources and prompts, all pages of each (contract, 9.7). */

import type { Client, RequestOptions } from '@modelcontextprotocol/client'
import { type Static, Type } from '@sinclair/typebox'
import type { Allowance } from '../fairness/allowance.ts'
import type { Work } from '../fairness/turns.ts'
import { introspectionPagesMax, jsonDepthMax, sliceCost } from '../limits.ts'
import {
  fieldsOf,
  Prompt,
  PromptArgument,
  Resource,
  ServerChange,
  ServerDetail,
  sameNameProblem,
  Tool,
} from '../model/server.ts'
import { problemText, validatorOf } from '../schema/check.ts'
import { parsingText, readJson } from '../schema/json.ts'
import { type Initialization, IntrospectionError, initializeServer, readServerInfo, shortened } from './probe.ts'
import type { Upstream } from './upstream.ts'

/** Contract 9.7: milliseconds in which postern must learn which tools, resources and prompts a server has. Past it: a warning, or 502. */
const introspectionTimeoutMs = 5000
/** Contract 9.7: bytes of all responses of a server that is asked what it has. Past it: a warning, or 502. */
export const introspectionBytesMax = 1024 * 1024
/** Ours: tools, resources or prompts of a server. Past it: a warning, or 502. */
const introspectionItemsMax = 5000

const Definitions = Type.Pick(ServerDetail, ['tools', 'resources', 'prompts'])
type Definitions = Static<typeof Definitions>
const shape = validatorOf(Type.Partial(Definitions))
const aboutShape = validatorOf(ServerChange)

export interface Introspection {
  /** Null for what the server does not have; left out is what could not be introspected. */
  readonly introspected: Partial<Definitions>
  /** Its own title and description, where it has some that a person could have written. */
  readonly about: Pick<ServerChange, 'displayName' | 'description'>
  /** Why something could not be introspected, for people. */
  readonly problems: readonly string[]
}

/** Rejects only with UpstreamError `refused`, and `rate_limited`. `owner`: a megabyte is checked in its turns. */
export async function introspectServer(
  upstream: Upstream,
  url: string,
  asking: Initialization<unknown>['asking'],
  owner: Pick<Allowance, 'run'>,
): Promise<Introspection> {
  const initialized = await initializeServer(upstream, {
    url,
    headers: {},
    asking,
    // The initialization, three lists, and what ends a session.
    bounds: {
      timeoutMs: introspectionTimeoutMs,
      requests: 3 * introspectionPagesMax + 5,
      bytes: introspectionBytesMax,
    },
    ask: readDefinitions,
  })
  if ('result' in initialized) return owner.run(checking(initialized.result))
  return {
    introspected: {},
    about: {},
    problems: [initialized.wantsAuthorization ? 'The server requires authorization' : initialized.problem],
  }
}

/** Each walks all pages, throws past `introspectionPagesMax`, and leaves out what spec 2.9 to 2.11 does not show. */
const lists = {
  async tools(client: Client, options: RequestOptions): Promise<object[]> {
    const { tools } = await client.listTools(undefined, options)
    return tools.map((one) => fieldsOf(Tool, { ...one, description: one.description ?? null }))
  },
  async resources(client: Client, options: RequestOptions): Promise<object[]> {
    const { resources } = await client.listResources(undefined, options)
    return resources.map((one) => fieldsOf(Resource, one))
  },
  async prompts(client: Client, options: RequestOptions): Promise<object[]> {
    const { prompts } = await client.listPrompts(undefined, options)
    return prompts.map((one) => {
      const list = one.arguments?.map((argument) => fieldsOf(PromptArgument, argument))
      return fieldsOf(Prompt, { ...one, arguments: list })
    })
  },
}

/** The answers of a server: the lists that it gave, or null for those that it does not have. */
interface Answers extends Pick<Introspection, 'about'> {
  readonly given: Partial<Record<keyof Definitions, readonly object[] | null>>
  readonly problems: string[]
}

/** A list that the server does not give leaves the others. Throws where it cannot be asked any more. */
async function readDefinitions(client: Client, options: RequestOptions): Promise<Answers> {
  const { ProtocolError } = await import('@modelcontextprotocol/client')
  const has = client.getServerCapabilities() ?? {}
  const given: Answers['given'] = {}
  const problems: string[] = []
  for (const what of ['tools', 'resources', 'prompts'] as const) {
    try {
      given[what] = has[what] === undefined ? null : await lists[what](client, options)
    } catch (error) {
      if (error instanceof IntrospectionError) problems.push(error.message)
      else if (error instanceof ProtocolError)
        problems.push(`The server does not list its ${what}, but answers: ${shortened(error.message)}`)
      else throw error
    }
  }
  return { given, about: aboutOf(client), problems }
}

/** A list that cannot be kept leaves the others. As work in steps. */
function* checking({ given, about, problems }: Answers): Work<Introspection> {
  const introspected: Partial<Definitions> = {}
  for (const [what, list] of Object.entries(given) as [keyof Definitions, readonly object[] | null][]) {
    const found = { [what]: list } as Partial<Definitions>
    const problem = yield* problemOf(what, found)
    if (problem === undefined) Object.assign(introspected, found)
    else problems.push(problem)
  }
  return { introspected, about, problems }
}

/** The instructions of a server are no description: they are written for models. */
function aboutOf(client: Client): Introspection['about'] {
  const { title, description } = readServerInfo(client.getServerVersion()) ?? {}
  const said = [title !== undefined && { displayName: title }, description !== undefined && { description }]
  return Object.assign({}, ...said.filter((one) => one !== false && couldBeWritten(one)))
}

/** As a body of a write: JSON that is read strictly, and within the bounds of each field. */
function couldBeWritten(about: Introspection['about']): boolean {
  return !('problem' in readJson(JSON.stringify(about), { depthMax: jsonDepthMax })) && aboutShape.isValid(about)
}

/** The problem of a list, for which a write would refuse it too (`server-handlers.ts`). As work in steps. */
function* problemOf(what: keyof Definitions, found: Partial<Definitions>): Work<string | undefined> {
  const count = found[what]?.length ?? 0
  if (count > introspectionItemsMax) return `The server has ${count} ${what}; at most ${introspectionItemsMax} are kept`
  if (hasInexactNumber(found)) return `The server's ${what} have a number that cannot be kept exactly`
  const read = yield* parsingText(JSON.stringify(found), { depthMax: jsonDepthMax })
  yield sliceCost
  const [problem] = 'problem' in read ? [read.problem] : shape.problems(found, 1)
  const wrong = problem ?? sameNameProblem(found.tools ?? null)
  return wrong && `The server's ${what} are wrong: ${problemText(wrong)}`
}

/** Whether a number may be another than the server wrote: it was parsed with the precision of a double. */
function hasInexactNumber(value: unknown): boolean {
  if (typeof value === 'number')
    return !Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))
  if (typeof value !== 'object' || value === null) return false
  return (Array.isArray(value) ? value : Object.values(value)).some(hasInexactNumber)
}
