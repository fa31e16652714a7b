/** What MCP calls things: revisions that are spoken here, and codes of errors. */

/** With `initialize` and sessions. */
export const handshakeRevisions: ReadonlySet<string> = new Set([
  '2025-11-25',
  '2025-06-18',
  '2025-03-26',
  '2024-11-05',
  '2024-10-07',
])

/** Codes of JSON-RPC, and of MCP on top of it. */
export const rpcCodes = {
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  headerMismatch: -32_020,
  unsupportedRevision: -32_022,
} as const

/** Without: every request says its own. */
export const statelessRevision = '2026-07-28'

/**
 * Which of a request's parameters names what it is about; `Mcp-Name` repeats it (revision 2026-07-28, standard
 * headers).
 */
export const namingParameters: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])

/**
 * The tool, prompt or resource that a request names; undefined where it names none. Whatever stands there: it may be
 * no text.
 */
export function namedBy(method: string, params: unknown): unknown {
  const parameter = namingParameters.get(method)
  if (parameter === undefined || typeof params !== 'object' || params === null) return undefined
  return Object.hasOwn(params, parameter) ? (params as Record<string, unknown>)[parameter] : undefined
}
