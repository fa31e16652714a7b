import { describe, expect, spyOn, test } from 'bun:test'
import { createMiddleware, stackFunctionsShownMax, unavailableLogIntervalMs } from '../../src/http/middleware.ts'
import { revocationBytesMax } from '../../src/limits.ts'
import { directoryVersionKey } from '../../src/storage/keys.ts'
import { type Store, StoreError } from '../../src/storage/store.ts'
import { mintToken } from '../api/cases.ts'
import { clockOf } from '../support/clock.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createTestPlatform, silent } from '../support/platform.ts'
import { sampleKeys } from '../support/sample.ts'

const bearer = (credential: string, headers: Record<string, string> = {}) => ({
  headers: { authorization: `Bearer ${credential}`, ...headers },
})

/** Everything is asked the ordinary way. */
function withoutLocalReads({ local: _, ...store }: Store): Store {
  return store
}

describe('request ids', () => {
  test('are in every answer, each its own', async () => {
    const platform = await createTestPlatform()
    const ids = new Set<string | null>()
    const paths = ['/connect/ada', '/connect/ada', '/connect/x', '/servers/lumen', '/health', '/nothing', '/tokens']
    for (const path of paths) {
      ids.add((await platform.fetch(path, bearer(sampleKeys.ada))).headers.get('x-request-id'))
      ids.add((await platform.fetch(path, { headers: { host: 'evil.example.com' } })).headers.get('x-request-id'))
    }
    expect(ids.has(null)).toBe(false)
    expect(ids.size).toBe(paths.length * 2)
  })

  const given: [id: string, kept: boolean][] = [
    ['4bf92f3577b34da6a3ce929d0e0e4736', true],
    ['a', true],
    ['a'.repeat(64), true],
    ['a'.repeat(65), false],
    ['a b', false],
    ['a"b', false],
    ['', false],
    ['é', false],
  ]
  for (const [id, kept] of given) {
    test(`a given one is kept if it is sane: ${JSON.stringify(id)}`, async () => {
      const platform = await createTestPlatform()
      const answer = await platform.fetch('/connect/ada', bearer(sampleKeys.ada, { 'x-request-id': id }))
      expect(answer.status).toBe(200)
      expect(answer.headers.get('x-request-id') === id).toBe(kept)
    })
  }

  test('belong to one answer, when a page is made while another is answered', async () => {
    const platform = await createTestPlatform()
    const ask = (path: string) => platform.answer(path, bearer(sampleKeys.ada))
    const paths = ['/connect/ada', '/connect/ada?limit=1', '/servers/lumen', '/connect/ada?limit=2', '/connect/ada']
    const answers = await Promise.all(paths.map(ask))
    const ids = answers.map(({ headers }) => headers.get('x-request-id'))
    expect(new Set(ids).size).toBe(paths.length)
    expect(ids).not.toContain(null)
  })

  test('are in the log line of what went wrong on our side, which the answer does not tell', async () => {
    const store = openMemoryStore()
    let broken = false
    const failing: Store = {
      ...withoutLocalReads(store),
      get: (key) => (broken ? Promise.reject(new Error('the secret inside')) : store.get(key)),
    }
    const platform = await createTestPlatform({ store: failing })
    broken = true
    const answer = await platform.fetch('/connect/ada', bearer(sampleKeys.ada))
    expect(answer.status).toBe(500)
    expect(await answer.text()).not.toContain('secret')
    const line = platform.logged.find((text) => text.includes('request failed'))
    expect(line).toContain('the secret inside')
    expect(JSON.parse(line ?? '{}')).toMatchObject({
      requestId: answer.headers.get('x-request-id'),
      method: 'GET',
      route: '/connect',
      status: 500,
      error: 'Error: the secret inside',
      // The way there in names: places in a bundle say nothing.
      in: expect.stringMatching(/^[\w$.#]+(?: < [\w$.#]+)*$/),
    })
    expect(line).not.toMatch(/\.ts:\d+|bunfs/)
  })

  test('what passes by itself is logged without the way there', async () => {
    const store = openMemoryStore()
    let broken = false
    const failing: Store = {
      ...withoutLocalReads(store),
      get: (key) =>
        broken
          ? Promise.reject(new StoreError('unavailable', 'no room', { cause: new Error('ENOSPC') }))
          : store.get(key),
    }
    const platform = await createTestPlatform({ store: failing })
    broken = true
    expect((await platform.fetch('/connect/ada', bearer(sampleKeys.ada))).status).toBe(503)
    const { status, error, ...more } = JSON.parse(
      platform.logged.find((text) => text.includes('request failed')) ?? '{}',
    )
    expect({ status, error, in: more.in }).toEqual({
      status: 503,
      error: 'StoreError: no room (Error: ENOSPC)',
      in: undefined,
    })
    // One line in ten seconds: whoever cannot be answered asks again.
    const lines = async (after: number) => {
      platform.now += after
      await platform.fetch('/connect/ada', bearer(sampleKeys.ada))
      return platform.logged.filter((text) => text.includes('request failed')).length
    }
    expect([await lines(0), await lines(unavailableLogIntervalMs - 1), await lines(1)]).toEqual([1, 1, 2])
  })
})

describe('rate limits', () => {
  test('minting: by API key, its tokens included, and nobody else', async () => {
    const platform = await createTestPlatform({ rates: { mints: 0.25, failures: 0 } })
    const post = (credential: string) => platform.fetch('/tokens', { method: 'POST', ...bearer(credential) })
    const token = await mintToken(platform.fetch, sampleKeys.ada)
    const statuses: number[] = []
    for (const credential of [token, sampleKeys.ada, token, sampleKeys.ada, token]) {
      statuses.push((await post(credential)).status)
    }
    expect(statuses).toEqual([200, 200, 200, 200, 429])
    const refused = await post(sampleKeys.ada)
    expect({ retry: refused.headers.get('retry-after'), body: await refused.json() }).toEqual({
      retry: '4',
      body: { error: 'rate_limited', message: 'This API key is minting tokens too fast; try again in 4 s' },
    })
    expect((await post(sampleKeys.grace)).status).toBe(200)
    expect((await platform.fetch('/connect/ada', bearer(token))).status).toBe(200)
    platform.now += 4000
    expect((await post(sampleKeys.ada)).status).toBe(200)
  })

  test('credentials that are not accepted: by address; whoever was accepted before goes on', async () => {
    const platform = await createTestPlatform({ rates: { mints: 0, failures: 10 } })
    const list = async (credential: string, address: string) =>
      (await platform.fetch('/connect/ada', bearer(credential, { 'x-test-address': address }))).status
    expect(await list(sampleKeys.ada, 'office')).toBe(200)
    for (let i = 0; i < 200; i += 1) expect(await list(`wrong-${i}`, 'office')).toBe(401)
    expect(await list('wrong', 'office')).toBe(429)
    expect(await list(sampleKeys.ada, 'office')).toBe(200)
    // What is cheap to know is always looked up: a key that was not seen before, and a token that was made here.
    expect(await list(sampleKeys.grace, 'office')).toBe(404)
    expect(await list(await mintToken(platform.fetch, sampleKeys.ada), 'office')).toBe(200)
    // Also after a command has written something.
    await platform.store.commit({ puts: [{ key: directoryVersionKey, value: Buffer.from('another') }] })
    expect(await list(sampleKeys.ada, 'office')).toBe(200)
    expect(await list('wrong', 'elsewhere')).toBe(401)
    const details = await platform.fetch('/servers/lumen', bearer('wrong', { 'x-test-address': 'office' }))
    expect({ status: details.status, body: await details.json() }).toEqual({
      status: 429,
      body: { error: 'Too many invalid credentials from this address; try again in 1 s' },
    })
    platform.now += 1000
    expect(await list('wrong', 'office')).toBe(401)
  })
})

describe('forged tokens from an address', () => {
  const forge = (token: string, claims: object) => {
    const [header, payload = '', signature = ''] = token.split('.')
    const changed = { ...JSON.parse(Buffer.from(payload, 'base64url').toString()), ...claims }
    return `${header}.${Buffer.from(JSON.stringify(changed)).toString('base64url')}.${signature}`
  }

  test('hold up no good one from there, whatever key they name', async () => {
    const before = await createTestPlatform()
    const [ada, grace] = [
      await mintToken(before.fetch, sampleKeys.ada),
      await mintToken(before.fetch, sampleKeys.grace),
    ]
    // One that has just been started: of tokens made before it knows nothing.
    const { fetch } = await createTestPlatform({ store: before.store, rates: { mints: 0, failures: 1 } })
    const list = async (credential: string) => (await fetch('/connect/northwind', bearer(credential))).status
    for (let i = 0; i < 50; i += 1) {
      expect([401, 429]).toContain(await list(forge(ada, { key: `key_${i}` })))
      expect([401, 429]).toContain(await list(forge(ada, { jti: `tok_${i}` })))
    }
    expect(await list(forge(ada, { jti: 'tok_last' }))).toBe(429)
    expect([await list(ada), await list(grace), await list(sampleKeys.ada)]).toEqual([200, 200, 200])
  })

  test('are not parsed, wherever they are sent: only a signature of ours makes a text ours', async () => {
    const { fetch } = await createTestPlatform()
    const good = await mintToken(fetch, sampleKeys.ada)
    const [header, , signature] = good.split('.')
    const names = Object.fromEntries(Array.from({ length: 200 }, (_, i) => [`forged ${i}`, i]))
    const parse = spyOn(JSON, 'parse')
    const isParsed = () => parse.mock.calls.some(([text]) => String(text).startsWith('{"forged 0"'))
    try {
      for (const [first, claims] of [
        [header, names],
        ['a', names],
        [header, { ...names, more: 'x'.repeat(40_000) }],
      ] as const) {
        const forged = `${first}.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.${signature}`
        if (forged.length < 10_000) expect((await fetch('/connect/northwind', bearer(forged))).status).toBe(401)
        const form = new URLSearchParams({ token: forged })
        const isTooLarge = forged.length > revocationBytesMax
        expect((await fetch('/oauth/revoke', { method: 'POST', body: form })).status).toBe(isTooLarge ? 400 : 200)
        for (const path of ['/tokens/explain', '/tokens/revoke']) {
          const body = JSON.stringify({ token: forged })
          const headers = { ...bearer(sampleKeys.ada).headers, 'content-type': 'application/json' }
          await fetch(path, { method: 'POST', headers, body })
        }
        expect(isParsed()).toBe(false)
      }
    } finally {
      parse.mockRestore()
    }
  })
})

describe('what the audit log is told', () => {
  test('every token, with what joins it to others and nothing of its policy', async () => {
    const platform = await createTestPlatform()
    const parent = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ namespaces: 'northwind' }] })
    await mintToken(platform.fetch, parent, { policy: [{ metadata: { team: 'secret team' } }] })
    expect(platform.audited.map(({ event }) => event)).toEqual(['token.minted', 'token.minted'])
    const [first, second] = platform.audited
    expect(second).toMatchObject({ par: [first?.['jti']], userId: 'ada', keyId: first?.['keyId'], constraints: 2 })
    expect(JSON.stringify(platform.audited)).not.toContain('secret team')
    expect(JSON.stringify(platform.audited)).not.toContain(sampleKeys.ada)
  })

  test('each of two hundred tokens has its line, and joins its parents', async () => {
    const platform = await createTestPlatform()
    const minted: string[] = []
    for (let i = 0; i < 200; i += 1) {
      const parent = i % 3 === 0 ? sampleKeys.ada : (minted.at(-1) as string)
      minted.push(await mintToken(platform.fetch, parent))
    }
    const claims = minted.map((token) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()))
    expect(platform.audited.map(({ jti, par = [], exp }) => ({ jti, par, exp }))).toEqual(
      claims.map(({ jti, par = [], exp }) => ({ jti, par, exp })),
    )
  })

  test('every refusal, with the constraint, also where the answer says less', async () => {
    const platform = await createTestPlatform()
    const token = await mintToken(platform.fetch, sampleKeys.ada, {
      policy: [{ namespaces: 'northwind' }, { operations: 'write' }],
    })
    const hidden = await platform.fetch('/connect/ada', bearer(token))
    const forbidden = await platform.fetch('/servers/northwind%2Fweather', bearer(token))
    expect([hidden.status, forbidden.status]).toEqual([404, 403])
    const post = { method: 'POST', body: '{"organizationId":"org_other"}' }
    const json = { 'content-type': 'application/json' }
    const mint = await platform.fetch('/tokens', { ...post, ...bearer(sampleKeys.ada, json) })
    expect(mint.status).toBe(403)
    expect(platform.audited.slice(1)).toEqual([
      expect.objectContaining({
        event: 'access.refused',
        requestId: hidden.headers.get('x-request-id'),
        userId: 'ada',
        namespace: 'ada',
        resource: 'connections',
        operation: 'read',
        constraint: 'policy[0].namespaces',
      }),
      expect.objectContaining({
        event: 'access.refused',
        requestId: forbidden.headers.get('x-request-id'),
        namespace: 'northwind',
        resource: 'servers',
        constraint: 'policy[1].operations',
      }),
      expect.objectContaining({
        event: 'token.refused',
        requestId: mint.headers.get('x-request-id'),
        userId: 'ada',
        reason: 'forbidden',
      }),
    ])
  })
})

test('a request keeps the id of its answer, for what happens after it', () => {
  const middleware = createMiddleware({
    guard: { check: () => undefined },
    log: silent,
    clock: clockOf(() => 0),
  })
  const request = new Request('http://localhost/health')
  const answer = middleware.wrap(
    () => new Response('ok'),
    () => new Response('failed'),
  )(request) as Response
  expect(middleware.requestId(request)).toBe(answer.headers.get('x-request-id') ?? '')
})

test('whatever is thrown is in the line of the log as text, with its cause if that says more', () => {
  const lines: Record<string, unknown>[] = []
  const middleware = createMiddleware({
    guard: { check: () => undefined },
    log: { ...silent, error: (_, fields) => void lines.push(fields ?? {}) },
    clock: clockOf(() => 0),
  })
  const failing = (thrown: unknown) =>
    middleware.wrap(
      () => {
        throw thrown
      },
      (request, error) => {
        middleware.noteError(request, error)
        return new Response(null, { status: 500 })
      },
    )
  const rows: [thrown: unknown, error: string][] = [
    ['a text', 'a text'],
    [undefined, 'undefined'],
    [{ toString: () => 'an object' }, 'an object'],
    [new TypeError('what'), 'TypeError: what'],
    [new Error('what', { cause: new RangeError('why') }), 'Error: what (RangeError: why)'],
    [new Error('what', { cause: new RangeError('what') }), 'Error: what'],
    [new Error('what', { cause: 'why' }), 'Error: what'],
    [Object.assign(new Error('no way'), { stack: 'Error: no way' }), 'Error: no way'],
  ]
  for (const [thrown, error] of rows) {
    void failing(thrown)(new Request('http://localhost/connect/secret', { method: 'PUT' }))
    expect(lines.at(-1)).toMatchObject({ error, status: 500, method: 'PUT', route: '/connect' })
  }

  // The functions nearest to it, so many of them.
  const deep = (depth: number): unknown => {
    if (depth === 0) throw new Error('deep')
    return [deep(depth - 1)]
  }
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = 50
  try {
    deep(20)
  } catch (thrown) {
    void failing(thrown)(new Request('http://localhost/'))
  } finally {
    Error.stackTraceLimit = limit
  }
  expect(String(lines.at(-1)?.['in']).split(' < ')).toEqual(Array(stackFunctionsShownMax).fill('deep'))
})

test('each answer is measured from its beginning to its end, under the name of its operation', async () => {
  let now = 5000
  const seen: unknown[] = []
  const middleware = createMiddleware({
    guard: { check: () => undefined },
    log: silent,
    observe: (...measured) => void seen.push(measured),
    clock: clockOf(() => now),
  })
  const answer = middleware.wrap(
    async (request) => {
      now += 250
      if (request.method === 'DELETE') throw new Error('no')
      return new Response('ok', { status: 201 })
    },
    () => new Response('failed', { status: 404 }),
    (request, requestId) =>
      request.url.endsWith('/fast') ? new Response(requestId(), { headers: { 'x-fast': '1' } }) : undefined,
  )
  const ask = (path: string, method = 'GET') => answer(new Request(`http://localhost${path}`, { method }))
  await ask('/connect/acme')
  await ask('/connect/acme/one', 'DELETE')
  await ask('/none')
  // The fast lane sets the headers of its answers itself.
  expect([...(await ask('/connect/fast')).headers.keys()]).not.toContain('x-request-id')
  expect(seen).toEqual([
    ['listConnections', 201, 0.25],
    ['deleteConnection', 404, 0.25],
    ['other', 201, 0.25],
    ['listConnections', 200, 0],
  ])
})

test('a query of very many parameters is refused before any operation sees it', async () => {
  const platform = await createTestPlatform()
  const query = Array.from({ length: 101 }, () => 'a').join('&')
  for (const path of ['/oauth/callback', '/nowhere', '/health'])
    expect({ path, status: (await platform.fetch(`${path}?${query}`)).status }).toEqual({ path, status: 400 })
})

test('a connection ends behind an answer whose request has chunks that nobody reads, and not behind one that reads them', async () => {
  const platform = await createTestPlatform()
  const closes = async (path: string, init: RequestInit, key: string = sampleKeys.ada) => {
    const chunked = bearer(key, { 'transfer-encoding': 'chunked', 'content-type': 'application/json' })
    return (await platform.fetch(path, { ...init, ...chunked })).headers.get('connection') === 'close'
  }
  const ended = { method: 'POST', body: '{}' }
  const endless = () => ({ method: 'POST', body: new ReadableStream<Uint8Array>() })
  expect(await closes(`/${'a'.repeat(3000)}`, endless())).toBe(true)
  for (const path of ['/connect/ada/none/mcp', '/nowhere']) {
    expect(await closes(path, endless())).toBe(true)
    expect(await closes(path, endless(), 'nobody-with-a-key-of-32-characters')).toBe(true)
    // A client that has sent all of it loses nothing.
    expect(await closes(path, ended)).toBe(false)
  }
  expect(await closes('/tokens', ended)).toBe(false)
})
