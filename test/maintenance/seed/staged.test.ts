/** Loads of very many connections, written ahead of the commit that shows them: with the bound set low, of few. */

import { describe, expect, test } from 'bun:test'
import { keyOf, prefixOf, stagedKey } from '../../../src/storage/keys.ts'
import { isAnythingStaged, nothingStaged } from '../../../src/storage/staged.ts'
import { openMemoryStore } from '../../support/memory-store.ts'

import { count, load, rows, set, watched } from './many.ts'

describe('connections written ahead', () => {
  test('are what one transaction would have written, by no step to be seen before the last', async () => {
    const [ahead, atOnce] = [openMemoryStore(), openMemoryStore()]
    const seen: unknown[] = []
    const watching = watched(ahead, async (load) => {
      const namespace = await ahead.get(keyOf('namespace', 'many'))
      const generation = await ahead.get(keyOf('connectionsVersion', 'many'))
      seen.push(namespace, generation)
      if (load > 1) expect(await isAnythingStaged(ahead)).toBe(true)
    })
    expect(await load(watching, set())).toMatchObject({ connections: count })
    expect(seen.length).toBeGreaterThanOrEqual(6)
    expect(seen.every((value) => value === undefined)).toBe(true)
    expect(await isAnythingStaged(ahead)).toBe(false)
    await load(atOnce, set(), Number.POSITIVE_INFINITY)
    for (const prefix of [prefixOf('connection', 'many'), prefixOf('indexEntry', 'many'), Buffer.from('f')]) {
      expect(Bun.hash((await rows(ahead, prefix)).join('\n'))).toBe(Bun.hash((await rows(atOnce, prefix)).join('\n')))
    }
    expect((await rows(ahead, prefixOf('connection', 'many'))).length).toBe(count)
  })

  test('are shown by nobody else: what would bring their namespace waits', async () => {
    const store = openMemoryStore()
    let refused = 0
    const watching = watched(store, async (load) => {
      if (load < 3 || refused > 0) return
      const note = { key: keyOf('namespace', 'many'), value: Buffer.from('{}') }
      if (!(await store.commit({ checks: [nothingStaged], puts: [note] })).ok) refused += 1
    })
    await load(watching, set())
    expect([refused, await store.get(stagedKey)]).toEqual([1, undefined])
  })
})
