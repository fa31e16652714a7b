/**
 * Codes and grants come and go, on the engine of a server and with a clock of our own: they leave nothing behind, in
 * the store or in memory.
 */

import { statSync } from 'node:fs'
import { join } from 'node:path'
import { sweepGrants } from '../../src/auth/grants.ts'
import { openLmdbStore } from '../../src/storage/lmdb/store.ts'
import { anonymousMemory } from '../bench/measure.ts'
import {
  authorizePath,
  decide,
  exchange,
  newVerifier,
  redirectUri,
  register,
  sentBack,
  signedIn,
} from '../features/authorization/world.ts'
import { createTestPlatform } from '../support/platform.ts'
import { workplace } from '../support/workplace.ts'
import { collector, type Trial } from './trial.ts'

/** Of so many codes, one becomes a grant, fewer than a user may make in a minute. The others expire. */
const codesForGrant = 25
/** How many people decide at the same time. */
const atOnce = 20
/** Milliseconds of the platform's clock between them: a user allows clients something sixty times in a minute. */
const stepMs = 20_000
const storeMaxMB = 12
const memoryMaxMB = 40
const monthMs = 31 * 24 * 3600 * 1000

export const signInRecords: Trial = {
  name: 'sign-in-records',
  promise: 'Once codes and grants have ended, they take no space in the store, and no memory',
  times: { full: 100_000, short: 500 },

  async run(times) {
    const { broken, expect } = collector()
    using place = workplace()
    const store = openLmdbStore(join(place.folder, 'store'))
    const platform = await createTestPlatform({ store })
    const size = () => statSync(join(place.folder, 'store', 'data.mdb')).size / 1e6
    const { client_id: clientId } = await register(platform)
    let cookie = await signedIn(platform)
    let codes = 0
    let grants = 0
    let memoryBefore = 0

    async function one(): Promise<void> {
      const number = codes
      codes += 1
      const verifier = newVerifier()
      const code = sentBack(await decide(platform, authorizePath({ clientId, verifier }), cookie, { days: '1' })).get(
        'code',
      )
      if (number % codesForGrant !== 0) return
      const fields = {
        grant_type: 'authorization_code',
        code: code ?? '',
        client_id: clientId,
        redirect_uri: redirectUri,
      }
      const { status } = await exchange(platform, { ...fields, code_verifier: verifier })
      expect(status === 200, () => `code ${number} got ${status}`)
      if (status === 200) grants += 1
    }

    for (let round = 0; codes < times; round += 1) {
      await Promise.all(Array.from({ length: atOnce }, one))
      platform.now += stepMs
      // As a server does every hour; and sessions last twelve.
      if (round % 180 === 179) {
        await sweepGrants(store, platform.now / 1000)
        cookie = await signedIn(platform)
      }
      // What the first tenth takes is what the runtime keeps for itself.
      if (memoryBefore === 0 && codes >= times / 10) memoryBefore = anonymousMemory(process.pid)
    }
    const grown = size()
    platform.now += monthMs
    await sweepGrants(store, platform.now / 1000)
    // Whatever is written next takes expired records along.
    for (let i = 0; i < 200; i += 1) await signedIn(platform)
    const left = { e: await count('e'), w: await count('w') }
    Bun.gc(true)
    const memory = anonymousMemory(process.pid) - memoryBefore
    expect(left.w === 0, () => `${left.w} grants are left`)
    expect(left.e <= 400, () => `${left.e} expired records are left`)
    expect(grown < storeMaxMB, () => `the store has grown to ${grown.toFixed(1)} MB`)
    // Of fewer it says nothing, and the short run has other trials in this process.
    const isMeasured = times >= 10_000
    if (isMeasured) expect(memory < memoryMaxMB, () => `memory has grown by ${memory.toFixed(0)} MB`)
    await store.close()
    const figure = `${codes} codes, ${grants} grants: the store has ${grown.toFixed(1)} MB, ${isMeasured ? `memory grew by ${memory.toFixed(0)} MB` : 'memory measured in the long run alone'}`
    return { figure, broken, seen: { codes: [codes, times], grants: [grants, times / codesForGrant] } }

    async function count(kind: string): Promise<number> {
      const from = Buffer.from(kind)
      const to = Buffer.of((from[0] ?? 0) + 1)
      return (await store.keys({ gte: from, lt: to, limit: 1_000_000 })).keys.length
    }
  },
}
