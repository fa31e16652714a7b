/** `postern export` and `postern import`: records as JSON lines. */

import { createHash } from 'node:crypto'
import { closeSync, existsSync, openSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError } from '../errors.ts'
import {
  lockForServing,
  madeFolder,
  type NamedFolder,
  openExistingDataFolder,
  openNamedDataFolder,
  type Place,
} from '../maintenance/data-folder.ts'
import { exportLines } from '../maintenance/export.ts'
import { importFile } from '../maintenance/import.ts'
import { oneLine } from '../ops/escape-control.ts'
import { scanStore } from '../storage/lmdb/scan.ts'
import { scanDatabase } from '../storage/postgres/scan.ts'
import { isAnythingStaged, removeStaged } from '../storage/staged.ts'
import { type Store, StoreError } from '../storage/store.ts'
import { writeWhole } from '../storage/write-whole.ts'
import { auditCommand } from './audit.ts'
import { countText } from './count-text.ts'
import { leavingNothing } from './leaving-nothing.ts'
import { commandProgress } from './progress.ts'
import type { Terminal } from './terminal.ts'

/** Exports all records to a new file, or to stdout if `file` is undefined. Throws CommandError and StoreError. */
export async function exportCommand(file: string | undefined, place: Place, terminal: Terminal): Promise<void> {
  if (file !== undefined && existsSync(file))
    throw new CommandError(`${file} already exists: choose another name (nothing was overwritten)`)
  const { data } = place
  const { store, database, secrets } = await openExistingDataFolder(place, terminal.stderr)
  const scan = database === undefined ? scanStore(join(data, 'store')) : scanDatabase(database)
  // A folder was opened only to read the secret; the scan opens the store itself.
  if (database === undefined) await store.close()
  // Written under another name, so that `file` appears complete or not at all. `wx`: never overwrites.
  const draft = `${file}.part`
  const output = file === undefined ? 1 : openSync(draft, 'wx', 0o600)
  const progress = commandProgress(terminal)
  let lines = 0
  const write = (some: readonly string[]) => {
    writeWhole(output, Buffer.from(`${some.join('\n')}\n`))
    lines += some.length
    progress.step('exporting', lines)
  }
  let gone: string[] = []
  try {
    gone = await exportLines(scan, secretName(secrets.apiKeyPepper), write)
    if (file !== undefined) {
      closeSync(output)
      renameSync(draft, file)
    }
  } catch (error) {
    if (file !== undefined) rmSync(draft, { force: true })
    // The reader closed the pipe, as `head` does: not an error.
    if ((error as NodeJS.ErrnoException).code === 'EPIPE') return
    if (error instanceof StoreError) throw error
    throw new CommandError(`cannot write ${file ?? 'to stdout'}: ${(error as Error).message}`, 1, { cause: error })
  } finally {
    await database?.close()
  }
  progress.end()
  // Two lines are not records: the head and the end.
  const records = lines - 2
  await auditCommand(data, 'data.exported', { records })
  if (gone.length > 0)
    terminal.stderr(
      `the export has connections of ${gone.map(oneLine).join(', ')}, but not the namespace: create it before you import, ` +
        'or delete their lines from the export\n',
    )
  if (file !== undefined) terminal.stdout(`wrote ${countText(records, 'record')} to ${file}\n`)
}

/**
 * Imports a file, all or nothing. Creates the data folder only if the operator named it, and removes it again if the
 * import fails. Throws CommandError and StoreError.
 */
export async function importCommand(file: string, flags: NamedFolder, terminal: Terminal): Promise<void> {
  const { data } = flags
  const progress = commandProgress(terminal)
  const { records, leftOut, isNew } = await leavingNothing(data, async () => {
    await using folder = await openNamedDataFolder(flags, terminal.stderr)
    const { store, database, secrets, isNew } = folder
    if (database !== undefined) await database.exclusively(() => removeStaged(database))
    else if (await isAnythingStaged(store)) await removeInterruptedLoad(data, store)
    const options = { secret: secretName(secrets.apiKeyPepper), folder: data, onProgress: progress.step }
    return { ...(await importFile(store, file, options)), isNew }
  })
  progress.end()
  await auditCommand(data, 'data.imported', { records })
  terminal.stdout(`imported ${countText(records, 'record')}\n`)
  if (isNew) terminal.stderr(madeFolder(data))
  if (leftOut > 0) {
    const instead = isNew
      ? 'or put that secret into an empty folder and import there (`postern docs upgrade`)'
      : 'and keep the instance secret of this folder: without it, nothing here can be opened'
    terminal.stderr(
      `left out ${countText(leftOut, 'API key')}: an export has only their hashes, which need the instance secret of the folder that they come from. Make new keys with \`postern keys create\`, ${instead}\n`,
    )
  }
}

/** Removes what an interrupted load left. Throws CommandError if a server, which may be loading, holds the lock. */
async function removeInterruptedLoad(data: string, store: Store): Promise<void> {
  try {
    using _lock = lockForServing(data)
    await removeStaged(store)
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    throw error.with('a server uses this folder, and may be loading fixtures: wait or stop it, and import again')
  }
}

/** Identifies the instance without revealing its secret: a truncated hash of a key derived from it. */
function secretName(pepper: Buffer): string {
  return createHash('sha256').update('export ').update(pepper).digest('hex').slice(0, 16)
}
