/** Which HTTP/1.1 client requests to MCP servers are made with (`--upstream-client`). */

import type { ClientName } from './client-names.ts'
import type { OpenHttpConnection } from './http-connection.ts'
import { findParser } from './http-parser.ts'
import { openByParser } from './parser-client.ts'

/** Where the runtime has no parser that we know, the client is `node` whatever was wanted, and `onMissing` is told. */
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
