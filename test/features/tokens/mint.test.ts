/** The claims of a token, by themselves: nothing is signed. */

import { describe, expect, test } from 'bun:test'
import type { Caller } from '../../../src/auth/authenticate.ts'
import { keyRing } from '../../../src/auth/signing-keys.ts'
import { claimsFor, createMint, tokenAncestorsMax } from '../../../src/features/tokens/mint.ts'
import { tokenCharsMax, tokenLifetimeDefaultSeconds } from '../../../src/limits.ts'
import type { ServiceTokenClaims } from '../../../src/model/token.ts'
import { clockOf } from '../../support/clock.ts'
import { signingKeyRecord } from '../../support/platform.ts'

const nowSeconds = 1_800_000_000
const caller: Caller = {
  userId: 'ada',
  keyId: 'key_1',
  family: 'key_1',
  operator: false,
  organizationId: undefined,
  blocks: [],
  metadataFingerprint: '',
  token: undefined,
}
const leads = { role: async () => 'owner', hasOrganization: async () => true } as never
const tokenIdKey = Buffer.alloc(32, 7)
const issuer = 'https://mcp.example.com'
const minted = (body: unknown, more: Partial<Caller> = {}) =>
  claimsFor(body, { caller: { ...caller, ...more }, directory: leads }, { issuer, tokenIdKey }, nowSeconds)

let signed = 0
/** A token whose signature makes it so long. */
function tokenOf(body: unknown, length: number): Promise<string> {
  const mint = createMint({
    authenticator: { keys: async () => keyRing([signingKeyRecord('key')]) },
    signers: {
      async sign(text) {
        signed += 1
        return 'x'.repeat(length - text.length - 1)
      },
    },
    audit: { requireRoom() {}, record: async () => {} } as never,
    issuer,
    tokenIdKey,
    clock: clockOf(() => nowSeconds * 1000),
    observer: undefined,
  })
  return mint(body, { caller, directory: leads }, async () => {}).then(({ token, expiresAt }) => {
    expect(expiresAt).toBe(new Date((nowSeconds + 3600) * 1000).toISOString())
    return token
  })
}

test('an empty body is a token of an hour without a policy', async () => {
  for (const body of [undefined, null, {}]) {
    const { jti, ...others } = await minted(body)
    expect(jti).toMatch(/^tok_[\w-]{22}$/)
    expect(others).toEqual({
      iss: 'https://mcp.example.com',
      aud: 'https://mcp.example.com',
      sub: 'ada',
      key: 'key_1',
      iat: nowSeconds,
      exp: nowSeconds + tokenLifetimeDefaultSeconds,
      policy: [],
    })
  }
})

test('a body that is none is said with its place', async () => {
  const rows: [body: unknown, message: string][] = [
    ['x', 'the body: '],
    [[], 'the body: '],
    [{ policy: {} }, 'policy: '],
    [{ policy: [{ ttl: '25h' }] }, 'policy[0].ttl: at most 24 hours'],
    [{ policy: [{ namespaces: 'a' }, { rpcReqMatch: { a: '(' } }] }, 'policy[1].rpcReqMatch.a: is not an RE2 pattern'],
    [{ organizationId: 5 }, 'organizationId: '],
  ]
  for (const [body, message] of rows)
    await expect(minted(body)).rejects.toMatchObject({
      code: 'invalid_request',
      message: expect.stringMatching(new RegExp(`^${RegExp.escape(message)}`)),
    })
})

test('the shortest of any ttls is the lifetime, and no child outlives its parent', async () => {
  const exp = async (policy: object[], more: Partial<Caller> = {}) => (await minted({ policy }, more)).exp - nowSeconds
  const parent = { iss: '', aud: '', sub: 'ada', key: 'key_1', jti: 'tok_1', iat: nowSeconds, policy: [] }
  const of = (lifetime: number) => ({ token: { ...parent, exp: nowSeconds + lifetime } as ServiceTokenClaims })
  const some = { namespaces: 'a' }
  expect(await exp([some])).toBe(tokenLifetimeDefaultSeconds)
  expect(await exp([{ ttl: 5 }])).toBe(5)
  expect(await exp([{ ttl: '2h' }])).toBe(7200)
  expect(await exp([{ ttl: 9 }, some, { ttl: '5s' }])).toBe(5)
  expect(await exp([some], of(10))).toBe(10)
  expect(await exp([{ ttl: 9 }], of(10))).toBe(9)
  expect(await exp([{ ttl: 11 }], of(10))).toBe(10)
})

test('a token comes from few others', async () => {
  const tokenFrom = (count: number) =>
    ({
      jti: 'tok_last',
      exp: nowSeconds + 10,
      par: Array.from({ length: count }, (_, i) => `tok_${i}`),
    }) as unknown as ServiceTokenClaims
  const { par = [] } = await minted({}, { token: tokenFrom(tokenAncestorsMax - 1) })
  expect(par).toHaveLength(tokenAncestorsMax)
  await expect(minted({}, { token: tokenFrom(tokenAncestorsMax) })).rejects.toMatchObject({ code: 'policy_too_large' })
})

describe('a token fits a request header', () => {
  test('up to its last character', async () => {
    expect(await tokenOf({}, tokenCharsMax)).toHaveLength(tokenCharsMax)
    const message = `policy: the token would have ${tokenCharsMax + 1} characters or more`
    await expect(tokenOf({}, tokenCharsMax + 1)).rejects.toMatchObject({
      code: 'policy_too_large',
      message: expect.stringContaining(message),
    })
  })
  test('and is not signed where its policy alone does not', async () => {
    // Base64 makes four characters of three bytes.
    const policy = (bytes: number) => [{ metadata: { k: 'x'.repeat(bytes - '[{"metadata":{"k":""}}]'.length) } }]
    const most = (tokenCharsMax / 4) * 3
    expect(JSON.stringify(policy(most))).toHaveLength(most)
    await minted({ policy: policy(most) })
    const before = signed
    await expect(tokenOf({ policy: policy(most + 1) }, tokenCharsMax)).rejects.toMatchObject({
      code: 'policy_too_large',
    })
    expect(signed).toBe(before)
  })
})

test('a token is of an organization that its caller leads, and stays of the one that it has', async () => {
  expect((await minted({ organizationId: 'org' })).org).toBe('org')
  expect((await minted({ organizationId: 'org' }, { organizationId: 'org' })).org).toBe('org')
  await expect(minted({ organizationId: 'org' }, { organizationId: 'another' })).rejects.toMatchObject({
    code: 'forbidden',
  })
})
