/** Which namespaces a caller reaches: read once for a version of the directory, and never older than it. */

import { beforeEach, expect, test } from 'bun:test'
import { firstNames } from '../../src/auth/namespace-access.ts'
import { sliceCost } from '../../src/limits.ts'
import { ownedBy } from '../../src/storage/keys.ts'
import { type Api, apiOf } from '../support/api.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createTestPlatform } from '../support/platform.ts'
import { sampleKeys } from '../support/sample.ts'

/** How often the names of ada's own namespaces were read. */
let reads: number
let ada: Api
let operator: Api
beforeEach(async () => {
  const store = openMemoryStore()
  const own = Buffer.from(ownedBy({ userId: 'ada' }))
  const counting: typeof store = {
    ...store,
    keys(range) {
      if (own.equals(range.gte)) reads += 1
      return store.keys(range)
    },
  }
  ada = apiOf((await createTestPlatform({ store: counting })).fetch, sampleKeys.ada)
  operator = ada.as(sampleKeys.operator)
  reads = 0
})

test('names are read once, by whatever asks for them, until the directory changes', async () => {
  const paths = ['GET /me', 'GET /namespaces', 'GET /servers?remote=true', 'GET /v0.1/servers?limit=1']
  for (let round = 0; round < 2; round += 1) for (const path of paths) expect((await ada(path)).status).toBe(200)
  expect(reads).toBe(1)
  for (const path of paths.slice(1, 3)) await operator(`${path}${path.includes('?') ? '&' : '?'}ownerId=ada`)
  expect(reads).toBe(2)
  await ada('PUT /namespaces/ada-two')
  const names = async () => (await ada('GET /namespaces')).body.namespaces.map(({ name }: { name: string }) => name)
  const [others, before] = [reads, await names()]
  expect([reads, before.includes('ada-two')]).toEqual([others + 1, true])
  await operator('PUT /organizations/other', { owner: 'linus' })
  expect(await names()).toEqual(before)
  expect(reads).toBe(others + 2)
  await ada('DELETE /namespaces/ada-two')
  expect(await names()).toEqual(before.filter((name: string) => name !== 'ada-two'))
})

test('a million names are looked through in steps, as far as is needed', () => {
  const names = new Set(Array.from({ length: 1_000_000 }, (_, i) => `n${i}`))
  const stepsOf = (most?: number) => {
    const work = firstNames(names, (name) => name.endsWith('999'), most)
    let [steps, dearest] = [0, 0]
    let step = work.next()
    for (; step.done !== true; step = work.next()) {
      steps += 1
      dearest = Math.max(dearest, step.value)
    }
    return { steps, isCheap: dearest < sliceCost, found: step.value.length }
  }
  expect(stepsOf()).toEqual({ steps: 1000, isCheap: true, found: 1000 })
  expect(stepsOf(101)).toEqual({ steps: 101, isCheap: true, found: 101 })
})
