/** Loads of very many connections, written ahead of the commit that shows them: with the bound set low, of few. */

import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { loadFixtures } from '../../../src/maintenance/seed/load.ts'
import { readFixtures } from '../../../src/maintenance/seed/read.ts'
import { digestOf, type SourceFile } from '../../../src/maintenance/seed/source-files.ts'
import { createSpool } from '../../../src/maintenance/seed/spool.ts'
import { isAnythingAhead, nothingAhead, removeAhead } from '../../../src/storage/ahead.ts'
import {
  aheadKey,
  connectionsOf,
  connectionsVersionKey,
  namespaceKey,
  prefixRange,
  termsIn,
} from '../../../src/storage/keys.ts'
import { openLmdbStore } from '../../../src/storage/lmdb/store.ts'
import { openMemoryStore } from '../../../src/storage/memory.ts'
import type { Store } from '../../../src/storage/store.ts'
import { benchKey, writeFixtures } from '../../bench/data.ts'
import { anonymousMemory, memoryMost } from '../../bench/measure.ts'
import { executable, run, startServer, workplace } from '../../support/executable.ts'
import { seed, silent, source } from '../../support/platform.ts'
import { random } from '../../support/random.ts'

const now = new Date('2026-03-02T09:00:00.000Z')
const connection = (number: number, more: object = {}) => ({
  namespace: 'many',
  connectionId: `c-${number}`,
  mcpUrl: `https://x.example.com/${number}`,
  metadata: { team: `t${number % 7}`, number, filler: 'x'.repeat(40) },
  ...more,
})
const count = 40_000
/** In no order, with a few that leave out when they were made. */
const set = (size = count, name = 'many'): SourceFile[] => {
  const chance = random(5)
  const numbers = Array.from({ length: size }, (_, i) => i).sort(() => chance.int(3) - 1)
  const rows = numbers.map((i) =>
    connection(i, { namespace: name, ...(i % 3 > 0 && { createdAt: '2026-01-01T00:00:00.000Z' }) }),
  )
  return [source('a.json', { namespaces: [{ namespace: name, userId: 'u' }], connections: rows })]
}
const load = async (store: Store, sources: readonly SourceFile[], aheadBytesMin = 0) => {
  const { fixtures, problems } = readFixtures(sources)
  expect(problems).toEqual([])
  return loadFixtures(store, fixtures, digestOf(sources), { pepper: seed('p'), now, log: silent, aheadBytesMin })
}
const rows = async (store: Store, prefix: Uint8Array) =>
  (await store.range({ ...prefixRange(prefix), limit: 1_000_000 })).entries.map(
    ({ key, value }) => `${Buffer.from(key).toString('latin1')} ${Buffer.from(value)}`,
  )

/** The store, told before each load; what it throws ends the load there. */
const watched = (store: Store, before: (load: number) => Promise<unknown>): Store => {
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

describe('connections written ahead', () => {
  test('are what one transaction would have written, by no step to be seen before the last', async () => {
    const [ahead, atOnce] = [openMemoryStore(), openMemoryStore()]
    const seen: unknown[] = []
    const watching = watched(ahead, async (load) => {
      const namespace = await ahead.get(namespaceKey('many'))
      const generation = await ahead.get(connectionsVersionKey('many'))
      seen.push(namespace, generation)
      if (load > 1) expect(await isAnythingAhead(ahead)).toBe(true)
    })
    expect(await load(watching, set())).toMatchObject({ connections: count })
    expect(seen.length).toBeGreaterThanOrEqual(6)
    expect(seen.every((value) => value === undefined)).toBe(true)
    expect(await isAnythingAhead(ahead)).toBe(false)
    await load(atOnce, set(), Number.POSITIVE_INFINITY)
    for (const prefix of [connectionsOf('many'), termsIn('many'), Buffer.from('f')]) {
      expect(Bun.hash((await rows(ahead, prefix)).join('\n'))).toBe(Bun.hash((await rows(atOnce, prefix)).join('\n')))
    }
    expect((await rows(ahead, connectionsOf('many'))).length).toBe(count)
  }, 30_000)

  test('of a load that is cut off at any step are removed by the next, and are no records meanwhile', async () => {
    using place = workplace()
    const folder = join(place.data, 'store')
    await (await import('../../../src/maintenance/data-folder.ts'))
      .openDataFolder(place.data)
      .then(({ store }) => store.close())
    for (const last of [2, 3, 4]) {
      const store = openLmdbStore(folder)
      const cut = watched(store, async (load) => {
        if (load === last) throw new Error('cut off')
      })
      await expect(load(cut, set())).rejects.toThrow('cut off')
      expect(await isAnythingAhead(store)).toBe(true)
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
    expect(await isAnythingAhead(store)).toBe(false)
    expect(await rows(store, connectionsOf('many'))).toEqual([])
    expect(await load(store, set(10, 'other'))).toMatchObject({ connections: 10 })
    expect(await load(store, set())).toMatchObject({ connections: count, removed: 11 })
    await removeAhead(store)
    expect((await rows(store, connectionsOf('many'))).length).toBe(count)
    await store.close()
    expect((await run(place, ['verify', '--data', place.data])).code).toBe(0)
  }, 60_000)

  test('are shown by nobody else: what would bring their namespace waits', async () => {
    const store = openMemoryStore()
    let refused = 0
    const watching = watched(store, async (load) => {
      if (load < 3 || refused > 0) return
      const note = { key: namespaceKey('many'), value: Buffer.from('{}') }
      if (!(await store.commit({ checks: [nothingAhead], puts: [note] })).ok) refused += 1
    })
    await load(watching, set())
    expect([refused, await store.get(aheadKey)]).toEqual([1, undefined])
  })
})

test('the executable loads very many in little memory, whatever kills it on the way, and gives the memory back', async () => {
  using place = workplace()
  const fixtures = join(place.folder, 'fixtures')
  const many = 210_000
  writeFixtures(fixtures, many)
  const flags = ['--fixtures', fixtures]
  for (const progress of ['"stage":"reading fixtures"', '"stage":"loading fixtures"']) {
    const child = Bun.spawn([executable, 'serve', ...flags, '--port', '0', '--data', place.data], {
      stdout: 'ignore',
      stderr: 'pipe',
    })
    let told = ''
    for await (const chunk of child.stderr) {
      told += Buffer.from(chunk).toString()
      if (told.includes(progress)) child.kill('SIGKILL')
    }
    expect(await child.exited).toBe(137)
    // The signing keys and, of the second, the note.
    const { code, stdout } = await run(place, ['verify', '--data', place.data])
    expect({ code, stdout }).toEqual({ code: 0, stdout: expect.stringMatching(/^[123] records and 0 index entries/) })
  }
  await using server = await startServer(place, flags)
  // 4 kB a connection before; what is read, sorted and written is bounded but for some hundred bytes of each.
  expect(memoryMost(server.pid)).toBeLessThan(720)
  const answer = await fetch(`${server.url}/connect/bench`, { headers: { authorization: `Bearer ${benchKey}` } })
  expect(answer.status).toBe(200)
  while (anonymousMemory(server.pid) > 150) await new Promise((resolve) => setImmediate(resolve))
  const { code, stdout } = await run(place, ['verify', '--data', place.data])
  expect(code).toBe(0)
  expect(stdout).toContain(`${(many + 1000) * 6} index entries`)
}, 120_000)

test('a spool gives back what it was given, from memory and from a file that nobody sees', () => {
  using place = workplace()
  for (const folder of [undefined, place.folder]) {
    using spool = createSpool(folder)
    const chance = random(9)
    const given: { position: number; bytes: Buffer }[] = []
    for (let i = 0; i < 3000; i += 1) {
      const length = i % 500 === 0 ? 700_000 : 1 + chance.int(20_000)
      const { bytes, start, position } = spool.add(length)
      bytes.fill(i % 251, start, start + length)
      given.push({ position, bytes: Buffer.alloc(length, i % 251) })
    }
    const inOrder = given.map((_, i) => i)
    const inDisorder = inOrder.map(() => chance.int(given.length))
    for (const i of [...inOrder, ...inDisorder]) {
      const { position, bytes } = given[i] as (typeof given)[0]
      expect(spool.read(position, bytes.length).equals(bytes)).toBe(true)
    }
    expect([...new Bun.Glob('**').scanSync({ cwd: place.folder, dot: true })]).toEqual([])
  }
})
