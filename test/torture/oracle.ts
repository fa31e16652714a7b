/** Lists against the oracle of `connections/world.ts`, in memory and on LMDB, while a writer adds and takes rows of its own. */

import { join } from 'node:path'
import type { Connection } from '../../src/model/connection.ts'
import { openLmdbStore } from '../../src/storage/lmdb/store.ts'
import { mintToken } from '../api/cases.ts'
import {
  expectedIds,
  idsOf,
  key,
  pickConnection,
  pickFilters,
  pickPolicy,
  skeleton,
  walk,
  write,
} from '../features/connections/world.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createTestPlatform } from '../support/platform.ts'
import { random } from '../support/random.ts'
import { workplace } from '../support/workplace.ts'
import { collector, type Trial } from './trial.ts'

const queriesAWorld = 10

export const oracle: Trial = {
  name: 'oracle',
  promise: 'A list has exactly the rows that the token and the query allow, and each row once, even while others write',
  times: { full: 5000, short: 150 },

  async run(times, seed) {
    const { broken, expect } = collector()
    let writes = 0
    let pages = 0
    for (let world = 0; world * queriesAWorld < times; world += 1) {
      const chance = random(seed * 100_003 + world)
      using place = workplace()
      const store = world % 4 === 0 ? openLmdbStore(join(place.folder, 'store')) : openMemoryStore()
      const platform = await createTestPlatform({ store, sources: [skeleton] })
      const rows = new Map<string, Connection>()
      const ids = idsOf(chance, 60)
      await write(store, new Map(ids.map((id) => [id, pickConnection(chance, id)])), rows)

      let isOver = false
      const others = new Map<string, Connection>()
      const writer = (async () => {
        while (!isOver) {
          const id = `${chance.pick(['A', 'a', 'bw', '_'])}w${chance.int(40)}`
          await write(store, new Map([[id, chance.chance(0.4) ? undefined : pickConnection(chance, id)]]), others)
          writes += 1
          await new Promise(setImmediate)
        }
      })()
      for (let query = 0; query < queriesAWorld; query += 1) {
        const policy = pickPolicy(chance, ids)
        const token = policy.length === 0 ? key : await mintToken(platform.fetch, key, { policy })
        const filters = pickFilters(chance)
        const walked = await walk(
          platform,
          token,
          filters,
          () => 1 + chance.int(9),
          () => new Promise(setImmediate),
        )
        pages += walked.pages.length
        const found = walked.ids.filter((id) => !id.includes('w'))
        const wanted = expectedIds(rows, filters, policy)
        const what = () => JSON.stringify({ world, query, policy, filters, found, wanted })
        expect(JSON.stringify(found) === JSON.stringify(wanted), what)
        expect(new Set(walked.ids).size === walked.ids.length, () => `a row twice: ${what()}`)
      }
      isOver = true
      await writer
      await store.close()
    }
    const figure = `${times} tokens and queries, ${pages} pages, ${writes} writes meanwhile`
    return { figure, broken, seen: { pages: [pages, times], writes: [writes, times / queriesAWorld] } }
  },
}
