/** The tools of an endpoint, for a person who decides which of them a client may use. */

import type { RequestContext } from '../../auth/authorizer.ts'
import type { ShownTool } from '../../model/mcp.ts'
import { within } from '../../within.ts'
import { consentToolsTimeoutMs, shown } from '../gateway/tool-requests.ts'
import { narrowedBy } from './endpoint-context.ts'
import type { EndpointDeps } from './endpoint-deps.ts'
import { joinLists, withLists } from './joined-lists.ts'

/** Each by its own name, under which the rules know it. Undefined if they cannot be listed in time. */
export async function endpointTools(
  deps: Pick<EndpointDeps, 'kept' | 'store'>,
  context: RequestContext,
  { namespace, view }: { readonly namespace: string; readonly view?: string | undefined },
): Promise<ShownTool[] | undefined> {
  const found = view === undefined ? undefined : await context.directory.view(namespace, view)
  const narrowed = found === undefined ? context : narrowedBy(found, context)
  const listed = withLists(deps, narrowed, { namespace, length: 46, mayAsk: true }, (all) => {
    const byName = Map.groupBy(joinLists(all, 'tools').definitions, (one) => one.own)
    return [...byName.values()].flatMap(([first, ...others]) => {
      if (first === undefined) return []
      const ids = [first, ...others].map(({ connectionId }) => connectionId).join(', ')
      const tool = shown(first.definition)
      return [{ ...tool, description: `${ids}: ${tool.description}` }]
    })
  }).catch(() => undefined)
  return within(consentToolsTimeoutMs, listed, () => undefined)
}
