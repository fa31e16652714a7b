/**
 * Requests to MCP servers: only to addresses that were checked, without following redirects or decompressing, and
 * within time and memory limits (`pooled-upstream.ts`).
 */

import type { Holder } from '../fairness/owner.ts'

/**
 * `refused`: the address must not be connected to. `down`: no usable response. `late`: a timeout. `gone`: the client
 * disconnected. `busy`: the holder's share of memory is used up.
 */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly kind: 'refused' | 'down' | 'late' | 'gone' | 'busy'
  constructor(kind: UpstreamError['kind'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

export interface UpstreamRequest {
  readonly url: string
  /** `POST` by default. */
  readonly method?: 'POST' | 'GET' | 'DELETE'
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  /** The `Via` header of the client's request. */
  readonly via?: string | undefined
  /** The holder that causes the request: the look-up, and the response until it is read, count for its shares. */
  readonly holder: Holder
  /** Aborts when the client disconnects. A function, called only for slow responses: the signal is costly to create. */
  readonly signal?: (() => AbortSignal) | undefined
  /** Asked right before sending, perhaps seconds later. Undefined if it may be sent; `send` rejects as this does. */
  readonly requireAccess?: () => Promise<void> | undefined
  /** `isSent` is set before the first byte is written: from then on the server may execute the request. */
  readonly progress?: { isSent: boolean }
  /** Milliseconds until the response head must have arrived, name look-up included. */
  readonly timeoutMs: number
  /** For small documents: any body is read whole, up to this many bytes, and `timeoutMs` holds until its end. */
  readonly bodyBytesMax?: number
  /** Whether the response is parsed here, which takes more of its owner's time. Left out, small documents are. */
  readonly isParsed?: boolean
}

export interface UpstreamResponse {
  readonly status: number
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /**
   * A ReadableStream for a 2xx event stream; any other body whole, up to `upstreamResponseBytesMax`. Undefined if it is
   * empty or would not be used: for 3xx, 401, 5xx and compressed responses, and for bytes that are not UTF-8.
   */
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | undefined
}

export interface Upstream {
  /** Resolves with any HTTP response, up to status 599. Rejects with UpstreamError. */
  send(request: UpstreamRequest): Promise<UpstreamResponse>
}

/** As the standard `Response`, for code that expects one. */
export function toResponse({ status, headers, body }: UpstreamResponse): Response {
  return new Response(body ?? null, { status, headers: headers as Record<string, string> })
}
