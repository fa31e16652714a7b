/** Checks before a private file or folder is trusted: its owner, its mode, and that it is not a symbolic link. */

import { lstatSync, type Stats } from 'node:fs'
import { CommandError } from '../errors.ts'

/** Throws CommandError for a link, another kind or owner, or a mode open to others. A missing path is accepted. */
export function requirePrivate(path: string, kind: 'file' | 'folder'): void {
  const found = lstatSync(path, { throwIfNoEntry: false })
  if (found === undefined) return
  if (found.isSymbolicLink()) {
    throw new CommandError(`${path} is a symbolic link, which is not followed: replace it with the ${kind} itself`)
  }
  requirePrivateStats(path, found, kind)
}

/** The same for what is open already, or known to be no link. */
export function requirePrivateStats(path: string, found: Stats, kind: 'file' | 'folder'): void {
  if (!(kind === 'file' ? found.isFile() : found.isDirectory())) {
    throw new CommandError(`${path} is not a ${kind}: move it away`)
  }
  requireOwn(path, found)
  if (hasModes && (found.mode & 0o077) !== 0) {
    const mode = kind === 'file' ? '600' : '700'
    throw new CommandError(`${path} is accessible to other users: run \`chmod ${mode} ${path}\``)
  }
}

/** Throws CommandError if another user owns the path, even for root: that user could replace what we trust. */
export function requireOwn(path: string, { uid }: Stats): void {
  if (hasModes && uid !== process.getuid?.()) {
    throw new CommandError(`${path} belongs to another user: run postern as its owner, or change the owner`)
  }
}

/** Windows has neither owners nor modes in this sense. */
const hasModes = process.getuid !== undefined
