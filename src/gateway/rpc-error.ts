/** Refusals in the words of JSON-RPC: each has a status of HTTP and a code (contract, gateway). One table. */

import { PlatformError } from '../errors.ts'
import { freshJson } from '../http/respond.ts'

export type RpcId = string | number | null

export class RpcError extends Error {
  override readonly name = 'RpcError'
  readonly kind: RpcErrorKind
  readonly id: RpcId
  readonly data: unknown
  readonly headers: Readonly<Record<string, string>>

  constructor(
    kind: RpcErrorKind,
    message: string,
    { id = null, data, headers = {} }: { id?: RpcId; data?: unknown; headers?: Record<string, string> } = {},
  ) {
    super(message)
    this.kind = kind
    this.id = id
    this.data = data
    this.headers = headers
  }
}

const kinds = {
  unauthorized: [401, -32_001],
  upstream_unauthorized: [401, -32_001],
  not_found: [404, -32_000],
  no_session: [404, -32_001],
  forbidden: [403, -32_003],
  unreadable: [400, -32_700],
  not_rpc: [400, -32_600],
  too_large: [413, -32_600],
  input_required: [409, -32_002],
  upstream_down: [502, -32_000],
  upstream_late: [504, -32_000],
  too_many: [429, -32_000],
  method_not_allowed: [405, -32_000],
  unavailable: [503, -32_000],
  loop: [508, -32_000],
} as const satisfies Record<string, readonly [status: number, code: number]>
export type RpcErrorKind = keyof typeof kinds

export function rpcErrorBody(code: number, message: string, id: RpcId, data?: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, ...(data !== undefined && { data }) } })
}

/** The error as a message, for the request of this id. */
export function rpcErrorText({ kind, message, data }: RpcError, id: RpcId): string {
  const [, code] = kinds[kind]
  return rpcErrorBody(code, message, id, data)
}

export function rpcErrorResponse(error: RpcError): Response {
  const [status] = kinds[error.kind]
  return new Response(rpcErrorText(error, error.id), {
    status,
    headers: { ...freshJson, ...error.headers },
  })
}

/** What the rest of the platform throws, as JSON-RPC says it. Undefined for what is a fault of ours. */
export function asRpcError(thrown: unknown): RpcError | undefined {
  if (thrown instanceof RpcError) return thrown
  if (!(thrown instanceof PlatformError)) return undefined
  const { code, message, retryAfter } = thrown
  switch (code) {
    case 'unauthorized':
      return new RpcError('unauthorized', message, {
        headers: { 'www-authenticate': 'Bearer error="invalid_token"' },
      })
    case 'forbidden':
      return new RpcError('forbidden', message, {
        headers: { 'www-authenticate': 'Bearer error="insufficient_scope"' },
      })
    case 'not_found':
      return new RpcError('not_found', message)
    case 'rate_limited':
      return new RpcError('too_many', message, { headers: { 'retry-after': String(retryAfter ?? 1) } })
    case 'unavailable':
      return new RpcError('unavailable', message)
    case 'internal':
      return undefined
    default:
      return new RpcError('not_rpc', message)
  }
}
