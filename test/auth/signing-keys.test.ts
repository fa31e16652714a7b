import { describe, expect, test } from 'bun:test'
import { openSealed, seal } from '../../src/auth/secrets.ts'
import { verifyToken } from '../../src/auth/service-token.ts'
import {
  changeSigningKeys,
  type KeyRing,
  keyRing,
  newSigningKeys,
  publishedKeys,
  readKeyRing,
  readSigningKeys,
  removeKey,
  rotateKeys,
  type SigningKeyRecord,
} from '../../src/auth/signing-keys.ts'
import { jwksMaxAgeSeconds, keyRetirementSeconds } from '../../src/limits.ts'
import type { Store } from '../../src/storage/store.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { seed } from '../support/platform.ts'
import { signToken } from '../support/sign-token.ts'

const start = 1_800_000_000
const issuer = 'https://mcp.example.com'
const states = (records: readonly SigningKeyRecord[]) => records.map(({ state }) => state)
const mint = (records: readonly SigningKeyRecord[], iat: number, lifetime: number) => {
  const claims = { iss: issuer, aud: issuer, sub: 'ada', key: 'k', jti: 'tok_1', iat, exp: iat + lifetime, policy: [] }
  return signToken(claims, keyRing(records).active)
}
const isValid = (keys: KeyRing, token: string, nowSeconds: number) =>
  'claims' in verifyToken(token, { keys, issuer, path: undefined, nowSeconds })

describe('rotation', () => {
  test('next becomes active, active retired, and a new next is published', () => {
    const first = newSigningKeys(start)
    expect(states(first)).toEqual(['next', 'active'])
    const second = rotateKeys(first, start)
    expect(states(second)).toEqual(['next', 'active', 'retired'])
    expect([second[1]?.seed, second[2]?.seed]).toEqual([first[0]?.seed, first[1]?.seed])
    expect(publishedKeys(keyRing(second), start).map(({ kid }) => kid)).toEqual(
      keyRing(second).all.map(({ kid }) => kid),
    )
  })

  test('waits until verifiers must know the next key', () => {
    const second = rotateKeys(newSigningKeys(start), start)
    expect(() => rotateKeys(second, start + jwksMaxAgeSeconds - 1)).toThrow(
      'the next key was published 299 s ago, and verifiers may keep an older list for 300 s: try again in 1 s',
    )
    expect(states(rotateKeys(second, start + jwksMaxAgeSeconds))).toEqual(['next', 'active', 'retired', 'retired'])
  })

  test('every hour for three days: no good token is refused, by us or by a verifier with an old list; none is accepted too long', () => {
    let records = newSigningKeys(start)
    const minted: { token: string; exp: number; kid: string }[] = []
    let listed = { at: start, kids: new Set<string>() }
    const retiredAt = new Map<string, number>()
    for (let now = start; now < start + 3 * 86_400; now += 600) {
      if ((now - start) % 3600 === 0 && now > start) {
        retiredAt.set(keyRing(records).active.kid, now)
        records = rotateKeys(records, now)
      }
      if (now - listed.at >= jwksMaxAgeSeconds || now === start) {
        // As old as a cache may be: what was published just before.
        listed = { at: now, kids: new Set(publishedKeys(keyRing(records), now).map(({ kid }) => kid)) }
      }
      if ((now - start) % 3600 === 1800) {
        minted.push({ token: mint(records, now, 86_400), exp: now + 86_400, kid: keyRing(records).active.kid })
      }
      const keys = keyRing(records)
      for (const { token, exp, kid } of minted.slice(-30)) {
        const good = now < exp
        const retired = retiredAt.get(kid)
        const over = retired !== undefined && now >= retired + keyRetirementSeconds
        if (isValid(keys, token, now) !== (good && !over)) throw new Error(`${kid} at ${now - start}`)
        if (good && !listed.kids.has(kid)) throw new Error(`${kid} is not listed at ${now - start}`)
      }
    }
    expect(records.length).toBeLessThan(30)
  })
})

test('a retired key is kept, listed and accepted until its last token is over, and gone in the next second', () => {
  const first = newSigningKeys(start)
  const token = mint(first, start, 2 * keyRetirementSeconds)
  const second = rotateKeys(first, start)
  const [keys, end] = [keyRing(second), start + keyRetirementSeconds]
  expect([isValid(keys, token, end - 1), isValid(keys, token, end)]).toEqual([true, false])
  expect([publishedKeys(keys, end - 1).length, publishedKeys(keys, end).length]).toEqual([3, 2])
  expect(states(rotateKeys(second, end - 1))).toEqual(['next', 'active', 'retired', 'retired'])
  expect(states(rotateKeys(second, end))).toEqual(['next', 'active', 'retired'])
  const { kid } = keys.active
  expect(states(removeKey(second, kid, end - 1) ?? [])).toEqual(['next', 'active', 'retired'])
  expect(states(removeKey(second, kid, end) ?? [])).toEqual(['next', 'active'])
})

test('keys are next or active since they became it', () => {
  const first = newSigningKeys(start)
  const since = (records: readonly SigningKeyRecord[]) => records.map((record) => record.since - start)
  expect(since(first)).toEqual([-jwksMaxAgeSeconds, 0])
  const second = rotateKeys(first, start + 10)
  expect(since(second)).toEqual([10, 10, 10])
  const { active, all } = keyRing(second)
  expect(since(removeKey(second, active.kid, start + 20) ?? [])).toEqual([20, 20, 10])
  expect(since(removeKey(second, all[0]?.kid ?? '', start + 20) ?? [])).toEqual([20, 10, 10])
})

test('keys without an active one, or without a next one, are none', () => {
  const [next, active] = newSigningKeys(start)
  expect(() => keyRing(next === undefined ? [] : [next])).toThrow('a key ring needs an active key')
  expect(() => rotateKeys(active === undefined ? [] : [active], start)).toThrow('a key ring needs a next key')
})

describe('revocation', () => {
  const second = rotateKeys(newSigningKeys(start), start)
  const kids = keyRing(second).all.map(({ kid }) => kid)
  const cases: [what: string, position: number, left: SigningKeyRecord['state'][]][] = [
    ['next', 0, ['next', 'active', 'retired']],
    ['active', 1, ['next', 'active', 'retired']],
    ['retired', 2, ['next', 'active']],
  ]
  for (const [what, position, left] of cases) {
    test(`of the ${what} key`, () => {
      const after = removeKey(second, kids[position] ?? '', start + 1) ?? []
      expect(states(after)).toEqual(left)
      expect(keyRing(after).all.some(({ kid }) => kid === kids[position])).toBe(false)
    })
  }
  test('kills its tokens, and those of no other key', () => {
    const old = mint(newSigningKeys(start), start, 3600)
    const first = newSigningKeys(start)
    const token = mint(first, start, 3600)
    const next = rotateKeys(first, start)
    expect(isValid(keyRing(removeKey(next, keyRing(next).active.kid, start) ?? []), token, start)).toBe(true)
    expect(isValid(keyRing(removeKey(next, keyRing(first).active.kid, start) ?? []), token, start)).toBe(false)
    expect(isValid(keyRing(next), old, start)).toBe(false)
  })
  test('of a key that is not there is nothing', () => expect(removeKey(second, 'x', start)).toBeUndefined())
})

test('what is sealed opens with its key alone, whole', () => {
  const key = seed('sealing')
  const sealed = seal(key, 'text')
  expect(openSealed(key, sealed)).toBe('text')
  expect(openSealed(seed('other'), sealed)).toBeUndefined()
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] ?? 0) ^ 1
    expect(openSealed(key, changed)).toBeUndefined()
    expect(openSealed(key, sealed.subarray(0, at))).toBeUndefined()
  }
  expect(() => readSigningKeys(sealed, seed('other'))).toThrow(/instance secret/)
})

test('keys are changed again where somebody else changed them meanwhile', async () => {
  const memory = openMemoryStore()
  const sealing = seed('sealing')
  const theirs = newSigningKeys(start)
  const isFromReserve: unknown[] = []
  const store: Store = {
    ...memory,
    async commit(change) {
      isFromReserve.push(change.fromReserve)
      if (isFromReserve.length === 1) await changeSigningKeys(memory, sealing, () => theirs)
      return memory.commit(change)
    },
  }
  const seen: unknown[] = []
  const after = await changeSigningKeys(store, sealing, (before) => {
    seen.push(before)
    return before === undefined ? newSigningKeys(start) : rotateKeys(before, start)
  })
  expect(seen).toEqual([undefined, theirs])
  expect([isFromReserve, states(after ?? [])]).toEqual([
    ['revocation', 'revocation'],
    ['next', 'active', 'retired'],
  ])
  expect((await readKeyRing(memory, sealing))?.active.kid).toBe(keyRing(after ?? []).active.kid)
})

test('a store has no keys before its first start, and then those that it was given', async () => {
  const store = openMemoryStore()
  expect(await readKeyRing(store, seed('sealing'))).toBeUndefined()
  const records = newSigningKeys(start)
  await changeSigningKeys(store, seed('sealing'), (before) => (before === undefined ? records : undefined))
  expect((await readKeyRing(store, seed('sealing')))?.active.kid).toBe(keyRing(records).active.kid)
  // Whoever comes second changes nothing.
  expect(await changeSigningKeys(store, seed('sealing'), (before) => before && undefined)).toEqual(records)
  await expect(readKeyRing(store, seed('another secret'))).rejects.toThrow('restore both from the same backup')
})
