/**
 * One opening of a store by a process of its own. `write FOLDER SEED`: a few operations of chance; loads, large or
 * small, and mass deletions, each with a summary of all that is there in the same commit. `read FOLDER`: holds what is there
 * against the summary, and prints it. Exits with 3 and the message where the store is not opened.
 */

import { openLmdbStore } from '../../src/storage/lmdb/store.ts'
import { type Entry, type Store, StoreError } from '../../src/storage/store.ts'
import { type Random, random } from '../support/random.ts'

const [mode = '', folder = '', seed = '0'] = process.argv.slice(2)
const summaryKey = Buffer.from('z')
const all = { gte: Buffer.from('a'), lt: summaryKey, limit: 10_000_000 }

function summaryOf(entries: Iterable<Entry>): string {
  let count = 0
  let sum = 0n
  for (const { key, value } of entries) {
    count += 1
    sum = BigInt.asUintN(64, sum + Bun.hash.xxHash3(Buffer.concat([key, value])))
  }
  return `${count} ${sum}`
}

async function write(store: Store, chance: Random): Promise<void> {
  const entries = new Map(
    (await store.range(all)).entries.map(({ key, value }) => [Buffer.from(key).toString(), Buffer.from(value)]),
  )
  const kind = chance.pick([
    'large load',
    'load',
    'small load',
    'mass deletion',
    'everything goes',
    'everything goes',
    'one',
  ])
  const puts: Entry[] = []
  const deletes: string[] = []
  const put = (name: string, bytes: number) => {
    const value = Buffer.alloc(bytes, name)
    puts.push({ key: Buffer.from(name), value })
    entries.set(name, value)
  }
  const adds =
    { 'large load': 1000 + chance.int(6000), load: 50 + chance.int(500), 'small load': chance.int(40), one: 1 }[kind] ??
    0
  const keeps = { 'mass deletion': 0.02, 'everything goes': 0 }[kind] ?? 1 - chance.int(2) / 10
  for (const name of entries.keys()) if (!chance.chance(keeps)) deletes.push(name)
  for (const name of deletes) entries.delete(name)
  // In runs (c, x) and beside them, a page and more, and less.
  for (let i = 0; i < adds; i += 1) {
    put(`${chance.pick(['c', 'c', 'x', 'n', 's'])}${chance.int(20_000)}`, chance.pick([0, 20, 300, 300, 3000, 20_000]))
  }
  const summary = summaryOf([...entries].map(([name, value]) => ({ key: Buffer.from(name), value })))
  const work = {
    puts: [...puts, { key: summaryKey, value: Buffer.from(summary) }],
    deletes: deletes.map((name) => Buffer.from(name)),
  }
  await (chance.chance(0.5) ? store.load(work) : store.commit(work))
}

try {
  const store = openLmdbStore(folder)
  if (mode === 'write') {
    const chance = random(Number(seed))
    console.log('begins')
    for (let left = 1 + chance.int(3); left > 0; left -= 1) await write(store, chance)
  } else {
    const { entries } = await store.range(all)
    const kept = Buffer.from((await store.get(summaryKey)) ?? '0 0').toString()
    const found = summaryOf(entries)
    console.log(found === kept ? found : `other: ${found}, and ${kept} was written`)
  }
  await store.close()
  process.exit(0)
} catch (error) {
  console.log(error instanceof StoreError ? error.message : String(error))
  process.exit(3)
}
