/** Which HTTP/1.1 client requests to MCP servers are made with (`--upstream-client`). */

import type { ClientName } from './client-names.ts'
import { findParser } from './http-parser.ts'
import { openByParser } from './parser-client.ts'
import type { OpenWire } from './wire.ts'

/** Where the runtime has no parser that we know, the client is `node` whatever was wanted, and `onMissing` is told. */
export async function chooseClient(
  wanted: ClientName,
  onMissing: () => void,
  find: typeof findParser = findParser,
): Promise<OpenWire> {
  if (wanted === 'parser') {
    if (find() !== undefined) return openByParser
    onMissing()
  }
  const { openByNode } = await import('./node-client.ts')
  return openByNode
}
