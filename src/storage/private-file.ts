/**
 * What is private is looked at before it is trusted: whose it is, who else may read it, and whether it is what it
 * seems.
 */

import { lstatSync, type Stats } from 'node:fs'
import { CommandError } from '../errors.ts'

/** For a path that may be missing. Throws CommandError with what to do. */
export function requirePrivate(path: string, kind: 'file' | 'folder'): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (found.isSymbolicLink()) {
    throw new CommandError(`${path} is a symbolic link, which is not followed: replace it with the ${kind} itself`)
  }
  if (!(kind === 'file' ? found.isFile() : found.isDirectory())) {
    throw new CommandError(`${path} is not a ${kind}: move it away`)
  }
  requireOwn(path, found)
  if (hasModes && (found.mode & 0o077) !== 0) {
    const mode = kind === 'file' ? '600' : '700'
    throw new CommandError(`${path} is accessible to other users: run \`chmod ${mode} ${path}\``)
  }
}

/** The superuser too: what somebody else can replace is not ours to trust. Throws CommandError. */
export function requireOwn(path: string, { uid }: Stats): void {
  if (hasModes && uid !== process.getuid?.()) {
    throw new CommandError(`${path} belongs to another user: run postern as its owner, or change the owner`)
  }
}

/** Windows has neither. */
const hasModes = process.getuid !== undefined
