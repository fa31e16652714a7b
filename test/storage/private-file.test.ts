/** What is private: whose it is, who else may read it, and whether it is what it seems. */

import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { requireOwn, requirePrivate } from '../../src/storage/private-file.ts'
import { isHere } from '../support/needs.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'postern-private-'))
})
afterEach(() => rmSync(root, { recursive: true }))

test('what only its owner may read is private, and so is what is not there', () => {
  const [file, folder] = [join(root, 'file'), join(root, 'folder')]
  writeFileSync(file, '', { mode: 0o600 })
  mkdirSync(folder, { mode: 0o700 })
  requirePrivate(file, 'file')
  requirePrivate(folder, 'folder')
  requirePrivate(join(root, 'none'), 'file')
  for (const mode of [0o040, 0o020, 0o010, 0o004, 0o002, 0o001]) {
    chmodSync(file, 0o600 | mode)
    chmodSync(folder, 0o700 | mode)
    expect(() => requirePrivate(file, 'file')).toThrow(`run \`chmod 600 ${file}\``)
    expect(() => requirePrivate(folder, 'folder')).toThrow(`run \`chmod 700 ${folder}\``)
  }
})

test('a link is followed nowhere, and a thing of another kind is none', () => {
  const [file, folder, link] = [join(root, 'file'), join(root, 'folder'), join(root, 'link')]
  writeFileSync(file, '', { mode: 0o600 })
  mkdirSync(folder, { mode: 0o700 })
  for (const [target, kind] of [
    [file, 'file'],
    [folder, 'folder'],
    [join(root, 'none'), 'file'],
  ] as const) {
    symlinkSync(target, link)
    expect(() => requirePrivate(link, kind)).toThrow(`replace it with the ${kind} itself`)
    rmSync(link)
  }
  expect(() => requirePrivate(folder, 'file')).toThrow(`${folder} is not a file: move it away`)
  expect(() => requirePrivate(file, 'folder')).toThrow(`${file} is not a folder: move it away`)
})

test('what belongs to somebody else is not ours to trust', () => {
  const found = statSync(root)
  requireOwn(root, found)
  expect(() => requireOwn(root, Object.assign(found, { uid: found.uid + 1 }))).toThrow('belongs to another user')
})

test.if(isHere('root'))('a file or folder of somebody else is not private (needs root)', () => {
  const [file, folder] = [join(root, 'file'), join(root, 'folder')]
  writeFileSync(file, '', { mode: 0o600 })
  mkdirSync(folder, { mode: 0o700 })
  for (const [path, kind] of [
    [file, 'file'],
    [folder, 'folder'],
  ] as const) {
    chownSync(path, 65_534, 65_534)
    expect(() => requirePrivate(path, kind)).toThrow(`${path} belongs to another user`)
  }
})
