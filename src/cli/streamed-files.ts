/**
 * `-` in place of a file. Backups and imports are read more than once, and a backup must be complete before it gets its
 * name. So stdin and stdout go through a temporary file (TMPDIR) that only its owner can read.
 */

import { createReadStream, createWriteStream, existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { isatty } from 'node:tty'
import { CommandError } from '../errors.ts'
import { writeWhole } from '../storage/write-whole.ts'
import { backUpCommand } from './backup-command.ts'
import { temporaryFolder } from './temporary-folder.ts'
import type { Terminal } from './terminal.ts'

/** Files that a command can confuse with each other. */
type Kind = 'backup' | 'export' | 'servers'

/** Runs `work` with the path of the file, or of a copy of stdin. Throws CommandError for a file of another kind. */
export async function withInputFile<T>(file: string, kind: Kind, work: (path: string) => T | Promise<T>): Promise<T> {
  if (file !== '-' && !existsSync(file)) throw new CommandError(`${file}: no such file`)
  // A pipe or device, such as /dev/stdin, can be read only once: copy it.
  if (file !== '-' && !isStream(file)) {
    await expectKind(file, file, kind)
    return work(file)
  }
  using folder = temporaryFolder('postern-stream-')
  const path = join(folder.path, 'file')
  const [name, input] = file === '-' ? ['stdin', process.stdin] : [file, createReadStream(file)]
  await pipeline(input, createWriteStream(path, { mode: 0o600 }))
  await expectKind(path, name, kind)
  try {
    return await work(path)
  } catch (error) {
    if (!(error instanceof CommandError)) throw error
    throw error.with(error.message.replaceAll(path, name))
  }
}

/** Writes a backup to stdout, and its messages to stderr. Throws CommandError if stdout is a terminal. */
export async function backUpToStdout(flags: { readonly data: string }, { stderr }: Terminal): Promise<void> {
  if (isatty(1))
    throw new CommandError('a backup is not text for a terminal: send it elsewhere, as in `postern backup - > FILE`', 2)
  using folder = temporaryFolder('postern-stream-')
  const path = join(folder.path, 'file')
  let said = ''
  const stdout = (text: string) => {
    said += text.replaceAll(path, 'stdout')
  }
  await backUpCommand(path, flags, { stdout, stderr, isStdoutClosed: () => false })
  try {
    for await (const bytes of createReadStream(path)) writeWhole(1, bytes)
  } catch (error) {
    throw new CommandError(`cannot write the backup to stdout: ${(error as Error).message}`, 1, { cause: error })
  }
  stderr(said)
}

/** True for anything that is neither a regular file nor a folder. */
function isStream(file: string): boolean {
  const status = statSync(file)
  return !status.isFile() && !status.isDirectory()
}

/** The name of each kind of file in messages, and the command that reads it. */
const kinds: Readonly<Record<Kind, readonly [called: string, command: string]>> = {
  backup: ['a backup', 'postern restore'],
  export: ['an export', 'postern import'],
  servers: ['a list of servers', 'postern server import'],
}

/** Throws CommandError if the file is recognizably of the other kind. An unknown file is left to the command itself. */
async function expectKind(path: string, name: string, kind: Kind): Promise<void> {
  const found = await kindOf(path)
  if (found === undefined || found === kind) return
  const [called, command] = kinds[found]
  throw new CommandError(`${name} is not ${kinds[kind][0]}, but ${called}: read it with \`${command}\``)
}

/** LMDB's magic number, found in the first page of a store, after the page header. */
const magic = Buffer.of(0xde, 0xc0, 0xef, 0xbe)

/** The kind of a file by its first 64 bytes; undefined if unknown. */
async function kindOf(path: string): Promise<Kind | undefined> {
  if (statSync(path).isDirectory()) return undefined
  const start = Buffer.from(await Bun.file(path).slice(0, 64).bytes())
  if (start.includes(magic)) return 'backup'
  return start.toString('latin1').startsWith('{"postern":"export"') ? 'export' : undefined
}
