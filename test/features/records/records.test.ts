/** The record of calls and the audit log over HTTP (contract, 18.5). */

import { beforeEach, describe, expect, test } from 'bun:test'
import { appendFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { firstHash, formatLine } from '../../../src/ops/audit-chain.ts'
import { CallLog } from '../../../src/ops/call-log.ts'
import { textOf } from '../../../src/storage/bytes.ts'
import { directoryVersionKey, keyOf } from '../../../src/storage/keys.ts'
import { newVersion } from '../../../src/storage/versions.ts'
import { mintToken } from '../../api/cases.ts'
import { type Api, apiOf, sampleApis } from '../../support/api.ts'
import { clockOf } from '../../support/clock.ts'
import { createTestPlatform, keyIdOf, type TestPlatform } from '../../support/platform.ts'
import { random } from '../../support/random.ts'
import { sampleKeys } from '../../support/sample.ts'
import { workplace } from '../../support/workplace.ts'

const place = workplace()
let files = 0
let platform: TestPlatform
let callsPath: string
let auditPath: string
let api: ReturnType<typeof sampleApis>

beforeEach(async () => {
  files += 1
  callsPath = join(place.folder, `calls-${files}.jsonl`)
  auditPath = join(place.folder, `audit-${files}.jsonl`)
  writeFileSync(auditPath, '')
  const callLog = new CallLog(callsPath, { clock: clockOf(() => 0), onFailure: () => {} })
  platform = await createTestPlatform({ callLog, auditPath })
  api = sampleApis(platform.fetch)
})

interface Call {
  readonly userId: string
  readonly namespace: string
  readonly connectionId: string
  readonly tool: string
}

/** Lines of a chained file, a second after one another. */
function linesOf(event: string, all: readonly object[], from = 0): string {
  let [seq, prev, text] = [from, firstHash, '']
  for (const fields of all) {
    seq += 1
    const time = new Date(Date.parse('2026-03-02T09:00:00.000Z') + seq * 1000).toISOString()
    const line = formatLine({ seq, prev, replica: undefined }, time, { event, fields })
    prev = line.hash
    text += `${line.text}\n`
  }
  return text
}

const details = { requestId: 'r', keyId: 'k', via: 'mcp', outcome: 'ok', ms: 1, bytesIn: 1, bytesOut: 1, args: 'a' }
const call = (userId: string, namespace: string, connectionId: string, tool: string): Call => {
  return { ...details, userId, namespace, connectionId, tool }
}
const record = (calls: readonly object[]) => appendFileSync(callsPath, linesOf('call', calls))
const toolsOf = async (who: Api, query = '') => {
  const { status, body } = await who(`GET /calls${query}`)
  return status === 200 ? body.calls.map(({ tool }: Call) => tool) : status
}

describe('recorded calls', () => {
  test('are those of one’s own user and of the namespaces that one manages, the newest first', async () => {
    record([
      call('ada', 'northwind', 'crm-ada', 'a'),
      call('linus', 'northwind', 'crm-ada', 'b'),
      call('priya', 'lumen', 'x', 'c'),
      call('ada', 'gone', 'x', 'd'),
    ])
    // An admin of northwind, a member of it, and an owner of another organization.
    expect(await toolsOf(api.ada)).toEqual(['d', 'b', 'a'])
    expect(await toolsOf(api.grace)).toEqual(['b', 'a'])
    expect(await toolsOf(api.linus)).toEqual(['b'])
    expect(await toolsOf(api.priya)).toEqual(['c'])
    expect(await toolsOf(api.jonas)).toEqual([])
    expect(await toolsOf(api.operator)).toEqual(['d', 'c', 'b', 'a'])
    const { key } = (await api.ada('POST /organizations/org_northwind/api-keys', { name: 'ci' })).body
    expect(await toolsOf(api.ada.as(key))).toEqual(['b', 'a'])
    // The hash of arguments is for who called, and for operators: others could try what it was.
    for (const [who, args] of [
      [api.grace, undefined],
      [api.ada, undefined],
      [api.linus, 'a'],
      [api.operator, 'a'],
    ] as const)
      expect((await who('GET /calls?tool=b')).body.calls[0].args).toBe(args)
    const { body } = await api.linus('GET /calls')
    expect(body).toEqual({
      calls: [{ time: '2026-03-02T09:00:02.000Z', ...call('linus', 'northwind', 'crm-ada', 'b') }],
      nextCursor: null,
      stopped: false,
    })
  })

  test('that began before their namespace was made are of another one of its name', async () => {
    // The lines are written a second after one another, and the namespace was made at the first second.
    platform.now = Date.parse('2026-03-02T09:00:01.000Z')
    expect((await api.ada('PUT /namespaces/fresh')).status).toBe(201)
    record([call('linus', 'fresh', 'x', 'before'), { ...call('linus', 'fresh', 'x', 'over'), ms: 1500 }])
    record([call('linus', 'fresh', 'x', 'before'), call('linus', 'fresh', 'x', 'after')])
    expect(await toolsOf(api.ada)).toEqual(['after'])
    expect(await toolsOf(api.linus)).toEqual(['after', 'before', 'over', 'before'])
  })

  test('are narrowed by a token’s namespaces, operations and metadata, as lists of connections are', async () => {
    const { connections } = (await api.ada('GET /connect/northwind')).body as {
      connections: { connectionId: string; metadata?: Record<string, unknown> }[]
    }
    // After the connections of the sample were made.
    const calls = [
      ...connections.map(({ connectionId }) => call('ada', 'northwind', connectionId, connectionId)),
      call('ada', 'northwind', 'deleted', 'deleted'),
      call('ada', 'ada', 'x', 'mine'),
    ]
    appendFileSync(callsPath, linesOf('call', calls, 4e7))
    const as = async (...policy: object[]) => api.ada.as(await mintToken(platform.fetch, sampleKeys.ada, { policy }))
    const wholesale = connections.filter(({ metadata }) => metadata?.['team'] === 'wholesale')
    expect(wholesale.length).toBeGreaterThan(0)
    const narrow = await as({ metadata: { team: 'wholesale' } })
    expect((await toolsOf(narrow)).sort()).toEqual(wholesale.map(({ connectionId }) => connectionId).sort())
    expect(await toolsOf(await as({ namespaces: 'ada' }))).toEqual(['mine'])
    expect(await toolsOf(await as({ resources: 'servers' }))).toEqual([])
    expect(await toolsOf(await as({ operations: ['write', 'execute'] }))).toEqual([])
    expect(await toolsOf(await as({ operations: 'read', namespaces: 'northwind' }))).toContain('deleted')
  })

  test('of an earlier namespace or connection of the same name are not those of the new one', async () => {
    const times = (calls: readonly Call[]) => linesOf('call', calls)
    // The platform's clock stands at nine; lines have a second more each.
    appendFileSync(callsPath, times([call('ada', 'shared', 'x', 'earlier')]))
    platform.now += 1000
    expect((await api.jonas('PUT /namespaces/shared')).status).toBe(201)
    expect(await toolsOf(api.jonas)).toEqual([])
    appendFileSync(callsPath, linesOf('call', [call('ada', 'shared', 'x', 'later')], 1))
    expect(await toolsOf(api.jonas)).toEqual(['later'])
    expect(await toolsOf(api.ada)).toEqual(['later', 'earlier'])
    await api.jonas('PUT /connect/shared/x', {
      server: 'northwind/calendar',
      mock: { enabled: true },
      metadata: { a: 'b' },
    })
    const policy = [{ metadata: { a: 'b' } }]
    const narrowed = api.ada.as(await mintToken(platform.fetch, sampleKeys.jonas, { policy }))
    appendFileSync(callsPath, linesOf('call', [call('ada', 'shared', 'x', 'last')], 10))
    platform.now += 1000
    expect(await toolsOf(narrowed)).toEqual(['last', 'later'])
    expect((await api.jonas('DELETE /connect/shared/x')).status).toBe(200)
    platform.now += 3000
    await api.jonas('PUT /connect/shared/x', {
      server: 'northwind/calendar',
      mock: { enabled: true },
      metadata: { a: 'b' },
    })
    expect(await toolsOf(narrowed)).toEqual(['last'])
  })

  test('are filtered by everything that a line has', async () => {
    const other = { outcome: 'refused', via: 'tools', jti: 'tok_a', par: ['tok_b'] }
    record([
      call('ada', 'northwind', 'crm-ada', 'a'),
      { ...call('grace', 'northwind', 'wms', 'b'), ...other },
      { event: 'none' },
    ])
    for (const query of ['user=grace', 'connection=wms', 'connection=northwind/wms', 'tool=b', 'outcome=refused'])
      expect({ query, tools: await toolsOf(api.ada, `?${query}`) }).toEqual({ query, tools: ['b'] })
    for (const query of ['via=tools', 'token=tok_a', 'token=tok_b', 'since=2026-03-02T09:00:02Z'])
      expect({ query, tools: await toolsOf(api.ada, `?${query}`) }).toEqual({ query, tools: ['b'] })
    expect(await toolsOf(api.ada, '?until=2026-03-02T09:00:01.999Z')).toEqual(['a'])
    expect(await toolsOf(api.ada, '?namespace=other')).toEqual([])
    const others = ['outcome=failed', 'outcome=', 'via=console']
    for (const query of [
      ...others,
      'since=yesterday',
      'limit=0',
      'limit=101',
      'cursor=x',
      'cursor=',
      'nope=1',
      'since=1&since=2',
    ])
      expect({ query, tools: await toolsOf(api.ada, `?${query}`) }).toEqual({ query, tools: 400 })
  })

  test('come in pages, each once, whatever lengths lines have, while more are written', async () => {
    const { int } = random(7)
    const all = Array.from({ length: 1500 }, (_, index) =>
      call(
        index % 3 === 0 ? 'ada' : 'priya',
        index % 3 === 0 ? 'northwind' : 'lumen',
        'c',
        `${index}-${'é'.repeat(int(400))}`,
      ),
    )
    record(all)
    const seen: string[] = []
    let cursor: string | null = ''
    while (cursor !== null) {
      const at: string = cursor === '' ? '' : `&cursor=${cursor}`
      const { body } = await api.grace(`GET /calls?limit=37${at}`)
      seen.push(...body.calls.map(({ tool }: Call) => tool))
      cursor = body.nextCursor
      appendFileSync(callsPath, linesOf('call', [call('ada', 'northwind', 'c', 'later')]))
    }
    expect(seen).toEqual(
      all
        .filter(({ userId }) => userId === 'ada')
        .map(({ tool }) => tool)
        .reverse(),
    )
  })

  test('of a request are looked for in so many lines, and the page says where it stopped', async () => {
    const line = linesOf('call', [call('priya', 'lumen', 'c', 'x')])
    appendFileSync(callsPath, linesOf('call', [call('linus', 'northwind', 'c', 'first')]))
    appendFileSync(callsPath, line.repeat(100_000))
    const { calls, stopped, nextCursor } = (await api.linus('GET /calls')).body
    expect({ calls, stopped }).toEqual({ calls: [], stopped: true })
    const next = await api.linus(`GET /calls?cursor=${nextCursor}`)
    expect(next.body).toMatchObject({ calls: [{ tool: 'first' }], stopped: false, nextCursor: null })
  })

  test('of a file that was moved away are not mixed with those of the next', async () => {
    record([call('ada', 'northwind', 'c', 'a'), call('ada', 'northwind', 'c', 'b')])
    const { nextCursor } = (await api.ada('GET /calls?limit=1')).body
    renameSync(callsPath, `${callsPath}.1`)
    writeFileSync(callsPath, linesOf('call', [call('ada', 'northwind', 'c', 'c')]))
    expect(await api.ada(`GET /calls?cursor=${nextCursor}`)).toMatchObject({ status: 400 })
    expect(await toolsOf(api.ada)).toEqual(['c'])
  })

  test('are nothing to a key that was revoked while its request waited', async () => {
    const { fairness } = platform
    const keyId = await keyIdOf(platform, 'ada')
    const leave = await fairness.logReads.enter({ keyId, family: keyId, userId: 'ada' })
    const waiting = api.ada('GET /calls')
    expect((await api.operator(`DELETE /api-keys/${keyId}`)).status).toBe(200)
    leave()
    expect((await waiting).status).toBe(401)
  })

  test('are none where none are recorded, and half a line is none', async () => {
    writeFileSync(
      callsPath,
      `{"event":"call","userId":"ada"\n${linesOf('call', [call('ada', 'a', 'c', 'a')])}{"event":"call"`,
    )
    expect(await toolsOf(api.ada)).toEqual(['a'])
    const none = apiOf((await createTestPlatform()).fetch, sampleKeys.ada)
    expect((await none('GET /calls')).body).toEqual({ calls: [], nextCursor: null, stopped: false })
    expect((await platform.fetch('/calls')).status).toBe(401)
  })
})

describe('the audit log', () => {
  const entries = [{ userId: 'ada' }, { userId: 'grace' }, { userId: 'ada' }]

  test('is listed to operators, the newest first, and checked', async () => {
    appendFileSync(auditPath, linesOf('signin.session', entries))
    const { body } = await api.operator('GET /audit?limit=2')
    expect(body.entries.map(({ seq, userId }: { seq: number; userId: string }) => [seq, userId])).toEqual([
      [3, 'ada'],
      [2, 'grace'],
    ])
    const rest = await api.operator(`GET /audit?limit=2&cursor=${body.nextCursor}`)
    expect(rest.body).toMatchObject({ entries: [{ seq: 1 }], nextCursor: null })
    expect((await api.operator('GET /audit?user=grace')).body.entries).toMatchObject([{ seq: 2 }])
    expect((await api.operator('GET /audit?event=key.created')).body.entries).toEqual([])
    expect((await api.operator('GET /audit?event=key.create')).status).toBe(400)
    const { hash } = body.entries[0]
    const log = { replica: null, entries: 3, first: 1, last: 3, hash }
    const good = { ok: true, problems: [], truncatedLines: [], logs: [log] }
    expect((await api.operator('GET /audit/verification')).body).toEqual(good)
    expect((await api.operator(`GET /audit/verification?hash=${body.entries[1].hash}`)).body).toEqual(good)
    expect((await api.operator(`GET /audit/verification?hash=${firstHash}`)).body.ok).toBe(false)
    expect((await api.operator('GET /audit/verification?hash=x')).status).toBe(400)
  })

  test('that somebody changed or cut is told apart from a good one', async () => {
    const lines = linesOf('signin.session', entries)
    writeFileSync(auditPath, lines.replace('grace', 'gracE'))
    expect((await api.operator('GET /audit/verification')).body).toMatchObject({ ok: false })
    writeFileSync(auditPath, lines.slice(0, -30))
    const { body } = await api.operator('GET /audit/verification')
    expect(body).toMatchObject({ ok: false, problems: [expect.stringContaining('ends in the middle of a line')] })
    // Not for somebody who knows the last entry that must be there.
    const { hash } = JSON.parse(lines.split('\n')[1] ?? '')
    expect((await api.operator(`GET /audit/verification?hash=${hash}`)).body).toMatchObject({ ok: true, problems: [] })
  })

  test('is for operators with their API key alone', async () => {
    const token = api.ada.as(await mintToken(platform.fetch, sampleKeys.operator, {}))
    for (const one of [api.ada, token])
      for (const path of ['/audit', '/audit/verification']) expect((await one(`GET ${path}`)).status).toBe(403)
  })
})

test('the audit log is for nobody who is no operator any more when it has been read', async () => {
  rmSync(auditPath)
  await Bun.$`mkfifo ${auditPath}`
  const asking = api.operator('GET /audit/verification')
  // Opens when the log is read.
  const log = await open(auditPath, 'w')
  const key = keyOf('apiKey', await keyIdOf(platform, 'operator'))
  const record = JSON.parse(textOf((await platform.store.get(key)) ?? new Uint8Array()))
  const demoted = { key, value: Buffer.from(JSON.stringify({ ...record, operator: false })) }
  await platform.store.commit({ puts: [demoted, newVersion(directoryVersionKey)] })
  await log.close()
  expect((await asking).status).toBe(403)
})
