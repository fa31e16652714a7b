/** The log says why a credential was refused; the answer never does. */

import { beforeEach, expect, test } from 'bun:test'
import { createApiKey, revokeApiKey } from '../../src/auth/api-key.ts'
import { createRefusedLog, refusalLogIntervalMs } from '../../src/auth/failed-credentials.ts'
import { revokeToken } from '../../src/auth/revocation.ts'
import { unverifiedClaims } from '../../src/auth/service-token.ts'
import { keyRing } from '../../src/auth/signing-keys.ts'
import { burstSeconds } from '../../src/limits.ts'
import type { ServiceTokenClaims } from '../../src/model/token.ts'
import { directoryVersionKey, keyOf } from '../../src/storage/keys.ts'
import { mintToken } from '../api/cases.ts'
import { clockOf } from '../support/clock.ts'
import { createTestPlatform, issuer, signingKeyRecord, startOfTime, type TestPlatform } from '../support/platform.ts'
import { sampleKeys } from '../support/sample.ts'
import { signToken } from '../support/sign-token.ts'

let platform: TestPlatform
beforeEach(async () => {
  platform = await createTestPlatform()
})

/** What the log says of a request with this header. */
async function logged(authorization: string | undefined): Promise<Record<string, unknown>[]> {
  platform.logged.length = 0
  const headers = { 'x-request-id': 'asked', ...(authorization !== undefined && { authorization }) }
  const response = await platform.fetch('/connect/ada', { headers })
  expect(await response.json()).toEqual({
    error: 'unauthorized',
    message: 'The API key or token is missing or invalid',
  })
  return platform.logged.map((line) => JSON.parse(line))
}
const signed = (claims: ServiceTokenClaims) =>
  `Bearer ${signToken(claims, keyRing([signingKeyRecord('signing key')]).active)}`
const mint = async (credential: string = sampleKeys.ada, body: object = {}) => {
  const token = await mintToken(platform.fetch, credential, body)
  return { token, claims: unverifiedClaims(token) as ServiceTokenClaims }
}
const refused = (reason: string, details: object = {}) => [
  { event: 'credential refused', reason, because: expect.any(String), address: 'here', requestId: 'asked', ...details },
]

test('no header, and one without Bearer', async () => {
  expect(await logged(undefined)).toEqual(refused('missing'))
  expect(await logged(sampleKeys.ada)).toEqual(refused('not_bearer'))
})

test('a key that is unknown, or revoked', async () => {
  expect(await logged('Bearer wrong')).toEqual(refused('unknown'))
  // One that somebody chose may look like a token.
  for (const chosen of [{}, { key: 'a.key.that.somebody.chose.for.the.tests' }]) {
    const { key, record } = await createApiKey(platform.store, platform.pepper, {
      userId: 'ada',
      name: null,
      operator: false,
      now: new Date(platform.now),
      ...chosen,
    })
    expect((await platform.fetch('/connect/ada', { headers: { authorization: `Bearer ${key}` } })).status).toBe(200)
    await revokeApiKey(platform.store, record.keyId, new Date())
    platform.now += refusalLogIntervalMs
    expect(await logged(`Bearer ${key}`)).toEqual(refused('revoked', { userId: 'ada', keyId: record.keyId }))
  }
})

test('a token of another base URL: both are said', async () => {
  const { claims } = await mint()
  const other = { ...claims, iss: 'http://localhost:9000', aud: 'http://localhost:9000' }
  expect(await logged(signed(other))).toEqual(
    refused('issuer', {
      expected: issuer,
      got: 'http://localhost:9000',
      jti: claims.jti,
      userId: 'ada',
      keyId: claims.key,
    }),
  )
})

test('a token that is over, is of the future, or is revoked', async () => {
  const { token, claims } = await mint()
  const about = { jti: claims.jti, userId: 'ada', keyId: claims.key }
  expect(await logged(signed({ ...claims, iat: claims.iat + 600 }))).toEqual(refused('not_yet', about))
  await platform.fetch('/connect/ada', { headers: { authorization: `Bearer ${token}` } })
  platform.now = claims.exp * 1000
  expect(await logged(`Bearer ${token}`)).toEqual(refused('expired', about))
  platform.now += refusalLogIntervalMs
  expect(await logged(signed({ ...claims, iat: claims.iat - 1 }))).toEqual(refused('expired', about))
  platform.now = startOfTime
  await revokeToken(platform.store, claims.jti, { exp: claims.exp, nowSeconds: startOfTime / 1000 })
  expect(await logged(`Bearer ${token}`)).toEqual(refused('revoked', about))
})

test('a token whose user leads its organization no more, and one of a foreign signing key', async () => {
  const { token, claims } = await mint(sampleKeys.grace, { organizationId: 'org_northwind' })
  await platform.store.commit({
    puts: [
      { key: keyOf('member', 'org_northwind', 'grace'), value: Buffer.from('member') },
      { key: directoryVersionKey, value: Buffer.from('another') },
    ],
  })
  expect(await logged(`Bearer ${token}`)).toEqual(
    refused('membership', { jti: claims.jti, userId: 'grace', keyId: claims.key }),
  )
  const foreign = signToken(claims, keyRing([signingKeyRecord('a key of another platform')]).active)
  expect(await logged(`Bearer ${foreign}`)).toEqual(refused('unknown', { token: 'header' }))
})

test('a token whose policy this version cannot read', async () => {
  const { claims } = await mint()
  const about = { jti: claims.jti, userId: 'ada', keyId: claims.key }
  const unread = { ...claims, policy: [{ ttl: '48h' }] }
  expect(await logged(signed(unread))).toEqual(refused('policy', about))
})

test('past the limit of an address', async () => {
  platform = await createTestPlatform({ rates: { mints: 0, failures: 1 } })
  await logged('Bearer wrong')
  for (let i = 1; i < burstSeconds; i += 1) await logged('Bearer wrong')
  platform.logged.length = 0
  await platform.fetch('/connect/ada', { headers: { authorization: 'Bearer wrong', 'x-request-id': 'asked' } })
  expect(platform.logged.map((line) => JSON.parse(line))).toEqual(refused('limit'))
})

test('no line holds a credential', async () => {
  const { token } = await mint()
  const lines: object[] = []
  for (const header of [token, `Bearer ${token}x`, `Bearer x${sampleKeys.ada}`, `Basic ${sampleKeys.ada}`]) {
    lines.push(...(await logged(header)))
  }
  expect(lines.length).toBeGreaterThan(1)
  const text = JSON.stringify(lines)
  for (const secret of [sampleKeys.ada, token.split('.')[2] ?? '']) expect(text).not.toContain(secret)
})

test('of each reason one line in ten seconds, and how many were not written', () => {
  const lines: object[] = []
  let now = 0
  const note = createRefusedLog(
    { warn: (_, fields) => void lines.push(fields ?? {}) },
    clockOf(() => now),
  )
  for (let i = 0; i < 1000; i += 1) note('unknown', {})
  note('expired', {})
  expect(lines).toEqual([
    { reason: 'unknown', because: expect.any(String) },
    { reason: 'expired', because: expect.any(String) },
  ])
  now = refusalLogIntervalMs
  note('unknown', {})
  note('unknown', {})
  expect(lines.slice(2)).toEqual([{ reason: 'unknown', because: expect.any(String), unwritten: 999 }])
})
