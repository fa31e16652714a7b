/** What a request may write of a connection, and what it makes of the one that is there. */

import { describe, expect, test } from 'bun:test'
import { openHeaders, sealHeaders, sealPart } from '../../../src/auth/sealed-parts.ts'
import { draftChange, draftNew, readWrite, requireWritable } from '../../../src/features/connections/draft.ts'
import { connectionBytesMax } from '../../../src/limits.ts'
import type { Connection, ConnectionStatus } from '../../../src/model/connection.ts'
import { connectionBytes, type StoredConnection } from '../../../src/storage/connections.ts'
import { seed } from '../../support/platform.ts'
import { connection } from './world.ts'

const headersKey = seed('headers key')
const ref = { namespace: 'acme', connectionId: 'one' }
const keys = { headersKey, signInKey: seed('sign-in key') }
const url = 'https://a.example.com/mcp'

describe('a write', () => {
  const good: object[] = [
    { mcpUrl: url },
    { server: 'acme/tools', mock: { enabled: true } },
    { mcpUrl: url, mock: { enabled: false } },
    { mcpUrl: url, metadata: { connectionid: 'x' }, headers: { 'X-A': '1', 'X-B': '2' } },
    { headers: null, metadata: null },
  ]
  for (const body of good) test(`may be ${JSON.stringify(body)}`, () => expect(readWrite(body) as object).toEqual(body))

  const bad: [body: unknown, message: string][] = [
    [undefined, 'the request body is missing'],
    [{ mcpUrl: 'ftp://a.example.com' }, 'mcpUrl: '],
    [{ mcpUrl: url, server: 'acme/tools' }, 'server: cannot be combined with mcpUrl'],
    [{ mcpUrl: url, mock: { enabled: true } }, 'mock: requires server, not mcpUrl'],
    [{ mcpUrl: url, metadata: { connectionId: 'x' } }, "metadata.connectionId: is the connection's own"],
    [{ mcpUrl: url, metadata: { namespace: 'x' } }, "metadata.namespace: is the connection's own"],
    [{ mcpUrl: url, headers: { HOST: 'x' } }, 'headers["HOST"]: cannot be set here'],
    [{ mcpUrl: url, headers: { Via: 'x' } }, 'headers["Via"]: cannot be set here'],
    [{ mcpUrl: url, headers: { 'X-A': '1', 'x-a': '1' } }, 'headers["x-a"]: is given twice'],
  ]
  for (const [body, message] of bad)
    test(`is not ${JSON.stringify(body)}`, () => expect(() => readWrite(body)).toThrow(message))
})

describe('a new connection', () => {
  // Nothing is looked up where no server is named.
  const draft = (write: object) => draftNew(keys, { write, ref, context: undefined as never }, new Date(0))
  test('is at its URL, with its headers sealed and its mock as it is given', async () => {
    const {
      connection: made,
      privatePart,
      target: { headers },
    } = await draft({
      mcpUrl: url,
      mock: { enabled: false },
      headers: { 'X-A': '1' },
    })
    expect(made).toEqual({
      connectionId: 'one',
      name: 'one',
      mcpUrl: url,
      metadata: null,
      transport: 'http',
      mock: { enabled: false },
      createdAt: new Date(0).toISOString(),
    })
    expect([headers, openHeaders(privatePart, ref, headersKey)]).toEqual([{ 'X-A': '1' }, { 'X-A': '1' }])
  })
  test('needs a URL or a server, and a mock needs a server', async () => {
    await expect(draft({})).rejects.toThrow('mcpUrl: is missing; send mcpUrl or server')
    await expect(draft({ mock: { enabled: false } })).rejects.toThrow('mcpUrl: is missing')
    await expect(draft({ mock: { enabled: true } })).rejects.toThrow('mock: requires server')
  })
})

describe('a connection that is there', () => {
  const input = { state: 'input_required', http: {}, missing: { headers: [], query: ['key'] } } as ConnectionStatus
  const stored = (status: ConnectionStatus, more: Partial<Connection> = {}) => {
    const one = { ...connection('one'), mcpUrl: url, status, ...more }
    const privatePart = { server: 'acme/tools', ...sealHeaders({ 'X-Old': '1' }, ref, headersKey) }
    return { connection: one, privatePart, bytes: connectionBytes(one), privateBytes: undefined }
  }
  const change = (write: object, before: StoredConnection = stored({ state: 'connected' })) =>
    draftChange(keys, { write, ref }, before, [])

  test('keeps its URL; while it waits for input, the query may change', () => {
    const other = `${url}?key=1`
    expect(change({ mcpUrl: url }).connection.mcpUrl).toBe(url)
    expect(change({ mcpUrl: other }, stored(input)).connection.mcpUrl).toBe(other)
    for (const [write, before] of [
      [other, stored({ state: 'connected' })],
      ['https://a.example.com/other?key=1', stored(input)],
      ['https://b.example.com/mcp?key=1', stored(input)],
      [url, stored(input, { mcpUrl: null })],
    ] as const)
      expect(() => change({ mcpUrl: write }, before)).toThrow('mcpUrl: the URL of a connection cannot be changed')
  })

  test('takes no secrets that are for another server: whoever had the name first would get them', () => {
    const secrets = { headers: { authorization: 'Bearer secret' } }
    const client = { oauth: { clientId: 'a', clientSecret: 'secret' } }
    for (const write of [secrets, client]) {
      expect(() => change({ server: 'acme/other', ...write })).toThrow(
        'server: the server of a connection cannot be changed',
      )
      expect(change({ server: 'acme/tools', ...write }).privatePart.server).toBe('acme/tools')
      expect(change(write).privatePart.server).toBe('acme/tools')
    }
    const { server: _, ...withoutServer } = stored({ state: 'connected' }).privatePart
    const own = { ...stored({ state: 'connected' }), privatePart: withoutServer }
    expect(() => change({ server: 'acme/tools', ...secrets }, own)).toThrow(
      'server: the server of a connection cannot be changed',
    )
    expect(change({ server: 'acme/other', mock: { enabled: true } }).connection.mock).toBeUndefined()
  })

  test('keeps its headers and its server, unless others are given', () => {
    const open = ({ privatePart, target: { headers } }: ReturnType<typeof change>) => [
      privatePart.server,
      openHeaders(privatePart, ref, headersKey),
      headers,
    ]
    expect(open(change({}))).toEqual(['acme/tools', { 'X-Old': '1' }, { 'X-Old': '1' }])
    expect(open(change({ headers: { 'X-New': '2' } }))).toEqual(['acme/tools', { 'X-New': '2' }, { 'X-New': '2' }])
    expect(open(change({ headers: {} }))).toEqual(['acme/tools', {}, {}])
    expect(change({ name: 'new', metadata: { a: 'b' } }).connection).toMatchObject({
      name: 'new',
      metadata: { a: 'b' },
    })
  })
})

test('a client stays when its tokens end, unless none is to be there', () => {
  const client = sealPart('oauth', { clientId: 'mine' }, ref, keys.signInKey)
  const one = { ...connection('one'), mcpUrl: url, status: { state: 'connected' } as const }
  const privatePart = { oauth: client, tokens: 'sealed' }
  const before = { connection: one, privatePart, bytes: connectionBytes(one), privateBytes: undefined }
  const after = (write: object) => draftChange(keys, { write, ref }, before, []).privatePart
  expect(after({})).toEqual(privatePart)
  const withHeader = after({ headers: { Authorization: 'Bearer x' } })
  expect([withHeader.oauth, withHeader.tokens]).toEqual([client, undefined])
  const without = after({ oauth: null })
  expect([without.oauth, without.tokens]).toEqual([undefined, undefined])
})

test('a connection is written up to its last byte', () => {
  const context = { caller: { blocks: [] } } as never
  const filled = (bytes: number) => {
    const one = { ...connection('one'), metadata: { a: '' } }
    const length = bytes - connectionBytes(one).length
    return { ...one, metadata: { a: 'x'.repeat(length) } }
  }
  expect(connectionBytes(filled(connectionBytesMax))).toHaveLength(connectionBytesMax)
  const deps = {} as never
  requireWritable(deps, context, ref, filled(connectionBytesMax))
  expect(() => requireWritable(deps, context, ref, filled(connectionBytesMax + 1))).toThrow(
    'the connection is too large',
  )
})

test('a connection is written where each constraint allows it as it will be, and a refusal is recorded', () => {
  const denied: unknown[] = []
  const denials = { recordPolicyDenial: (...[, , access]: unknown[]) => void denied.push(access) }
  const allowed = (metadata: Record<string, string>) => {
    const context = { caller: { blocks: [{ metadata: [[['team', 'x']]] }] } } as never
    requireWritable({ denials } as never, context, ref, { ...connection('one'), metadata })
  }
  allowed({ team: 'x' })
  expect(denied).toEqual([])
  expect(() => allowed({ team: 'y' })).toThrow('policy[0].metadata')
  expect(denied).toMatchObject([{ operation: 'write', metadata: { metadata: { team: 'y' } } }])
})
