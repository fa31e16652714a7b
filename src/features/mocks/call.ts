/** A message to a mocked server, the server itself, and its answer. */

import type { DirectorySnapshot } from '../../auth/directory.ts'
import type { RecordedAnswer } from '../../model/recorded-answer.ts'
import type { ServerDetail } from '../../model/server.ts'

export type Tool = NonNullable<ServerDetail['tools']>[number]
export type Arguments = Readonly<Record<string, unknown>>

/** A registered server, as it was read for its mocks. */
export interface MockServer {
  /** Of all that is stored of it, so that cached answers of an earlier version are not used. */
  readonly hash: string
  /** Of its JSON. */
  readonly bytes: number
  readonly detail: ServerDetail
  readonly tools: ReadonlyMap<string, Tool>
  readonly recorded: readonly RecordedAnswer[]
}

/** A call of an existing tool. */
export interface MockedCall {
  readonly request: Request
  readonly server: MockServer
  /** '' for none. */
  readonly scenario: string
  readonly tool: Tool
  readonly given: Arguments
}

/** A tool result or a JSON-RPC error, to be sent after `delayMs` milliseconds. */
export type MockAnswer = { readonly delayMs: number } & (
  | { readonly result: object }
  | { readonly error: NonNullable<RecordedAnswer['error']> }
)

export interface MockCall {
  /** The qualified name of the registered server. */
  readonly server: string
  /** The connection's scenario; '' for none. */
  readonly scenario: string
  readonly directory: DirectorySnapshot
  readonly message: {
    readonly bytes: Uint8Array
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
