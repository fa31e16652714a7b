/** The tools of an endpoint, for a person who decides which of them a client may use. */

import type { RequestContext } from '../../auth/authorizer.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import type { ShownTool } from '../../model/mcp.ts'
import { within } from '../../within.ts'
import { consentToolsTimeoutMs, shown } from '../gateway/tool-requests.ts'
import { narrowedBy } from './endpoint-context.ts'
import type { EndpointDeps } from './endpoint-deps.ts'
import { joining, type Shown, withLists } from './joined-lists.ts'
import type { ListedDefinition } from './rendered-offer.ts'

/** Each by its own name, under which the rules know it. Undefined if they cannot be listed in time. */
export async function endpointTools(
  deps: Pick<EndpointDeps, 'kept' | 'store'>,
  context: RequestContext,
  { namespace, view }: { readonly namespace: string; readonly view?: string | undefined },
): Promise<ShownTool[] | undefined> {
  const found = view === undefined ? undefined : await context.directory.view(namespace, view)
  const narrowed = found === undefined ? context : narrowedBy(found, context)
  const listed = withLists(deps, narrowed, { namespace, length: 46, mayAsk: true }, (all) =>
    allowanceOf(context.request).run(showing(all)),
  ).catch(() => undefined)
  return within(consentToolsTimeoutMs, listed, () => undefined)
}

function* showing(all: readonly Shown[]): Work<ShownTool[]> {
  const byName = new Map<string, ListedDefinition[]>()
  for (const one of (yield* joining(all, 'tools')).definitions) byName.getOrInsertComputed(one.own, () => []).push(one)
  const tools: ShownTool[] = []
  for (const [first, ...others] of byName.values()) {
    if (first === undefined) continue
    yield first.size
    const ids = [first, ...others].map(({ connectionId }) => connectionId).join(', ')
    const tool = shown(first.definition)
    tools.push({ ...tool, description: `${ids}: ${tool.description}` })
  }
  return tools
}
