/**
 * LMDB's native addon, which the executable carries. Code is loaded from files only: from one in memory, or else one in
 * the store's own folder, never from a place where other users could put a file first.
 */

import { dlopen, ptr } from 'bun:ffi'
import { chmodSync, closeSync, lstatSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Folder for the addon if there are no in-memory files: the folder of the store that is being opened. */
let unpackFolder = '.'

/** Must be called before the addon is loaded, which happens once per process. */
export function unpackAddonIn(folder: string): void {
  unpackFolder = folder
}

/** `carried` is the path of the addon inside the executable. The build replaces lmdb's own loader by this function. */
export function loadAddon(carried: string): unknown {
  const bytes = readFileSync(carried)
  return inMemory(bytes) ?? load(unpack(bytes, unpackFolder))
}

/** Loads from a memfd. Undefined if the system has none, or does not execute code from it. */
function inMemory(bytes: Buffer): unknown {
  if (process.platform !== 'linux') return undefined
  let descriptor = -1
  try {
    // glibc's file name; musl resolves it too.
    const libc = dlopen('libc.so.6', { memfd_create: { args: ['ptr', 'u32'], returns: 'i32' } })
    descriptor = libc.symbols.memfd_create(ptr(Buffer.from('lmdb.node\0')), closedByPrograms)
    if (descriptor < 0) return undefined
    writeFileSync(descriptor, bytes)
    return load(`/proc/self/fd/${descriptor}`)
  } catch {
    return undefined
  } finally {
    // The loaded mapping remains after the descriptor is closed.
    if (descriptor >= 0) closeSync(descriptor)
  }
}

/** MFD_CLOEXEC: child processes do not inherit the descriptor. */
const closedByPrograms = 1

/**
 * Writes the addon to `folder`, which must be private, and returns its path. Its name has a hash of the content, for
 * two versions at once. An existing file is used only if we own it and its bytes are the same.
 */
export function unpack(bytes: Buffer, folder: string): string {
  const digest = new Bun.CryptoHasher('sha256').update(bytes).digest('hex').slice(0, 32)
  const file = join(folder, `lmdb-${digest}.node`)
  if (isIntact(file, bytes)) return file
  const draft = `${file}.${process.pid}`
  try {
    rmSync(draft, { force: true })
    writeFileSync(draft, bytes, { flag: 'wx', mode: 0o500 })
    // A process may mask bits of the mode above.
    chmodSync(draft, 0o500)
    renameSync(draft, file)
  } catch (error) {
    rmSync(draft, { force: true })
    // Another process may have unpacked it at the same time and removed our draft.
    if (isIntact(file, bytes)) return file
    throw new Error(`LMDB's library cannot be unpacked to ${file}: ${(error as Error).message}`, { cause: error })
  }
  // Remove files of other versions, and drafts of killed processes. A loaded addon stays mapped.
  for (const name of readdirSync(folder)) {
    if (/^lmdb-[0-9a-f]{32}\.node/.test(name) && join(folder, name) !== file) rmSync(join(folder, name))
  }
  return file
}

/** True for a regular file with these bytes that we own and no one else may write. */
function isIntact(file: string, bytes: Buffer): boolean {
  const found = lstatSync(file, { throwIfNoEntry: false })
  if (found === undefined || !found.isFile() || found.size !== bytes.length) return false
  const isSelf = process.getuid === undefined || (found.uid === process.getuid() && (found.mode & 0o022) === 0)
  return isSelf && readFileSync(file).equals(bytes)
}

function load(file: string): unknown {
  const module = { exports: {} }
  try {
    process.dlopen(module, file)
  } catch (error) {
    const { message } = error as Error
    throw new Error(`LMDB's library cannot be loaded: ${message}${adviceOn(message)}`, { cause: error })
  }
  return module.exports
}

/** A remedy for the two loader errors that operators meet: noexec and missing C++ libraries. */
function adviceOn(message: string): string {
  if (message.includes('failed to map segment'))
    return '; its file system is mounted noexec: choose another folder with --data'
  const [missing] = /lib(?:stdc\+\+|gcc_s)[^:]*(?=: cannot open)/.exec(message) ?? []
  return missing === undefined ? '' : `; install ${missing}, which it needs`
}
