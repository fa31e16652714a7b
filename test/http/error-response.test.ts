/** Errors as responses, in the three shapes that there are. */

import { expect, test } from 'bun:test'
import { type ErrorCode, notFound, PlatformError, type PlatformErrorOptions } from '../../src/errors.ts'
import { asPlatformError, errorResponse, rpcErrorBody } from '../../src/http/error-response.ts'
import type { Operation } from '../../src/operations.ts'

async function answered(code: ErrorCode, shape?: Operation['errors'], more: PlatformErrorOptions = {}) {
  const response = errorResponse(new PlatformError(code, 'why', more), shape)
  const headers = Object.fromEntries(response.headers)
  expect([headers['content-type'], headers['cache-control']]).toEqual(['application/json', 'no-store'])
  const { 'content-type': _, 'cache-control': __, ...others } = headers
  return [response.status, await response.json(), others]
}

test('an error is its code and its message, or that of the error in its place', async () => {
  expect(await answered('invalid_request')).toEqual([400, { error: 'invalid_request', message: 'why' }, {}])
  expect(await answered('parse_error')).toEqual([400, { error: 'invalid_request', message: 'why' }, {}])
  expect(await answered('session_not_found')).toEqual([502, { error: 'upstream_error', message: 'why' }, {}])
  expect(await answered('not_found')).toEqual([404, { error: 'not_found', message: 'why' }, {}])
  expect(await answered('unauthorized')).toMatchObject([401, {}, { 'www-authenticate': 'Bearer' }])
  expect(await answered('conflict')).toMatchObject([409, {}, { 'x-should-retry': 'false' }])
  expect(await answered('input_required')).toMatchObject([409, { error: 'conflict' }, { 'x-should-retry': 'false' }])
  expect(await answered('upstream_unauthorized', undefined, { setupUrl: 'http://x/setup' })).toEqual([
    401,
    { error: 'upstream_unauthorized', message: 'why', setupUrl: 'http://x/setup' },
    {},
  ])
  const more = { headers: { allow: 'GET' }, rpcHeaders: { 'x-rpc': '1' }, data: 1, id: 5 }
  expect(await answered('method_not_allowed', undefined, more)).toEqual([
    405,
    { error: 'method_not_allowed', message: 'why' },
    { allow: 'GET' },
  ])
})

test('an error about a server says no more than that it is not there, or why', async () => {
  expect(await answered('not_found', 'server')).toEqual([404, { error: 'Server not found' }, {}])
  expect(await answered('invalid_request', 'server')).toEqual([400, { error: 'why' }, {}])
})

test('an error of a page is a page that says what happened, at which connection, and where to go on', async () => {
  for (const [code, status, title] of [
    ['not_found', 404, 'There is no such page'],
    ['invalid_request', 400, 'postern cannot use this link or form'],
    ['forbidden', 403, 'You may not do this'],
    ['rate_limited', 429, 'Too many requests'],
    ['upstream_error', 502, 'The MCP server did not answer as it should'],
  ] as const) {
    const place = { url: 'http://a/connect/acme/crm/setup?ticket=x', base: 'http://a' }
    const response = errorResponse(new PlatformError(code, 'why <b>'), 'page', place)
    expect([response.status, response.headers.get('content-type')]).toEqual([status, 'text/html; charset=utf-8'])
    const text = await response.text()
    expect(text).toContain(`<h1>${title}</h1>`)
    expect(text).toContain('why &lt;b&gt;')
    expect(text).toContain('<dd>acme/crm</dd>')
    expect(text).toContain(`href="http://a/docs${status === 404 ? '' : '/troubleshooting'}"`)
  }
  const of = async (path: string) => {
    const place = { url: `http://a${path}`, base: 'http://a' }
    return /<dd>(.*)<\/dd>/.exec(await errorResponse(new PlatformError('forbidden', 'why'), 'page', place).text())?.[1]
  }
  expect(await of('/oauth/authorize?resource=http%3A%2F%2Fa%2Fconnect%2Facme%2Fcrm%2Fmcp&state=b')).toBe('acme/crm')
  for (const path of ['/signin', '/connect/a%3Cb/c/setup', '/connect/a/setup']) expect(await of(path)).toBeUndefined()
  const ofSignIn = { url: 'http://a/signin?link=used', base: 'http://a' }
  const used = await errorResponse(new PlatformError('invalid_request', 'why'), 'page', ofSignIn).text()
  expect(used).toContain('<a href="http://a/signin">Sign in with an API key</a>')
  expect(used).not.toContain('in your application')
  const answers = { setupUrl: 'http://a/connect/acme/crm/setup?ticket=x' }
  const missing = { url: 'http://a/connect/acme/crm/setup', base: 'http://a' }
  expect(await errorResponse(notFound(), 'page', missing).text()).toContain('or you have no access to it')
  expect(await errorResponse(new PlatformError('upstream_error', 'why', answers), 'page').text()).toContain('Try again')
})

test('an error of a message is JSON-RPC, unless it is ours', async () => {
  expect(await answered('not_found', 'rpc', { id: 5 })).toEqual([
    404,
    { jsonrpc: '2.0', id: 5, error: { code: -32_000, message: 'why' } },
    {},
  ])
  expect(await answered('session_not_found', 'rpc', { id: 'a', data: { b: 1 } })).toEqual([
    404,
    { jsonrpc: '2.0', id: 'a', error: { code: -32_001, message: 'why', data: { b: 1 } } },
    {},
  ])
  expect(await answered('internal', 'rpc', { id: 5 })).toEqual([500, { error: 'internal', message: 'why' }, {}])
  for (const [code, challenge] of [
    ['unauthorized', 'Bearer error="invalid_token"'],
    ['forbidden', 'Bearer error="insufficient_scope"'],
  ] as const)
    expect((await answered(code, 'rpc'))[2]).toEqual({ 'www-authenticate': challenge })
  const more = { headers: { allow: 'POST' }, rpcHeaders: { 'www-authenticate': 'Bearer realm="x"' } }
  expect((await answered('forbidden', 'rpc', more))[2]).toEqual({ allow: 'POST', ...more.rpcHeaders })
})

test('when to ask again is said where it is known, and in a second where too much was asked', async () => {
  for (const shape of [undefined, 'rpc'] as const) {
    expect((await answered('rate_limited', shape))[2]).toEqual({ 'retry-after': '1' })
    expect((await answered('rate_limited', shape, { retryAfter: 7 }))[2]).toEqual({ 'retry-after': '7' })
    expect((await answered('unavailable', shape, { retryAfter: 2 }))[2]).toEqual({ 'retry-after': '2' })
    expect((await answered('unavailable', shape))[2]).toEqual({ 'retry-after': '1' })
    expect((await answered('outcome_unknown', shape))[2]).toEqual({ 'retry-after': '1' })
  }
})

test('what is no error for callers is internal, and keeps its cause to us', () => {
  const known = new PlatformError('conflict', 'why')
  expect(asPlatformError(known)).toBe(known)
  const cause = new Error('the secret')
  const ours = asPlatformError(cause)
  expect([ours.code, ours.cause, ours.message.includes('secret')]).toEqual(['internal', cause, false])
})

test('data is told where there is some, null too', () => {
  expect(JSON.parse(rpcErrorBody(1, 'why', null, null))).toEqual({
    jsonrpc: '2.0',
    id: null,
    error: { code: 1, message: 'why', data: null },
  })
  expect(rpcErrorBody(1, 'why', null)).not.toContain('data')
})
