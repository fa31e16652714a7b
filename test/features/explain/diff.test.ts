/** `POST /tokens/diff`: an example is what `POST /tokens/explain` says, and what widens a policy is found. */

import { beforeAll, describe, expect, test } from 'bun:test'
import type { Constraint } from '../../../src/model/constraint.ts'
import type { Diff, Explanation } from '../../../src/model/explain.ts'
import { mintToken } from '../../api/cases.ts'
import { createTestPlatform, type TestPlatform } from '../../support/platform.ts'
import { type Random, random } from '../../support/random.ts'
import { ada, ask, eve, pickConstraint, question, world } from './acme.ts'

let platform: TestPlatform
beforeAll(async () => {
  platform = await createTestPlatform({ sources: [world] })
})
const diff = (body: object, key = ada) => question<Diff>(platform, key, 'diff', body)
const explain = (policy: object[], request: object) =>
  question<Explanation>(platform, ada, 'explain', { policy, request })

/** Whether the example is one: the new policy allows it, and the old one refuses it there. */
async function check(old: object[], newer: object[], { example, refusedBy, verdict, because }: Diff) {
  const of = { old, newer, example }
  expect({ ...of, verdict, because }).toEqual({ ...of, verdict: 'wider', because: 'request' })
  const [before, after] = [await explain(old, example as object), await explain(newer, example as object)]
  expect({ ...of, verdict: before.verdict }).toEqual({ ...of, verdict: 'refuse' })
  // Where only reach is in the way, no constraint refuses it.
  if (after.verdict === 'allow') expect(before.decidedBy?.place).toEqual(refusedBy as string)
  else expect(after.decidedBy?.place).toMatch(/^(?:reach|connection|lead)$/)
  for (const { verdict } of after.blocks) expect({ ...of, verdict }).toEqual({ ...of, verdict: 'allow' })
  return after.verdict === 'allow'
}

for (const seed of [1, 2])
  test(`an example is allowed by the new policy and refused by the old one (seed ${seed})`, async () => {
    const chance = random(seed)
    const seen = { reached: 0, beyond: 0, none: 0 }
    for (let round = 0; round < 60; round += 1) {
      const old = [pickConstraint(chance), pickConstraint(chance)]
      const newer = chance.chance(0.3) ? [...old, pickConstraint(chance)] : [pickConstraint(chance)]
      const found = await diff({ old: { policy: old }, new: { policy: newer } })
      if (found.example === null) {
        seen.none += 1
        expect(found.refusedBy).toBeNull()
      } else seen[(await check(old, newer, found)) ? 'reached' : 'beyond'] += 1
      // A child is never wider than its parent.
      if (newer.length === 3) expect([old, newer, found.example]).toEqual([old, newer, null])
    }
    expect(Math.min(seen.reached, seen.none)).toBeGreaterThan(10)
  })

/** Ways to widen a policy that are always found; undefined where the policy has nothing of the kind. */
const widenings: Record<string, (one: Constraint, chance: Random) => Constraint | undefined> = {
  'a field is dropped': (one, chance) => {
    const { ttl: _, ...fields } = one
    const dropped = chance.pick(Object.keys(fields)) as keyof typeof fields
    const { [dropped]: __, ...others } = fields
    // Metadata refuses all but connections anyway, and every message has this `jsonrpc`.
    const isIdle = dropped === 'resources' ? one.metadata : Object.keys(one.rpcReqMatch ?? {}).join() === 'jsonrpc'
    return Object.keys(fields).length < 2 || isIdle ? undefined : others
  },
  'a namespace is added': (one) =>
    one.namespaces ? { ...one, namespaces: [...[one.namespaces].flat(), 'somewhere-else'] } : undefined,
  'an operation is added': (one) => {
    const rest = (['read', 'write', 'execute'] as const).filter((kind) => ![one.operations].flat().includes(kind))
    return one.operations && rest[0] ? { ...one, operations: [...[one.operations].flat(), rest[0]] } : undefined
  },
  'a set of metadata is added': (one) =>
    one.metadata && { ...one, metadata: [...[one.metadata].flat(), { team: 'nobody' }] },
  'a pattern is widened': (one, chance) => {
    const rules = one.rpcReqMatch
    const path = rules && chance.pick(Object.keys(rules).filter((name) => name !== 'jsonrpc'))
    return rules && path ? { ...one, rpcReqMatch: { ...rules, [path]: `${rules[path]}|^zzz` } } : undefined
  },
}
const whole = ({ resources, operations }: Constraint) =>
  (resources === undefined || [resources].flat().includes('connections')) &&
  (operations === undefined || [operations].flat().includes('execute'))

for (const [what, widen] of Object.entries(widenings))
  test(`it is found that ${what}`, async () => {
    const chance = random(11)
    let found = 0
    for (let round = 0; round < 60; round += 1) {
      const one = pickConstraint(chance) as Constraint
      const wider = whole(one) ? widen(one, chance) : undefined
      // No call has a text there.
      if (wider === undefined || one.rpcReqMatch?.['params.arguments'] !== undefined) continue
      found += 1
      await check([one], [wider], await diff({ old: { policy: [one] }, new: { policy: [wider] } }))
      const { verdict } = await diff({ old: { policy: [wider] }, new: { policy: [one] } })
      expect([one, wider, verdict]).toEqual([one, wider, 'not_wider_found'])
    }
    expect(found).toBeGreaterThan(3)
  })

const name = (pattern: string) => ({ rpcReqMatch: { 'params.name': pattern } })

describe('an example', () => {
  test('is a call of a tool that is there, where one is', async () => {
    const found = await diff({ old: { policy: [name('^find$')] }, new: { policy: [name('^find')] } })
    expect(found).toEqual({
      verdict: 'wider',
      because: 'request',
      example: { namespace: 'acme', connection: 'crm', tool: 'find.all', arguments: {} },
      refusedBy: 'policy[0].rpcReqMatch.params.name',
      lifetime: { old: 3600, new: 3600 },
      searched: { requests: expect.any(Number), connections: 8, tools: 18, values: expect.any(Number), complete: true },
      words: 'The new policy also allows tools/call of find.all on crm in acme.',
    })
  })

  for (const [old, newer, request] of [
    ['^find$', '^find|^find$', {}],
    ['^zebra$', '^zebras?$', { tool: 'zebras' }],
    ['^zebra$', '(?i)^zebra$', {}],
    ['^zebra$', '^zebra', {}],
    ['^zebra$', 'zebra$', {}],
  ] as const)
    test(`is found for ${newer} instead of ${old}`, async () => {
      const found = await diff({ old: { policy: [name(old)] }, new: { policy: [name(newer)] } })
      expect(found.example).toMatchObject(request)
      await check([name(old)], [name(newer)], found)
    })

  test('has the id that a rule asks for', async () => {
    const old = [{ rpcReqMatch: { id: '^5$' } }]
    const found = await diff({ old: { policy: old }, new: { policy: [{ operations: 'execute' }] } })
    expect(Object.keys(found.example?.message ?? {})).toContain('id')
    await check(old, [{ operations: 'execute' }], found)
  })

  test('is one that reach refuses only if nothing else is', async () => {
    const beyond = await diff({
      old: { policy: [{ namespaces: 'acme' }] },
      new: { policy: [{ namespaces: ['acme', 'x'] }] },
    })
    expect([beyond.example?.namespace, beyond.refusedBy]).toEqual(['x', 'policy[0].namespaces'])
    const within = await diff({ old: { policy: [{ namespaces: 'acme' }] }, new: { policy: [{ operations: 'read' }] } })
    expect(within.example?.namespace).toBe('lab')
  })

  test('of tokens that act for others is what the one reaches and the other does not', async () => {
    const own = await createTestPlatform({ sources: [world] })
    const operator = 'a-key-of-an-operator-for-explaining1'
    const [old, newer] = [await mintToken(own.fetch, eve), await mintToken(own.fetch, ada)]
    const found = await question<Diff>(own, operator, 'diff', { old: { token: old }, new: { token: newer } })
    expect([found.because, found.example?.namespace, found.refusedBy]).toEqual(['request', 'acme', 'reach'])
  })
})

describe('a rule below params', () => {
  const handshake = '^(initialize|tools/list|resources/read|prompts/get)$'
  for (const [old, newer] of [
    [
      { method: handshake, 'params.uri': '^file:///a/' },
      { method: handshake, 'params.uri': 'file:///a/' },
    ],
    [{ method: handshake, 'params.uri': '^file:///a/' }, { method: handshake }],
    [
      { method: '^(initialize|custom/run)$', 'params.name': '^a$' },
      { method: '^(initialize|custom/run)$', 'params.name': '^(a|b)$' },
    ],
  ] as const)
    test(`that is widened is found beside the methods of the handshake: ${JSON.stringify(newer)}`, async () => {
      const policies = [[{ rpcReqMatch: old }], [{ rpcReqMatch: newer }]] as const
      const found = await diff({ old: { policy: policies[0] }, new: { policy: policies[1] } })
      await check([...policies[0]], [...policies[1]], found)
    })
})

test('a path that names a prototype is a path like any other, and nothing of the process changes', async () => {
  for (const path of [
    'params.__proto__.name',
    '__proto__.zzz',
    '__proto__.toString',
    'constructor',
    '__proto__',
    'constructor.x',
  ]) {
    const old = [{ rpcReqMatch: { [path]: '^a$' } }]
    const newer = [{ rpcReqMatch: { [path]: '^(a|b)$' } }]
    for (const pair of [
      [old, newer],
      [old, [{ ttl: '1h' }]],
    ] as const)
      expect((await diff({ old: { policy: pair[0] }, new: { policy: pair[1] } })).verdict).toMatch(/wider/)
  }
  expect(Object.keys(Object.prototype)).toEqual([])
  expect('zzz' in {} || 'name' in {}).toBe(false)
  expect(String({})).toBe('[object Object]')
})

test('a longer lifetime alone is wider', async () => {
  const [short, long] = [{ policy: [{ ttl: '10m' }] }, { policy: [{ ttl: '2h' }] }]
  expect(await diff({ old: short, new: long })).toMatchObject({
    ...{ verdict: 'wider', because: 'lifetime', example: null, refusedBy: null },
    lifetime: { old: 600, new: 7200 },
  })
  expect(await diff({ old: long, new: short })).toMatchObject({ verdict: 'not_wider_found', because: null })
})

test('what the caller does not see is no example', async () => {
  const narrow = await mintToken(platform.fetch, ada, { policy: [{ namespaces: 'lab' }] })
  const found = await diff({ old: { policy: [{ operations: 'write' }] }, new: { policy: [{ ttl: '1h' }] } }, narrow)
  expect(found.example?.namespace).toBe('lab')
  expect(found.searched.connections).toBe(4)
})

test('a policy or a token is named on both sides', async () => {
  for (const body of [{ old: {}, new: { policy: [{ ttl: 60 }] } }, { old: { policy: [{ ttl: 60 }] }, new: {} }, {}]) {
    const { status, text } = await ask(platform, ada, '/tokens/diff', body)
    expect([status, JSON.parse(text).error]).toEqual([400, 'invalid_request'])
  }
})

test('others have their turns while a thousand sets of metadata are looked at', async () => {
  const ids = (from: number, count: number) =>
    Array.from({ length: count }, (_, index) => `another-connection-${from + index}`)
  const old = [{ metadata: ids(1, 98).map((connectionId) => ({ connectionId })) }]
  const ten = (key: string) => ({ metadata: Array.from({ length: 10 }, (_, index) => ({ [key]: `${index}` })) })
  const gone = ids(99, 72).map((connectionId) => ({ connectionId, b: '1' }))
  const next = [{ metadata: [{ q: '0' }, ...gone] }, { metadata: { b: '0' } }, ten('c'), ten('d'), ten('e')]
  // Of the processor, since another program may have it.
  const spent = () => process.threadCpuUsage().user / 1000
  let [before, longest] = [spent(), 0]
  const look = () => {
    longest = Math.max(longest, spent() - before)
    before = spent()
    looking = setImmediate(look)
  }
  let looking = setImmediate(look)
  const { status } = await ask(platform, ada, '/tokens/diff', { old: { policy: old }, new: { policy: next } })
  clearImmediate(looking)
  expect(status).toBe(200)
  expect(longest).toBeLessThan(120)
})
