/**
 * Lives of a platform, made by chance: tokens minted and their children, keys and tokens revoked, signing keys
 * rotated, the clock set ahead and back, the process started again, writes that fail. After each step some of the
 * tokens ever minted are shown, and what happens must be what a model of a few lines says.
 */

import { createApiKey, revokeApiKey } from '../../src/auth/api-key.ts'
import { revokeToken } from '../../src/auth/revocation.ts'
import { changeSigningKeys, isAccepted, keyRing, removeKey, rotateKeys } from '../../src/auth/signing-keys.ts'
import { CommandError } from '../../src/errors.ts'
import { clockSkewMaxSeconds } from '../../src/limits.ts'
import { type Store, StoreError } from '../../src/storage/store.ts'
import { mintToken } from '../api/cases.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createTestPlatform, seed as secret, startOfTime } from '../support/platform.ts'
import { random } from '../support/random.ts'
import { collector, type Trial } from './trial.ts'

const steps = 300
const sealingKey = secret('sealing key')

interface Minted {
  readonly token: string
  readonly jti: string
  readonly ancestors: readonly string[]
  readonly kid: string
  readonly keyId: string
  readonly issued: number
  readonly expires: number
}

export const simulation: Trial = {
  name: 'simulation',
  promise:
    'postern accepts every valid token and no other, also after clocks jump, keys rotate, writes fail and processes restart',
  times: { full: 300, short: 2 },

  async run(times, seed) {
    const { broken, expect } = collector()
    const seen = { accepted: 0, refused: 0, failedWrites: 0, restarts: 0, rotations: 0 }
    for (let life = 0; life < times; life += 1) {
      const chance = random(seed * 1_000_003 + life)
      const memory = openMemoryStore()
      let isFailing = false
      const store: Store = {
        ...memory,
        commit: async (write) => {
          if (isFailing) throw new StoreError('unavailable', 'the simulated disk is full')
          return memory.commit(write)
        },
      }
      let now = startOfTime
      const start = async () => {
        const platform = await createTestPlatform({ store })
        platform.now = now
        return platform
      }
      let platform = await start()
      const pepper = platform.pepper
      const seconds = () => Math.floor(now / 1000)
      const keys: { key: string; keyId: string }[] = []
      const minted: Minted[] = []
      const revokedKeys = new Set<string>()
      const revokedTokens = new Set<string>()

      /** What the commit did not acknowledge has not happened. */
      const write = async (work: () => Promise<void>): Promise<void> => {
        isFailing = chance.chance(0.1)
        try {
          await work()
        } catch (error) {
          if (!(error instanceof StoreError) && !(error instanceof CommandError)) throw error
          seen.failedWrites += 1
        }
        isFailing = false
      }
      const createKey = () =>
        write(async () => {
          const { key, record } = await createApiKey(store, pepper, {
            userId: 'ada',
            name: null,
            operator: false,
            now: new Date(now),
          })
          keys.push({ key, keyId: record.keyId })
        })
      const mint = async (credential: string): Promise<void> => {
        const policy = [{ ttl: chance.pick([60, 3600, 86_400]) }]
        const token = await mintToken(platform.fetch, credential, { policy }).catch(() => undefined)
        if (token === undefined) return
        const read = (part: number) => JSON.parse(Buffer.from(token.split('.')[part] ?? '', 'base64url').toString())
        const { jti, par = [], key, iat, exp } = read(1)
        minted.push({ token, jti, ancestors: par, kid: read(0).kid, keyId: key, issued: iat, expires: exp })
      }
      const actions: Record<string, () => Promise<void>> = {
        mint: () => mint(chance.pick(keys).key),
        child: async () => void (minted.length > 0 && (await mint(chance.pick(minted).token))),
        createKey,
        revokeToken: () =>
          write(async () => {
            if (minted.length === 0) return
            const { jti, expires } = chance.pick(minted)
            await revokeToken(store, jti, { exp: expires, nowSeconds: seconds() })
            revokedTokens.add(jti)
          }),
        revokeKey: () =>
          write(async () => {
            const { keyId } = chance.pick(keys)
            await revokeApiKey(store, keyId, new Date(now))
            revokedKeys.add(keyId)
            if (revokedKeys.size === keys.length) await createKey()
          }),
        rotate: () =>
          write(async () => {
            await changeSigningKeys(store, sealingKey, (records) => rotateKeys(records ?? [], seconds()))
            seen.rotations += 1
          }),
        revokeSigningKey: () =>
          write(async () => {
            await changeSigningKeys(store, sealingKey, (records = []) =>
              removeKey(records, chance.pick(keyRing(records).all).kid, seconds()),
            )
          }),
        clock: async () => {
          now += chance.pick([-7200, -3600, -20, 1, 1, 40, 600, 7200, chance.chance(0.1) ? 2 * 86_400 : 3]) * 1000
          platform.now = now
        },
        restart: async () => {
          platform = await start()
          seen.restarts += 1
        },
      }
      await createKey()
      while (keys.length === 0) await createKey()
      const often = ['mint', 'mint', 'child', 'clock', 'clock', 'clock', 'revokeToken', ...Object.keys(actions)]
      for (let step = 0; step < steps; step += 1) {
        const action = chance.pick(often)
        await actions[action]?.()
        const ring = keyRing((await changeSigningKeys(store, sealingKey, () => undefined)) ?? [])
        for (let look = 0; look < 3 && minted.length > 0; look += 1) {
          const one = chance.chance(0.8)
            ? (minted.at(-1 - chance.int(Math.min(10, minted.length))) as Minted)
            : chance.pick(minted)
          const signer = ring.all.find(({ kid }) => kid === one.kid)
          const counts =
            seconds() < one.expires &&
            seconds() >= one.issued - clockSkewMaxSeconds &&
            signer !== undefined &&
            isAccepted(signer, seconds()) &&
            !revokedKeys.has(one.keyId) &&
            ![...one.ancestors, one.jti].some((jti) => revokedTokens.has(jti))
          const { status } = await platform.fetch('/connect/ada?limit=1', {
            headers: { authorization: `Bearer ${one.token}` },
          })
          if (status === 200) seen.accepted += 1
          else seen.refused += 1
          expect(
            status === (counts ? 200 : 401),
            () =>
              `life ${life}, step ${step} (${action}): ${status}, though ${counts}: ${JSON.stringify({ ...one, now: seconds() })}`,
          )
        }
      }
    }
    const figure = `${times} simulations of ${steps} steps: tokens accepted ${seen.accepted} times and refused ${seen.refused} times, ${seen.rotations} rotations, ${seen.restarts} restarts, ${seen.failedWrites} writes failed`
    const counts = Object.entries(seen).map(([what, count]) => [what, [count, 1]] as const)
    return { figure, broken, seen: Object.fromEntries(counts) }
  },
}
