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
