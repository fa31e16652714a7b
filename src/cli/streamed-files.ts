/**
 * `-` where a command takes a file. A backup and an import are read more than once, and a backup is made under a name
 * before it is whole, so each goes through a file in a folder for temporary files (TMPDIR), which only its owner reads.
 */

import {
  closeSync,
  createReadStream,
  createWriteStream,
  existsSync,
  openSync,
  readSync,
  rmSync,
  statSync,
} from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { isatty } from 'node:tty'
import { CommandError } from '../errors.ts'
import { writeWhole } from '../storage/write-whole.ts'
import { backUpCommand } from './backup.ts'
import { temporaryFolder } from './temporary-folder.ts'
import type { Terminal } from './terminal.ts'

type Kind = 'backup' | 'export'

/** Runs `work` on the file, or on all of stdin. Throws CommandError for a file of the other kind. */
export async function withInputFile(file: string, kind: Kind, work: (path: string) => Promise<void>): Promise<void> {
  if (file !== '-' && !existsSync(file)) return work(file)
  // What is no file in a folder can be read once only: a pipe, or a device that stands for stdin.
  if (file !== '-' && !isStream(file)) {
    expectKind(file, file, kind)
    return work(file)
  }
  const name = file === '-' ? 'stdin' : file
  await withTemporaryFile(async (path) => {
    const input = file === '-' ? process.stdin : createReadStream(file)
    await pipeline(input, createWriteStream(path, { mode: 0o600 }))
    expectKind(path, name, kind)
    try {
      await work(path)
    } catch (error) {
      if (!(error instanceof CommandError)) throw error
      throw new CommandError(error.message.replaceAll(path, name), error.exitCode, { cause: error })
    }
  })
}

/** A backup on stdout, and what is said of it on stderr. */
export async function backUpToStdout(flags: { readonly data: string }, { stderr }: Terminal): Promise<void> {
  if (isatty(1)) {
    throw new CommandError('a backup is not text for a terminal: send it elsewhere, as in `postern backup - > FILE`', 2)
  }
  await withTemporaryFile(async (path) => {
    let said = ''
    const stdout = (text: string) => {
      said += text.replaceAll(path, 'stdout')
    }
    await backUpCommand(path, flags, { stdout, stderr })
    try {
      for await (const bytes of createReadStream(path)) writeWhole(1, bytes)
    } catch (error) {
      throw new CommandError(`cannot write the backup to stdout: ${(error as Error).message}`, 1, { cause: error })
    }
    stderr(said)
  })
}

async function withTemporaryFile(work: (path: string) => Promise<void>): Promise<void> {
  const folder = temporaryFolder('postern-stream-')
  try {
    await work(join(folder, 'file'))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function isStream(file: string): boolean {
  const status = statSync(file)
  return !status.isFile() && !status.isDirectory()
}

const commands: Readonly<Record<Kind, string>> = { backup: 'postern restore', export: 'postern import' }

function expectKind(path: string, name: string, kind: Kind): void {
  const found = kindOf(path)
  if (found === undefined || found === kind) return
  throw new CommandError(`${name} is not ${article[kind]}, but ${article[found]}: read it with \`${commands[found]}\``)
}

const article: Readonly<Record<Kind, string>> = { backup: 'a backup', export: 'an export' }

/** LMDB's magic number, as the file of a store begins with after the head of its first page. */
const magic = Buffer.of(0xde, 0xc0, 0xef, 0xbe)

function kindOf(path: string): Kind | undefined {
  if (statSync(path).isDirectory()) return undefined
  const start = Buffer.alloc(64)
  const descriptor = openSync(path, 'r')
  try {
    readSync(descriptor, start, 0, start.length, 0)
  } finally {
    closeSync(descriptor)
  }
  if (start.includes(magic)) return 'backup'
  return start.toString('latin1').startsWith('{"postern":"export"') ? 'export' : undefined
}
