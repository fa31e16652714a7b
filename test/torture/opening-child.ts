/**
 * For `opened.ts`. `write FOLDER OPENINGS how`: commits to a store while so many processes open it, and prints what
 * became of the commits. `guarded FOLDER` opens the store as postern does, `bare FOLDER` as lmdb-js alone does.
 */

import { open } from 'lmdb'
import { openLmdbStore } from '../../src/storage/lmdb/store.ts'

const [role = '', folder = '', openings = '0', how = ''] = process.argv.slice(2)
if (role === 'bare') await open({ path: folder, overlappingSync: false, maxReaders: 512, maxDbs: 4 }).close()
else if (role === 'guarded') await openLmdbStore(folder).close()
else console.log(JSON.stringify(await writeWhileOthersOpen(Number(openings))))

async function writeWhileOthersOpen(openings: number) {
  const store = openLmdbStore(folder)
  const key = (number: number) => Buffer.from(`n${number}`)
  const acknowledged: number[] = []
  let [begun, opened, steppedBack, last] = [0, 0, 0, 0]
  let isOver = false
  const write = async () => {
    while (!isOver) {
      const number = begun
      begun += 1
      await store.commit({ puts: [{ key: key(number), value: Buffer.from('x') }] })
      acknowledged.push(number)
      const transaction = store.local?.commitCount() ?? 0
      if (transaction < last) steppedBack += 1
      last = transaction
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  const openIt = async () => {
    while (opened < openings) {
      opened += 1
      await Bun.spawn([process.execPath, import.meta.path, how, folder], { stdin: 'ignore' }).exited
    }
  }
  const writing = Promise.all([write(), write(), write()])
  await Promise.all([openIt(), openIt(), openIt()])
  isOver = true
  await writing
  const lost = (await store.getMany(acknowledged.map(key))).filter((value) => value === undefined).length
  await store.close()
  return { acknowledged: acknowledged.length, lost, steppedBack }
}
