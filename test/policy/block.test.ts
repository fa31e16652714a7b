import { describe, expect, test } from 'bun:test'
import { readPolicy } from '../../src/policy/block.ts'
import { readTtl } from '../../src/policy/ttl.ts'

describe('readPolicy()', () => {
  test('makes lists of one-or-many fields and seconds of a ttl', () => {
    const read = readPolicy([
      { namespaces: 'a', resources: ['servers'], metadata: { k: 'v' }, ttl: '2m', rpcReqMatch: { 'a.b': 'x' } },
    ])
    expect(read).toEqual({
      blocks: [
        {
          namespaces: ['a'],
          resources: ['servers'],
          metadata: [[['k', 'v']]],
          ttlSeconds: 120,
          rpc: [{ path: 'a.b', pattern: 'x' }],
        },
      ],
    })
  })

  test('says what is wrong with the policy itself, or with a part of it', () => {
    expect(readPolicy(5)).toEqual({ problem: { place: 'policy', message: 'must be a list' } })
    expect(readPolicy([5])).toEqual({ problem: { place: 'policy[0]', message: 'must be an object' } })
    expect(readPolicy([{ ttl: '1h' }, { ttl: '48h' }])).toEqual({
      problem: { place: 'policy[1].ttl', message: 'at most 24 hours' },
    })
  })

  test('keeps a key called __proto__ as a key', () => {
    const read = readPolicy(JSON.parse('[{"metadata":{"__proto__":"x"}}]'))
    expect(read).toEqual({ blocks: [{ metadata: [[['__proto__', 'x']]] }] })
    expect(({} as Record<string, unknown>)['x']).toBeUndefined()
  })

  const bounds: [what: string, within: unknown, beyond: unknown][] = [
    ['rpcReqMatch entries', [{ rpcReqMatch: pairs(32) }], [{ rpcReqMatch: pairs(33) }]],
    [
      'rpcReqMatch path parts',
      [{ rpcReqMatch: { [Array(16).fill('a').join('.')]: 'x' } }],
      [{ rpcReqMatch: { [Array(17).fill('a').join('.')]: 'x' } }],
    ],
  ]
  for (const [what, within, beyond] of bounds) {
    test(`bounds ${what}`, () => {
      expect(readPolicy(within)).toHaveProperty('blocks')
      expect(readPolicy(beyond)).toHaveProperty('problem')
    })
  }
})

describe('readTtl()', () => {
  const seconds: [string | number, number][] = [
    [1, 1],
    ['1s', 1],
    ['20s', 20],
    ['30m', 1800],
    ['1h', 3600],
    ['24h', 86_400],
    [86_400, 86_400],
    ['1440m', 86_400],
    ['007s', 7],
  ]
  for (const [ttl, expected] of seconds)
    test(`${ttl} is ${expected} seconds`, () => expect(readTtl(ttl)).toEqual({ seconds: expected }))
})

function pairs(count: number): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, 'v']))
}
