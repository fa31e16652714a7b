/** `GET /events`: who hears of what, what comes again, and how many may listen (contract, 22.4). */

import { beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'
import {
  createEventLog,
  eventListenersMax,
  eventListenersOfKeyMax,
  KeptEvent,
} from '../../../src/features/events/event-log.ts'
import { visibleTo } from '../../../src/features/events/visible-events.ts'
import type { CallRecord } from '../../../src/model/recorded-call.ts'
import { CallLog } from '../../../src/ops/call-log.ts'
import { mintToken } from '../../api/cases.ts'
import { sampleApis } from '../../support/api.ts'
import { clockOf } from '../../support/clock.ts'
import { createTestPlatform, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { workplace } from '../../support/workplace.ts'

const place = workplace()
let files = 0
let platform: TestPlatform
let api: ReturnType<typeof sampleApis>
/** What is repeated; the test lets the time pass. */
let repeated: { readonly milliseconds: number; readonly act: () => void }[]
beforeEach(async () => {
  files += 1
  repeated = []
  const callLog = new CallLog(join(place.folder, `calls-${files}.jsonl`), {
    clock: clockOf(() => 0),
    onFailure: () => {},
  })
  const every = (milliseconds: number, act: () => void) => {
    const one = { milliseconds, act }
    repeated.push(one)
    return () => void repeated.splice(repeated.indexOf(one), 1)
  }
  platform = await createTestPlatform({ callLog, every })
  api = sampleApis(platform.fetch)
})

interface Event {
  readonly id: string
  readonly event: string
  // biome-ignore lint/suspicious/noExplicitAny: a test says what it expects of it
  readonly data: any
}

/** A listener, and what it has heard so far. */
async function listen(credential: string, query = '', lastEventId?: string) {
  const headers = { authorization: `Bearer ${credential}`, ...(lastEventId && { 'last-event-id': lastEventId }) }
  const response = await platform.fetch(`/events${query}`, { headers })
  if (response.body === null || response.status !== 200) throw new Error(`${response.status}`)
  const reader = response.body.getReader()
  let text = ''
  let isOver = false
  const reading = (async () => {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) break
      text += Buffer.from(value).toString()
    }
    isOver = true
  })()
  return {
    /** When everything that is under way has been heard. */
    async heard(): Promise<Event[]> {
      // Listeners are served by timers of the same loop, which were set before these.
      for (let turn = 0; turn < 10; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1))
      return text.split('\n\n').flatMap((block) => {
        const lines = new Map(
          block.split('\n').map((line) => [line.split(': ')[0], line.slice(line.indexOf(': ') + 2)]),
        )
        const [id = '', event, data = ''] = [lines.get('id'), lines.get('event'), lines.get('data')]
        return event === undefined ? [] : [{ id, event, data: JSON.parse(data) }]
      })
    },
    text: () => text,
    isOver: () => isOver,
    stop: () => reader.cancel().then(() => reading),
  }
}

/** Sends an MCP message to a mocked connection. */
async function send(key: string, method: string, params: object): Promise<void> {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json', accept: '*/*' }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
  await (await platform.fetch('/connect/northwind/crm-ada/mcp', { method: 'POST', headers, body })).text()
}
const call = (key: string, name = 'find_account') => send(key, 'tools/call', { name, arguments: {} })
const typesOf = (events: readonly Event[]) => events.map(({ event }) => event)

describe('a listener hears', () => {
  test('of calls that it may read, as the list has them', async () => {
    const [ada, linus, stranger] = [
      await listen(sampleKeys.ada, '?types=call'),
      await listen(sampleKeys.linus, '?types=call'),
      await listen(sampleKeys.jonas),
    ]
    await call(sampleKeys.ada)
    const [event] = await ada.heard()
    const [listed] = (await api.ada('GET /calls')).body.calls
    expect(event?.data).toMatchObject({ requestId: listed.requestId, tool: 'find_account', args: listed.args })
    expect(event?.data.seq).toBeUndefined()
    expect(await linus.heard()).toEqual([])
    expect(await stranger.heard()).toEqual([])
  })

  test('of connections as they are now, and of those that are gone', async () => {
    const [ada, stranger] = [
      await listen(sampleKeys.ada, '?types=connection'),
      await listen(sampleKeys.jonas, '?types=connection'),
    ]
    const team = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ metadata: { team: 'none' } }] })
    const narrow = await listen(team, '?types=connection')
    await api.ada('PUT /connect/northwind/made', { server: 'northwind/weather', mock: { enabled: true } })
    const made = { namespace: 'northwind', connectionId: 'made', level: 'ok', summary: 'Mocked' }
    expect((await ada.heard()).map(({ data }) => data)).toMatchObject([made])
    await api.ada('DELETE /connect/northwind/made')
    expect((await ada.heard()).map(({ data }) => data)).toMatchObject([
      made,
      { ...made, level: 'off', summary: 'Deleted' },
    ])
    expect([await stranger.heard(), await narrow.heard()]).toEqual([[], []])
  })

  test('of nothing at a connection that its token does not see any more', async () => {
    const metadata = (team: string) => ({ server: 'northwind/weather', mock: { enabled: true }, metadata: { team } })
    await api.ada('PUT /connect/northwind/moving', metadata('a'))
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ metadata: { team: 'a' } }] })
    const narrow = await listen(token, '?types=call')
    const act = () => api.ada('POST /connect/northwind/moving/.tools/get_forecast', { location: 'Oslo' })
    platform.now += 1000
    await act()
    expect(await narrow.heard()).toHaveLength(1)
    await api.ada('PUT /connect/northwind/moving', { metadata: { team: 'b' } })
    await act()
    expect(await narrow.heard()).toHaveLength(1)
    await api.ada('PUT /connect/northwind/moving', { metadata: { team: 'a' } })
    await act()
    expect(await narrow.heard()).toHaveLength(2)
  })

  test('again of nothing at a connection that its token does not see any more', async () => {
    const metadata = (team: string) => ({ server: 'northwind/weather', mock: { enabled: true }, metadata: { team } })
    await api.ada('PUT /connect/northwind/moving', metadata('a'))
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ metadata: { team: 'a' } }] })
    const narrow = await listen(token, '?types=call')
    platform.now += 1000
    for (const location of ['Oslo', 'Rome'])
      await api.ada('POST /connect/northwind/moving/.tools/get_forecast', { location })
    const [first, second] = await narrow.heard()
    expect(second).toBeDefined()
    await narrow.stop()
    const back = await listen(token, '?types=call', first?.id)
    expect((await back.heard()).map(({ id }) => id)).toEqual([second?.id ?? ''])
    await back.stop()
    await api.ada('PUT /connect/northwind/moving', { metadata: { team: 'b' } })
    const late = await listen(token, '?types=call', first?.id)
    expect(await late.heard()).toEqual([])
    await late.stop()
  })

  test('of no connection that is deleted, where it may not read any', async () => {
    await api.ada('PUT /connect/northwind/secret', { server: 'northwind/weather', mock: { enabled: true } })
    const listeners = []
    for (const one of [{ resources: 'servers' }, { operations: 'write' }, { operations: 'execute' }])
      listeners.push(await listen(await mintToken(platform.fetch, sampleKeys.ada, { policy: [one] })))
    await api.ada('DELETE /connect/northwind/secret')
    for (const one of listeners) expect((await one.heard()).filter(({ event }) => event === 'connection')).toEqual([])
  })

  test('of a client once in ten minutes', async () => {
    const ada = await listen(sampleKeys.ada, '?types=client')
    const params = {
      ...{ protocolVersion: '2025-06-18', capabilities: {} },
      clientInfo: { name: 'my-client', version: '1' },
    }
    for (let times = 0; times < 3; times += 1) await send(sampleKeys.ada, 'initialize', params)
    expect((await ada.heard()).map(({ data }) => [data.client, data.userId, data.connectionId])).toEqual([
      ['my-client', 'ada', 'crm-ada'],
    ])
    platform.now += 600_001
    await send(sampleKeys.ada, 'initialize', params)
    expect(await ada.heard()).toHaveLength(2)
  })

  test('of the audit log, as an operator with an API key', async () => {
    const token = await mintToken(platform.fetch, sampleKeys.operator)
    const [operator, ada, held] = [await listen(sampleKeys.operator), await listen(sampleKeys.ada), await listen(token)]
    await mintToken(platform.fetch, sampleKeys.linus)
    expect((await operator.heard()).map(({ data }) => [data.event, data.userId])).toEqual([['token.minted', 'linus']])
    expect([await ada.heard(), await held.heard()]).toEqual([[], []])
  })

  test('of one namespace, where that is named', async () => {
    const other = await listen(sampleKeys.ada, '?namespace=ada')
    await call(sampleKeys.ada)
    expect(typesOf(await other.heard())).toEqual([])
    expect((await api.ada('GET /events?types=nothing')).status).toBe(400)
  })
})

describe('a listener that was away', () => {
  test('hears what it missed', async () => {
    const first = await listen(sampleKeys.ada, '?types=call')
    await call(sampleKeys.ada)
    const [seen] = await first.heard()
    await first.stop()
    for (const name of ['a', 'b']) await call(sampleKeys.ada, name)
    const second = await listen(sampleKeys.ada, '?types=call', seen?.id)
    expect((await second.heard()).map(({ data }) => data.tool)).toEqual(['a', 'b'])
  })

  test('hears of a gap where too much has happened since, and of another process', async () => {
    const first = await listen(sampleKeys.ada, '?types=connection')
    const put = (index: number) =>
      api.ada('PUT /connect/ada/made', { mcpUrl: 'https://x.example.com', name: `${index}` })
    await put(0)
    const [seen] = await first.heard()
    await first.stop()
    for (let index = 1; index < 1100; index += 1) await call(sampleKeys.ada, 'x')
    for (const id of [seen?.id, 'another-1', 'nonsense', `${seen?.id}9999`])
      expect(typesOf(await (await listen(sampleKeys.ada, '?types=connection', id)).heard())).toEqual(['gap'])
  })

  test('hears of a gap where it does not read', async () => {
    const headers = { authorization: `Bearer ${sampleKeys.ada}` }
    const { body } = await platform.fetch('/events?types=call', { headers })
    // More than fit into the stream, which has room for 1,700, and may wait for it, however late they are looked at.
    for (let index = 0; index < 3000; index += 1) await call(sampleKeys.ada, 'x'.repeat(250))
    const reader = body?.getReader()
    let text = ''
    while (!text.includes('event: gap')) text += Buffer.from((await reader?.read())?.value ?? []).toString()
    expect(text.length).toBeLessThan(2.2 * 2 ** 20)
    expect(text).toContain('event: gap')
    await reader?.cancel()
  })
})

test('a stream ends with its credential, and carries a comment when nothing happens', async () => {
  const token = await mintToken(platform.fetch, sampleKeys.ada)
  const ada = await listen(token)
  for (const { milliseconds, act } of [...repeated]) if (milliseconds === 15_000) act()
  await ada.heard()
  expect(ada.text()).toBe(':\n\n:\n\n')
  await api.ada('POST /tokens/revoke', { token })
  for (const { milliseconds, act } of [...repeated]) if (milliseconds === 500) act()
  await ada.heard()
  expect(ada.isOver()).toBe(true)
  expect(repeated).toEqual([])
})

test('so many may listen with one key', async () => {
  const listeners = []
  for (let index = 0; index < eventListenersOfKeyMax; index += 1) listeners.push(await listen(sampleKeys.ada))
  expect((await api.ada('GET /events')).status).toBe(429)
  const other = await listen(sampleKeys.linus)
  await listeners[0]?.stop()
  await (await listen(sampleKeys.ada)).stop()
  for (const one of [other, ...listeners.slice(1)]) await one.stop()
  expect(repeated).toEqual([])
})

test('so many may listen with all keys of one user, and others have room', () => {
  const events = createEventLog(clockOf(() => 0))
  const place = (keyId: string, userId: string) => events.listen({ keyId, family: keyId, userId }, () => {})
  let taken = 0
  const fill = () => {
    for (; taken < eventListenersMax; taken += 1) place(`key${taken}`, 'ada')
  }
  expect(fill).toThrow('has too many streams of events open')
  expect(taken).toBeWithin(eventListenersMax / 2 - 10, eventListenersMax / 2 + 1)
  place('key5', 'linus')
})

test('of connections of a namespace that was made again, nobody hears what was before', async () => {
  await api.linus('PUT /namespaces/early')
  const first = await listen(sampleKeys.linus, '?types=connection')
  await api.linus('PUT /connect/early/one', { mcpUrl: 'https://example.com/mcp' })
  const [before] = await first.heard()
  await first.stop()
  await api.ada('PUT /namespaces/twice')
  await api.ada('PUT /connect/twice/secret-name', { mcpUrl: 'https://example.com/mcp' })
  await api.ada('DELETE /connect/twice/secret-name')
  await api.ada('DELETE /namespaces/twice')
  platform.now += 1000
  await api.linus('PUT /namespaces/twice')
  await api.linus('PUT /connect/twice/mine', { mcpUrl: 'https://example.com/mcp' })
  const again = await listen(sampleKeys.linus, '?types=connection', before?.id)
  const heard = await again.heard()
  expect(heard.map(({ data }) => data.connectionId)).toEqual(['mine'])
  await again.stop()
})

test('a connection is read once for all who hear of an event, and anew when it may have changed', async () => {
  const event = new KeptEvent(0, { type: 'audit', entry: {} })
  let reads = 0
  const read = async () => {
    reads += 1
    return undefined
  }
  await Promise.all([event.connection('1', read), event.connection('1', read)])
  expect(reads).toBe(1)
  await event.connection('2', read)
  expect(reads).toBe(2)
  await event.connection('', read)
  await event.connection('', read)
  expect(reads).toBe(4)
  const failing = () => Promise.reject(new Error('away'))
  expect(await event.connection('3', failing).catch(({ message }) => message)).toBe('away')
  await event.connection('3', read)
  expect(reads).toBe(5)
})

test('an event that a listener surely sees nothing of does not wait to be looked at', async () => {
  const directory = {
    namespace: async (namespace: string) =>
      namespace === 'later' ? undefined : { namespace, organizationId: 'o', createdAt: '2026-01-01T00:00:00.000Z' },
    role: async () => undefined,
  }
  const caller = { userId: 'jonas', keyId: 'k', operator: false, blocks: [], metadataFingerprint: '', token: undefined }
  const wanted = { namespace: undefined, types: new Set(['call', 'audit'] as const) }
  const visible = visibleTo({} as never, { caller, directory } as never, wanted)
  const callBy = (userId: string, namespace: string) =>
    new KeptEvent(Date.parse('2026-01-02'), { type: 'call', call: { userId, namespace } as CallRecord })
  expect(visible.isHidden(new KeptEvent(0, { type: 'audit', entry: {} }))).toBe(true)
  const ref = { namespace: 'northwind', connectionId: 'a' }
  expect(visible.isHidden(new KeptEvent(0, { type: 'connection', ref }))).toBe(true)
  const isHiddenAfter = async (event: KeptEvent) => {
    const before = visible.isHidden(event)
    const bytes = await visible.bytesOf(event)
    return [before, bytes?.length ?? 0, visible.isHidden(event)]
  }
  expect(await isHiddenAfter(callBy('ada', 'northwind'))).toEqual([false, 0, true])
  // One that does not exist may be made any moment, and the own calls are seen everywhere.
  expect(await isHiddenAfter(callBy('ada', 'later'))).toEqual([false, 0, false])
  expect(await isHiddenAfter(callBy('jonas', 'northwind'))).toEqual([false, expect.any(Number), false])
})

test('the id of an event says nothing of others', async () => {
  const stream = await listen(sampleKeys.linus, '?types=connection')
  await api.linus('PUT /namespaces/quiet')
  for (const id of ['a', 'b']) await api.linus(`PUT /connect/quiet/${id}`, { mcpUrl: 'https://example.com/mcp' })
  const ids = new Set((await stream.heard()).map(({ id }) => id))
  for (const id of ids) expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}$/)
  await stream.stop()
})

test('few events hold their connection, and the others read it again', async () => {
  const kept: ConstructorParameters<typeof KeptEvent>[2] = new LRUCache({ max: 2 })
  let reads = 0
  const read = async () => {
    reads += 1
    return undefined
  }
  const events = [1, 2, 3].map((time) => new KeptEvent(time, { type: 'audit', entry: {} }, kept))
  for (const event of [...events, ...events.slice(1)]) await event.connection('v1', read)
  expect(reads).toBe(3)
  await events[0]?.connection('v1', read)
  await events[0]?.connection('v2', read)
  expect(reads).toBe(5)
})
