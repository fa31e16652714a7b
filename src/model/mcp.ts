/** MCP's names and numbers: supported revisions and error codes. */

import { version } from '../version.ts'

/** Revisions of the handshake era, with `initialize` and sessions. */
export const handshakeRevisions: ReadonlySet<string> = new Set([
  '2025-11-25',
  '2025-06-18',
  '2025-03-26',
  '2024-11-05',
  '2024-10-07',
])

/** The revision with which we greet servers, and clients that name no known one. */
export const newestHandshake = '2025-11-25'

export const rpcCodes = {
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internal: -32_603,
  headerMismatch: -32_020,
  unsupportedRevision: -32_022,
} as const

/** The stateless revision: every request names it, and there are no sessions. */
export const statelessRevision = '2026-07-28'

/** The member of `params._meta` in which a request names its revision. */
export const revisionKey = 'io.modelcontextprotocol/protocolVersion'

/** The revision that a request names and those that postern speaks in its era; undefined if it names one of these. */
export function unknownRevision(
  { era, body }: { readonly era: 'handshake' | 'stateless'; readonly body: Readonly<Record<string, unknown>> },
  headers: Headers,
): { readonly requested: unknown; readonly supported: readonly string[] } | undefined {
  const isStateless = era === 'stateless'
  const supported = isStateless ? [statelessRevision] : [...handshakeRevisions]
  const { _meta } = (body['params'] ?? {}) as { _meta?: Readonly<Record<string, unknown>> }
  const requested = isStateless ? _meta?.[revisionKey] : headers.get('mcp-protocol-version')
  return requested === null || supported.some((one) => one === requested) ? undefined : { requested, supported }
}

export const ownClientInfo = { name: 'postern', version } as const

/** The metadata that each request of ours carries in that revision. */
export const statelessMeta = {
  [revisionKey]: statelessRevision,
  'io.modelcontextprotocol/clientInfo': ownClientInfo,
  'io.modelcontextprotocol/clientCapabilities': {},
} as const

/** The headers that a request of that revision repeats of its body. */
export function statelessHeaders(method: string): Record<string, string> {
  return { 'mcp-protocol-version': statelessRevision, 'mcp-method': method }
}

/** A text as a header that repeats the body: as base64 unless it is plain ASCII that cannot be read as base64. */
export function headerText(text: string): string {
  const isPlain = /^[!-~](?:[ -~]*[!-~])?$/.test(text) && !text.startsWith('=?base64?')
  return isPlain ? text : `=?base64?${Buffer.from(text).toString('base64')}?=`
}

/** By method, the parameter that names a tool, prompt or resource, which the header `Mcp-Name` repeats. */
export const namingParameters: ReadonlyMap<string, string> = new Map([
  ['tools/call', 'name'],
  ['prompts/get', 'name'],
  ['resources/read', 'uri'],
])

/** The value of that parameter, which may be of any type. Undefined if there is none. */
export function namedBy(method: string, params: unknown): unknown {
  const parameter = namingParameters.get(method)
  if (parameter === undefined || typeof params !== 'object' || params === null) return undefined
  return Object.hasOwn(params, parameter) ? (params as Record<string, unknown>)[parameter] : undefined
}

/** Ours: tools that the consent page lists, and that a grant may name, because a token must fit its header. Past it: the user types the names of the tools, or gets 400. */
export const chosenToolsMax = 200

/** A tool as a person sees it who decides about it. */
export interface ShownTool {
  readonly name: string
  /** By each server that has such a tool. */
  readonly claims: readonly ToolClaim[]
}

export interface ToolClaim {
  /** The server's own words; long ones are cut. */
  readonly description: string
  /** By its annotations. */
  readonly risk: string
}

/** Completes "The MCP server …", in errors: another program answers, or the server does not follow the protocol. */
export const notMcp = 'does not answer in MCP: check the URL of the connection'
