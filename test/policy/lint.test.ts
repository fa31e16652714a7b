/** What `lintingPolicy` says of policies, and that it is true. */

import { describe, expect, test } from 'bun:test'
import { sliceCost } from '../../src/limits.ts'
import type { Constraint } from '../../src/model/constraint.ts'
import { readPolicy } from '../../src/policy/block.ts'
import { lintingPolicy } from '../../src/policy/lint.ts'
import { drained } from '../../src/schema/steps.ts'

function findingsOf(policy: Constraint[]) {
  const read = readPolicy(policy)
  if ('problem' in read) throw new Error(read.problem.message)
  const { found, isComplete } = drained(lintingPolicy(read.blocks))
  expect(isComplete).toBe(true)
  return found
}

/** Each finding as `CODE PLACE` or `CODE PLACE OTHER`. */
function lint(policy: Constraint[]): string[] {
  return findingsOf(policy)
    .map(({ code, place, other }) => [code, place, ...(other === null ? [] : [other])].join(' '))
    .sort()
}

test('metadata of many sets is compared in steps', () => {
  const sets = (count: number, of: (index: number) => object) => ({
    metadata: Array.from({ length: count }, (_, i) => of(i)),
  })
  for (const other of [
    (i: number) => ({ a: String(i) }),
    (i: number) => ({ a: `${i}-` }),
    (i: number) => ({ b: String(i) }),
  ]) {
    const read = readPolicy([sets(1000, (i) => ({ a: String(i) })), sets(1000, other)] as Constraint[])
    if ('problem' in read) throw new Error(read.problem.message)
    let most = 0
    for (const cost of lintingPolicy(read.blocks)) most = Math.max(most, cost)
    expect(most).toBeLessThan(sliceCost)
  }
})

const name = (pattern: string) => ({ rpcReqMatch: { 'params.name': pattern } })

const cases: [policy: Constraint[], findings: string[]][] = [
  [[{ namespaces: 'a', operations: 'read' }], []],
  [[{ namespaces: ['a', 'b'] }, { namespaces: ['b', 'c'] }], []],
  [[{ namespaces: 'a' }, { namespaces: ['b', 'c'] }], ['contradiction policy[1].namespaces policy[0].namespaces']],
  // Each two of them have something in common, and all three have nothing.
  [
    [{ namespaces: ['a', 'b'] }, { namespaces: ['b', 'c'] }, { namespaces: ['a', 'c'] }],
    ['contradiction policy[2].namespaces'],
  ],
  [[{ operations: 'read' }, { operations: 'write' }], ['contradiction policy[1].operations policy[0].operations']],
  [[{ resources: 'servers' }, { resources: 'skills' }], ['contradiction policy[1].resources policy[0].resources']],
  [
    [{ metadata: { team: 'a' } }, { metadata: [{ team: 'b' }, { team: 'c', env: 'x' }] }],
    ['contradiction policy[1].metadata policy[0].metadata'],
  ],
  [[{ metadata: { team: 'a' } }, { metadata: [{ team: 'b' }, { env: 'x' }] }], []],
  [
    [
      { metadata: [{ a: '1' }, { b: '1' }] },
      { metadata: [{ a: '2' }, { b: '2' }] },
      {
        metadata: [
          { a: '2', b: '2' },
          { a: '1', b: '1' },
        ],
      },
    ],
    ['contradiction policy[2].metadata'],
  ],
  [
    [{ metadata: { team: 'a' } }, { resources: ['servers', 'namespaces'] }],
    ['contradiction policy[0].metadata policy[1].resources'],
  ],
  [
    [name('^issues\\.get$'), name('^pulls\\.get$')],
    ['contradiction policy[1].rpcReqMatch.params.name policy[0].rpcReqMatch.params.name'],
  ],
  [[name('^[^\\x00-\\x{10FFFF}]$')], ['contradiction policy[0].rpcReqMatch.params.name']],
  [[name('^(?:a|b)$'), name('^(?:b|c)$'), name('^(?:a|c)$')], ['contradiction policy[2].rpcReqMatch.params.name']],
  [[{ rpcReqMatch: { 'params.arguments.repo': '^a' } }], []],
  [[{ rpcReqMatch: { method: '^tools/call$' } }], ['handshake-refused policy[0].rpcReqMatch.method']],
  [[{ rpcReqMatch: { method: '^(?:initialize|tools/list|tools/call)$' } }], []],
  [[{ rpcReqMatch: { id: '^1$' } }], []],
  [[{ rpcReqMatch: { params: '^1$' } }], ['handshake-refused policy[0].rpcReqMatch.params']],
  [[name('^issues')], ['unanchored-pattern policy[0].rpcReqMatch.params.name']],
  [[name('^issues$|get$')], ['unanchored-pattern policy[0].rpcReqMatch.params.name']],
  [[name('\\Aissues\\z')], []],
  [
    [{ operations: ['read', 'write', 'execute'] }, { resources: ['connections', 'servers', 'namespaces', 'skills'] }],
    ['dead-constraint policy[0].operations', 'dead-constraint policy[1].resources'],
  ],
  [[{ operations: 'read', ...name('^a$') }], ['dead-constraint policy[0].rpcReqMatch.params.name']],
  [[{ resources: 'servers', ...name('^a$') }], ['dead-constraint policy[0].rpcReqMatch.params.name']],
  [[name('(?s)^.*$')], ['dead-constraint policy[0].rpcReqMatch.params.name']],
  [[{ namespaces: ['a', 'b'] }, { namespaces: 'a' }], ['dead-constraint policy[0].namespaces policy[1].namespaces']],
  [[{ namespaces: 'a' }, { namespaces: 'a' }], ['dead-constraint policy[1].namespaces policy[0].namespaces']],
  [
    [{ metadata: [{ team: 'a' }, { team: 'b' }] }, { metadata: { team: 'a', env: 'x' } }],
    ['dead-constraint policy[0].metadata policy[1].metadata'],
  ],
  [[{ ttl: '1h' }, { ttl: '10m' }], ['dead-constraint policy[0].ttl policy[1].ttl']],
  [
    [name('^(?:a|b)$'), name('^a$')],
    ['dead-constraint policy[0].rpcReqMatch.params.name policy[1].rpcReqMatch.params.name'],
  ],
  [[name('^a$'), name('^a$')], ['dead-constraint policy[1].rpcReqMatch.params.name policy[0].rpcReqMatch.params.name']],
]

describe('a policy', () => {
  for (const [policy, findings] of cases)
    test(JSON.stringify(policy), () => {
      expect(lint(policy)).toEqual(findings)
    })
})

test('what cannot be decided is not reported as clean', () => {
  const read = readPolicy([name('^(a|b)*a(a|b){14}$'), name('^(a|b)*b(a|b){14}$')])
  const { found, isComplete } = drained(lintingPolicy('blocks' in read ? read.blocks : []))
  expect([found, isComplete]).toEqual([[], false])
})

test('the work on a policy is bounded, however many patterns and sets it has', () => {
  const many = Array.from({ length: 60 }, (_, index) => name(`^(a|b)*a(a|b){${index % 10}}c?$`))
  const sets = Array.from({ length: 3 }, (_, block) => ({
    metadata: Array.from({ length: 20 }, (_, index) => ({ [`k${block}`]: `${index}` })),
  }))
  for (const policy of [many, sets]) {
    const read = readPolicy(policy)
    const steps = lintingPolicy('blocks' in read ? read.blocks : [])
    let cost = 0
    for (const step of steps) cost += step
    expect(cost).toBeLessThan(30_000_000)
  }
})

test('a pattern that is not held is shown held', () => {
  const advised = (pattern: string) => findingsOf([name(pattern)])[0]?.words.split(': write ')[1]
  const expected: readonly (readonly [string, string])[] = [
    ['^get_', '^get_$ for the whole value, or ^get_.*$ if any end is meant'],
    ['get', '^get$ for the whole value, or ^get.*$ if any end is meant'],
    ['get$', '^get$ for the whole value, or ^get.*$ if any end is meant'],
    ['get\\$', '^get\\$$ for the whole value, or ^get\\$.*$ if any end is meant'],
    ['a|b', '^(?:a|b)$ for the whole value, or ^(?:a|b).*$ if any end is meant'],
  ]
  for (const [pattern, advice] of expected) expect([pattern, advised(pattern)]).toEqual([pattern, advice])
})
