/** Fixtures of very many connections, and stores that are told of each step in which they are written. */

import { expect } from 'bun:test'
import { loadFixtures } from '../../../src/maintenance/seed/load-fixtures.ts'
import { readFixtures } from '../../../src/maintenance/seed/read-fixtures.ts'
import { digestOf, type SourceFile } from '../../../src/maintenance/seed/source-files.ts'
import { prefixRange } from '../../../src/storage/keys.ts'
import type { Store } from '../../../src/storage/store.ts'
import { seed, silent, source } from '../../support/platform.ts'
import { random } from '../../support/random.ts'

const now = new Date('2026-03-02T09:00:00.000Z')
const connection = (number: number, more: object = {}) => ({
  namespace: 'many',
  connectionId: `c-${number}`,
  mcpUrl: `https://x.example.com/${number}`,
  metadata: { team: `t${number % 7}`, number, filler: 'x'.repeat(3000) },
  ...more,
})
/** Large ones, so that few make several commits. */
export const count = 4000
/** In no order, with a few that leave out when they were made. */
export const set = (size = count, name = 'many'): SourceFile[] => {
  const chance = random(5)
  const numbers = Array.from({ length: size }, (_, i) => i).sort(() => chance.int(3) - 1)
  const rows = numbers.map((i) =>
    connection(i, { namespace: name, ...(i % 3 > 0 && { createdAt: '2026-01-01T00:00:00.000Z' }) }),
  )
  return [source('a.json', { namespaces: [{ namespace: name, userId: 'u' }], connections: rows })]
}
export const load = async (store: Store, sources: readonly SourceFile[], stagedBytesMin = 0) => {
  const { fixtures, problems } = await readFixtures(sources)
  expect(problems).toEqual([])
  return loadFixtures(store, fixtures, digestOf(sources), { pepper: seed('p'), now, log: silent, stagedBytesMin })
}
export const rows = async (store: Store, prefix: Uint8Array) =>
  (await store.range({ ...prefixRange(prefix), limit: 1_000_000 })).entries.map(
    ({ key, value }) => `${Buffer.from(key).toString('latin1')} ${Buffer.from(value)}`,
  )

/** The store, told before each load; what it throws ends the load there. */
export const watched = (store: Store, before: (load: number) => Promise<unknown>): Store => {
  let loads = 0
  return {
    ...store,
    async load(write) {
      loads += 1
      await before(loads)
      return store.load(write)
    },
  }
}
