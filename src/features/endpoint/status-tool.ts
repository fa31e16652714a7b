/** The tool `connections_status`: which connections are listed, and why others are not (contract, 20.4). */

import type { Work } from '../../fairness/turns.ts'
import { countingByConnection, joining, type Shown } from './joined-lists.ts'

/** Its definition, as lists show it. */
export const statusTool = {
  name: 'connections_status',
  description: 'Says which connections are listed here, and why others are not.',
  inputSchema: { type: 'object', additionalProperties: false },
  annotations: { readOnlyHint: true },
} as const

/** The result of a call, as work in steps. */
export function* statusResult(shown: readonly Shown[]): Work<object> {
  const joined = yield* joining(shown, 'tools')
  const tools = yield* countingByConnection(joined)
  const problems = new Map(joined.skipped.map((one) => [one.connectionId, one]))
  const connections = shown.map(({ connectionId, lists, kept, problem }) => {
    const skipped = problems.get(connectionId)
    const found = problem ?? skipped
    const state = lists === undefined || skipped !== undefined ? 'skipped' : problem === undefined ? 'listed' : 'stale'
    return {
      ...{ connectionId, state, tools: tools.get(connectionId) ?? 0 },
      ...(kept !== undefined && { listedAt: kept.listedAt }),
      ...(found !== undefined && { error: found.error, message: found.message }),
      ...(found?.setupUrl !== undefined && { setupUrl: found.setupUrl }),
    }
  })
  const structuredContent = { connections }
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent }
}
