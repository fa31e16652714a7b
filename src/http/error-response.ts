/** Error responses for HTTP and JSON-RPC, from the table of errors (`errors.ts`). */

import { type ErrorCode, errorTable, notFound, PlatformError, type RpcId, rateLimited } from '../errors.ts'
import type { Operation } from '../operations.ts'
import { StoreError } from '../storage/store.ts'
import { html } from './html.ts'
import { isNavigation, page, row } from './html-page.ts'
import { noStoreJson } from './respond.ts'

/** The PlatformError itself, or, for any other thrown value, `internal` with a fixed text that reveals no details. */
export function asPlatformError(thrown: unknown): PlatformError {
  if (thrown instanceof PlatformError) return thrown
  const message = 'Internal error. The server log has the details under this x-request-id.'
  return new PlatformError('internal', message, { cause: thrown })
}

/** Whether a browser opened a URL where there is nothing to show, or one with wrong parameters: a page says so. */
export function wantsPage(request: Request, { code }: PlatformError): boolean {
  return ['not_found', 'method_not_allowed', 'invalid_request'].includes(code) && isNavigation(request)
}

/** Where an error happened, for a page: the URL of the request, and the base URL without a slash at its end. */
interface Place {
  readonly url: string
  readonly base: string
}

/** `shape`: the error format of the operation that failed. */
export function errorResponse(error: PlatformError, shape?: Operation['errors'], place?: Place): Response {
  // An internal error is not a response to the JSON-RPC message, so it is sent as plain HTTP.
  if (shape === 'rpc' && error.code !== 'internal') return rpcErrorResponse(error)
  const row = errorTable[error.code]
  const code = 'outsideRpc' in row ? row.outsideRpc : error.code
  if (shape === 'page') return errorPage(error, errorTable[code].status, place)
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

/** For a request of a network that has too many in one pass of the event loop. `closes`: the connection ends. */
export function tooManyAtOnce(closes = false): Response {
  const response = errorResponse(rateLimited('Too many requests of this network at once', 1))
  if (closes) response.headers.set('connection', 'close')
  return response
}

function bodyOf({ message, options }: PlatformError, code: ErrorCode, shape: Operation['errors']): object {
  if (shape === 'server') return { error: code === 'not_found' ? 'Server not found' : message }
  return shape === 'text' ? { error: message } : { error: code, message, setupUrl: options.setupUrl }
}

/** The titles of pages, where the status says more than that something did not work. */
const titles: Readonly<Record<number, string>> = {
  400: 'postern cannot use this link or form',
  403: 'You may not do this',
  404: 'There is no such page',
  405: 'This address is not a page',
  429: 'Too many requests',
  502: 'The MCP server did not answer as it should',
  503: 'postern cannot do this right now',
  504: 'The MCP server did not answer in time',
}

/** For people who opened a page or sent a form. The message is text of ours, and escaped all the same. */
function errorPage(error: PlatformError, status: number, place: Place | undefined): Response {
  const { message, options } = error
  const { url = '', base = '' } = place ?? {}
  const connection = connectionIn(url)
  const missing =
    connection === undefined
      ? 'postern has nothing at this address.'
      : html`There is no such connection, or you have no access to it: <a href="${base}/signin">sign in</a> as somebody who has.`
  const isSignIn = /^[^?]*\/signin(?:[?/]|$)/.test(url)
  const next = isSignIn
    ? html`<a href="${base}/signin">Sign in with an API key</a>`
    : 'You can close this page, and begin again in your application.'
  return page({
    title: titles[status] ?? 'This did not work',
    status,
    body: html`${connection !== undefined && html`<dl>${row('Connection', connection)}</dl>`}
<p>${message === notFound().message ? missing : message}</p>
${options.setupUrl !== undefined && html`<p><a class="button" href="${options.setupUrl}">Try again</a></p>`}
${status !== 404 && options.setupUrl === undefined && html`<p>${next}</p>`}
${place !== undefined && html`<p><a href="${base}/docs${status === 404 ? '' : '/troubleshooting'}">Documentation</a></p>`}`,
    headers: { ...retryHeader(error), ...options.headers },
  })
}

/** The connection that a URL is about: in its path, or in a parameter of it. It may not be there. */
function connectionIn(url: string): string | undefined {
  const [, namespace, id] = connectionInUrl.exec(url) ?? []
  return namespace === undefined ? undefined : `${namespace}/${id}`
}
const connectionInUrl = /(?:\/|%2F)connect(?:\/|%2F)([\w.-]{1,64})(?:\/|%2F)([\w.-]{1,128})(?:\/|%2F)(?:mcp|setup)/i

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

export function rpcErrorBody(code: number, message: string, id: RpcId, data?: unknown): string {
  return JSON.stringify({ jsonrpc: '2.0', id, error: { code, message, ...(data !== undefined && { data }) } })
}

/** 503 for a failing store. Undefined for a damaged record, which is permanent: that is a 500. */
export function unavailableError(thrown: unknown): PlatformError | undefined {
  if (!(thrown instanceof StoreError) || thrown.kind === 'damaged') return undefined
  if (thrown.kind !== 'indeterminate')
    return new PlatformError('unavailable', 'The store is unavailable right now', { cause: thrown })
  const message = 'It is not known whether this was written: read before you repeat it'
  return new PlatformError('outcome_unknown', message, { cause: thrown })
}
