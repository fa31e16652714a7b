import { describe, expect, test } from 'bun:test'
import { createHmac, createPublicKey, generateKeyPairSync, sign, verify as verifySignature } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Verified, verifyToken } from '../../src/auth/service-token.ts'
import { keyRing } from '../../src/auth/signing-keys.ts'
import { keyRetirementSeconds, tokenCharsMax } from '../../src/limits.ts'
import type { ServiceTokenClaims } from '../../src/model/token.ts'
import { isHere, vectors } from '../support/needs.ts'
import { seed, signingKeyRecord } from '../support/platform.ts'
import { random } from '../support/random.ts'
import { signToken } from '../support/sign-token.ts'

const issuer = 'https://mcp.example.com'
const nowSeconds = 1_800_000_000
const keys = keyRing([
  signingKeyRecord('n', 'next', nowSeconds),
  signingKeyRecord('a'),
  signingKeyRecord('b', 'retired', nowSeconds - 100),
])
const claims: ServiceTokenClaims = {
  iss: issuer,
  aud: issuer,
  sub: 'ada',
  key: 'key_1',
  jti: 'tok_1',
  iat: nowSeconds,
  exp: nowSeconds + 3600,
  policy: [{ namespaces: 'acme' }],
}
const good = signToken(claims, keys.active)
const [header = '', payload = '', signature = ''] = good.split('.')
const base64url = (value: string | object) =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')

function check(token: string, at = nowSeconds): Verified {
  return verifyToken(token, { keys, issuer, path: '/connect/ada', nowSeconds: at })
}
function resign(headerText: string, body: string | object): string {
  const signed = `${base64url(headerText)}.${base64url(body)}`
  const key = privateKeyOf('a')
  return `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`
}
/** Another signature of the same text, for a verifier that does not ask how large S is. */
function malleated(text: string): string {
  const bytes = Buffer.from(text, 'base64url')
  const order = 2n ** 252n + 27742317777372353535851937790883648493n
  let s = BigInt(`0x${bytes.subarray(32).reverse().toString('hex')}`) + order
  for (let at = 32; at < 64; at += 1, s >>= 8n) bytes[at] = Number(s & 255n)
  return bytes.toString('base64url')
}
/** Whoever has the published key alone. */
const publicKey = createPublicKey({ key: { ...keys.active.jwk }, format: 'jwk' })
function verifiedByOthers(token: string): boolean {
  const [signed = '', by = ''] = [token.slice(0, token.lastIndexOf('.')), token.slice(token.lastIndexOf('.') + 1)]
  return verifySignature(null, Buffer.from(signed), publicKey, Buffer.from(by, 'base64url'))
}
function privateKeyOf(name: string) {
  const { x } = keyRing([signingKeyRecord(name)]).active.jwk
  return { key: { kty: 'OKP', crv: 'Ed25519', x, d: seed(name).toString('base64url') }, format: 'jwk' } as const
}
const rightHeader = Buffer.from(header, 'base64url').toString()

describe('a token', () => {
  test('verifies, with its claims as they were', () => expect(check(good)).toEqual({ claims }))
  test('has exactly the header of the contract', () => {
    expect(rightHeader).toBe(`{"alg":"EdDSA","typ":"mcp-service+jwt","kid":"${keys.active.kid}"}`)
  })
  test('is verified by others with the published key', () => {
    expect(verifiedByOthers(good)).toBe(true)
  })
  test('of a key that verifies but no longer signs is accepted', () => {
    const [next, , retired] = keys.all
    if (next === undefined || retired === undefined) throw new Error('three keys were made')
    expect(check(signToken(claims, retired))).toEqual({ claims })
    const over = nowSeconds - 100 + keyRetirementSeconds
    const late = { ...claims, iat: over - 3600, exp: over + 3600 }
    expect(check(signToken(late, retired), over - 1)).toEqual({ claims: late })
    expect(check(signToken(late, retired), over)).toEqual({ refused: 'header' })
    expect(check(signToken(claims, next))).toEqual({ refused: 'header' })
  })
  test('10,000 good ones are accepted', () => {
    // tweetnacl takes 1.5 ms to sign, so the runtime signs here: the same bytes.
    const key = privateKeyOf('a')
    for (let i = 0; i < 10_000; i += 1) {
      const one: ServiceTokenClaims = { ...claims, jti: `tok_${i}`, policy: [{ ttl: i + 1 }] }
      const signed = `${header}.${base64url(one)}`
      const token = `${signed}.${sign(null, Buffer.from(signed), key).toString('base64url')}`
      if ('refused' in check(token)) throw new Error(`token ${i} was refused`)
    }
  })
  test('is accepted exactly when a verifier with the published key accepts its signature', () => {
    const chance = random(7)
    for (let i = 0; i < 300; i += 1) {
      const text = resign(rightHeader, { ...claims, sub: `user-${i}` })
      const [signed, by] = [text.slice(0, -86), Buffer.from(text.slice(-86), 'base64url')]
      if (i % 2 === 1) by[chance.int(64)] = chance.int(256)
      const token = signed + by.toString('base64url')
      expect({ i, ok: 'claims' in check(token) }).toEqual({ i, ok: verifiedByOthers(token) })
    }
  })
  test('is as long as a token may be, and no longer', () => {
    const ofLength = (extra: number) =>
      resign(rightHeader, {
        ...claims,
        policy: Array.from({ length: 55 }, () => ({ namespaces: 'n'.repeat(58) })),
        key: 'k'.repeat(extra),
      })
    const lengths: number[] = []
    for (let extra = 1; extra < 500; extra += 1) {
      const token = ofLength(extra)
      lengths.push(token.length)
      expect('claims' in check(token)).toBe(token.length <= tokenCharsMax)
    }
    expect(lengths).toContain(tokenCharsMax)
    expect(Math.max(...lengths)).toBeGreaterThan(tokenCharsMax)
  })
  test('the runtime and tweetnacl make the same signature', () => expect(resign(rightHeader, claims)).toBe(good))
})

test('is good at the instance that made it and at no other', () => {
  const instances = ['one', 'two', 'three'].map((name) => ({
    keys: keyRing([signingKeyRecord(name)]),
    issuer: `https://${name}.example.com`,
    path: undefined,
    nowSeconds,
  }))
  // The first two share an address as well: then the keys tell them apart.
  const [first, second] = instances as [(typeof instances)[0], (typeof instances)[0]]
  const all = [...instances, { ...second, issuer: first.issuer }]
  for (const [at, maker] of all.entries()) {
    const token = signToken({ ...claims, iss: maker.issuer, aud: maker.issuer }, maker.keys.active)
    const accepted = all.map((instance) => 'claims' in verifyToken(token, instance))
    expect(accepted).toEqual(all.map((_, i) => i === at))
  }
})

describe('time', () => {
  const at: [string, number, Verified][] = [
    ['the last second', nowSeconds + 3599, { claims }],
    ['the expiry itself', nowSeconds + 3600, { refused: 'expired', signed: claims }],
    ['30 seconds before it was issued', nowSeconds - 30, { claims }],
    ['31 seconds before it was issued', nowSeconds - 31, { refused: 'not_yet', signed: claims }],
  ]
  for (const [name, now, expected] of at) test(name, () => expect(check(good, now)).toEqual(expected))
})

describe('confusion', () => {
  const publicPem = publicKey.export({ type: 'spki', format: 'pem' }).toString()
  const withHeader = (fields: object) => resign(JSON.stringify(fields), claims)
  const right = JSON.parse(rightHeader)
  const hmac = (secret: string) => {
    const signed = `${base64url({ ...right, alg: 'HS256' })}.${payload}`
    return `${signed}.${createHmac('sha256', secret).update(signed).digest('base64url')}`
  }
  const stranger = generateKeyPairSync('ed25519')
  const strangerJwk = stranger.publicKey.export({ format: 'jwk' })
  const byStranger = (fields: object) => {
    const signed = `${base64url(JSON.stringify(fields))}.${payload}`
    return `${signed}.${sign(null, Buffer.from(signed), stranger.privateKey).toString('base64url')}`
  }
  const forged: [string, string][] = [
    ['alg none without a signature', `${base64url({ ...right, alg: 'none' })}.${payload}.`],
    ['alg None', `${base64url({ ...right, alg: 'None' })}.${payload}.${signature}`],
    ['HS256 with the public key', hmac(publicPem)],
    ['HS256 with the raw public key', hmac(keys.active.jwk.x)],
    ['another algorithm', withHeader({ ...right, alg: 'ES256' })],
    ['Ed25519 for EdDSA', withHeader({ ...right, alg: 'Ed25519' })],
    ['no typ', withHeader({ alg: right.alg, kid: right.kid })],
    ['typ JWT', withHeader({ ...right, typ: 'JWT' })],
    ['typ in another case', withHeader({ ...right, typ: 'MCP-SERVICE+JWT' })],
    ['no kid', withHeader({ alg: right.alg, typ: right.typ })],
    ['an unknown kid', withHeader({ ...right, kid: 'nope' })],
    ['a kid that is a path', withHeader({ ...right, kid: '../../dev/null' })],
    ['a kid called __proto__', withHeader({ ...right, kid: '__proto__' })],
    ['an embedded key', byStranger({ ...right, jwk: strangerJwk })],
    ['a key elsewhere', byStranger({ ...right, jku: 'https://evil.example/jwks.json' })],
    ['a certificate elsewhere', byStranger({ ...right, x5u: 'https://evil.example/c.pem' })],
    ['our kid, another key', byStranger(right)],
    ['crit', withHeader({ ...right, crit: ['b64'], b64: false })],
    ['a further header field', withHeader({ ...right, cty: 'x' })],
    ['header fields in another order', withHeader({ typ: right.typ, alg: right.alg, kid: right.kid })],
    ['white space in the header', resign(rightHeader.replace(',', ', '), claims)],
    ['alg twice', resign(rightHeader.replace('{', '{"alg":"none",'), claims)],
    ['another issuer', resign(rightHeader, { ...claims, iss: 'https://other.example.com' })],
    ['another audience', resign(rightHeader, { ...claims, aud: 'https://other.example.com' })],
    ['a list of audiences', resign(rightHeader, { ...claims, aud: [issuer] })],
    ['an issuer with a slash', resign(rightHeader, { ...claims, iss: `${issuer}/` })],
    ['no expiry', resign(rightHeader, { ...claims, exp: undefined })],
    ['an expiry in words', resign(rightHeader, { ...claims, exp: String(claims.exp) })],
    ['an endless expiry', resign(rightHeader, JSON.stringify(claims).replace(String(claims.exp), '1e999'))],
    ['no policy', resign(rightHeader, { ...claims, policy: undefined })],
    ['a policy that is no list', resign(rightHeader, { ...claims, policy: {} })],
    ['a constraint that is not known', resign(rightHeader, { ...claims, policy: [{ tenants: 'x' }] })],
    ['an unknown claim', resign(rightHeader, { ...claims, scope: 'all' })],
    ['claims that are a list', resign(rightHeader, [claims])],
    ['claims that are no JSON', resign(rightHeader, 'claims')],
    ['two parts', `${header}.${payload}`],
    ['four parts', `${good}.`],
    ['five parts', `${header}..${payload}..${signature}`],
    ['an empty string', ''],
    ['dots', '..'],
    ['a space in front', ` ${good}`],
    ['a line break after', `${good}\n`],
    ['padding', `${good}==`],
    [
      'standard base64',
      good
        .replaceAll('-', '+')
        .replaceAll('_', '/')
        .replace(signature, `${Buffer.from(signature, 'base64url').toString('base64')}`),
    ],
    ['a signature of other bytes', `${header}.${base64url({ ...claims, sub: 'eve' })}.${signature}`],
    ['a signature with the order of the group added', `${header}.${payload}.${malleated(signature)}`],
    [
      'a last character that is the right one in its low byte only',
      good.slice(0, -1) + String.fromCharCode(good.charCodeAt(good.length - 1) + 0x100),
    ],
    ['a short signature', `${header}.${payload}.${signature.slice(0, -2)}`],
    ['a long signature', `${header}.${payload}.${signature}AAAA`],
    ['JSON serialization', JSON.stringify({ protected: header, payload, signature })],
    [
      'longer than a token may be',
      resign(rightHeader, { ...claims, policy: [{ namespaces: Array(64).fill('n'.repeat(64)) }] }).padEnd(
        tokenCharsMax + 1,
        'A',
      ),
    ],
  ]
  for (const [name, token] of forged) {
    test(`${name} is refused`, () => {
      expect(token).not.toBe(good)
      expect(check(token)).toHaveProperty('refused')
    })
  }

  test('of the sixteen spellings of the last character, one is accepted', () => {
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const accepted = [...alphabet].filter((last) => 'claims' in check(good.slice(0, -1) + last))
    expect(accepted).toEqual([good.at(-1) as string])
  })

  test('a changed character anywhere is refused', () => {
    for (let at = 0; at < good.length; at += 1) {
      for (const other of ['A', 'b', '9', '.', '_']) {
        const changed = good.slice(0, at) + other + good.slice(at + 1)
        if (changed !== good) expect({ at, verified: 'claims' in check(changed) }).toEqual({ at, verified: false })
      }
    }
  })
})

describe.if(isHere('the vectors of Wycheproof'))(
  'tokens and signatures of others (needs the vectors of Wycheproof)',
  () => {
    // It is what `verifiedByOthers` goes by.
    test('the runtime agrees with all 151 Ed25519 cases', () => {
      const file = JSON.parse(readFileSync(join(vectors, 'wycheproof-ed25519.json'), 'utf8'))
      let count = 0
      for (const { publicKey, tests } of file.testGroups) {
        const x = Buffer.from(publicKey.pk, 'hex').toString('base64url')
        const key = createPublicKey({ key: { kty: 'OKP', crv: 'Ed25519', x }, format: 'jwk' })
        for (const { msg, sig, result, tcId } of tests) {
          const verified = verifySignature(null, Buffer.from(msg, 'hex'), key, Buffer.from(sig, 'hex'))
          expect({ tcId, verified }).toEqual({ tcId, verified: result === 'valid' })
          count += 1
        }
      }
      expect(count).toBe(151)
    })

    test('none of the JWS cases is taken for a token of ours', () => {
      const file = JSON.parse(readFileSync(join(vectors, 'wycheproof-jws.json'), 'utf8'))
      for (const { tests } of file.testGroups) {
        for (const { jws, tcId } of tests) {
          const text = typeof jws === 'string' ? jws : JSON.stringify(jws)
          expect({ tcId, accepted: 'claims' in check(text) }).toEqual({ tcId, accepted: false })
        }
      }
    })
  },
)
