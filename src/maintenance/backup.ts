/**
 * Backups: one file with a snapshot of the store and the instance secret. The file is itself an LMDB store; to restore
 * is to copy it into place. The file appears under its name complete, or not at all.
 */

import {
  chmodSync,
  closeSync,
  copyFileSync,
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

/** Key of the secret in the backup's extra database. */
const secretKey = Buffer.from('instance-secret')

/**
 * Writes a backup of the store in the folder `store` to `file`; a server may have it open. `secret` is the text of the
 * instance secret. Throws StoreError and Error for what LMDB or the file system refuses.
 */
export async function backUp(store: string, file: string, secret: string): Promise<void> {
  const draft = mkdtempSync(join(dirname(file), '.postern-backup-'))
  try {
    // Read-only and compacted (`true`): the copy is a consistent snapshot, and free pages are left out.
    const source = openRoot(store, { readOnly: true })
    try {
      await source.backup(draft, true)
    } finally {
      await source.close()
    }
    await withExtra(draft, (extra) => extra.put(secretKey, Buffer.from(secret)))
    // Flush the file before the rename and the folder after it, so that a crash leaves either no file or a whole one.
    const copy = join(draft, 'data.mdb')
    flush(copy)
    renameSync(copy, file)
    flush(dirname(file))
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

/** Creates the folder `store` from a backup. Resolves with its secret. Throws StoreError `fatal` for a bad backup. */
export async function restore(file: string, store: string): Promise<string> {
  try {
    checkFile(file)
  } catch (error) {
    throw new StoreError('fatal', `${file} is not a backup of postern, or is damaged`, { cause: error })
  }
  // No dot in the name: lmdb-js takes a path with an extension for a file.
  const draft = `${store}-draft`
  rmSync(draft, { recursive: true, force: true })
  mkdirSync(draft, { recursive: true })
  copyFileSync(file, join(draft, 'data.mdb'))
  chmodSync(join(draft, 'data.mdb'), 0o600)
  let secret: Uint8Array | undefined
  await withExtra(draft, (extra) => {
    // Remove the secret from the store: it belongs in its own file.
    secret = extra.get(secretKey)
    if (secret !== undefined) extra.remove(secretKey)
  })
  if (secret === undefined) {
    rmSync(draft, { recursive: true })
    throw new StoreError('fatal', `${file} is not a backup of postern`)
  }
  // The lock file belongs to this opening; the next one creates its own.
  rmSync(join(draft, 'lock.mdb'), { force: true })
  flush(join(draft, 'data.mdb'))
  renameSync(draft, store)
  flush(dirname(store))
  return Buffer.from(secret).toString()
}

/** Opens the extra database of a backup, next to the records, for one transaction. */
async function withExtra(folder: string, use: (extra: Bytes) => void): Promise<void> {
  const root = openRoot(folder)
  try {
    const extra = openBytes(root, 'backup')
    // Return nothing: lmdb awaits a returned promise, and put()'s promise settles only after the transaction.
    root.transactionSync(() => {
      use(extra)
    })
  } finally {
    await root.close()
  }
}

function flush(path: string): void {
  const descriptor = openSync(path, 'r')
  try {
    fsyncSync(descriptor)
  } finally {
    closeSync(descriptor)
  }
}
