/**
 * Backups: a copy of the store as it was at one moment, in one file, with the instance secret in it. The file is
 * itself a store of LMDB; restoring is putting it in place. It appears whole, under its name, or not at all.
 */

import {
  chmodSync,
  closeSync,
  copyFileSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { checkFile } from '../storage/lmdb/file-check.ts'
import { type Bytes, openBytes, openRoot } from '../storage/lmdb/root.ts'
import { StoreError } from '../storage/store.ts'

const secretKey = Buffer.from('instance-secret')

/** `store` is the folder of a store; a server may have it open. Throws StoreError `fatal` when it cannot be done. */
export async function backUp(store: string, file: string, secret: string): Promise<void> {
  const draft = mkdtempSync(join(dirname(file), '.postern-backup-'))
  try {
    const source = openRoot(store, { readOnly: true })
    try {
      await source.backup(draft, true)
    } finally {
      await source.close()
    }
    await withExtra(draft, (extra) => extra.put(secretKey, Buffer.from(secret)))
    const copy = join(draft, 'data.mdb')
    flush(copy)
    renameSync(copy, file)
    flush(dirname(file))
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** Makes the store's folder from a backup, and gives the instance secret. Throws StoreError `fatal`. */
export async function restore(file: string, store: string): Promise<string> {
  try {
    checkFile(file)
  } catch (error) {
    throw new StoreError('fatal', `${file} is not a backup of postern, or is damaged`, { cause: error })
  }
  // No dot: lmdb-js takes such a path for a file.
  const draft = `${store}-draft`
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { recursive: true })
  copyFileSync(file, join(draft, 'data.mdb'))
  chmodSync(join(draft, 'data.mdb'), 0o600)
  let secret: Uint8Array | undefined
  await withExtra(draft, (extra) => {
    secret = extra.get(secretKey)
    if (secret !== undefined) extra.remove(secretKey)
  })
  if (secret === undefined) {
    rmSync(draft, { recursive: true })
    throw new StoreError('fatal', `${file} is not a backup of postern`)
  }
  rmSync(join(draft, 'lock.mdb'), { force: true })
  flush(join(draft, 'data.mdb'))
  renameSync(draft, store)
  flush(dirname(store))
  return Buffer.from(secret).toString()
}

/** A database of its own, beside the records. */
async function withExtra(folder: string, use: (extra: Bytes) => void): Promise<void> {
  const root = openRoot(folder)
  try {
    const extra = openBytes(root, 'backup')
    // Nothing is returned: a transaction waits for a promise that its function gives back, and this one would never
    // come.
    root.transactionSync(() => {
      use(extra)
    })
  } finally {
    await root.close()
  }
}

function flush(path: string): void {
  if (!existsSync(path)) return
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
