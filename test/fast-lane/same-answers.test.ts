/**
 * Two platforms on one store, one with the fast lane and one without: whatever happens in between, they answer alike.
 */

import { expect, test } from 'bun:test'
import { apiKeyDigest, revokeApiKey } from '../../src/auth/api-key.ts'
import { revokeToken } from '../../src/auth/revocation.ts'
import type { Connection } from '../../src/model/connection.ts'
import { directoryVersionKey, keyOf } from '../../src/storage/keys.ts'
import type { Store } from '../../src/storage/store.ts'
import { newVersion } from '../../src/storage/versions.ts'
import { mintToken } from '../api/cases.ts'
import { idsOf, pickConnection, pickPolicy, write } from '../features/connections/world.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createTestPlatform, source, startOfTime, type TestPlatform } from '../support/platform.ts'
import { type Random, random } from '../support/random.ts'

const keys = ['a-key-of-ada-for-two-ways-000000000001', 'a-key-of-eve-for-two-ways-000000000002'] as const
const world = source('acme.json', {
  organizations: [{ organizationId: 'org', name: 'Org', members: [{ userId: 'ada', role: 'owner' }] }],
  namespaces: [
    { namespace: 'acme', organizationId: 'org' },
    { namespace: 'eve', userId: 'eve' },
  ],
  apiKeys: [
    { userId: 'ada', key: keys[0] },
    { userId: 'eve', key: keys[1] },
  ],
})

const seeds =
  process.env['SEED'] === undefined ? Array.from({ length: 16 }, (_, i) => i + 1) : [Number(process.env['SEED'])]

for (const seed of seeds) {
  test(`both ways give the same bytes, whatever changes underneath (seed ${seed})`, async () => {
    const chance = random(seed)
    const { local, ...remote } = openMemoryStore()
    // A store in another process has no reads that wait for nothing: what was kept is then asked for its version.
    const store: Store = seed % 2 === 0 && local !== undefined ? { ...remote, local } : remote
    const fast = await createTestPlatform({ store, sources: [world], fastLane: true })
    const ordinary = await createTestPlatform({ store, sources: [world], fastLane: false })
    const rows = new Map<string, Connection>()
    const ids = idsOf(chance, 12)
    await write(store, new Map(ids.map((id) => [id, pickConnection(chance, id)])), rows)
    const credentials: string[] = [keys[0], ...keys, 'nobody']
    const asked: { path: string; init: RequestInit }[] = []
    let answered = 0
    for (let step = 0; step < 200; step += 1) {
      if (chance.chance(0.3)) await change()
      // Mostly what was asked before: that is what is remembered.
      const repeated = chance.chance(0.7) && asked.length > 0
      const { path, init } = repeated ? chance.pick(asked) : pickRequest(chance, ids, credentials)
      if (!repeated) asked.push({ path, init })
      const [one, other] = [await answer(fast, path, init), await answer(ordinary, path, init)]
      expect({ path, ...one }).toEqual({ path, ...other })
      if (one.status === 200) answered += 1
    }
    expect(answered).toBeGreaterThan(20)

    async function change(): Promise<void> {
      const kind = chance.int(8)
      if (kind < 3) {
        const id = chance.pick(ids)
        const changed = chance.chance(0.3) ? undefined : pickConnection(chance, id)
        await write(store, new Map([[id, changed]]), rows)
      } else if (kind === 3) {
        const policy = pickPolicy(chance, ids)
        credentials.push(await mintToken(ordinary.fetch, keys[0], policy.length === 0 ? {} : { policy }))
      } else if (kind === 4) {
        const token = chance.pick(credentials)
        const { jti } = claimsOf(token)
        if (jti !== undefined) await revokeToken(store, jti, { exp: undefined, nowSeconds: startOfTime / 1000 })
      } else if (kind === 5) {
        const present = chance.chance(0.5)
        const key = keyOf('server', 'acme/tools')
        const version = newVersion(directoryVersionKey)
        const value = Buffer.from(JSON.stringify({ qualifiedName: 'acme/tools', step: chance.int(1000) }))
        await store.commit(present ? { puts: [{ key, value }, version] } : { deletes: [key], puts: [version] })
      } else if (kind === 6) {
        const owner = chance.chance(0.8) ? { organizationId: 'org' } : { userId: 'eve' }
        const value = Buffer.from(JSON.stringify({ namespace: 'acme', ...owner }))
        await store.commit({ puts: [{ key: keyOf('namespace', 'acme'), value }, newVersion(directoryVersionKey)] })
      } else {
        const forward = chance.int(1_500_000)
        fast.now += forward
        ordinary.now = fast.now
        if (chance.chance(0.05)) await revokeKeyOf(fast, keys[1])
      }
    }
  })
}

function pickRequest(chance: Random, ids: readonly string[], credentials: readonly string[]) {
  const id = chance.pick(ids)
  const path = chance.pick([
    '/connect/acme',
    `/connect/acme?limit=${1 + chance.int(4)}`,
    '/connect/acme?metadata.team=x',
    '/connect/eve',
    '/connect/nowhere',
    `/connect/acme/${encodeURIComponent(id)}`,
    `/connect/acme/${encodeURIComponent(id)}/.tools`,
    '/servers/acme%2Ftools',
    '/servers/acme%2Ftools?x=1',
  ])
  const headers = { authorization: `${chance.pick(['Bearer ', 'Bearer ', 'bearer  '])}${chance.pick(credentials)}` }
  return { path, init: { headers } }
}

/** All that a client sees, but for the request's own id. */
async function answer(platform: TestPlatform, path: string, init: RequestInit) {
  const response = await platform.fetch(path, init)
  const headers = Object.fromEntries(response.headers)
  expect(headers['x-request-id']).toBeString()
  delete headers['x-request-id']
  return { status: response.status, headers, body: await response.text() }
}

function claimsOf(token: string): { readonly jti?: string } {
  const [, claims] = token.split('.')
  return claims === undefined ? {} : (JSON.parse(Buffer.from(claims, 'base64url').toString()) as { jti?: string })
}

async function revokeKeyOf({ store, pepper }: TestPlatform, key: string): Promise<void> {
  const keyId = await store.get(keyOf('apiKeyDigest', apiKeyDigest(pepper, key)))
  if (keyId !== undefined) await revokeApiKey(store, Buffer.from(keyId).toString(), new Date(startOfTime))
}
