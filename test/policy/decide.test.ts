import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Constraint } from '../../src/model/constraint.ts'
import { type Block, readPolicy } from '../../src/policy/block.ts'
import { type Access, type Decision, decide } from '../../src/policy/decide.ts'
import cases from './decisions.json' with { type: 'json' }

const usual: Access = {
  namespace: 'acme',
  resource: 'connections',
  operation: 'read',
  metadata: { connectionId: 'c1', metadata: { team: 'ops', env: 'prod', priority: 1, connectionId: 'forged' } },
}

function blocksOf(policy: unknown[]): Block[] {
  if (policy.length === 0) return []
  const read = readPolicy(policy)
  if ('problem' in read) throw new Error(JSON.stringify(read.problem))
  return read.blocks
}

function words(decision: Decision): string {
  if (decision.allowed) return 'allowed'
  return `${decision.visible ? 'refused' : 'invisible'}: policy[${decision.block}].${decision.field}`
}

describe('decide()', () => {
  for (const { because, policy, access, decision } of cases) {
    test(because, () => {
      expect(words(decide(blocksOf(policy), { ...usual, ...(access as Partial<Access>) }))).toBe(decision)
    })
  }
})

const namespaces = ['acme', 'other', 'third']
const text = fc.constantFrom('a', 'b', '')
const metadataSet = fc.dictionary(fc.constantFrom('team', 'env', 'connectionId', '__proto__'), text, { minKeys: 1 })
const oneOrMany = <T>(item: fc.Arbitrary<T>) => fc.oneof(item, fc.array(item, { minLength: 1, maxLength: 3 }))
const pattern = fc.constantFrom('^tools/call$', 'call', '^a', '.', '^$', 'b$')

const constraint = fc
  .record(
    {
      namespaces: oneOrMany(fc.constantFrom(...namespaces)),
      resources: oneOrMany(fc.constantFrom('connections', 'servers', 'skills')),
      operations: oneOrMany(fc.constantFrom('read', 'write', 'execute')),
      metadata: oneOrMany(metadataSet),
      ttl: fc.oneof(fc.integer({ min: 1, max: 86_400 }), fc.constantFrom('1s', '30m', '24h')),
      rpcReqMatch: fc.dictionary(fc.constantFrom('method', 'params.name', 'id', 'params'), pattern, { minKeys: 1 }),
    },
    { requiredKeys: [] },
  )
  .filter((fields) => Object.keys(fields).length > 0) as fc.Arbitrary<Constraint>

const access: fc.Arbitrary<Access> = fc.record(
  {
    namespace: fc.constantFrom(...namespaces),
    resource: fc.constantFrom('connections', 'servers', 'skills'),
    operation: fc.constantFrom('read', 'write', 'execute'),
    metadata: fc.oneof(
      fc.constantFrom('none', 'narrowed'),
      fc.record({
        connectionId: text,
        metadata: fc.oneof(
          fc.constant(null),
          fc.dictionary(fc.constantFrom('team', 'env'), fc.oneof(text, fc.integer())),
        ),
      }),
    ),
    rpc: fc.oneof(
      fc.constant(undefined),
      fc.record({
        method: fc.constantFrom('tools/call', 'ping', 'a'),
        id: fc.integer({ min: 0, max: 3 }),
        params: fc.oneof(fc.constant(null), fc.record({ name: text })),
      }),
    ),
  },
  { requiredKeys: ['namespace', 'resource', 'operation', 'metadata'] },
) as fc.Arbitrary<Access>

const policy = fc.array(constraint, { maxLength: 4 })

describe('the policy only ever narrows', () => {
  test('adding a constraint anywhere never allows more', () => {
    fc.assert(
      fc.property(policy, constraint, fc.nat(), access, (given, added, at, attempt) => {
        const wider = decide(blocksOf(given), attempt)
        const position = at % (given.length + 1)
        const narrower = decide(blocksOf(given.toSpliced(position, 0, added)), attempt)
        return wider.allowed || !narrower.allowed
      }),
      { numRuns: 5000 },
    )
  })

  test('adding a field to a constraint never allows more', () => {
    fc.assert(
      fc.property(constraint, constraint, access, (given, more, attempt) => {
        const narrower = { ...more, ...given }
        return decide(blocksOf([given]), attempt).allowed || !decide(blocksOf([narrower]), attempt).allowed
      }),
      { numRuns: 5000 },
    )
  })

  test('each constraint decides on its own: all together allow what each of them allows', () => {
    fc.assert(
      fc.property(policy, access, (given, attempt) => {
        const each = given.every((one) => decide(blocksOf([one]), attempt).allowed)
        return decide(blocksOf(given), attempt).allowed === each
      }),
      { numRuns: 5000 },
    )
  })

  test('the order of constraints does not matter', () => {
    fc.assert(
      fc.property(policy, access, (given, attempt) => {
        return decide(blocksOf(given), attempt).allowed === decide(blocksOf(given.toReversed()), attempt).allowed
      }),
      { numRuns: 2000 },
    )
  })
})
