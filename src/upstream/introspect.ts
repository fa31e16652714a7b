/** Asks an MCP server what it has: tools, resources and prompts, all pages of each (door contract, 2.6). */

import type { Client, RequestOptions } from '@modelcontextprotocol/client'
import {
  introspectionBytesMax,
  introspectionItemsMax,
  introspectionPagesMax,
  introspectionTimeoutMs,
} from '../limits.ts'
import type { ServerDetail } from '../model/server.ts'
import { type Greeting, greetServer, UnlearntError } from './probe.ts'
import type { Upstream } from './upstream.ts'

/** Null for what the server does not have. */
export type Introspection = Pick<ServerDetail, 'tools' | 'resources' | 'prompts'>

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
  return {
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
  }
}

function atMost<T>(what: string, items: readonly T[]): readonly T[] {
  if (items.length <= introspectionItemsMax) return items
  throw new UnlearntError(`The server has ${items.length} ${what}; at most ${introspectionItemsMax} are kept`)
}
