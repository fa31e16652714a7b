/** Chooses the HTTP/1.1 client for requests to MCP servers (`--upstream-client`). */

import type { ClientName } from './client-names.ts'
import type { OpenHttpConnection } from './http-connection.ts'
import { findParser } from './http-parser.ts'
import { openByParser } from './parser-client.ts'

/** If the runtime has no usable parser, calls `onMissing` and falls back to the client `node`. */
export async function chooseClient(
  wanted: ClientName,
  onMissing: () => void,
  find: typeof findParser = findParser,
): Promise<OpenHttpConnection> {
  if (wanted === 'parser') {
    if (find() !== undefined) return openByParser
    onMissing()
  }
  const { openByNode } = await import('./node-client.ts')
  return openByNode
}
