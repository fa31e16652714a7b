import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { openLmdbStore } from '../../src/storage/lmdb/store.ts'
import { openPostgresStore } from '../../src/storage/postgres/store.ts'
import type { Range, Store, Write } from '../../src/storage/store.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { isHere } from '../support/needs.ts'
import { addressOf, type PostgresCluster, startPostgres } from '../support/postgres.ts'
import { type Random, random } from '../support/random.ts'
import { workplace } from '../support/workplace.ts'

/** Replays one seed with `SEED=n bun test test/storage/simulation.test.ts`. */
const seeds =
  process.env['SEED'] === undefined ? Array.from({ length: 8 }, (_, i) => i + 1) : [Number(process.env['SEED'])]
const steps = 400
/** Small, so that segments are split often; of two letters that lie side by side, and a plain one on each side. */
const segments = { a: 40, b: 9000 }

/** An engine beside memory, opened again now and then as if its process had ended. */
interface Engine extends Disposable {
  open(): Promise<Store> | Store
}

async function doesWhatMemoryDoes(seed: number, engine: Engine): Promise<void> {
  using _engine = engine
  const chance = random(seed)
  const memory = openMemoryStore()
  let store = await engine.open()
  for (let step = 0; step < steps; step += 1) {
    if (chance.chance(0.02)) {
      await store.close()
      store = await engine.open()
    }
    const operation = pickOperation(chance)
    expect({ step, result: await outcome(operation, store) }).toEqual({
      step,
      result: await outcome(operation, memory),
    })
  }
  const everything = (one: Store) => one.range({ gte: Buffer.of(0), lt: Buffer.of(0xff, 0xff), limit: 100_000 })
  expect(plain(await everything(store))).toEqual(plain(await everything(memory)))
  await store.close()
}

for (const seed of seeds) {
  test(`LMDB does what memory does, whatever is asked (seed ${seed})`, () => {
    const place = workplace()
    return doesWhatMemoryDoes(seed, {
      open: () => openLmdbStore(join(place.folder, 'store'), segments),
      [Symbol.dispose]: place[Symbol.dispose],
    })
  })
}

describe.skipIf(!isHere('PostgreSQL'))('on a cluster of its own (needs PostgreSQL)', () => {
  let cluster: PostgresCluster
  beforeAll(async () => {
    cluster = await startPostgres()
  })
  afterAll(() => cluster.stop())

  for (const seed of seeds.slice(0, 2)) {
    test(`PostgreSQL does what memory does, whatever is asked (seed ${seed})`, async () => {
      const address = addressOf(await cluster.newDatabase())
      const open = () => openPostgresStore({ address, pool: 2, mayMigrate: true })
      await doesWhatMemoryDoes(seed, { open, [Symbol.dispose]() {} })
    })
  }
})

type Operation = (store: Store) => unknown

function pickOperation(chance: Random): Operation {
  const kind = chance.int(7)
  if (kind < 3) {
    const write = pickWrite(chance)
    return kind === 0 ? (store) => store.load(write) : (store) => store.commit(write)
  }
  if (kind === 3) {
    const keys = Array.from({ length: chance.int(6) }, () => pickKey(chance))
    return (store) => store.getMany(keys)
  }
  const range: Range = { gte: pickKey(chance), lt: pickKey(chance), limit: 1 + chance.int(12) }
  if (kind === 4) return (store) => store.range(range)
  if (kind === 5) return (store) => store.keys(range)
  return async (store) => {
    const { wrap, ...rest } = await store.concatValues(range)
    return plain({ ...rest, text: wrap('[', ']') })
  }
}

function pickWrite(chance: Random): Write {
  const some = <T>(most: number, make: () => T) => Array.from({ length: chance.int(most + 1) }, make)
  return {
    checks: chance.chance(0.7)
      ? []
      : some(2, () => ({ key: pickKey(chance), value: chance.chance(0.5) ? null : pickValue(chance) })),
    puts: some(8, () => ({ key: pickKey(chance), value: pickValue(chance) })),
    deletes: some(3, () => pickKey(chance)),
  }
}

/** Few letters, so that keys meet; some bytes that sort apart in text and in bytes. */
function pickKey(chance: Random): Buffer {
  const alphabet = [0x00, 0x61, 0x62, 0x7f, 0x80, 0xff]
  return Buffer.from(Array.from({ length: 1 + chance.int(3) }, () => chance.pick(alphabet)))
}

function pickValue(chance: Random): Buffer {
  return Buffer.alloc(chance.chance(0.1) ? chance.int(9000) : chance.int(4), chance.int(3))
}

async function outcome(operation: Operation, store: Store): Promise<unknown> {
  return plain(await operation(store))
}

function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('hex')
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key, plain(member)]))
}
