/** A policy is bounded by what fits into a token, and by nothing else that is ours: lists, pairs, texts, constraints. */

import { beforeAll, describe, expect, test } from 'bun:test'
import { mintToken } from '../api/cases.ts'
import { createTestPlatform, source, type TestPlatform } from '../support/platform.ts'
import { sampleKeys } from '../support/sample.ts'

/** A company of the size that there is. */
const namespaces = Array.from({ length: 151 }, (_, i) => `department-${String(i).padStart(3, '0')}`)
const bearer = (credential: string) => ({ authorization: `Bearer ${credential}`, 'content-type': 'application/json' })
let platform: TestPlatform
beforeAll(async () => {
  platform = await createTestPlatform({
    sources: [
      source('company.json', {
        namespaces: [...namespaces, 'other'].map((namespace) => ({ namespace, userId: 'ada' })),
        apiKeys: [{ userId: 'ada', key: sampleKeys.ada }],
        connections: namespaces.map((connectionId, i) => ({
          namespace: 'other',
          connectionId,
          mcpUrl: 'https://x.example.com/mcp',
          metadata: { n: String(i), ['long '.repeat(100)]: 'x'.repeat(1000), even: i % 2 === 0 ? 'yes' : 'no' },
        })),
      }),
    ],
  })
})

const statusOf = async (token: string, namespace: string) =>
  (await platform.fetch(`/connect/${namespace}`, { headers: bearer(token) })).status
const listed = async (token: string) => {
  const { connections } = (await (
    await platform.fetch('/connect/other?limit=100', { headers: bearer(token) })
  ).json()) as { connections: { connectionId: string }[] }
  return connections.map(({ connectionId }) => connectionId)
}
async function refusal(policy: unknown): Promise<unknown> {
  const init = { method: 'POST', headers: bearer(sampleKeys.ada), body: JSON.stringify({ policy }) }
  const response = await platform.fetch('/tokens', init)
  const { error } = (await response.json()) as { error: string }
  return { status: response.status, error }
}

describe('a token says', () => {
  test('151 namespaces, and reaches each of them and no other', async () => {
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ namespaces }] })
    expect(new Set(await Promise.all(namespaces.map((name) => statusOf(token, name))))).toEqual(new Set([200]))
    expect(await statusOf(token, 'other')).toBe(404)
  })

  test('100 alternatives of metadata, and lists the rows of each', async () => {
    const metadata = Array.from({ length: 100 }, (_, i) => ({ n: String(i + 51) }))
    const token = await mintToken(platform.fetch, sampleKeys.ada, { policy: [{ metadata }] })
    expect(await listed(token)).toEqual(namespaces.slice(51))
  })

  test('20 pairs at once, and long keys and values', async () => {
    const pairs = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`k${i}`, 'v']))
    const policy = [{ metadata: [{ ['long '.repeat(100)]: 'x'.repeat(1000), n: '7' }, pairs] }]
    expect(await listed(await mintToken(platform.fetch, sampleKeys.ada, { policy }))).toEqual(['department-007'])
  })

  test('40 constraints', async () => {
    const policy = Array.from({ length: 40 }, (_, i) => ({ metadata: { even: i === 20 ? 'no' : 'yes' } }))
    expect(await listed(await mintToken(platform.fetch, sampleKeys.ada, { policy }))).toEqual([])
    expect(await listed(await mintToken(platform.fetch, sampleKeys.ada, { policy: policy.slice(0, 20) }))).toHaveLength(
      76,
    )
  })
})

describe('what does not fit a token is told as that', () => {
  const names = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`)
  const rows: [what: string, policy: unknown][] = [
    ['namespaces', [{ namespaces: names(1000) }]],
    ['alternatives', [{ metadata: names(1000).map((name) => ({ name })) }]],
    ['pairs', [{ metadata: Object.fromEntries(names(1000).map((name) => [name, 'v'])) }]],
    ['a value', [{ metadata: { k: 'x'.repeat(6000) } }]],
    ['constraints', names(1000).map((name) => ({ namespaces: name }))],
  ]
  for (const [what, policy] of rows) {
    test(what, async () => expect(await refusal(policy)).toEqual({ status: 400, error: 'policy_too_large' }))
  }
})
