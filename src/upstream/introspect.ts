/** Asks an MCP server what it has: tools, resources and prompts, all pages of each (door contract, 2.6). */

import type { Client, RequestOptions } from '@modelcontextprotocol/client'
import { type Static, Type } from '@sinclair/typebox'
import {
  introspectionBytesMax,
  introspectionItemsMax,
  introspectionPagesMax,
  introspectionTimeoutMs,
  jsonDepthMax,
} from '../limits.ts'
import { ServerDetail, sameNameProblem } from '../model/server.ts'
import { problemText, validatorOf } from '../schema/check.ts'
import { readJson } from '../schema/json.ts'
import { type Greeting, greetServer, UnlearntError } from './probe.ts'
import type { Upstream } from './upstream.ts'

const Introspection = Type.Pick(ServerDetail, ['tools', 'resources', 'prompts'])
/** Null for what the server does not have. */
export type Introspection = Static<typeof Introspection>
const shape = validatorOf(Introspection)

/** What was learnt, or why nothing was, for people. Rejects only with UpstreamError `refused`. */
export async function introspectServer(
  upstream: Upstream,
  url: string,
  asking: Greeting<unknown>['asking'],
): Promise<Introspection | { readonly problem: string }> {
  const greeted = await greetServer(upstream, {
    url,
    headers: {},
    asking,
    // The greeting, three lists, and what ends a session.
    bounds: {
      timeoutMs: introspectionTimeoutMs,
      requests: 3 * introspectionPagesMax + 5,
      bytes: introspectionBytesMax,
    },
    learn,
  })
  if ('learnt' in greeted) return greeted.learnt
  return { problem: greeted.wantsAuthorization ? 'The server requires authorization' : greeted.problem }
}

async function learn(client: Client, options: RequestOptions): Promise<Introspection> {
  const has = client.getServerCapabilities() ?? {}
  // Each walks all pages, and throws past `introspectionPagesMax`.
  const tools = has.tools && atMost('tools', (await client.listTools(undefined, options)).tools)
  const resources = has.resources && atMost('resources', (await client.listResources(undefined, options)).resources)
  const prompts = has.prompts && atMost('prompts', (await client.listPrompts(undefined, options)).prompts)
  // Without what the registry does not show (specification 2.9 to 2.11).
  return checked({
    tools:
      tools?.map(({ name, description, inputSchema, outputSchema }) => ({
        name,
        description: description ?? null,
        inputSchema: inputSchema as { type: 'object' },
        ...(outputSchema && { outputSchema: outputSchema as { type: 'object' } }),
      })) ?? null,
    resources:
      resources?.map(({ name, uri, description, mimeType }) => ({
        name,
        uri,
        ...(description !== undefined && { description }),
        ...(mimeType !== undefined && { mimeType }),
      })) ?? null,
    prompts:
      prompts?.map(({ name, description, arguments: given }) => ({
        name,
        ...(description !== undefined && { description }),
        ...(given && {
          arguments: given.map((one) => ({
            name: one.name,
            ...(one.description !== undefined && { description: one.description }),
            ...(one.required !== undefined && { required: one.required }),
          })),
        }),
      })) ?? null,
  })
}

/** What a write of a server would refuse (`features/servers/write.ts`) is not learnt either. */
function checked(found: Introspection): Introspection {
  let text: string
  try {
    text = JSON.stringify(found)
  } catch {
    throw new UnlearntError(`The server's definitions are nested deeper than ${jsonDepthMax}`)
  }
  const read = readJson(text, { depthMax: jsonDepthMax })
  const [problem] = 'problem' in read ? [read.problem] : shape.problems(found, 1)
  const wrong = problem ?? sameNameProblem(found.tools)
  if (wrong !== undefined) throw new UnlearntError(`The server's definitions are wrong: ${problemText(wrong)}`)
  return found
}

function atMost<T>(what: string, items: readonly T[]): readonly T[] {
  if (items.length <= introspectionItemsMax) return items
  throw new UnlearntError(`The server has ${items.length} ${what}; at most ${introspectionItemsMax} are kept`)
}
