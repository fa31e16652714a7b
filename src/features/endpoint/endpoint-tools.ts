/** The tools of an endpoint, for a person who decides which of them a client may use. */

import type { RequestContext } from '../../auth/authorizer.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Work } from '../../fairness/turns.ts'
import { chosenToolsMax, type ShownTool, type ToolClaim } from '../../model/mcp.ts'
import { within } from '../../within.ts'
import { claimOf, consentToolsTimeoutMs, risks } from '../gateway/tool-requests.ts'
import type { EndpointDeps } from './endpoint-deps.ts'
import { joining, type Shown, withLists } from './joined-lists.ts'
import type { ListedDefinition } from './rendered-offer.ts'

/** Different claims about one name. Past it: the ids of the connections alone. */
const claimsShownMax = 10

/** Each by its own name, as the rules know it. Undefined if listing takes too long, or past `chosenToolsMax`. */
export async function endpointTools(
  deps: Pick<EndpointDeps, 'kept' | 'store' | 'narrow'>,
  context: RequestContext,
  { namespace, view }: { readonly namespace: string; readonly view?: string | undefined },
): Promise<ShownTool[] | undefined> {
  const found = view === undefined ? undefined : await context.directory.view(namespace, view)
  const narrowed = found === undefined ? context : deps.narrow(context, found)
  const listed = withLists(deps, narrowed, { namespace, mayAsk: true }, async (shownAt) =>
    allowanceOf(context.request).run(showing(await shownAt(46))),
  ).catch(() => undefined)
  return within(consentToolsTimeoutMs, listed, () => undefined)
}

function* showing(all: readonly Shown[]): Work<ShownTool[] | undefined> {
  const byName = new Map<string, ListedDefinition[]>()
  for (const one of (yield* joining(all, 'tools')).definitions) byName.getOrInsertComputed(one.own, () => []).push(one)
  // Before their definitions are read, which may be thousands.
  if (byName.size > chosenToolsMax) return undefined
  const tools: ShownTool[] = []
  for (const [name, listed] of byName) tools.push({ name, claims: yield* claimsIn(listed) })
  return tools
}

/** Ids of connections that say the same of a tool. Past it: their number. */
const idsShownMax = 5

const someOf = (ids: readonly string[]) =>
  ids.length <= idsShownMax
    ? ids.join(', ')
    : `${ids.slice(0, idsShownMax).join(', ')} and ${ids.length - idsShownMax} more`

/** The gravest first: who allows a name allows all of them, and none may hide behind another's harmless words. */
export function* claimsIn(
  listed: readonly Pick<ListedDefinition, 'size' | 'definition' | 'connectionId'>[],
): Work<ToolClaim[]> {
  const claims = new Map<string, ToolClaim & { readonly ids: string[] }>()
  for (const { size, definition, connectionId } of listed) {
    yield size
    const claim = claimOf(definition)
    const { ids } = claims.getOrInsertComputed(`${claim.risk}: ${claim.description}`, () => ({ ...claim, ids: [] }))
    ids.push(connectionId)
  }
  const all = [...claims.values()].sort((a, b) => risks.indexOf(a.risk) - risks.indexOf(b.risk))
  const shown = all.slice(0, claimsShownMax)
  const left = all.slice(claimsShownMax)
  if (left[0]) shown.push({ ids: left.flatMap(({ ids }) => ids), description: 'other words', risk: left[0].risk })
  return shown.map(({ ids, description, risk }) => ({ description: `${someOf(ids)}: ${description}`, risk }))
}
