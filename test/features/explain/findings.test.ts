/** `POST /tokens/lint`: what it says of a policy and of what is there. */

import { beforeAll, expect, test } from 'bun:test'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Explanation, LintAnswer } from '../../../src/model/explain.ts'
import { CallLog } from '../../../src/ops/call-log.ts'
import { mintToken } from '../../api/cases.ts'
import { clockOf } from '../../support/clock.ts'
import { createTestPlatform, startOfTime, type TestPlatform } from '../../support/platform.ts'
import { random } from '../../support/random.ts'
import { workplace } from '../../support/workplace.ts'
import { ada, eve, pickConstraint, question, world } from './acme.ts'

const place = workplace()
let platform: TestPlatform
let callsPath: string
beforeAll(async () => {
  callsPath = join(place.folder, 'calls.jsonl')
  const callLog = new CallLog(callsPath, { clock: clockOf(() => 0), onFailure: () => {} })
  platform = await createTestPlatform({ sources: [world], callLog })
})

const lint = (key: string, body: object) => question<LintAnswer>(platform, key, 'lint', body)
const found = async (policy: object[], key = ada) =>
  (await lint(key, { policy })).findings.map(({ code, place, examples }) => [code, place, ...examples].join(' '))
const name = (pattern: string) => ({ rpcReqMatch: { 'params.name': pattern } })

test('findings have a severity and a place in the documentation, the most serious first', async () => {
  const { findings, searched } = await lint(ada, {
    policy: [{ namespaces: 'acme', operations: ['read', 'write', 'execute'] }, { namespaces: 'gone' }, name('find')],
  })
  expect(findings.map(({ severity, place, docs }) => [severity, place, docs])).toEqual([
    ['error', 'policy[1].namespaces', '/docs/policy#contradiction'],
    ['warning', 'policy[2].rpcReqMatch.params.name', '/docs/policy#unanchored-pattern'],
    ['info', 'policy[0].operations', '/docs/policy#dead-constraint'],
  ])
  // Nothing is in its scope.
  expect(searched).toEqual({ connections: 0, tools: 0, calls: 0, complete: true })
  expect((await lint(ada, { policy: [{ operations: 'read' }] })).findings).toEqual([])
})

const cases: [policy: object[], findings: string[]][] = [
  [[{ namespaces: ['gone', 'eves'] }], ['empty-scope policy[0].namespaces']],
  [[{ namespaces: ['gone', 'acme'] }], []],
  [[{ metadata: { team: 'nobody' } }], ['empty-scope policy[0].metadata']],
  [[{ metadata: { team: 'sales' } }, { metadata: { connectionId: 'crm-eu' } }], ['empty-scope policy[0].metadata']],
  [[{ namespaces: 'acme', metadata: { team: 'sales' } }], []],
  [[{ metadata: { connectionId: 'nobody' } }], ['empty-scope policy[0].metadata']],
  [[{ metadata: [{ connectionId: 'nobody' }, { connectionId: 'spare' }] }], []],
  [[name('^find_account$')], ['unknown-tool policy[0].rpcReqMatch.params.name']],
  [[name('^find.all$')], []],
  [
    [name('^find')],
    ['also-matches policy[0].rpcReqMatch.params.name find.all', 'unanchored-pattern policy[0].rpcReqMatch.params.name'],
  ],
  [[name('^(?:find)$')], []],
]
for (const [policy, findings] of cases)
  test(JSON.stringify(policy), async () => {
    expect(await found(policy)).toEqual(findings)
  })

test('what a stranger has is as what is not there', async () => {
  expect(await found([{ namespaces: 'acme' }], eve)).toEqual(['empty-scope policy[0].namespaces'])
  const narrow = await mintToken(platform.fetch, ada, { policy: [{ namespaces: 'lab' }] })
  expect(await found([{ namespaces: ['acme', 'lab'] }], narrow)).toContain('dead-constraint policy[1].namespaces')
  const one = await mintToken(platform.fetch, ada, { policy: [name('^find$')] })
  expect(await found([name('^delete_account$|^find$')], one)).toEqual([
    'dead-constraint policy[1].rpcReqMatch.params.name',
  ])
})

test('a lifetime beyond that of the parent is found', async () => {
  const parent = await mintToken(platform.fetch, ada, { policy: [{ ttl: '30m' }] })
  expect(await found([{ ttl: '1h' }], parent)).toEqual([
    'lifetime-beyond-parent policy[1].ttl',
    'dead-constraint policy[1].ttl',
  ])
  expect(await found([{ ttl: '10m' }], parent)).toEqual(['dead-constraint policy[0].ttl'])
})

test('tools that are allowed and were not called lately are found, once others were', async () => {
  const line = (fields: object) => `${JSON.stringify({ seq: 1, event: 'call', outcome: 'ok', ...fields })}\n`
  const time = new Date(startOfTime - 1000).toISOString()
  const longAgo = new Date(startOfTime - 31 * 24 * 3600 * 1000).toISOString()
  const at = { namespace: 'acme', connectionId: 'crm', userId: 'ada' }
  appendFileSync(callsPath, line({ ...at, time: longAgo, tool: 'delete_account' }))
  expect(await found([name('^.*$')])).not.toContain('wider-than-used policy')
  appendFileSync(callsPath, line({ ...at, time, tool: 'find' }))
  appendFileSync(callsPath, line({ ...at, time, tool: 'find.all', outcome: 'refused' }))
  appendFileSync(callsPath, line({ ...at, time, tool: 'find.all', userId: 'eve' }))
  expect(await found([{ operations: ['execute'] }])).toEqual(['wider-than-used policy find.all delete_account'])
  expect(await found([name('^find$')])).toEqual([])
  expect((await lint(ada, {})).searched).toMatchObject({ calls: 2, complete: true })
})

test('a contradiction is never found where a request is allowed', async () => {
  const chance = random(9)
  let contradictions = 0
  for (let round = 0; round < 60; round += 1) {
    const policy = [pickConstraint(chance), pickConstraint(chance), pickConstraint(chance)]
    const { findings } = await lint(ada, { policy })
    const [first] = findings.filter(({ code }) => code === 'contradiction')
    if (first === undefined) continue
    contradictions += 1
    for (const namespace of ['acme', 'lab'])
      for (const request of [
        ...['read', 'write'].map((operation) => ({ namespace, resource: 'connections', operation })),
        ...['crm', 'crm-eu'].map((connection) => ({ namespace, connection, tool: 'find', arguments: { repo: 'abc' } })),
        ...['servers', 'namespaces'].map((resource) => ({ namespace, resource, operation: 'read' })),
      ]) {
        const { verdict } = await question<Explanation>(platform, ada, 'explain', { policy, request })
        expect({ policy, first, request, verdict }).not.toMatchObject({ verdict: 'allow' })
      }
  }
  expect(contradictions).toBeGreaterThan(10)
})
