/** Copies a whole store, secrets too, between folders and databases, and compares it before anybody can use it. */

import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError } from '../errors.ts'
import { asBuffer } from '../storage/bytes.ts'
import { intact, type Scan, scanStore } from '../storage/lmdb/scan.ts'
import { openLmdbStore } from '../storage/lmdb/store.ts'
import { scanWith } from '../storage/postgres/scan.ts'
import type { PostgresStore } from '../storage/postgres/store.ts'
import { insertEntries } from '../storage/postgres/write.ts'
import type { Entry } from '../storage/store.ts'

/** Writes what a source has, all or nothing, if it is empty. Throws CommandError if it is not. */
export type Target = (source: Scan) => Promise<Copied>

/** The figures in which equal stores agree. `sha256`: over keys and values in the order of a scan, in hex. */
export type Copied = Awaited<ReturnType<typeof sumOf>>

/** `store`: the folder of a store, which is made. It appears complete or not at all. */
export function toFolder(store: string): Target {
  return async (source) => {
    if (existsSync(store)) throw new CommandError(`${store} already exists: name a new folder with --to`)
    // No dot in the name: lmdb-js takes a path with an extension for a file.
    const draft = `${store}-draft`
    rmSync(draft, { recursive: true, force: true })
    mkdirSync(draft, { recursive: true })
    try {
      const opened = openLmdbStore(draft)
      const given = await sumOf(source, (puts) => opened.load({ puts }))
      await opened.close()
      const copied = requireSame(given, await sumOf(scanStore(draft)))
      rmSync(join(draft, 'lock.mdb'), { force: true })
      renameSync(draft, store)
      return copied
    } finally {
      rmSync(draft, { recursive: true, force: true })
    }
  }
}

/**
 * In one transaction, rolled back unless it reads what was given. `check`: of the source's instance secret
 * (`secretCheckOf`); it replaces the check of the empty database.
 */
export function toDatabase(database: PostgresStore, check: Uint8Array): Target {
  return (source) =>
    database.transaction('BEGIN', async (run) => {
      await run('LOCK TABLE postern_records IN EXCLUSIVE MODE')
      if ((await run('SELECT 1 FROM postern_records LIMIT 1')).length > 0) {
        throw new CommandError('the database of --to is not empty: name an empty one')
      }
      const given = await sumOf(source, (entries) => insertEntries(run, entries))
      await run('UPDATE postern_instance SET secret_check = $1', [asBuffer(check)])
      return requireSame(given, await sumOf(scanWith(run)))
    })
}

function requireSame(given: Copied, written: Copied): Copied {
  if (given.records === written.records && given.sha256 === written.sha256) return written
  throw new CommandError(
    `the copy has ${written.records} of ${given.records} records, or differs in one, so nothing was kept: try again`,
  )
}

/** Passes all entries to `take`. Lengths stand before keys and values, so that no two stores have the same sum. */
async function sumOf(scan: Scan, take?: (entries: readonly Entry[]) => Promise<unknown>) {
  const hash = createHash('sha256')
  let records = 0
  const length = Buffer.alloc(8)
  await scan(async (scanned) => {
    const entries = intact(scanned)
    for (const { key, value } of entries) {
      records += 1
      length.writeUInt32BE(key.length, 0)
      length.writeUInt32BE(value.length, 4)
      hash.update(length).update(key).update(value)
    }
    await take?.(entries)
  })
  return { records, sha256: hash.digest('hex') }
}
