/** What is remembered of an answer, and to which requests it is given. */

import { expect, test } from 'bun:test'
import { connectionChange, findConnection } from '../../src/storage/connections.ts'
import type { Store } from '../../src/storage/store.ts'
import { connection } from '../features/connections/world.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createTestPlatform } from '../support/platform.ts'
import { sampleKeys } from '../support/sample.ts'

const authorization = `Bearer ${sampleKeys.ada}`

test('what is remembered answers those who read, and nobody who writes', async () => {
  const platform = await createTestPlatform({ fastLane: true })
  const ask = (method: string, path: string) => platform.fetch(path, { method, headers: { authorization } })
  for (const path of ['/connect/ada', '/servers/lumen']) {
    for (let i = 0; i < 3; i += 1) expect((await ask('GET', path)).status).toBe(200)
    const others = path === '/connect/ada' ? ['PUT', 'DELETE', 'PATCH'] : ['POST']
    for (const method of others) expect((await ask(method, path)).status).toBe(405)
  }
  const posted = await ask('POST', '/connect/ada')
  expect([posted.status, await posted.json()]).toMatchObject([400, { error: 'invalid_request' }])
})

test('a connection that goes while it is read is answered once, and not remembered', async () => {
  const memory = openMemoryStore()
  let goes = false
  const store: Store = {
    ...memory,
    async getMany(keys) {
      const values = await memory.getMany(keys)
      if (goes) {
        goes = false
        const before = await findConnection(memory, 'ada', 'one')
        await memory.commit(connectionChange({ namespace: 'ada', connectionId: 'one' }, before, undefined))
      }
      return values
    },
  }
  const platform = await createTestPlatform({ store, fastLane: true })
  await memory.commit(
    connectionChange({ namespace: 'ada', connectionId: 'one' }, undefined, {
      connection: connection('one'),
      privatePart: {},
    }),
  )
  const status = async () => (await platform.fetch('/connect/ada/one', { headers: { authorization } })).status
  goes = true
  expect([await status(), await status()]).toEqual([200, 404])
})

test('a connection is remembered whatever query its requests have', async () => {
  const memory = openMemoryStore()
  let reads = 0
  const store: Store = {
    ...memory,
    getMany(keys) {
      if (keys.some((key) => key.toString().startsWith('cada'))) reads += 1
      return memory.getMany(keys)
    },
  }
  const platform = await createTestPlatform({ store, fastLane: true })
  const stored = { connection: connection('one'), privatePart: {} }
  await memory.commit(connectionChange({ namespace: 'ada', connectionId: 'one' }, undefined, stored))
  const ask = async (query: string) =>
    (await platform.fetch(`/connect/ada/one${query}`, { headers: { authorization } })).status
  expect(await ask('?a=1')).toBe(400)
  const first = reads
  expect([await ask('?a=2'), await ask('?a=3'), await ask('')]).toEqual([400, 400, 200])
  expect([first > 0, reads]).toEqual([true, first])
})
