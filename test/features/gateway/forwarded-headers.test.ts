/** Which headers reach an upstream. */

import { expect, test } from 'bun:test'
import { forwardedHeaders } from '../../../src/features/gateway/forwarded-headers.ts'
import type { Message } from '../../../src/features/gateway/message.ts'

const always = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
const sent = (
  given: Record<string, string>,
  { era = 'handshake' as Message['era'], more = {}, connectionHeaders = {} } = {},
) => {
  const {
    'content-type': type,
    accept,
    ...others
  } = forwardedHeaders({ headers: new Headers(given), message: { era } as Message, connectionHeaders }, more)
  expect({ 'content-type': type, accept }).toEqual(always)
  return others
}

test('those of MCP, and nothing that is the client’s own', () => {
  const given = { 'MCP-Protocol-Version': '1', 'Last-Event-Id': '2', 'mcp-other': '3' }
  const own = {
    authorization: 'Bearer secret',
    cookie: 'a',
    'x-mcp-a': 'b',
    accept: 'text/html',
    'content-type': 'a/b',
  }
  expect(sent({ ...given, ...own })).toEqual({ 'mcp-protocol-version': '1', 'last-event-id': '2', 'mcp-other': '3' })
})

test('a session’s id never as the client has it, and what repeats the body where that was compared', () => {
  const given = {
    'mcp-session-id': 'sealed',
    'mcp-method': 'm',
    'mcp-name': 'n',
    'mcp-param-a': 'p',
    'mcp-paramount': 'q',
  }
  expect(sent(given)).toEqual({ 'mcp-paramount': 'q' })
  const { 'mcp-session-id': _, ...compared } = given
  expect(sent(given, { era: 'stateless' })).toEqual(compared)
})

test('a session is never the connection’s: all callers would share it', () => {
  expect(sent({}, { connectionHeaders: { 'Mcp-Session-Id': 'own' } })).toEqual({})
})

test('the session’s before the client’s, and the connection’s own before all', () => {
  const given = { 'mcp-protocol-version': '1', 'mcp-a': 'a' }
  const more = { 'mcp-protocol-version': '2', 'mcp-session-id': 's' }
  expect(sent(given, { more })).toEqual({ 'mcp-protocol-version': '2', 'mcp-session-id': 's', 'mcp-a': 'a' })
  const connectionHeaders = { 'MCP-Protocol-Version': '3', 'X-Key': 'k' }
  expect(sent(given, { more, connectionHeaders })).toEqual({
    'mcp-protocol-version': '3',
    'mcp-session-id': 's',
    'mcp-a': 'a',
    'x-key': 'k',
  })
})

test('what repeats the body is the client’s, which was compared with it, and never the connection’s', () => {
  const connectionHeaders = { 'MCP-Name': 'other', 'mcp-method': 'other', 'Mcp-Param-Owner': 'other' }
  expect(sent({}, { connectionHeaders })).toEqual({})
  expect(sent({ 'mcp-name': 'n' }, { era: 'stateless', connectionHeaders })).toEqual({ 'mcp-name': 'n' })
})

test('how the body is read is never said by the connection: it was checked as UTF-8 JSON', () => {
  const connectionHeaders = {
    'Content-Type': 'application/json; charset=utf-7',
    'content-encoding': 'gzip',
    Expect: '100-continue',
    'Content-Language': 'en',
  }
  expect(sent({}, { connectionHeaders })).toEqual({})
})
