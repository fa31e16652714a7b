/** Revisions of MCP that are spoken here. */

/** With `initialize` and sessions. */
export const handshakeRevisions: ReadonlySet<string> = new Set([
  '2025-11-25',
  '2025-06-18',
  '2025-03-26',
  '2024-11-05',
  '2024-10-07',
])

/** Without: every request says its own. */
export const statelessRevision = '2026-07-28'
