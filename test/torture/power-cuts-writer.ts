/** Commits numbered values, some long, some deleted again, and writes a byte to another file for each that was acknowledged. */

import { openSync, writeSync } from 'node:fs'
import { openLmdbStore } from '../../src/storage/lmdb/store.ts'
import { random } from '../support/random.ts'

const [folder = '', acks = '', seed = '', commits = ''] = process.argv.slice(2)
const acknowledgements = openSync(acks, 'w')
const chance = random(Number(seed))
const store = openLmdbStore(folder)
for (let number = 0; number < Number(commits); number += 1) {
  const name = (n: number) => [`c${chance.pick(['a', 'z'])}\0${n}`, `o${n}`].map((key) => Buffer.from(key))
  // Both in a run and beside one.
  await store.commit({
    puts: [
      { key: Buffer.from('n'), value: Buffer.from(String(number + 1)) },
      ...name(number).map((key) => ({ key, value: Buffer.alloc(chance.pick([10, 700, 9000]), number) })),
    ],
    deletes: number > 4 && chance.chance(0.4) ? name(number - 1 - chance.int(4)) : [],
  })
  writeSync(acknowledgements, '.')
}
await store.close()
