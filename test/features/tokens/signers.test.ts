import { afterAll, expect, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { revokeToken } from '../../../src/auth/revocation.ts'
import { signatureOf } from '../../../src/auth/signature.ts'
import { keyRing } from '../../../src/auth/signing-keys.ts'
import { Signers } from '../../../src/features/tokens/signers.ts'
import { pendingSignaturesMax } from '../../../src/limits.ts'
import { mintToken } from '../../api/cases.ts'
import { createTestPlatform, signingKeyRecord, startOfTime } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { quickSignatureOf } from '../../support/sign-token.ts'
import { until } from '../../support/until.ts'

const { active } = keyRing([signingKeyRecord('a key')])
const holder = (keyId: string) => ({ keyId, family: keyId })
const signers = new Signers(2)
afterAll(() => signers.close())

const prioritiesBefore = new Set(priorities())

test('threads sign as this one does, each text its own', async () => {
  const texts = Array.from({ length: 50 }, (_, i) => `text ${i}`)
  const signatures = await Promise.all(texts.map((text) => signers.sign(text, active, holder('ada'))))
  expect(signatures).toEqual(texts.map((text) => signatureOf(text, active.secretKey)))
  expect(texts.map((text) => quickSignatureOf(text, active.secretKey))).toEqual(signatures)
})

test('owners have their turns: one signature waits for few of another owner’s many', async () => {
  const own = new Signers(1)
  const order: string[] = []
  const sign = (owner: string, text: string) => own.sign(text, active, holder(owner)).then(() => void order.push(owner))
  const many = Array.from({ length: 40 }, (_, i) => sign('mallory', `${i}`))
  await Promise.all([...many, sign('ada', 'one')])
  own.close()
  expect(order).toHaveLength(41)
  expect(order.indexOf('ada')).toBeLessThan(6)
})

test('this thread is free while others sign', async () => {
  let turns = 0
  let isSigned = false
  const signed = Promise.all(Array.from({ length: 40 }, (_, i) => signers.sign(`${i}`, active, holder('ada'))))
  void signed.then(() => {
    isSigned = true
  })
  while (!isSigned) {
    await new Promise(setImmediate)
    turns += 1
  }
  // Sixty milliseconds' worth of signatures, in a turn or two, if they were made here.
  expect(turns).toBeGreaterThan(20)
})

/** Of each thread of this process: its nice value and its policy of scheduling. */
function priorities(): string[] {
  return readdirSync('/proc/self/task').flatMap((thread) => {
    const file = `/proc/self/task/${thread}/stat`
    // A thread may have ended since.
    const stat = existsSync(file) ? readFileSync(file, 'latin1') : ''
    // proc(5): the 19th and the 41st field, counted from the one after the name, which may hold anything.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return stat === '' ? [] : [`${fields[16]} ${fields[38]}`]
  })
}

// Without a privilege, no thread's priority can be raised again, and threads that it starts have it too.
test('minting lowers the priority of no thread', async () => {
  const own = new Signers(2)
  for (const count of [1, 40]) {
    await Promise.all(Array.from({ length: count }, (_, i) => own.sign(`${i}`, active, holder('ada'))))
    expect(new Set(priorities())).toEqual(prioritiesBefore)
  }
  own.close()
})

test('what waits is bounded, and one key leaves room for others', async () => {
  const mine = Array.from({ length: pendingSignaturesMax / 4 }, (_, i) => signers.sign(`${i}`, active, holder('ada')))
  await expect(signers.sign('more', active, holder('ada'))).rejects.toMatchObject({
    code: 'unavailable',
    options: { retryAfter: 1 },
  })
  expect(await signers.sign('hers', active, holder('grace'))).toBe(signatureOf('hers', active.secretKey))
  await Promise.all(mine)
  expect(await signers.sign('more', active, holder('ada'))).toBe(signatureOf('more', active.secretKey))
})

test('a thread that fails is told to those that it has, and the next text has another', async () => {
  const one = new Signers(1)
  const broken = { ...active, secretKey: new Uint8Array(3) }
  const failed = await Promise.allSettled([
    one.sign('a', broken, holder('ada')),
    one.sign('b', active, holder('ada')),
    one.sign('c', active, holder('grace')),
  ])
  for (const { status, reason } of failed.slice(0, 2) as PromiseRejectedResult[])
    expect([status, String(reason)]).toEqual(['rejected', expect.stringContaining('the thread that signs ended: ')])
  expect(failed[2]).toEqual({ status: 'fulfilled', value: signatureOf('c', active.secretKey) })
  for (let i = 0; i < 2; i += 1)
    expect(await one.sign('after', active, holder('ada'))).toBe(signatureOf('after', active.secretKey))
  one.close()
})

test('past it a mint is 503, and what was revoked while it waited is 401', async () => {
  const full = new Signers(1)
  const held = Promise.withResolvers<string>()
  let asked = 0
  const platform = await createTestPlatform({
    signers: {
      sign(text, key) {
        asked += 1
        if (asked === 1) return Promise.resolve(signatureOf(text, key.secretKey))
        return asked === 2 ? held.promise : full.sign(text, key, holder('ada'))
      },
    },
  })
  const parent = await mintToken(platform.fetch, sampleKeys.ada)
  const { jti } = JSON.parse(Buffer.from(parent.split('.')[1] ?? '', 'base64url').toString())
  const mint = (credential: string) =>
    platform.fetch('/tokens', { method: 'POST', headers: { authorization: `Bearer ${credential}` } })
  const waiting = mint(parent)
  await until(() => asked === 2)
  await revokeToken(platform.store, jti, { exp: undefined, nowSeconds: startOfTime / 1000 })
  held.resolve('signature')
  expect((await waiting).status).toBe(401)
  expect(platform.audited.filter(({ event }) => event === 'token.minted')).toHaveLength(1)

  const filling = Array.from({ length: pendingSignaturesMax / 4 }, (_, i) => full.sign(`${i}`, active, holder('ada')))
  const refused = await mint(sampleKeys.ada)
  expect([refused.status, await refused.json()]).toEqual([
    503,
    { error: 'unavailable', message: 'Too many tokens are being minted: try again' },
  ])
  await Promise.all(filling)
  full.close()
})
