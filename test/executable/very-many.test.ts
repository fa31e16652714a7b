/** Loads of very many connections by the executable, and of what is left of one that was cut off. */

import { expect, test } from 'bun:test'
import { join } from 'node:path'
import { openDataFolder } from '../../src/maintenance/data-folder.ts'
import { prefixOf } from '../../src/storage/keys.ts'
import { openLmdbStore } from '../../src/storage/lmdb/store.ts'
import { isAnythingStaged, removeStaged } from '../../src/storage/staged.ts'
import { benchKey, writeFixtures } from '../bench/data.ts'
import { anonymousMemory, memoryMost } from '../bench/measure.ts'
import { count, load, rows, set, watched } from '../maintenance/seed/many.ts'
import { run, startServer, workplace } from '../support/executable.ts'
import { until } from '../support/until.ts'

test('connections written ahead of a load that is cut off at any step are removed by the next, and are no records meanwhile', async () => {
  using place = workplace()
  const folder = join(place.data, 'store')
  await openDataFolder(place.data).then(({ store }) => store.close())
  for (const last of [2, 4]) {
    const store = openLmdbStore(folder)
    const cut = watched(store, async (load) => {
      if (load === last) throw new Error('cut off')
    })
    await expect(load(cut, set())).rejects.toThrow('cut off')
    expect(await isAnythingStaged(store)).toBe(true)
    await store.close()
    const { code, stderr, stdout } = await run(place, ['verify', '--data', place.data])
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toContain('3 records and 0 index entries')
  }
  const exported = join(place.folder, 'export.jsonl')
  expect((await run(place, ['export', exported, '--data', place.data])).code).toBe(0)
  expect((await Bun.file(exported).text()).trim().split('\n').length).toBe(2)
  // An import would show them: it removes them first.
  expect((await run(place, ['import', exported, '--data', place.data])).code).toBe(0)
  const store = openLmdbStore(folder)
  expect(await isAnythingStaged(store)).toBe(false)
  expect(await rows(store, prefixOf('connection', 'many'))).toEqual([])
  expect(await load(store, set(10, 'other'))).toMatchObject({ connections: 10 })
  expect(await load(store, set())).toMatchObject({ connections: count, removed: 11 })
  await removeStaged(store)
  expect((await rows(store, prefixOf('connection', 'many'))).length).toBe(count)
  await store.close()
  expect((await run(place, ['verify', '--data', place.data])).code).toBe(0)
})

test('the executable loads very many in little memory, and gives the memory back', async () => {
  using place = workplace()
  const fixtures = join(place.folder, 'fixtures')
  const many = 15_000
  /** By owner, of the three namespaces. */
  const ofNamespacesAndKeys = 5
  writeFixtures(fixtures, many)
  const flags = ['--fixtures', fixtures]
  await using server = await startServer(place, flags)
  // 300 MB whatever is read, sorted and written, and a kilobyte of each connection.
  expect(memoryMost(server.pid)).toBeLessThan(430)
  const answer = await fetch(`${server.url}/connect/bench`, { headers: { authorization: `Bearer ${benchKey}` } })
  expect(answer.status).toBe(200)
  await until(() => anonymousMemory(server.pid) <= 150)
  const { code, stdout } = await run(place, ['verify', '--data', place.data])
  expect(code).toBe(0)
  expect(stdout).toContain(`${(many + 1000) * 6 + ofNamespacesAndKeys} index entries`)
})
