/** `POST /tokens/suggest`: a policy that allows what was called, and nothing that was not. */

import { beforeEach, expect, test } from 'bun:test'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Explanation, LintAnswer, Suggestion } from '../../../src/model/explain.ts'
import { CallLog } from '../../../src/ops/call-log.ts'
import { mintToken } from '../../api/cases.ts'
import { clockOf } from '../../support/clock.ts'
import { createTestPlatform, startOfTime, type TestPlatform } from '../../support/platform.ts'
import { random } from '../../support/random.ts'
import { workplace } from '../../support/workplace.ts'
import { ada, adas, ask, eve, question, world } from './acme.ts'

const place = workplace()
let platform: TestPlatform
let callsPath: string
let files = 0
/** The ids of keys. */
let keyIds: Record<string, string>
beforeEach(async () => {
  files += 1
  callsPath = join(place.folder, `calls-${files}.jsonl`)
  const callLog = new CallLog(callsPath, { clock: clockOf(() => 0), onFailure: () => {} })
  platform = await createTestPlatform({ sources: [world], callLog })
  keyIds = {}
  for (const key of [ada, adas, eve]) {
    const token = await mintToken(platform.fetch, key)
    keyIds[key] = (await question<Explanation>(platform, key, 'explain', { token })).token?.keyId as string
  }
})

const suggest = (key: string, body: object = {}) => question<Suggestion>(platform, key, 'suggest', body)
const codes = ({ notes }: Suggestion) => notes.map(({ code }) => code)
const day = 24 * 3600 * 1000

interface Line {
  readonly connectionId?: string
  readonly namespace?: string
  readonly tool?: string
  readonly outcome?: string
  readonly key?: string
  readonly ago?: number
  readonly jti?: string
  readonly par?: string[]
}
function record({ key = ada, ago = 1000, ...fields }: Line): void {
  const time = new Date(startOfTime - ago).toISOString()
  const userId = key === eve ? 'eve' : 'ada'
  const call = { namespace: 'acme', connectionId: 'crm', tool: 'find', outcome: 'ok', ...fields }
  appendFileSync(callsPath, `${JSON.stringify({ seq: 1, time, event: 'call', userId, keyId: keyIds[key], ...call })}\n`)
}

const called = { namespaces: ['acme'], resources: 'connections' as const, operations: 'execute' as const }

test('what the caller’s key and its tokens called is allowed, and nothing else', async () => {
  record({ tool: 'find' })
  record({ tool: 'find.all', connectionId: 'crm-eu', jti: 'tok_x', outcome: 'tool_error' })
  for (const other of [{ key: adas }, { key: eve }, { ago: 8 * day }, { outcome: 'refused' }])
    record({ tool: 'delete_account', connectionId: 'mail', ...other })
  const suggestion = await suggest(ada)
  expect(suggestion).toEqual({
    policy: [
      {
        ...called,
        metadata: [{ connectionId: 'crm' }, { connectionId: 'crm-eu' }],
        rpcReqMatch: { 'params.name': '^(?:find|find\\.all)$' },
      },
    ],
    from: {
      since: new Date(startOfTime - 7 * day).toISOString(),
      until: new Date(startOfTime).toISOString(),
      ...{ calls: 3, refused: 1, connections: 2, tools: 2, recorded: true, complete: true },
    },
    notes: [
      { code: 'arguments-unknown', words: 'The record has no arguments, so the policy allows any.' },
      {
        code: 'cross-product',
        words: 'Each of the tools is allowed on each of the connections: acme/crm with find.all was not called.',
      },
    ],
  })
  expect((await suggest(ada, { days: 9 })).from).toMatchObject({ calls: 4, tools: 3 })
  expect((await suggest(adas)).policy).toEqual([
    { ...called, metadata: [{ connectionId: 'mail' }], rpcReqMatch: { 'params.name': '^(?:delete_account)$' } },
  ])
})

test('of a token, its own calls and those of its children', async () => {
  const token = await mintToken(platform.fetch, ada, { policy: [{ ttl: '1h' }] })
  const jti = (await question<Explanation>(platform, ada, 'explain', { token })).token?.jti as string
  record({ tool: 'find', jti })
  record({ tool: 'find.all', jti: 'tok_child', par: [jti] })
  record({ tool: 'delete_account', jti: 'tok_other' })
  const { policy } = await suggest(ada, { token })
  expect(policy?.[0]?.rpcReqMatch).toEqual({ 'params.name': '^(?:find|find\\.all)$' })
  expect((await ask(platform, eve, '/tokens/suggest', { token })).status).toBe(404)
})

test('of a namespace, its calls', async () => {
  record({})
  record({ namespace: 'lab' })
  expect((await suggest(ada)).policy?.[0]).toMatchObject({ namespaces: ['acme', 'lab'] })
  expect(codes(await suggest(ada))).toEqual(['arguments-unknown'])
  expect((await suggest(ada, { namespace: 'lab' })).policy?.[0]).toMatchObject({ namespaces: ['lab'] })
})

test('ids that were called in one of the namespaces alone are said', async () => {
  record({})
  record({ namespace: 'lab', connectionId: 'crm-eu' })
  expect(codes(await suggest(ada))).toEqual(['arguments-unknown', 'cross-product'])
  const crossed = async () => (await suggest(ada)).notes.find(({ code }) => code === 'cross-product')?.words
  const across = 'Each of the ids of connections is allowed in each of the namespaces.'
  expect(await crossed()).toBe(across)
  record({ tool: 'find.all' })
  expect(await crossed()).toMatch(/^Each of the tools is allowed on each of the connections: .* was not called\. Each/)
  expect(await crossed()).toEndWith(across)
})

test('where there is nothing to make a policy of, a note says why', async () => {
  const none = await suggest(ada)
  expect([none.policy, codes(none)]).toEqual([null, ['no-calls']])
  expect(none.notes[0]?.words).toBe('Nothing was called in this time.')
  const token = await mintToken(platform.fetch, ada, { policy: [{ operations: 'execute' }] })
  expect((await suggest(token)).notes[0]?.words).toBe('Nothing that this token may see was called in this time.')
  record({ outcome: 'refused' })
  expect((await suggest(ada)).from).toMatchObject({ calls: 1, refused: 1, tools: 0 })
  for (let index = 0; index < 100; index += 1) record({ tool: `a-tool-with-a-long-name-${index}` })
  const large = await suggest(ada)
  expect([large.policy, codes(large)]).toEqual([null, ['too-large']])
  const silent = await createTestPlatform({ sources: [world] })
  const unrecorded = await question<Suggestion>(silent, ada, 'suggest', {})
  expect([unrecorded.policy, unrecorded.from.recorded, codes(unrecorded)]).toEqual([null, false, ['not-recorded']])
})

test('a name of which the record has only the beginning is not guessed', async () => {
  record({ tool: `${'x'.repeat(256)}…0123abcd` })
  expect(codes(await suggest(ada))).toEqual(['too-large'])
})

test('random records: every call is allowed, other tools and connections are not, and lint has no complaint', async () => {
  const chance = random(3)
  for (let round = 0; round < 8; round += 1) {
    const connections = ['crm', 'crm-eu', 'mail'].filter(() => chance.chance(0.5)).concat('crm')
    const tools = ['find', 'find.all', 'delete_account'].filter(() => chance.chance(0.5)).concat('find')
    const before = { days: 30 - round }
    for (const connectionId of connections) record({ connectionId, tool: chance.pick(tools), ago: round * 1000 })
    const { policy } = await suggest(ada, before)
    const used = new Set(policy?.[0]?.metadata && [policy[0].metadata].flat().map((set) => set['connectionId']))
    for (const connection of ['crm', 'crm-eu', 'mail', 'spare'])
      for (const tool of ['find', 'find.all', 'findXall', 'delete_account', 'Find']) {
        const body = { policy, request: { namespace: 'acme', connection, tool, arguments: { any: 1 } } }
        const { verdict } = await question<Explanation>(platform, ada, 'explain', body)
        const pattern = policy?.[0]?.rpcReqMatch?.['params.name'] as string
        const isNamed = pattern.slice(4, -2).split('|').includes(tool.replace('.', '\\.'))
        const isUsed = used.has(connection) && isNamed
        expect({ connection, tool, verdict }).toEqual({ connection, tool, verdict: isUsed ? 'allow' : 'refuse' })
      }
    const { findings } = await question<LintAnswer>(platform, ada, 'lint', { policy })
    expect(findings.filter(({ severity }) => severity !== 'info')).toEqual([])
  }
})
