/** The tool `connections_status`: which connections are listed, and why others are not (contract, 20.4). */

import { joinLists, type Shown } from './joined-lists.ts'

/** Its definition, as lists show it. */
export const statusTool = {
  name: 'connections_status',
  description: 'Says which connections are listed here, and why others are not.',
  inputSchema: { type: 'object', additionalProperties: false },
  annotations: { readOnlyHint: true },
} as const

/** The result of a call. */
export function statusResult(shown: readonly Shown[]): object {
  const { definitions, skipped } = joinLists(shown, 'tools')
  const tools = Map.groupBy(definitions, ({ connectionId }) => connectionId)
  const problems = new Map(skipped.map((one) => [one.connectionId, one]))
  const connections = shown.map(({ ref: { connectionId }, lists, kept, problem }) => {
    const found = problem ?? problems.get(connectionId)
    const state =
      lists === undefined || found?.error === 'too_large' ? 'skipped' : found === undefined ? 'listed' : 'stale'
    return {
      ...{ connectionId, state, tools: tools.get(connectionId)?.length ?? 0 },
      ...(kept !== undefined && { listedAt: kept.listedAt }),
      ...(found !== undefined && { error: found.error, message: found.message }),
      ...(found?.setupUrl !== undefined && { setupUrl: found.setupUrl }),
    }
  })
  const structuredContent = { connections }
  return { content: [{ type: 'text', text: JSON.stringify(structuredContent) }], structuredContent }
}
