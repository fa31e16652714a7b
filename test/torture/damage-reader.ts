/** Reads every key of a list from a store, and counts what is not as it was written. */

import { openLmdbStore } from '../../src/storage/lmdb/store.ts'

const [folder = '', written = ''] = process.argv.slice(2)
const store = openLmdbStore(folder)
let wrong = 0
let gone = 0
let errors = 0
for (const [key, hash] of (await Bun.file(written).json()) as [string, string][]) {
  try {
    const value = await store.get(Buffer.from(key, 'hex'))
    if (value === undefined) gone += 1
    else if (String(Bun.hash(value)) !== hash) wrong += 1
  } catch {
    errors += 1
  }
}
console.log(JSON.stringify({ wrong, gone, errors }))
process.exit(0)
