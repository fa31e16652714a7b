/** A message to a mocked server, and what the server calls itself. */

import type { RegistrySnapshot } from '../../auth/registry.ts'
import type { ServerDetail } from '../../model/server.ts'

export interface MockCall {
  /** The registered server. */
  readonly server: string
  readonly scenario: string
  readonly registry: RegistrySnapshot
  readonly message: {
    readonly body: Readonly<Record<string, unknown>>
    readonly method: string | undefined
    readonly id: string | number | null
    readonly era: 'handshake' | 'stateless'
  }
  /** Those of MCP count. */
  readonly headers: Headers
  /** That it came with, and that may be given up. */
  readonly request: Request
}

export function serverIdentity({ qualifiedName, displayName }: ServerDetail) {
  return { name: qualifiedName, title: displayName, version: 'mock' }
}
