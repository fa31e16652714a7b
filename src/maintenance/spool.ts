/**
 * Entries that wait, and are given back in the order of their keys: writing a tree in key order is several times
 * faster. A million take no memory to speak of, because SQLite keeps and sorts them in a temporary file. That has no
 * name, so the system deletes it when the process ends, even if it is killed.
 */

import { Database } from 'bun:sqlite'
import { CommandError } from '../errors.ts'
import type { Entry, Key } from '../storage/store.ts'

/** Kilobytes that SQLite keeps in memory. Past it: in the file. */
const cacheKilobytes = 16 * 1024

/** Dispose it to delete the file. Entries can be read until then. */
export class Spool implements Disposable {
  length = 0
  /** Of all values. */
  bytes = 0
  readonly #database: Database
  readonly #insert

  /** `folder`: of the file; left out: entries are in memory. */
  constructor(folder?: string) {
    this.#database = new Database(':memory:')
    if (folder !== undefined) this.#database.run(`PRAGMA temp_store_directory = '${folder.replaceAll("'", "''")}'`)
    this.#database.run(`PRAGMA temp_store = ${folder === undefined ? 'MEMORY' : 'FILE'}`)
    this.#database.run(`PRAGMA temp.cache_size = -${cacheKilobytes}`)
    this.#database.run('PRAGMA temp.journal_mode = OFF')
    this.#database.run('CREATE TEMP TABLE entries (key BLOB, value BLOB)')
    this.#database.run('BEGIN')
    this.#insert = this.#database.prepare('INSERT INTO entries VALUES (?, ?)')
  }

  /** Throws CommandError if the file cannot be written. */
  add(key: Key, value: Uint8Array = nothing): void {
    try {
      this.#insert.run(key, value)
    } catch (error) {
      throw unwritable(error)
    }
    this.length += 1
    this.bytes += value.length
  }

  /** All entries; those of one key as they were added. Throws CommandError if there is no room for sorting them. */
  *inOrder(): Generator<Entry> {
    try {
      yield* this.#database.prepare<Entry, []>('SELECT key, value FROM entries ORDER BY key, rowid').iterate()
    } catch (error) {
      throw unwritable(error)
    }
  }

  keys(): Iterable<Key> {
    return this.inOrder().map(({ key }) => key)
  }

  [Symbol.dispose](): void {
    this.#database.close()
  }
}

const nothing = new Uint8Array(0)

function unwritable(error: unknown): CommandError {
  return new CommandError(`cannot write to the data folder: ${(error as Error).message}`, 1, { cause: error })
}
