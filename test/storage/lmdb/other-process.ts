/** Commits each line of stdin under the key `n`, and says so. */

import { openLmdbStore } from '../../../src/storage/lmdb/store.ts'

const store = openLmdbStore(process.argv[2] ?? '')
for await (const line of console) {
  await store.commit({ puts: [{ key: Buffer.from('n'), value: Buffer.from(line) }] })
  console.log('committed')
}
await store.close()
