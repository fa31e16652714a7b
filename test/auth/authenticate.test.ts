import { beforeEach, describe, expect, test } from 'bun:test'
import { createApiKey, listApiKeys, revokeApiKey } from '../../src/auth/api-key.ts'
import { revokeToken, sweepRevocations } from '../../src/auth/revocation.ts'
import { directoryVersionKey, keyOf, prefixOf, prefixRange } from '../../src/storage/keys.ts'
import { mintToken } from '../api/cases.ts'
import { createTestPlatform, seed, signingKeyRecord, startOfTime, type TestPlatform } from '../support/platform.ts'
import { sampleKeys } from '../support/sample.ts'

let platform: TestPlatform
beforeEach(async () => {
  platform = await createTestPlatform()
})

const status = async (path: string, credential: string) =>
  (await platform.fetch(path, { headers: { authorization: `Bearer ${credential}` } })).status
const mint = (credential: string, body: object = {}) => mintToken(platform.fetch, credential, body)
const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
const change = (key: Uint8Array, value: string | undefined) =>
  platform.store.commit({
    deletes: value === undefined ? [key] : [],
    puts: [
      ...(value === undefined ? [] : [{ key, value: Buffer.from(value) }]),
      { key: directoryVersionKey, value: seed(String(Math.random())) },
    ],
  })

describe('what a token claims', () => {
  test('by default: an hour, its user and key, an empty policy', async () => {
    const claims = claimsOf(await mint(sampleKeys.ada))
    const seconds = startOfTime / 1000
    expect(Object.keys(claims)).toEqual(['iss', 'aud', 'sub', 'key', 'jti', 'iat', 'exp', 'policy'])
    expect(claims).toMatchObject({
      iss: 'http://localhost:8787',
      aud: 'http://localhost:8787',
      sub: 'ada',
      iat: seconds,
      exp: seconds + 3600,
      policy: [],
    })
  })

  test('the shortest ttl counts, and expiresAt is exp', async () => {
    const response = await platform.fetch('/tokens', {
      method: 'POST',
      headers: { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' },
      body: JSON.stringify({ policy: [{ ttl: '2h' }, { ttl: 90 }, { ttl: '24h' }] }),
    })
    const { token, expiresAt } = (await response.json()) as { token: string; expiresAt: string }
    expect(claimsOf(token).exp).toBe(startOfTime / 1000 + 90)
    expect(expiresAt).toBe(new Date(startOfTime + 90_000).toISOString())
  })

  test('a child carries the ancestors, their blocks first, and never outlives them', async () => {
    const parent = await mint(sampleKeys.ada, { policy: [{ ttl: '10m' }], organizationId: 'org_northwind' })
    const child = await mint(parent, { policy: [{ operations: 'read', ttl: '24h' }] })
    const grandchild = await mint(child)
    const [a, b, c] = [parent, child, grandchild].map(claimsOf)
    expect(b).toMatchObject({ sub: 'ada', key: a.key, org: 'org_northwind', par: [a.jti], exp: a.exp })
    expect(c).toMatchObject({
      par: [a.jti, b.jti],
      exp: a.exp,
      policy: [{ ttl: '10m' }, { operations: 'read', ttl: '24h' }],
    })
    expect(new Set([a.jti, b.jti, c.jti]).size).toBe(3)
  })

  test('a policy is kept as it was written', async () => {
    const policy = [{ namespaces: 'northwind', metadata: [{ a: 'ä' }], ttl: '1m' }, { namespaces: ['northwind'] }]
    expect(claimsOf(await mint(sampleKeys.ada, { policy })).policy).toEqual(policy)
  })
})

describe('a credential stops working at once', () => {
  test('when its token has expired, to the second', async () => {
    const token = await mint(sampleKeys.ada, { policy: [{ ttl: 60 }] })
    platform.now = startOfTime + 59_999
    expect(await status('/connect/ada', token)).toBe(200)
    platform.now = startOfTime + 60_000
    expect(await status('/connect/ada', token)).toBe(401)
  })

  test('when its key is revoked, and with it every token of that key', async () => {
    const { key, record } = await createApiKey(platform.store, platform.pepper, {
      userId: 'ada',
      name: null,
      operator: false,
      now: new Date(platform.now),
    })
    const token = await mint(key)
    const child = await mint(token)
    const other = await mint(sampleKeys.ada)
    for (const credential of [key, token, child]) expect(await status('/connect/ada', credential)).toBe(200)
    expect(await revokeApiKey(platform.store, record.keyId, new Date())).toBe(true)
    for (const credential of [key, token, child]) expect(await status('/connect/ada', credential)).toBe(401)
    expect(await status('/connect/ada', other)).toBe(200)
    expect((await listApiKeys(platform.store)).find(({ keyId }) => keyId === record.keyId)?.revokedAt).toBeString()
    expect(await revokeApiKey(platform.store, 'key_nope', new Date())).toBe(false)
  })

  test('when the user no longer leads the organization of the token', async () => {
    const token = await mint(sampleKeys.grace, { organizationId: 'org_northwind' })
    expect(await status('/connect/northwind', token)).toBe(200)
    await change(keyOf('member', 'org_northwind', 'grace'), 'member')
    expect(await status('/connect/northwind', token)).toBe(401)
    expect(await status('/connect/northwind', sampleKeys.grace)).toBe(200)
    await change(keyOf('member', 'org_northwind', 'grace'), 'owner')
    expect(await status('/connect/northwind', token)).toBe(200)
  })

  test('when the user has left: the namespace is no longer there', async () => {
    const token = await mint(sampleKeys.linus)
    expect(await status('/connect/northwind', token)).toBe(200)
    await change(keyOf('member', 'org_northwind', 'linus'), undefined)
    expect(await status('/connect/northwind', token)).toBe(404)
    expect(await status('/connect/northwind', sampleKeys.linus)).toBe(404)
  })

  test('when it is revoked: at once, with its children, and nothing else', async () => {
    const parent = await mint(sampleKeys.ada)
    const child = await mint(parent)
    const grandchild = await mint(child)
    const sibling = await mint(parent)
    const all = () => Promise.all([parent, child, grandchild, sibling].map((token) => status('/connect/ada', token)))
    expect(await all()).toEqual([200, 200, 200, 200])
    const nowSeconds = startOfTime / 1000
    await revokeToken(platform.store, claimsOf(child).jti, { exp: claimsOf(child).exp, nowSeconds })
    expect(await all()).toEqual([200, 401, 401, 200])
    await revokeToken(platform.store, claimsOf(parent).jti, { exp: undefined, nowSeconds })
    expect(await all()).toEqual([401, 401, 401, 401])
    expect(await status('/connect/ada', sampleKeys.ada)).toBe(200)
  })

  test('a revocation is noop when its token is long over, and no sooner', async () => {
    const { store } = platform
    const kept = async () => (await store.keys({ ...prefixRange(prefixOf('revocation')), limit: 100 })).keys.length
    const week = 7 * 24 * 3600
    const day = 24 * 3600
    const exp = 1000
    await revokeToken(store, 'tok_a', { exp, nowSeconds: 0 })
    await revokeToken(store, 'tok_b', { exp: undefined, nowSeconds: exp + week })
    expect(await kept()).toBe(2)
    await sweepRevocations(store, exp + week)
    expect(await kept()).toBe(2)
    await sweepRevocations(store, exp + week + 1)
    expect(await kept()).toBe(1)
    await sweepRevocations(store, exp + week + day + week + 1)
    expect(await kept()).toBe(0)
  })

  test('when its signing key is gone', async () => {
    const token = await mint(sampleKeys.ada)
    await platform.setSigningKeys([signingKeyRecord('another key')])
    expect(await status('/connect/ada', token)).toBe(401)
  })
})

test('ten thousand unknown and invisible names get one answer, byte for byte', async () => {
  const answers = new Set<string>()
  for (let i = 0; i < 10_000; i += 1) {
    const name = i % 10 === 0 ? 'ada' : `name-${i}`
    const response = await platform.fetch(`/connect/${name}`, {
      headers: { authorization: `Bearer ${sampleKeys.jonas}` },
    })
    // It tells requests apart, and nothing else.
    response.headers.delete('x-request-id')
    answers.add(`${response.status} ${JSON.stringify([...response.headers])} ${await response.text()}`)
  }
  expect(answers.size).toBe(1)
})

test('the store holds no API key, and no plain hash of one', async () => {
  const { entries } = await platform.store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 100_000 })
  const dump = Buffer.concat(entries.flatMap(({ key, value }) => [key, value])).toString('latin1')
  for (const key of Object.values(sampleKeys)) {
    const digest = new Bun.CryptoHasher('sha256').update(key)
    for (const secret of [
      key,
      digest.copy().digest('hex'),
      digest.copy().digest('base64url'),
      digest.digest().toString('latin1'),
    ]) {
      expect(dump.includes(secret)).toBe(false)
    }
  }
})
