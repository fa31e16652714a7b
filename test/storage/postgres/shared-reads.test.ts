/** Reads that share statements: fresh for each caller, few for all, and none waits for ever. */

import { expect, test } from 'bun:test'
import { sharedReadKeysMax } from '../../../src/limits.ts'
import { directoryVersionKey, keyOf, listingKey } from '../../../src/storage/keys.ts'
import { createRecords } from '../../../src/storage/postgres/records.ts'
import { createSharedReads } from '../../../src/storage/postgres/shared-reads.ts'
import type { Statements } from '../../../src/storage/postgres/statements.ts'
import { clockOf } from '../../support/clock.ts'
import { random } from '../../support/random.ts'

const named = (name: string) => Buffer.from(name)
const settled = () => new Promise((resolve) => setImmediate(resolve))

/** A database whose statements take as long as the test wants. */
function database() {
  const values = new Map<string, string>()
  const statements: { readonly keys: string[]; end: (error?: Error) => void }[] = []
  const read = (keys: readonly Uint8Array[]) => {
    const names = keys.map((key) => Buffer.from(key).toString())
    // As of the beginning of the statement.
    const found = names.map((name) => values.get(name)).map((one) => (one === undefined ? undefined : Buffer.from(one)))
    const { promise, resolve, reject } = Promise.withResolvers<(Buffer | undefined)[]>()
    statements.push({ keys: names, end: (error) => (error === undefined ? resolve(found) : reject(error)) })
    return promise
  }
  return {
    values,
    statements,
    shared: createSharedReads(
      read,
      clockOf(() => 0),
    ),
  }
}
const textsOf = (values: readonly (Uint8Array | undefined)[]) => values.map((one) => one && Buffer.from(one).toString())

test('who asks in one turn shares a statement; who asks meanwhile shares the next', async () => {
  const { values, statements, shared } = database()
  values.set('a', '1')
  const first = Promise.all([shared([named('a')]), shared([named('b'), named('a')])])
  await settled()
  expect(statements.map(({ keys }) => keys)).toEqual([['a', 'b']])
  values.set('a', '2')
  const later = Promise.all([shared([named('a')]), shared([named('a')]), shared([named('c')])])
  await settled()
  expect(statements).toHaveLength(1)
  statements[0]?.end()
  expect((await first).map(textsOf)).toEqual([['1'], [undefined, '1']])
  await settled()
  expect(statements.map(({ keys }) => keys)[1]).toEqual(['a', 'c'])
  statements[1]?.end()
  // Not what the first statement saw, which began before they asked.
  expect((await later).map(textsOf)).toEqual([['2'], ['2'], [undefined]])
})

test('a statement that fails fails for those who share it, and for nobody else', async () => {
  const { values, statements, shared } = database()
  values.set('a', '1')
  const first = shared([named('a')]).catch((error: Error) => error.message)
  await settled()
  const second = shared([named('a')])
  statements[0]?.end(new Error('lost'))
  expect(await first).toBe('lost')
  await settled()
  statements[1]?.end()
  expect(textsOf(await second)).toEqual(['1'])
  const third = shared([named('a')])
  await settled()
  statements[2]?.end()
  expect(textsOf(await third)).toEqual(['1'])
})

test('only small records share: large ones, and very many, have statements of their own, and hold nobody up', async () => {
  const asked: { readonly isLarge: boolean; readonly keys: number; end: () => void }[] = []
  const readAs = (isLarge: boolean) =>
    (async (_, values = []) => {
      const { promise, resolve } = Promise.withResolvers<[]>()
      asked.push({ isLarge, keys: String(values[0]).split(',').length, end: () => resolve([]) })
      return promise
    }) as Statements['read']
  const records = createRecords(
    { read: readAs(false), readLarge: readAs(true) },
    clockOf(() => 0),
  )
  const answered: string[] = []
  const ask = (name: string, keys: readonly Uint8Array[]) =>
    records.getMany(keys).then(() => {
      answered.push(name)
    })
  const all = [
    ask(
      'many',
      Array.from({ length: sharedReadKeysMax + 1 }, (_, i) => keyOf('namespace', String(i))),
    ),
    ask(
      'servers',
      Array.from({ length: sharedReadKeysMax }, (_, i) => keyOf('server', `a/${i}`)),
    ),
    ask('connection', [keyOf('connection', 'a', 'b'), keyOf('connectionPrivate', 'a', 'b')]),
    ask('page', [directoryVersionKey, listingKey('a/b')]),
    ask('version', [directoryVersionKey]),
    ask('key', [keyOf('apiKeyDigest', 'a'), keyOf('revocation', 'b')]),
  ]
  await settled()
  const [small, ...others] = asked.toSorted((one, other) => Number(one.isLarge) - Number(other.isLarge))
  expect(small).toMatchObject({ isLarge: false, keys: 3 })
  expect(others.map(({ isLarge, keys }) => [isLarge, keys])).toEqual([
    [true, sharedReadKeysMax + 1],
    [true, sharedReadKeysMax],
    [true, 2],
    [true, 2],
  ])
  small?.end()
  await settled()
  expect(answered).toEqual(['version', 'key'])
  for (const { end } of others) end()
  await Promise.all(all)
})

test('whatever order things happen in, a caller sees each write that ended before it asked', async () => {
  const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
  const chance = random(seed)
  const { values, statements, shared } = database()
  let ended = 0
  const seen: Promise<void>[] = []
  for (let step = 0; step < 5000; step += 1) {
    if (chance.chance(0.3)) values.set('n', String(step))
    else if (chance.chance(0.6)) {
      const least = Number(values.get('n') ?? -1)
      seen.push(
        shared([named('n')]).then((found) => {
          expect({ seed, isFresh: Number(textsOf(found)[0] ?? -1) >= least }).toEqual({ seed, isFresh: true })
        }),
      )
    } else if (ended < statements.length) {
      statements[ended]?.end()
      ended += 1
    }
    if (chance.chance(0.3)) await settled()
  }
  const asked = seen.length
  for (let open = true; open; ) {
    await settled()
    open = ended < statements.length
    for (; ended < statements.length; ended += 1) statements[ended]?.end()
  }
  await Promise.all(seen)
  expect(statements.length).toBeLessThan(asked)
})
