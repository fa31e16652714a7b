/** A message to a mocked server, and the server's own name and version. */

import type { DirectorySnapshot } from '../../auth/directory.ts'
import type { ServerDetail } from '../../model/server.ts'

export interface MockCall {
  /** The qualified name of the registered server. */
  readonly server: string
  /** The connection's scenario; '' for none. */
  readonly scenario: string
  readonly directory: DirectorySnapshot
  readonly message: {
    readonly body: Readonly<Record<string, unknown>>
    readonly method: string | undefined
    readonly id: string | number | null
    readonly era: 'handshake' | 'stateless'
  }
  /** The client's headers, of which only MCP headers matter. */
  readonly headers: Headers
  /** The HTTP request, whose signal aborts when the client disconnects. */
  readonly request: Request
}

/** `serverInfo` of MCP. */
export function serverIdentity({ qualifiedName, displayName }: ServerDetail) {
  return { name: qualifiedName, title: displayName, version: 'mock' }
}
