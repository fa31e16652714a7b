/** Prints the number of the last commit that the store holds, after reading every value in it. */

import { openLmdbStore } from '../../src/storage/lmdb/store.ts'

const store = openLmdbStore(process.argv[2] ?? '')
await store.range({ gte: Buffer.of(0), lt: Buffer.of(0xff), limit: 1_000_000 })
const number = await store.get(Buffer.from('n'))
console.log(number === undefined ? 0 : Buffer.from(number).toString())
await store.close()
