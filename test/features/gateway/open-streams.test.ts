/** Streams that are open when what they stand on ends. */

import { beforeEach, describe, expect, jest, spyOn, test } from 'bun:test'
import { listApiKeys, revokeApiKey } from '../../../src/auth/api-key.ts'
import { revokeToken } from '../../../src/auth/revocation.ts'
import { createOpenStreams, everyMoment, streamsCheckedPerTurn } from '../../../src/features/gateway/open-streams.ts'
import { connectionChange, findConnection } from '../../../src/storage/connections.ts'
import { directoryVersionKey, keyOf } from '../../../src/storage/keys.ts'
import { StoreError } from '../../../src/storage/store.ts'
import { UpstreamError } from '../../../src/upstream/upstream.ts'
import { mintToken } from '../../api/cases.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import {
  createTestPlatform,
  seed,
  signingKeyRecord,
  startOfTime,
  type TestPlatform,
  type TestPlatformOptions,
} from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

let platform: TestPlatform
let upstream: ReadableStreamDefaultController<Uint8Array>
let isLetGo = false
let ticks: (() => void)[] = []

const headers = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })
const say = (text: string) => upstream.enqueue(Buffer.from(`data: ${text}\n\n`))
const settle = () => new Promise((resolve) => setImmediate(resolve))

beforeEach(() => start())

async function start(options: TestPlatformOptions = {}): Promise<void> {
  isLetGo = false
  ticks = []
  let isThere = false
  platform = await createTestPlatform({
    ...options,
    every: (_, act) => {
      ticks.push(act)
      return () => void ticks.splice(ticks.indexOf(act), 1)
    },
    upstream: {
      async send({ progress }) {
        if (!isThere) throw new UpstreamError('down', 'it is not there yet')
        if (progress !== undefined) progress.isSent = true
        const body = new ReadableStream<Uint8Array>({
          start(controller) {
            upstream = controller
          },
          cancel() {
            isLetGo = true
          },
        })
        return { status: 200, headers: { 'content-type': 'text/event-stream' }, body }
      },
    },
  })
  const body = JSON.stringify({ mcpUrl: 'https://tools.example.com/mcp', metadata: { team: 'ops' } })
  await platform.fetch('/connect/northwind/tools', { method: 'PUT', headers: headers(sampleKeys.ada), body })
  isThere = true
}

async function opened(credential: string) {
  const response = await platform.fetch('/connect/northwind/tools/mcp', {
    method: 'POST',
    headers: headers(credential),
    body: JSON.stringify({ jsonrpc: '2.0', id: 9, method: 'initialize', params: {} }),
  })
  expect(response.status).toBe(200)
  expect(response.headers.get('x-accel-buffering')).toBe('no')
  const reader = (response.body as ReadableStream<Uint8Array>).getReader()
  const read = async () => Buffer.from((await reader.read()).value ?? []).toString()
  say('first')
  expect(await read()).toBe('data: first\n\n')
  return { reader, read }
}
const tick = async () => {
  for (const act of [...ticks]) act()
  for (let i = 0; i < 5; i += 1) await settle()
}
const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

describe('a stream ends', () => {
  const ends: Record<string, (token: string) => unknown> = {
    'when its token expires': () => {
      platform.now = startOfTime + 3_600_000
    },
    'when its token is revoked': (token) =>
      revokeToken(platform.store, claimsOf(token).jti, { exp: undefined, nowSeconds: startOfTime / 1000 }),
    'when the token that it was minted with is': (token) =>
      revokeToken(platform.store, claimsOf(token).par[0], { exp: undefined, nowSeconds: startOfTime / 1000 }),
    'when its signing key is revoked': () => platform.setSigningKeys([signingKeyRecord('another key')]),
    'when its key is revoked': async () => {
      for (const { keyId } of await listApiKeys(platform.store)) await revokeApiKey(platform.store, keyId, new Date(0))
    },
    'when its user is no member any more': () =>
      platform.store.commit({
        deletes: [keyOf('member', 'org_northwind', 'linus')],
        puts: [{ key: directoryVersionKey, value: seed('another') }],
      }),
    'when its connection is deleted': () =>
      platform.fetch('/connect/northwind/tools', { method: 'DELETE', headers: headers(sampleKeys.ada) }),
    'when another connection takes its connection’s name': async () => {
      await platform.fetch('/connect/northwind/tools', { method: 'DELETE', headers: headers(sampleKeys.ada) })
      platform.now += 1
      const body = JSON.stringify({ server: 'northwind/inventory', mock: { enabled: true }, metadata: { team: 'ops' } })
      const made = await platform.fetch('/connect/northwind/tools', {
        method: 'PUT',
        headers: headers(sampleKeys.ada),
        body,
      })
      expect(made.status).toBe(201)
    },
    'when its connection is out of its sight': () =>
      platform.fetch('/connect/northwind/tools', {
        method: 'PUT',
        headers: headers(sampleKeys.ada),
        body: JSON.stringify({ metadata: { team: 'other' } }),
      }),
  }
  for (const [when, happens, fastLane] of Object.entries(ends).flatMap(([when, happens]) => [
    [when, happens, true] as const,
    [`${when}, without the fast lane`, happens, false] as const,
  ])) {
    test(when, async () => {
      if (!fastLane) await start({ fastLane })
      const parent = await mintToken(platform.fetch, sampleKeys.linus, { policy: [{ metadata: { team: 'ops' } }] })
      const { read, reader } = await opened(await mintToken(platform.fetch, parent))
      await tick()
      say('second')
      expect(await read()).toBe('data: second\n\n')
      const next = read()
      await happens(await mintedLast())
      await tick()
      const error = /data: (.*)/.exec(await next)?.[1] ?? ''
      expect(JSON.parse(error)).toMatchObject({ jsonrpc: '2.0', id: 9, error: { code: expect.any(Number) } })
      expect((await reader.read()).done).toBe(true)
      expect([isLetGo, ticks.length]).toEqual([true, 0])
    })
  }

  /** The token of the stream, from what was noted of it. */
  async function mintedLast(): Promise<string> {
    const { jti, par } = platform.audited.findLast(({ event }) => event === 'token.minted') ?? {}
    return `.${Buffer.from(JSON.stringify({ jti, par })).toString('base64url')}.`
  }
})

test('a stream is looked at without asking again what no change of the directory can have changed', async () => {
  const store = openMemoryStore()
  const revocations = keyOf('revocation', '')[0]
  let asked = 0
  const getMany: typeof store.getMany = (keys) => {
    asked += keys.filter(([kind]) => kind === revocations).length
    return store.getMany(keys)
  }
  await start({ store: { ...store, getMany }, fastLane: false })
  let parent = await mintToken(platform.fetch, sampleKeys.ada)
  for (let i = 0; i < 2; i += 1) parent = await mintToken(platform.fetch, parent)
  const tokens = [await mintToken(platform.fetch, parent), await mintToken(platform.fetch, parent)]
  await opened(tokens[0] as string)
  asked = 0
  await tick()
  expect(asked).toBe(0)
  await platform.store.commit({ puts: [{ key: directoryVersionKey, value: seed('another') }] })
  await tick()
  expect(asked).toBe(4)
  // Tokens with one parent share its ancestors, which are looked up once.
  for (const token of tokens) await platform.fetch('/connect/northwind', { headers: headers(token) })
  expect(asked).toBe(6)
})

test('a stream whose connection leads to another server does not ask for its request to be sent again', async () => {
  const { read, reader } = await opened(await mintToken(platform.fetch, sampleKeys.ada))
  const next = read()
  const before = await findConnection(platform.store, 'northwind', 'tools')
  if (before === undefined) throw new Error('there is no connection')
  const connection = { ...before.connection, mcpUrl: 'https://other.example/mcp' }
  const ref = { namespace: 'northwind', connectionId: 'tools' }
  await platform.store.commit(connectionChange(ref, before, { ...before, connection }))
  platform.now += 100
  await tick()
  expect(await next).toContain('may have executed')
  expect((await reader.read()).done).toBe(true)
})

test('a stream goes on while the store cannot be asked, and ends when it answers wrongly', async () => {
  const store = openMemoryStore()
  let failure: StoreError | undefined
  const getMany: typeof store.getMany = (keys) =>
    failure === undefined ? store.getMany(keys) : Promise.reject(failure)
  await start({ store: { ...store, getMany }, fastLane: false })
  const { read, reader } = await opened(await mintToken(platform.fetch, sampleKeys.ada))
  failure = new StoreError('unavailable', 'the database is away')
  await tick()
  say('second')
  expect(await read()).toBe('data: second\n\n')
  failure = new StoreError('damaged', 'a record is damaged')
  const next = read()
  await tick()
  expect(await next).toContain('cannot check right now')
  expect((await reader.read()).done).toBe(true)
})

test('those that end with their token do not use up what the address may get wrong', async () => {
  const refusedBeforeTheLimit = async (streams: number) => {
    await start({ rates: { failures: 1 } })
    const token = await mintToken(platform.fetch, sampleKeys.ada)
    const open = []
    for (let i = 0; i < streams; i += 1) open.push(await opened(token))
    await revokeToken(platform.store, claimsOf(token).jti, { exp: undefined, nowSeconds: startOfTime / 1000 })
    await tick()
    for (const { read } of open) expect(await read()).toContain('error')
    const status = async () => (await platform.fetch('/connect/northwind/tools', { headers: headers(token) })).status
    let refused = 0
    while ((await status()) === 401) refused += 1
    return refused
  }
  expect(await refusedBeforeTheLimit(4)).toBe(await refusedBeforeTheLimit(0))
})

test('each is looked at until it is over, and nothing is when none is open', async () => {
  const acts: (() => void)[] = []
  const watchStream = createOpenStreams((_, act) => {
    acts.push(act)
    return () => void acts.pop()
  })
  const ended: unknown[] = []
  let isFine = true
  const look = async () => {
    if (!isFine) throw new Error('over')
  }
  const over = watchStream(look, () => ended.push('first'))
  watchStream(look, (why) => ended.push((why as Error).message))
  expect(acts).toHaveLength(1)
  over()
  acts[0]?.()
  expect(ended).toEqual([])
  isFine = false
  acts[0]?.()
  await Promise.resolve()
  expect([ended, acts]).toEqual([['over'], []])
})

test('thousands are looked at in turns with others, each once in a round', async () => {
  let act = () => {}
  const watchStream = createOpenStreams((_, each) => {
    act = each
    return () => {}
  })
  let looks = 0
  for (let i = 0; i < 10 * streamsCheckedPerTurn; i += 1)
    watchStream(
      async () => {
        looks += 1
      },
      () => {},
    )
  act()
  expect(looks).toBe(streamsCheckedPerTurn)
  // The next round begins when this one is over.
  act()
  await settle()
  expect(looks).toBe(2 * streamsCheckedPerTurn)
  for (let i = 0; i < 20; i += 1) await settle()
  expect(looks).toBe(10 * streamsCheckedPerTurn)
  act()
  expect(looks).toBe(11 * streamsCheckedPerTurn)
})

test('a round that has looked at all takes no more turns', () => {
  let tick = () => {}
  const watchStream = createOpenStreams((_, act) => {
    tick = act
    return () => {}
  })
  const later = spyOn(globalThis, 'setImmediate')
  try {
    for (let i = 0; i < streamsCheckedPerTurn; i += 1)
      watchStream(
        async () => {},
        () => {},
      )
    tick()
    expect(later).toHaveBeenCalledTimes(0)
  } finally {
    later.mockRestore()
  }
})

test('a moment comes again and again, until it is stopped', () => {
  jest.useFakeTimers()
  try {
    let moments = 0
    const stop = everyMoment(100, () => {
      moments += 1
    })
    jest.advanceTimersByTime(99)
    expect(moments).toBe(0)
    jest.advanceTimersByTime(201)
    expect(moments).toBe(3)
    stop()
    jest.advanceTimersByTime(1000)
    expect([moments, jest.getTimerCount()]).toEqual([3, 0])
  } finally {
    jest.useRealTimers()
  }
})
