/** Recorded calls counted over time, one by one, and as JSON lines (contract, 18.5). */

import { beforeEach, expect, test } from 'bun:test'
import { appendFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CallLog } from '../../../src/ops/call-log.ts'
import { mintToken } from '../../api/cases.ts'
import { type Api, sampleApis } from '../../support/api.ts'
import { clockOf } from '../../support/clock.ts'
import { createTestPlatform, startOfTime, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { workplace } from '../../support/workplace.ts'

/** Hours after the namespaces were made, of which others see no calls. */
const now = startOfTime + 3 * 3600 * 1000

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
  platform.now = now
  api = sampleApis(platform.fetch)
})

/** A call of linus, so many milliseconds ago. */
function record(ago: number, fields: object = {}): void {
  const time = new Date(now - ago).toISOString()
  const at = { userId: 'linus', namespace: 'northwind', connectionId: 'crm-ada', tool: 't', outcome: 'ok', ms: 1 }
  const line = { seq: 1, time, event: 'call', requestId: `r${ago}`, args: 'a', ...at, ...fields }
  appendFileSync(callsPath, `${JSON.stringify(line)}\n`)
}
const second = 1000
const timeOf = (ago: number) => new Date(now - ago).toISOString()

test('a series counts the calls that the caller may read, in equal steps', async () => {
  for (const ms of [1, 2, 3, 4, 100]) record(90 * second, { ms })
  record(90 * second, { outcome: 'refused', ms: 0 })
  record(30 * second, { outcome: 'timeout', ms: 7 })
  record(3601 * second)
  record(30 * second, { userId: 'priya', namespace: 'lumen' })
  const query = `since=${timeOf(120 * second)}&until=${timeOf(0)}&step=60`
  const { body } = await api.linus(`GET /calls/series?${query}`)
  expect(body).toEqual({
    steps: [
      { at: timeOf(120 * second), ok: 5, failed: 0, refused: 1, p50: 3, p95: 100, p99: 100 },
      { at: timeOf(60 * second), ok: 0, failed: 1, refused: 0, p50: 7, p95: 7, p99: 7 },
    ],
    stopped: false,
  })
  const hour = (await api.linus('GET /calls/series')).body.steps
  expect([hour.length, hour[0]]).toEqual([
    60,
    { at: timeOf(3600 * second), ok: 0, failed: 0, refused: 0, p50: null, p95: null, p99: null },
  ])
  const total = (who: Api) =>
    who('GET /calls/series').then(({ body: { steps } }) =>
      steps.reduce((sum: number, { ok }: { ok: number }) => sum + ok, 0),
    )
  expect([await total(api.linus), await total(api.jonas), await total(api.operator)]).toEqual([5, 0, 6])
  const lumen = (await api.operator('GET /calls/series?namespace=lumen')).body.steps
  expect(lumen.filter(({ ok }: { ok: number }) => ok > 0)).toHaveLength(1)
  record(20 * second, { tool: 'other', userId: 'priya', namespace: 'lumen' })
  for (const [filter, count] of [
    ['tool=other', 1],
    ['user=priya', 2],
    ['user=priya&tool=other&outcome=ok', 1],
    ['user=priya&outcome=refused', 0],
    ['via=tools', 0],
  ] as const) {
    const { steps } = (await api.operator(`GET /calls/series?${filter}`)).body
    expect([filter, steps.reduce((sum: number, { ok }: { ok: number }) => sum + ok, 0)]).toEqual([filter, count])
  }
  for (const wrong of ['step=0', 'step=1', `since=${timeOf(0)}&until=${timeOf(1)}`, 'limit=1', 'since=x'])
    expect((await api.linus(`GET /calls/series?${wrong}`)).status).toBe(400)
})

test('one call comes with its connection as it is now, and for operators with the audit log', async () => {
  record(1000)
  const refusal = { seq: 1, time: timeOf(1000), event: 'policy.denied', requestId: 'r1000' }
  appendFileSync(auditPath, `${JSON.stringify(refusal)}\n{"event":"policy.denied","requestId":"r10001"}\n`)
  const { body } = await api.linus('GET /calls/r1000')
  expect(body).toMatchObject({ call: { requestId: 'r1000', args: 'a', tool: 't' }, audit: [] })
  expect(body.connection).toMatchObject({ connectionId: 'crm-ada', level: expect.any(String) })
  expect(body.call.seq).toBeUndefined()
  const manager = (await api.ada('GET /calls/r1000')).body
  expect([manager.call.tool, manager.call.args, manager.audit]).toEqual(['t', undefined, []])
  expect((await api.operator('GET /calls/r1000')).body.audit).toEqual([refusal])
  for (const who of [api.priya, api.jonas]) expect((await who('GET /calls/r1000')).status).toBe(404)
  expect((await api.linus('GET /calls/none')).status).toBe(404)
  record(1, { connectionId: 'gone' })
  expect((await api.linus('GET /calls/r1')).body.connection).toBeNull()
})

test('calls of one request id, which a client may repeat, are told apart by time and tool', async () => {
  record(3000, { requestId: 'same', tool: 'delete', jti: 'tok_1' })
  record(2000, { requestId: 'same', tool: 'get', jti: 'tok_2' })
  record(2000, { requestId: 'same', tool: 'list', jti: 'tok_3' })
  const tokenOf = async (query: string) => (await api.linus(`GET /calls/same${query}`)).body.call?.jti
  for (const [query, token] of [
    ['', 'tok_3'],
    [`?time=${timeOf(3000)}&tool=delete`, 'tok_1'],
    [`?time=${timeOf(3000)}`, 'tok_1'],
    [`?time=${timeOf(2000)}&tool=get`, 'tok_2'],
    [`?time=${timeOf(2000)}&tool=delete`, undefined],
  ] as const)
    expect([query, await tokenOf(query)]).toEqual([query, token])
  expect((await api.linus('GET /calls/same?other=1')).status).toBe(400)
})

test('a page is JSON lines where they are asked for, and leads to the next', async () => {
  for (const ago of [3, 2, 1]) record(ago)
  const found: string[] = []
  let path: string | undefined = '/calls?limit=2'
  while (path !== undefined) {
    const response: Response = await platform.fetch(path, {
      headers: { authorization: `Bearer ${sampleKeys.linus}`, accept: 'application/x-ndjson' },
    })
    expect(response.headers.get('content-type')).toBe('application/x-ndjson')
    const lines = (await response.text()).split('\n').slice(0, -1)
    found.push(...lines.map((line) => JSON.parse(line).requestId))
    path = /^<(.*)>; rel="next"$/.exec(response.headers.get('link') ?? '')?.[1]
  }
  expect(found).toEqual(['r1', 'r2', 'r3'])
})

test('a story tells nothing of a connection that was made after its call', async () => {
  const made = { server: 'northwind/calendar', mock: { enabled: true } }
  expect((await api.linus('PUT /connect/northwind/again', made)).status).toBe(201)
  record(-1000, { connectionId: 'again' })
  expect((await api.linus('GET /calls/r-1000')).body.connection).toMatchObject({ connectionId: 'again' })
  record(1000, { connectionId: 'again' })
  expect((await api.linus('GET /calls/r1000')).body.connection).toBeNull()
})

test('own calls tell nothing of a connection in a namespace that the caller has lost', async () => {
  const metadata = { stage: 'secret' }
  const made = { server: 'northwind/calendar', mock: { enabled: true }, metadata }
  const member = '/organizations/team/members/linus'
  for (const [who, request, body] of [
    [api.operator, 'PUT /organizations/team', { owner: 'ada' }],
    [api.ada, 'PUT /namespaces/team', { organizationId: 'team' }],
    [api.ada, `PUT ${member}`, { role: 'member' }],
    [api.ada, 'PUT /connect/team/one', made],
  ] as const)
    expect((await who(request, body)).status).toBeLessThan(300)
  record(-1000, { namespace: 'team', connectionId: 'one' })
  const narrow = await mintToken(platform.fetch, sampleKeys.linus, { policy: [{ metadata }] })
  const about = async () => {
    const { connection } = (await api.linus('GET /calls/r-1000')).body
    const { calls } = (await api.linus.as(narrow)('GET /calls')).body
    return [connection?.connectionId, calls.length]
  }
  expect(await about()).toEqual(['one', 1])
  expect((await api.ada(`DELETE ${member}`)).status).toBe(200)
  expect(await about()).toEqual([undefined, 0])
  // The calls themselves stay one's own.
  expect((await api.linus('GET /calls')).body.calls).toHaveLength(1)
})
