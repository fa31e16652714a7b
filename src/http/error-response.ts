/** Error responses for HTTP and JSON-RPC, from the table of errors (`errors.ts`). */

import { type ErrorCode, errorTable, PlatformError, type RpcId } from '../errors.ts'
import type { Operation } from '../operations.ts'
import { StoreError } from '../storage/store.ts'
import { html } from './html.ts'
import { isNavigation, page } from './html-page.ts'
import { noStoreJson } from './respond.ts'

/** The PlatformError itself, or, for any other thrown value, `internal` with a fixed text that reveals no details. */
export function asPlatformError(thrown: unknown): PlatformError {
  if (thrown instanceof PlatformError) return thrown
  const message = 'Internal error. The server log has the details under this x-request-id.'
  return new PlatformError('internal', message, { cause: thrown })
}

/** Whether a browser opened a URL where there is nothing to show: a page says so. */
export function isMissingPage(request: Request, { code }: PlatformError): boolean {
  return (code === 'not_found' || code === 'method_not_allowed') && isNavigation(request)
}

/** `shape`: the error format of the operation that failed. `home`: where the page for a 404 leads. */
export function errorResponse(error: PlatformError, shape?: Operation['errors'], home?: string): Response {
  // An internal error is not a response to the JSON-RPC message, so it is sent as plain HTTP.
  if (shape === 'rpc' && error.code !== 'internal') return rpcErrorResponse(error)
  const row = errorTable[error.code]
  const code = 'outsideRpc' in row ? row.outsideRpc : error.code
  if (shape === 'page') return errorPage(error, errorTable[code].status, home)
  return new Response(JSON.stringify(bodyOf(error, code, shape)), {
    status: errorTable[code].status,
    headers: {
      // The next request may succeed, so no cache may store an error.
      ...noStoreJson,
      ...(code === 'unauthorized' && { 'www-authenticate': 'Bearer' }),
      // Common client libraries retry a 409 unless this header says otherwise.
      ...(code === 'conflict' && { 'x-should-retry': 'false' }),
      ...retryHeader(error),
      ...error.options.headers,
    },
  })
}

function bodyOf({ message, options }: PlatformError, code: ErrorCode, shape: Operation['errors']): object {
  if (shape === 'server') return { error: code === 'not_found' ? 'Server not found' : message }
  return shape === 'text' ? { error: message } : { error: code, message, setupUrl: options.setupUrl }
}

/** For people who opened a page or sent a form. The message is text of ours, and escaped all the same. */
function errorPage(error: PlatformError, status: number, home: string | undefined): Response {
  const { message, options } = error
  const isMissing = status === 404
  return page({
    title: isMissing ? 'There is no such page' : 'This did not work',
    status,
    body: html`<p>${message}</p>
${options.setupUrl !== undefined && html`<p><a class="button" href="${options.setupUrl}">Try again</a></p>`}
${!isMissing && options.setupUrl === undefined && html`<p>You can close this page, and begin again in your application.</p>`}
${isMissing && home !== undefined && html`<p><a href="${home}">Documentation</a></p>`}`,
    headers: { ...retryHeader(error), ...options.headers },
  })
}

function rpcErrorResponse(error: PlatformError): Response {
  const { code, options } = error
  return new Response(rpcErrorText(error, options.id ?? null), {
    status: errorTable[code].status,
    headers: {
      ...noStoreJson,
      ...(code === 'unauthorized' && { 'www-authenticate': 'Bearer error="invalid_token"' }),
      ...(code === 'forbidden' && { 'www-authenticate': 'Bearer error="insufficient_scope"' }),
      ...retryHeader(error),
      ...options.headers,
      ...options.rpcHeaders,
    },
  })
}

function retryHeader({ code, options: { retryAfter } }: PlatformError): Record<string, string> {
  if (retryAfter !== undefined) return { 'retry-after': String(retryAfter) }
  return ['rate_limited', 'unavailable', 'outcome_unknown'].includes(code) ? { 'retry-after': '1' } : {}
}

/** The error as a JSON-RPC response to the request with this id. */
export function rpcErrorText({ code, message, options: { data } }: PlatformError, id: RpcId): string {
  return rpcErrorBody(errorTable[code].rpcCode, message, id, data)
}

/** A JSON-RPC error response as text. */
export function rpcErrorBody(code: number, message: string, id: RpcId, data?: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, ...(data !== undefined && { data }) } })
}

/**
 * 503 for a failing store, with a code of its own where the outcome of a write is unknown. Except for a damaged record:
 * that is permanent, so it is a 500, with details in the log.
 */
export function unavailableError(thrown: unknown): PlatformError | undefined {
  if (!(thrown instanceof StoreError) || thrown.kind === 'damaged') return undefined
  if (thrown.kind !== 'indeterminate') {
    return new PlatformError('unavailable', 'The store is unavailable right now', { cause: thrown })
  }
  const message = 'It is not known whether this was written: read before you repeat it'
  return new PlatformError('outcome_unknown', message, { cause: thrown })
}
