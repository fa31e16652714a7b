/** `postern backup` and `postern restore`: a data folder to one file, and back. */

import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { systemClock, timestampOf } from '../clock.ts'
import { CommandError } from '../errors.ts'
import { backUp, restore } from '../maintenance/backup.ts'
import { type Place, requireDataFolder } from '../maintenance/data-folder.ts'
import { requireOwn } from '../storage/private-file.ts'
import { StoreError } from '../storage/store.ts'
import { auditCommand } from './audit.ts'
import { leavingNothing } from './leaving-nothing.ts'
import type { Terminal } from './terminal.ts'
import { verify } from './verify-command.ts'

/** Writes a backup of all that is committed; a server may be running. Overwrites no file. Throws CommandError. */
export async function backUpCommand(file: string, { data }: Pick<Place, 'data'>, { stdout }: Terminal): Promise<void> {
  requireDataFolder(data)
  if (existsSync(file)) throw new CommandError(`${file} already exists: choose another name (nothing was overwritten)`)
  const folder = dirname(resolve(file))
  if (!existsSync(folder)) throw new CommandError(`cannot write ${file}: there is no folder ${folder}`)
  process.umask(0o077)
  // It holds what was committed by then: a revocation that comes while it is written is not in it.
  const began = timestampOf(systemClock)
  await asCommandError(`cannot write ${file}`, () =>
    backUp(join(data, 'store'), resolve(file), readFileSync(join(data, 'instance-secret'), 'utf8').trim()),
  )
  await auditCommand(data, 'backup.made', { began })
  const { size } = statSync(file)
  const shown = size < 1e6 ? `${Math.ceil(size / 1e3)} kB` : `${Math.round(size / 1e6)} MB`
  stdout(
    `${file} holds the store of ${data} and its secrets (${shown}): keep it as safe as the folder. The logs are not in it\n`,
  )
}

/** Fills a missing or empty data folder from a backup and verifies it; a failure leaves it so. Throws CommandError. */
export async function restoreCommand(file: string, { data }: Pick<Place, 'data'>, terminal: Terminal): Promise<void> {
  if (existsSync(data) && readdirSync(data).length > 0)
    throw new CommandError(`${data} is not empty: choose a new folder with --data (nothing was overwritten)`)
  process.umask(0o077)
  await leavingNothing(data, async () => {
    await asCommandError(`cannot restore ${file}`, async () => {
      mkdirSync(data, { recursive: true, mode: 0o700 })
      requireOwn(data, statSync(data))
      chmodSync(data, 0o700)
      const secret = await restore(file, join(data, 'store'))
      writeFileSync(join(data, 'instance-secret'), `${secret}\n`, { mode: 0o600, flush: true })
    })
    // The backup's disk may have damaged it: better to know now. The index is rebuilt if it does not match, and what
    // was not valid when the backup was made is no reason to be without the rest.
    await verify({ data, repair: true, isRestored: true }, terminal).catch((error: unknown) => {
      if (!(error instanceof CommandError)) throw error
      const problems = error.message.replace(/\nrestore a backup$/, '')
      throw error.with(`${problems}\n${file} is damaged, and nothing was restored: use another backup`)
    })
  })
  await auditCommand(data, 'backup.restored', {})
  terminal.stdout(
    `${data} is as it was when the backup was made; start it with \`postern serve --data ${data}\`, and with the --base-url that it had\n` +
      'Access that somebody took away since then is valid again: before you start it, read "Back up and restore" in `postern docs operating`\n',
  )
}

/** Turns errors of the store and the file system into CommandError; `what` begins the message of the latter. */
async function asCommandError(what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work()
  } catch (error) {
    const message = (error as Error).message
    if (error instanceof CommandError) throw error
    throw new CommandError(error instanceof StoreError ? message : `${what}: ${message}`, 1, { cause: error })
  }
}
