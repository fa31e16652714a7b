import { beforeEach, describe, expect, test } from 'bun:test'
import { connectionBytesMax } from '../../../src/limits.ts'
import { bytesOf, connectionBytes, connectionChange, findConnection } from '../../../src/storage/connections.ts'
import { keyOf } from '../../../src/storage/keys.ts'
import { indexBytesOf } from '../../../src/storage/usage.ts'
import { createAddresses } from '../../../src/upstream/addresses.ts'
import { createUpstream } from '../../../src/upstream/pooled-upstream.ts'
import { UpstreamError } from '../../../src/upstream/upstream.ts'
import { mintToken } from '../../api/cases.ts'
import { sampleApis } from '../../support/api.ts'
import { oneHash } from '../../support/one-hash.ts'
import { createTestPlatform, source, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { connection } from './world.ts'

let platform: TestPlatform
beforeEach(async () => {
  const addresses = createAddresses({
    allowed: [],
    isPublicAllowed: true,
    isSelf: () => false,
    resolve: async (host) => (host === 'inside.example.com' ? ['10.1.2.3'] : []),
  })
  platform = await createTestPlatform({ upstream: createUpstream(addresses) })
})

async function send(method: string, path: string, body?: unknown, credential: string = sampleKeys.ada) {
  const response = await platform.fetch(path, {
    method,
    headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
    ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  })
  return {
    status: response.status,
    body: (await response.json()) as Record<string, unknown>,
    headers: response.headers,
  }
}
const mint = (policy: object[], credential: string = sampleKeys.ada) =>
  mintToken(platform.fetch, credential, { policy })
const idsOf = async (query: string, credential: string = sampleKeys.ada) =>
  (
    (await send('GET', `/connect/ada?${query}`, undefined, credential)).body['connections'] as {
      connectionId: string
    }[]
  ).map(({ connectionId }) => connectionId)
const mocked = { server: 'northwind/calendar', mock: { enabled: true } }

describe('a connection over HTTP', () => {
  test('is made with a name of its own, listed at once by every fact, read, changed and deleted', async () => {
    const made = await send('POST', '/connect/ada', { ...mocked, metadata: { team: 'x', n: 5 } })
    expect(made.status).toBe(201)
    const id = made.body['connectionId'] as string
    expect(id).toMatch(/^[a-z]+-[a-z]+-[0-9A-Za-z]{4}$/)
    expect(made.body).toEqual({
      connectionId: id,
      name: id,
      mcpUrl: 'https://calendar.northwind.example.com/mcp',
      metadata: { team: 'x', n: 5 },
      transport: 'http',
      mock: { enabled: true },
      createdAt: '2026-03-02T09:00:00.000Z',
      status: { state: 'connected' },
    })
    for (const query of [`name=${id}`, 'metadata.team=x', 'metadata.n=5', 'metadata.team=x&metadata.n=5']) {
      expect({ query, ids: await idsOf(query) }).toEqual({ query, ids: [id] })
    }
    expect((await send('GET', `/connect/ada/${id}`)).body).toEqual(made.body)

    const changed = await send('PUT', `/connect/ada/${id}`, { name: 'Mine', metadata: { team: 'y' } })
    expect({ status: changed.status, body: changed.body }).toEqual({
      status: 200,
      body: { ...made.body, name: 'Mine', metadata: { team: 'y' } },
    })
    expect(await idsOf('metadata.team=x')).toEqual([])
    expect(await idsOf('metadata.n=5')).toEqual([])
    expect(await idsOf(`name=${id}`)).toEqual([])
    expect(await idsOf('metadata.team=y&name=Mine')).toEqual([id])
    expect((await send('PUT', `/connect/ada/${id}`, { metadata: null })).body['metadata']).toBeNull()
    expect((await send('PUT', `/connect/ada/${id}`, {})).body).toMatchObject({ name: 'Mine', metadata: null })

    const gone = await send('DELETE', `/connect/ada/${id}`)
    expect({ status: gone.status, body: gone.body }).toEqual({ status: 200, body: { success: true } })
    for (const method of ['GET', 'DELETE']) expect((await send(method, `/connect/ada/${id}`)).status).toBe(404)
    expect(await idsOf('name=Mine')).toEqual([])
  })

  test('of an id of the caller’s is made by PUT, and by a second one changed', async () => {
    expect((await send('PUT', '/connect/ada/my.own_id-1', mocked)).status).toBe(201)
    expect((await send('PUT', '/connect/ada/my.own_id-1', { ...mocked, name: 'b' })).status).toBe(200)
    for (const id of ['.hidden', 'a%20b', 'x'.repeat(129), 'a%2Fb', 'ä']) {
      expect({ id, status: (await send('PUT', `/connect/ada/${id}`, mocked)).status }).toEqual({ id, status: 404 })
    }
  })

  test('that its writer could not see is refused in the same words, whether its id is free or hidden', async () => {
    await send('PUT', '/connect/ada/hidden', { ...mocked, metadata: { team: 'other' } })
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ metadata: { team: 'mine' } }] })
    const put = async (id: string, body: object) => {
      const response = await platform.fetch(`/connect/ada/${id}`, {
        method: 'PUT',
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
      return { status: response.status, text: await response.text() }
    }
    for (const body of [{ ...mocked, metadata: { team: 'x' } }, mocked, { server: 'no/such' }]) {
      expect(await put('hidden', body)).toEqual(await put('free', body))
    }
    expect((await put('hidden', { ...mocked, metadata: { team: 'mine' } })).status).toBe(404)
    expect((await send('GET', '/connect/ada/hidden')).body['metadata']).toEqual({ team: 'other' })
  })

  test('keeps its URL: another one is a conflict that is not worth trying again', async () => {
    const url = 'https://down.example.com/mcp'
    const made = await send('PUT', '/connect/ada/one', { mcpUrl: url })
    expect(made.body).toMatchObject({ status: { state: 'error', message: expect.stringContaining('has no address') } })
    expect((await send('PUT', '/connect/ada/one', { mcpUrl: url, name: 'two' })).body['name']).toBe('two')
    const other = await send('PUT', '/connect/ada/one', { mcpUrl: `${url}2` })
    expect({ status: other.status, error: other.body['error'], retry: other.headers.get('x-should-retry') }).toEqual({
      status: 409,
      error: 'conflict',
      retry: 'false',
    })
  })

  test('is not contacted for a token that may not write it as it would be', async () => {
    const contacted: string[] = []
    platform = await createTestPlatform({
      upstream: {
        send: async ({ url }) => {
          contacted.push(url)
          return { status: 500, headers: {}, body: undefined }
        },
      },
    })
    const path = '/connect/ada/mine'
    const write = { mcpUrl: 'https://mine.example.com/mcp', metadata: { team: 'a' } }
    expect((await send('PUT', path, write)).status).toBe(201)
    contacted.length = 0
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ metadata: { team: 'a' } }] })
    expect((await send('PUT', path, { headers: { 'x-a': '1' }, metadata: { team: 'b' } }, token)).status).toBe(403)
    expect(contacted).toEqual([])
    expect((await send('PUT', path, { headers: { 'x-a': '1' } }, token)).status).toBe(200)
    expect(contacted.length).toBeGreaterThan(0)
  })

  test('that waits for input may get another query', async () => {
    const list = (await send('GET', '/connect/northwind')).body['connections'] as {
      connectionId: string
      mcpUrl: string
      status: { state: string }
    }[]
    const waiting = list.find(({ status }) => status.state === 'input_required')
    const path = `/connect/northwind/${waiting?.connectionId}`
    expect((await send('PUT', path, { mcpUrl: `${waiting?.mcpUrl}?key=1` })).status).toBe(200)
    expect((await send('PUT', path, { mcpUrl: 'https://other.example.com/mcp' })).status).toBe(409)
  })

  test('keeps its headers sealed, for itself alone, and shows them nowhere', async () => {
    const secret = 'Bearer CANARY-0123456789'
    const body = { ...mocked, headers: { Authorization: secret } }
    const made = await send('PUT', '/connect/ada/secret', body)
    const answers = [made, await send('GET', '/connect/ada/secret'), await send('GET', '/connect/ada')]
    expect(JSON.stringify(answers)).not.toContain('CANARY')
    expect(JSON.stringify([...platform.logged, ...platform.audited])).not.toContain('CANARY')
    const { entries } = await platform.store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 100_000 })
    expect(Buffer.concat(entries.map(({ value }) => value)).includes('CANARY')).toBe(false)
    const sealed = (await findConnection(platform.store, 'ada', 'secret'))?.privatePart.headers
    expect(sealed).toBeString()
    await send('PUT', '/connect/ada/secret', { name: 'kept' })
    expect((await findConnection(platform.store, 'ada', 'secret'))?.privatePart.headers).toBe(sealed as string)
    await send('PUT', '/connect/ada/secret', { headers: null })
    expect((await findConnection(platform.store, 'ada', 'secret'))?.privatePart).toEqual({
      server: 'northwind/calendar',
    })
  })

  test('is in the audit log, with who wrote it', async () => {
    await send('PUT', '/connect/ada/one', mocked)
    await send('PUT', '/connect/ada/one', { name: 'x' })
    await send('DELETE', '/connect/ada/one')
    expect(platform.audited).toEqual(
      ['created', 'changed', 'deleted'].map((what) =>
        expect.objectContaining({ event: `connection.${what}`, userId: 'ada', namespace: 'ada', connectionId: 'one' }),
      ),
    )
  })
})

describe('a token', () => {
  test('needs write to write, and read to read', async () => {
    const reader = await mint([{ operations: 'read' }])
    const writer = await mint([{ operations: 'write' }])
    const elsewhere = await mint([{ namespaces: 'northwind' }])
    const servers = await mint([{ resources: 'servers' }])
    await send('PUT', '/connect/ada/one', mocked)
    const expected: [string, string, string, number][] = [
      [reader, 'GET', '/connect/ada/one', 200],
      [reader, 'PUT', '/connect/ada/one', 403],
      [reader, 'PUT', '/connect/ada/none', 403],
      [reader, 'POST', '/connect/ada', 403],
      [reader, 'DELETE', '/connect/ada/one', 403],
      [reader, 'DELETE', '/connect/ada/none', 404],
      [writer, 'GET', '/connect/ada/one', 403],
      [writer, 'GET', '/connect/ada/none', 404],
      [writer, 'PUT', '/connect/ada/one', 200],
      [elsewhere, 'GET', '/connect/ada/one', 404],
      [elsewhere, 'PUT', '/connect/ada/one', 404],
      [elsewhere, 'POST', '/connect/ada', 404],
      [elsewhere, 'DELETE', '/connect/ada/one', 404],
      [servers, 'PUT', '/connect/ada/one', 403],
      ['nothing', 'PUT', '/connect/ada/one', 401],
      [sampleKeys.jonas, 'PUT', '/connect/ada/one', 404],
      [sampleKeys.operator, 'DELETE', '/connect/ada/one', 200],
    ]
    for (const [credential, method, path, status] of expected) {
      const body = method === 'PUT' || method === 'POST' ? mocked : undefined
      const answer = await send(method, path, body, credential)
      expect({ method, path, status: answer.status }).toEqual({ method, path, status })
    }
  })

  test('makes and changes nothing that it could not see', async () => {
    const token = await mint([{ metadata: { team: 'x' } }])
    const put = (id: string, body: object) => send('PUT', `/connect/ada/${id}`, { ...mocked, ...body }, token)
    expect((await put('a', {})).status).toBe(403)
    expect((await put('a', { metadata: { team: 'y' } })).body['message']).toBe(
      'The token does not allow this: policy[0].metadata',
    )
    expect((await put('a', { metadata: { team: 'x' } })).status).toBe(201)
    expect((await put('a', { metadata: { team: 'y' } })).status).toBe(403)
    expect((await put('a', { metadata: null })).status).toBe(403)
    expect((await put('a', { name: 'n' })).status).toBe(200)
    await send('PUT', '/connect/ada/b', { ...mocked, metadata: { team: 'z' } })
    const unseen = await put('b', { metadata: { team: 'x' } })
    const missing = await send('GET', '/connect/ada/c', undefined, token)
    expect([unseen.status, unseen.body]).toEqual([missing.status, missing.body])
    expect((await send('DELETE', '/connect/ada/b', undefined, token)).status).toBe(404)
    expect((await send('GET', '/connect/ada/b')).body['metadata']).toEqual({ team: 'z' })
    const pinned = await mint([{ metadata: { connectionId: 'a' } }])
    expect((await send('POST', '/connect/ada', mocked, pinned)).status).toBe(403)
    expect((await send('PUT', '/connect/ada/a', { name: 'p' }, pinned)).status).toBe(200)
  })

  test('uses servers of its namespaces only; others are unknown', async () => {
    const token = await mint([{ namespaces: ['ada', 'lumen'] }])
    const known = await send('POST', '/connect/ada', mocked, token)
    const unknown = await send('POST', '/connect/ada', { ...mocked, server: 'northwind/nothing' }, token)
    expect(known.status).toBe(400)
    expect(known.body['message']).toBe('server: there is no server "northwind/calendar"')
    expect(unknown.body['message']).toBe('server: there is no server "northwind/nothing"')
    expect((await send('POST', '/connect/ada', { server: 'lumen', mock: { enabled: true } }, token)).status).toBe(201)
  })
})

describe('what cannot be written is told, and nothing is', () => {
  const url = 'https://a.example.com/mcp'
  const bad: [what: string, body: unknown, message: string][] = [
    ['no body', undefined, 'the request body is missing'],
    ['an empty object', {}, 'mcpUrl: is missing; send mcpUrl or server'],
    ['a list', [], 'the body must be an object'],
    ['null', null, 'the body must be an object'],
    ['an unknown field', { mcpUrl: url, status: {} }, 'unknown field "status"'],
    ['both', { mcpUrl: url, server: 'lumen' }, 'server: cannot be combined with mcpUrl'],
    ['another scheme', { mcpUrl: 'ftp://a.example.com' }, 'mcpUrl: must be an http or https URL'],
    ['a file', { mcpUrl: 'file:///etc/passwd' }, 'mcpUrl: must be an http or https URL'],
    ['no URL', { mcpUrl: 'http://[::::' }, 'mcpUrl: must be an http or https URL'],
    [
      'a user in the URL',
      { mcpUrl: 'https://a:b@a.example.com' },
      'mcpUrl: must be an http or https URL without a user',
    ],
    ['a mock of a URL', { mcpUrl: url, mock: { enabled: true } }, 'mock: requires server'],
    ['a name that is empty', { mcpUrl: url, name: '' }, 'name: is empty'],
    ['a name that is long', { mcpUrl: url, name: 'x'.repeat(256) }, 'name: at most 255 characters'],
    ['uplink', { mcpUrl: url, transport: 'uplink' }, 'transport: must be "http"'],
    [
      'metadata.connectionId',
      { mcpUrl: url, metadata: { connectionId: 'x' } },
      'metadata.connectionId: is the connection',
    ],
    ['metadata.namespace', { mcpUrl: url, metadata: { namespace: 'x' } }, 'metadata.namespace: is the connection'],
    [
      'a number with more digits than a number keeps',
      `{"mcpUrl":"${url}","metadata":{"id":12345678901234567890}}`,
      'metadata.id: is a number that cannot be kept as it is written',
    ],
    ['an empty key', { mcpUrl: url, metadata: { '': 'x' } }, 'metadata[""]: is not a metadata key'],
    ['a Host header', { mcpUrl: url, headers: { HOST: 'x' } }, 'headers["HOST"]: cannot be set here'],
    ['a hop-by-hop header', { mcpUrl: url, headers: { 'Transfer-Encoding': 'chunked' } }, 'cannot be set here'],
    ['what tells of loops', { mcpUrl: url, headers: { Via: '1.1 x' } }, 'headers["Via"]: cannot be set here'],
    ['a header twice', { mcpUrl: url, headers: { 'x-a': '1', 'X-A': '2' } }, 'headers["X-A"]: is given twice'],
    ['a header name', { mcpUrl: url, headers: { 'a b': '1' } }, 'is not a header name'],
    ['a line break', { mcpUrl: url, headers: { a: 'x\r\nHost: y' } }, 'must be a header value'],
    ['loopback', { mcpUrl: 'http://127.0.0.1:1/mcp' }, 'mcpUrl: 127.0.0.1 is not a public address'],
    ['loopback in numbers', { mcpUrl: 'http://2130706433/mcp' }, 'mcpUrl: 127.0.0.1 is not a public address'],
    ['the LAN by name', { mcpUrl: 'https://inside.example.com/mcp' }, 'inside.example.com is not a public address'],
    ['cloud metadata', { mcpUrl: 'http://169.254.169.254/latest' }, 'is an address that no connection may point to'],
    [
      'twice the same key',
      '{"mcpUrl":"https://a.example.com","mcpUrl":"https://b.example.com"}',
      'mcpUrl: is given twice',
    ],
    ['too much', { mcpUrl: url, metadata: { x: 'y'.repeat(70_000) } }, 'too large'],
    ['too many values', { mcpUrl: url, metadata: { x: Array(1001).fill({}) } }, 'more than 1000 values'],
    [
      ...['names with one hash', { mcpUrl: url, metadata: Object.fromEntries(oneHash.slice(0, 9).map((a) => [a, 1])) }],
      'too many texts that share one hash',
    ] as [string, object, string],
  ]
  for (const [what, body, message] of bad) {
    test(what, async () => {
      const before = await idsOf('')
      const post = await send('POST', '/connect/ada', body)
      const put = await send('PUT', '/connect/ada/bad', body)
      for (const { status, body } of [post, put]) {
        expect({ status, error: body['error'], message: body['message'] }).toEqual({
          status: 400,
          error: 'invalid_request',
          message: expect.stringContaining(message),
        })
      }
      expect(await idsOf('')).toEqual(before)
    })
  }
})

describe('a server that has nothing to connect to', () => {
  const key = 'a-key-for-the-tests-of-servers-00000001'
  const stdio = { type: 'stdio', bundleUrl: 'https://a.example.com/x', runtime: 'node', configSchema: {} }
  beforeEach(async () => {
    const local = {
      qualifiedName: 'acme/local',
      displayName: 'Local',
      description: '',
      remote: false,
      connections: [stdio],
    }
    const sources = [
      source('acme.json', {
        namespaces: [{ namespace: 'acme', userId: 'eve' }],
        apiKeys: [{ userId: 'eve', key }],
        servers: [{ ...local, tools: [{ name: 't', inputSchema: { type: 'object' } }] }],
      }),
    ]
    platform = await createTestPlatform({ sources })
  })
  test('is refused', async () => {
    const made = await send('POST', '/connect/acme', { server: 'acme/local' }, key)
    expect([made.status, made.body['message']]).toEqual([
      400,
      'server: has no HTTP URL: add a URL to the server, or connect to a URL instead',
    ])
  })
  test('can be mocked', async () => {
    const made = await send('POST', '/connect/acme', { server: 'acme/local', mock: { enabled: true } }, key)
    expect([made.status, made.body['mcpUrl']]).toEqual([201, null])
  })
})

test('a server is greeted again where something changed that it may answer otherwise for', async () => {
  let asked = 0
  platform = await createTestPlatform({
    upstream: {
      send() {
        asked += 1
        return Promise.reject(new UpstreamError('down', 'no one is there'))
      },
    },
  })
  const put = async (body: object) => {
    asked = 0
    const { status, body: stored } = await send('PUT', '/connect/ada/one', body)
    expect([200, 201]).toContain(status)
    return { isInitialized: asked > 0, state: (stored['status'] as { state: string }).state }
  }
  const down = { isInitialized: true, state: 'error' }
  expect(await put({ mcpUrl: 'https://a.example.com/mcp' })).toEqual(down)
  expect(await put({ headers: { 'x-key': '1' } })).toEqual(down)
  expect(await put({ headers: null })).toEqual(down)
  for (const same of [{ name: 'Mine' }, { metadata: { team: 'x' } }, { mcpUrl: 'https://a.example.com/mcp' }, {}])
    expect(await put(same)).toEqual({ isInitialized: false, state: 'error' })
})

const bare = connection('bare')
const usage = async (namespace: string) =>
  Buffer.from((await platform.store.get(keyOf('usage', namespace))) ?? '').toString()

describe('what a namespace may hold', () => {
  test('is counted with every write, to the byte, and given back', async () => {
    const before = await usage('ada')
    const [connections = 0, bytes = 0] = before.split(' ').map(Number)
    expect(connections).toBe((await idsOf('')).length)
    await send('PUT', '/connect/ada/one', { ...mocked, metadata: { team: 'x' } })
    const one = await findConnection(platform.store, 'ada', 'one')
    if (one === undefined) throw new Error('it was made')
    expect(await usage('ada')).toBe(`${connections + 1} ${bytes + bytesOf('ada', one)} 0`)
    await send('PUT', '/connect/ada/one', { name: 'a longer name', headers: { authorization: 'secret' } })
    const changed = await findConnection(platform.store, 'ada', 'one')
    if (changed === undefined) throw new Error('it was changed')
    expect(bytesOf('ada', changed)).toBeGreaterThan(bytesOf('ada', one))
    expect(await usage('ada')).toBe(`${connections + 1} ${bytes + bytesOf('ada', changed)} 0`)
    await send('DELETE', '/connect/ada/one')
    expect(await usage('ada')).toBe(before)
    // One that has nothing beside its record.
    await platform.store.commit(
      connectionChange({ namespace: 'ada', connectionId: 'bare' }, undefined, { connection: bare, privatePart: {} }),
    )
    const stored = connectionBytes(bare).length + indexBytesOf('ada', bare)
    expect(await usage('ada')).toBe(`${connections + 1} ${bytes + stored} 0`)
    await send('DELETE', '/connect/ada/bare')
    expect(await usage('ada')).toBe(before)
  })

  test('is not passed by many at once; what makes room, and what needs none, is done', async () => {
    const [has = 0] = (await usage('ada')).split(' ').map(Number)
    platform = await createTestPlatform({ quota: { connections: has + 3 } })
    const made = await Promise.all(Array.from({ length: 10 }, () => send('POST', '/connect/ada', mocked)))
    const [refused] = made.filter(({ status }) => status !== 201)
    expect(made.filter(({ status }) => status === 201).length).toBe(3)
    expect({ status: refused?.status, body: refused?.body }).toEqual({
      status: 403,
      body: {
        error: 'forbidden',
        message: 'The namespace ada is full: delete connections or servers, or ask the operator for more room',
      },
    })
    expect(platform.audited.filter(({ event }) => event === 'write.refused').length).toBe(7)
    expect(platform.audited.find(({ event }) => event === 'write.refused')).toMatchObject({
      userId: 'ada',
      namespace: 'ada',
      reason: 'namespace_full',
    })
    const [full] = made.filter(({ status }) => status === 201)
    const id = full?.body['connectionId'] as string
    expect((await send('PUT', '/connect/ada/another', mocked)).status).toBe(403)
    expect((await send('PUT', `/connect/ada/${id}`, { name: 'a name that is longer' })).status).toBe(200)
    expect((await send('DELETE', `/connect/ada/${id}`)).status).toBe(200)
    expect((await send('PUT', '/connect/ada/another', mocked)).status).toBe(201)
  })

  test('is bounded in bytes too, of what is changed as of what is made', async () => {
    const [, bytes = 0] = (await usage('ada')).split(' ').map(Number)
    platform = await createTestPlatform({ quota: { bytes: bytes + 2000 } })
    expect((await send('PUT', '/connect/ada/one', mocked)).status).toBe(201)
    expect((await send('PUT', '/connect/ada/two', { ...mocked, metadata: { x: 'y'.repeat(2000) } })).status).toBe(403)
    expect((await send('PUT', '/connect/ada/one', { metadata: { x: 'y'.repeat(2000) } })).status).toBe(403)
    expect((await send('PUT', '/connect/ada/one', { metadata: { x: 'y' } })).status).toBe(200)
    expect(await idsOf('metadata.x=y')).toEqual(['one'])
  })
})

test('one key writes so many connections a second and no more; reads and other keys go on', async () => {
  platform = await createTestPlatform({ rates: { writes: 0.2 } })
  const token = await mint([{ namespaces: 'ada' }])
  const statuses: number[] = []
  for (const [method, path] of [
    ['PUT', '/connect/ada/one'],
    ['POST', '/connect/ada'],
    ['DELETE', '/connect/ada/one'],
    ['PUT', '/connect/nothing/here'],
  ] as const) {
    statuses.push((await send(method, path, method === 'DELETE' ? undefined : mocked)).status)
  }
  expect(statuses).toEqual([201, 201, 200, 404])
  for (const method of ['POST', 'PUT', 'DELETE']) {
    const path = method === 'POST' ? '/connect/ada' : '/connect/ada/one'
    const answer = await send(method, path, method === 'DELETE' ? undefined : mocked, token)
    expect({ method, status: answer.status, body: answer.body, wait: answer.headers.get('retry-after') }).toEqual({
      method,
      status: 429,
      body: { error: 'rate_limited', message: 'This API key is writing too fast; try again in 5 s' },
      wait: '5',
    })
  }
  expect(platform.audited.at(-1)).toMatchObject({ event: 'write.refused', userId: 'ada', reason: 'rate_limited' })
  expect((await send('GET', '/connect/ada')).status).toBe(200)
  expect((await send('PUT', '/connect/ada/one', mocked, sampleKeys.operator)).status).toBe(201)
  platform.now += 5000
  expect((await send('DELETE', '/connect/ada/one', undefined, token)).status).toBe(200)
})

test('two writers at once: both are told the truth, and the index is that of the one who was last', async () => {
  await send('PUT', '/connect/ada/one', mocked)
  const answers = await Promise.all(
    Array.from({ length: 8 }, (_, i) => send('PUT', '/connect/ada/one', { metadata: { team: `t${i}` } })),
  )
  expect(answers.map(({ status }) => status)).toEqual(Array(8).fill(200))
  const { team } = (await send('GET', '/connect/ada/one')).body['metadata'] as { team: string }
  for (let i = 0; i < 8; i += 1) {
    expect(await idsOf(`metadata.team=t${i}`)).toEqual(team === `t${i}` ? ['one'] : [])
  }
})

test('a connection that its server’s state makes too large is not written', async () => {
  const small = await send('PUT', '/connect/ada/one', { mcpUrl: 'https://a.example.com/mcp', metadata: { a: '' } })
  expect(small.body['status']).toMatchObject({ state: 'error' })
  const room = connectionBytesMax - Buffer.byteLength(JSON.stringify(small.body))
  // Without that state it would have room for more.
  for (const [id, length, status] of [
    ['two', room, 201],
    ['six', room + 1, 400],
  ] as const) {
    const body = { mcpUrl: 'https://a.example.com/mcp', name: 'one', metadata: { a: 'x'.repeat(length) } }
    expect((await send('PUT', `/connect/ada/${id}`, body)).status).toBe(status)
    expect((await send('GET', `/connect/ada/${id}`)).status).toBe(status === 201 ? 200 : 404)
  }
})

test('what is about one connection takes no parameters, and changes nothing where there are some', async () => {
  expect((await send('PUT', '/connect/ada/one', mocked)).status).toBe(201)
  for (const [method, path, body] of [
    ['GET', '/connect/ada/one?a=1', undefined],
    ['PUT', '/connect/ada/one?a=1', { name: 'other' }],
    ['DELETE', '/connect/ada/one?a=1', undefined],
    ['POST', '/connect/ada?a=1', mocked],
  ] as const)
    expect(await send(method, path, body)).toMatchObject({
      status: 400,
      body: { message: 'a: unknown parameter; this operation takes none' },
    })
  expect(await idsOf('name=one')).toEqual(['one'])
})

describe('a write whose body comes slowly', () => {
  /** Begins the write, and ends its body when the change was made. */
  async function slowly(id: string, body: object, change: () => Promise<unknown>, credential: string) {
    const text = JSON.stringify(body)
    const changed = Promise.withResolvers<void>()
    const stream = new ReadableStream<Uint8Array>({
      async start(controller) {
        controller.enqueue(Buffer.from(text.slice(0, -1)))
        await changed.promise
        controller.enqueue(Buffer.from(text.slice(-1)))
        controller.close()
      },
    })
    const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
    const answering = platform.fetch(`/connect/ada/${id}`, {
      method: 'PUT',
      headers,
      body: stream,
      duplex: 'half',
    } as RequestInit)
    for (let turn = 0; turn < 5; turn += 1) await new Promise((resolve) => setImmediate(resolve))
    await change()
    changed.resolve()
    return (await answering).status
  }

  test('finds out nothing after the revocation of its credential, and contacts no server', async () => {
    await send('PUT', '/connect/ada/there', mocked)
    const urls: string[] = []
    const upstream = {
      async send({ url }: { url: string }) {
        urls.push(url)
        return { status: 404, headers: {}, body: undefined }
      },
    }
    platform = await createTestPlatform({ upstream })
    await send('PUT', '/connect/ada/there', { mcpUrl: 'https://there.example.com/mcp', headers: { 'x-secret': 's' } })
    urls.length = 0
    for (const body of [{ mcpUrl: 'https://other.example.com/mcp' }, { oauth: { clientId: 'c' } }]) {
      const token = await mint([{ operations: ['read', 'write'] }])
      const revoke = () => send('POST', '/tokens/revoke', { token })
      expect(await slowly('there', body, revoke, token)).toBe(401)
    }
    expect(urls).toEqual([])
  })
})

test('a write that waited for its server is not for another namespace of the same name', async () => {
  const asked = Promise.withResolvers<void>()
  const answers = Promise.withResolvers<never>()
  const slow = await createTestPlatform({
    upstream: {
      send() {
        asked.resolve()
        return answers.promise
      },
    },
  })
  const { ada, grace, operator } = sampleApis(slow.fetch)
  await ada('PUT /namespaces/shared')
  const writing = operator('PUT /connect/shared/x', {
    mcpUrl: 'https://x.example.com/mcp',
    headers: { 'x-secret': 's' },
  })
  await asked.promise
  slow.now += 1000
  expect((await ada('DELETE /namespaces/shared')).status).toBe(200)
  expect((await grace('PUT /namespaces/shared')).status).toBe(201)
  answers.reject(new UpstreamError('down', 'there is nothing here'))
  expect((await writing).status).toBe(404)
  expect((await grace('GET /connect/shared')).body.connections).toEqual([])
})
