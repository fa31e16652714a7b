/** The entries of a list: definitions of connections, or a search in place of tools, and tools of the platform. */

import type { Work } from '../../fairness/turns.ts'
import type { ListKind } from '../gateway/tool-requests.ts'
import type { EndpointRequest } from './endpoint-request.ts'
import { type JoinedList, joining, type Shown } from './joined-lists.ts'
import { searchDefinitions } from './search-tools.ts'
import { statusTool } from './status-tool.ts'

/** As work in steps. `own`: tools of the platform, which stand at the end. */
export function* listedEntries(
  shown: readonly Shown[],
  kind: ListKind,
  { options, view }: Pick<EndpointRequest, 'options' | 'view'>,
): Work<{ readonly joined: JoinedList; readonly own: readonly object[] }> {
  const joined = yield* joining(shown, kind)
  if (kind !== 'tools') return { joined, own: [] }
  const status = options.hasStatus ? [statusTool] : []
  if (!options.isSearch) return { joined, own: status }
  const search = yield* searchDefinitions(shown, joined, view?.always ?? [])
  return { joined: { ...joined, definitions: [] }, own: [...search, ...status] }
}
