/** Fixture files on disk: finding them, reading them, and a digest to detect changes. */

import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError } from '../../errors.ts'

/** A fixture file, and its name in messages. Read when it is needed: a large set does not fit in memory. */
export interface SourceFile {
  readonly file: string
  read(): Uint8Array
}

/** The `*.json` but `*.schema.json` of each folder, sorted. Throws CommandError where there is none to read. */
export function findFixtureFiles(folders: readonly string[]): string[] {
  return folders.flatMap((folder) => {
    const names = namesIn(folder).filter((name) => name.endsWith('.json') && !name.endsWith('.schema.json'))
    if (names.length === 0) throw new CommandError(`there is no *.json file in ${folder}`)
    return names.sort().map((name) => join(folder, name))
  })
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch (error) {
    const { code = '', message } = error as NodeJS.ErrnoException
    const why = folderProblems[code] ?? message
    throw new CommandError(`cannot read the fixtures folder ${JSON.stringify(folder)}: ${why}`, 1, { cause: error })
  }
}

const folderProblems: Readonly<Record<string, string>> = {
  ENOENT: 'it is not there',
  ENOTDIR: 'it is a file: name the folder that it is in',
}

/** A file on disk. `read` throws CommandError. */
export function sourceFile(file: string): SourceFile {
  return {
    file,
    read() {
      try {
        return readFileSync(file)
      } catch (error) {
        throw new CommandError(`cannot read ${file}: ${(error as Error).message}`, 1, { cause: error })
      }
    },
  }
}

/**
 * A digest of names and bytes, equal if nothing was changed. It detects edits; it does not protect against forgery.
 * `fixtures 2` is the version of the format: raising it makes every store load its fixtures again.
 */
export function digestOf(sources: Iterable<SourceFile>): string {
  const files = [...sources].map(({ file, read }) => `${file}\0${Bun.hash.xxHash3(read())}`)
  return Bun.SHA256.hash(`fixtures 2\0${files.join('\0')}`, 'hex')
}
