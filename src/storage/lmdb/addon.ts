/**
 * LMDB's native addon, which the executable carries. The system loads code from files only, so it becomes a file in
 * memory that has no name, or else one in the store's own folder: never one where others can put theirs first.
 */

import { dlopen, ptr } from 'bun:ffi'
import {
  closeSync,
  constants,
  fchmodSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { join } from 'node:path'
import { writeWhole } from '../write-whole.ts'

/** Where the addon goes when there are no files in memory: the folder of the store that is being opened. */
let unpackFolder = '.'

/** To be called before the addon is loaded, which happens once in a process. */
export function unpackAddonIn(folder: string): void {
  unpackFolder = folder
}

/** `carried` is the addon's path inside the executable. The build calls this in the place of lmdb's own loader. */
export function loadAddon(carried: string): unknown {
  const bytes = readFileSync(carried)
  return inMemory(bytes) ?? load(unpack(bytes, unpackFolder))
}

/** Undefined where the system has no such files, or does not let code run from them. */
function inMemory(bytes: Buffer): unknown {
  if (process.platform !== 'linux') return undefined
  let descriptor = -1
  try {
    // The name of glibc, which musl knows too.
    const libc = dlopen('libc.so.6', { memfd_create: { args: ['ptr', 'u32'], returns: 'i32' } })
    descriptor = libc.symbols.memfd_create(ptr(Buffer.from('lmdb.node\0')), closedByPrograms)
    if (descriptor < 0) return undefined
    writeWhole(descriptor, bytes)
    return load(`/proc/self/fd/${descriptor}`)
  } catch {
    return undefined
  } finally {
    // What was loaded stays.
    if (descriptor >= 0) closeSync(descriptor)
  }
}

/** MFD_CLOEXEC: a program that this one starts does not have it. */
const closedByPrograms = 1

/**
 * The addon as a file of `folder`, which must be for its owner only, and its path. Its name says its content, so that
 * two versions do not take each other's. One that is there is taken when it is ours, and these very bytes.
 */
export function unpack(bytes: Buffer, folder: string): string {
  const digest = new Bun.CryptoHasher('sha256').update(bytes).digest('hex').slice(0, 32)
  const file = join(folder, `lmdb-${digest}.node`)
  if (isIntact(file, bytes)) return file
  const draft = `${file}.${process.pid}`
  try {
    rmSync(draft, { force: true })
    writeNew(draft, bytes)
    renameSync(draft, file)
  } catch (error) {
    rmSync(draft, { force: true })
    // Another process may have unpacked it meanwhile, and removed our draft.
    if (isIntact(file, bytes)) return file
    throw new Error(`LMDB's library cannot be unpacked to ${file}: ${(error as Error).message}`, { cause: error })
  }
  // Of other versions, and drafts of a process that was killed. What is loaded stays.
  for (const name of readdirSync(folder)) {
    if (/^lmdb-[0-9a-f]{32}\.node/.test(name) && join(folder, name) !== file) rmSync(join(folder, name))
  }
  return file
}

function isIntact(file: string, bytes: Buffer): boolean {
  const found = lstatSync(file, { throwIfNoEntry: false })
  if (found === undefined || !found.isFile() || found.size !== bytes.length) return false
  const isSelf = process.getuid === undefined || (found.uid === process.getuid() && (found.mode & 0o022) === 0)
  return isSelf && readFileSync(file).equals(bytes)
}

function writeNew(file: string, bytes: Buffer): void {
  const descriptor = openSync(file, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o500)
  try {
    writeWhole(descriptor, bytes)
    fchmodSync(descriptor, 0o500)
  } finally {
    closeSync(descriptor)
  }
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

/** On what the system's loader says. */
function adviceOn(message: string): string {
  if (message.includes('failed to map segment'))
    return '; its file system is mounted noexec: choose another folder with --data'
  const [missing] = /lib(?:stdc\+\+|gcc_s)[^:]*(?=: cannot open)/.exec(message) ?? []
  return missing === undefined ? '' : `; install ${missing}, which it needs`
}
