/**
 * Two replicas on one database: whatever one has acknowledged, the other knows for each request that comes after it,
 * whatever their clocks say (contract, 16.5 to 16.7).
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { revokeApiKey } from '../../../src/auth/api-key.ts'
import { revokeToken } from '../../../src/auth/revocation.ts'
import { unverifiedClaims } from '../../../src/auth/service-token.ts'
import { memberEntry } from '../../../src/storage/directory-records.ts'
import { directoryVersionKey } from '../../../src/storage/keys.ts'
import { openPostgresStore } from '../../../src/storage/postgres/store.ts'
import type { Store } from '../../../src/storage/store.ts'
import { newVersion } from '../../../src/storage/versions.ts'
import { mintToken } from '../../api/cases.ts'
import { isHere } from '../../support/needs.ts'
import { createTestPlatform, keyIdOf, type TestPlatform } from '../../support/platform.ts'
import { addressOf, type PostgresCluster, startPostgres } from '../../support/postgres.ts'
import { type Random, random } from '../../support/random.ts'
import { sampleKeys } from '../../support/sample.ts'

const steps = 120
const ada = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }

describe.skipIf(!isHere('PostgreSQL'))('two replicas (needs PostgreSQL)', () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster.stop())

  /** Does things on one replica and looks at another, at random. Resolves with what was stale. */
  async function staleAnswers(seed: number, cache: (store: Store, now: () => number) => Store): Promise<string[]> {
    const address = addressOf(await cluster.newDatabase())
    const stores = [await openPostgresStore({ address, mayMigrate: true }), await openPostgresStore({ address })]
    const replicas: TestPlatform[] = []
    for (const store of stores) {
      const at = replicas.length
      replicas.push(await createTestPlatform({ store: cache(store, () => replicas[at]?.now ?? Number.NaN) }))
    }
    const chance = random(seed)
    const stale: string[] = []
    const rows = new Map<string, number>()
    for (let step = 0; step < steps; step += 1) {
      // Clocks that nobody set: seconds apart, and never backwards on one machine.
      for (const replica of replicas) replica.now += chance.int(200)
      const [one, other] = chance.chance(0.5) ? replicas : [...replicas].reverse()
      const problem = await change(chance, step, one as TestPlatform, other as TestPlatform, rows)
      if (problem !== undefined) stale.push(`step ${step}: ${problem}`)
    }
    await Promise.all(stores.map((store) => store.close()))
    return stale
  }

  for (const seed of [1, 2]) {
    test(`neither answers from before a write that was acknowledged (seed ${seed})`, async () => {
      expect(await staleAnswers(seed, (store) => store)).toEqual([])
    })
  }

  test('this would notice a lease: versions that are confirmed for a quarter of a second', async () => {
    expect(await staleAnswers(1, leased)).not.toEqual([])
  })
})

/** Changes something through `one`, having asked `other` before, and says what `other` answers wrongly after it. */
async function change(
  chance: Random,
  step: number,
  one: TestPlatform,
  other: TestPlatform,
  rows: Map<string, number>,
): Promise<string | undefined> {
  const kind = chance.int(4)
  if (kind === 0) {
    const token = await mintToken((path, init) => one.fetch(path, init), sampleKeys.ada, { policy: [{ ttl: '1h' }] })
    const headers = { authorization: `Bearer ${token}` }
    // Twice, so that whatever may be kept is kept.
    for (let time = 0; time < 2; time += 1) await other.fetch('/connect/northwind?limit=2', { headers })
    const { jti, exp } = unverifiedClaims(token) ?? { jti: '', exp: 0 }
    await revokeToken(one.store, jti, { exp, nowSeconds: Math.floor(one.now / 1000) })
    const { status } = await other.fetch('/connect/northwind?limit=2', { headers })
    return status === 401 ? undefined : `a revoked token got ${status}`
  }
  if (kind === 1) {
    const headers = { authorization: `Bearer ${sampleKeys.linus}` }
    const role = async (to: 'admin' | 'member') => {
      const puts = [memberEntry('org_northwind', 'linus', to), newVersion(directoryVersionKey)]
      await one.store.commit({ puts })
    }
    const mint = () =>
      other.fetch('/tokens', {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body: JSON.stringify({ organizationId: 'org_northwind', policy: [{ ttl: '1h' }] }),
      })
    await role('admin')
    const promoted = (await mint()).status
    await role('member')
    const demoted = (await mint()).status
    return promoted === 200 && demoted === 403 ? undefined : `an admin got ${promoted}, and after that ${demoted}`
  }
  if (kind === 2 && step > 100) {
    await revokeApiKey(one.store, await keyIdOf(one, 'grace'), new Date(one.now))
    const { status } = await other.fetch('/connect/grace?limit=1', {
      headers: { authorization: `Bearer ${sampleKeys.grace}` },
    })
    return status === 401 ? undefined : `a revoked key got ${status}`
  }
  const id = `row-${chance.int(5)}`
  const list = (platform: TestPlatform) => platform.fetch(`/connect/ada?name=${id}`, { headers: ada })
  const page = (platform: TestPlatform) => platform.fetch('/connect/ada', { headers: ada })
  for (let time = 0; time < 2; time += 1) await Promise.all([list(other), page(other)])
  const body = JSON.stringify({ server: 'lumen', mock: { enabled: true }, name: id, metadata: { number: step } })
  const { status } = await one.fetch(`/connect/ada/${id}`, { method: 'PUT', headers: ada, body })
  if (status >= 300) return `a write got ${status}`
  rows.set(id, step)
  for (const answer of await Promise.all([list(other), page(other), page(one)])) {
    const { connections = [] } = (await answer.json()) as {
      connections?: { name: string; metadata?: { number?: number } }[]
    }
    const found = connections.find(({ name }) => name === id)?.metadata?.number
    if (found !== step) return `${id} is at ${found}, and ${step} was acknowledged`
  }
  return undefined
}

/** A store that believes versions that it read for a quarter of a second, by its own clock. */
function leased(store: Store, now: () => number): Store {
  const kept = new Map<string, { readonly at: number; readonly value: Uint8Array | undefined }>()
  const get = async (key: Uint8Array) => {
    const name = Buffer.from(key).toString('latin1')
    if (!/^[Gg]/.test(name)) return store.get(key)
    const known = kept.get(name)
    if (known !== undefined && now() - known.at < 250) return known.value
    const value = await store.get(key)
    kept.set(name, { at: now(), value })
    return value
  }
  return { ...store, get, getMany: (keys) => Promise.all(keys.map(get)) }
}
