/** The instance secret, and what is sealed with keys made of it. */

import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  chmodSync,
  linkSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSealed, openSecrets, readOrCreate, seal } from '../../src/auth/secrets.ts'
import { seed } from '../support/platform.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'postern-secrets-'))
})
afterEach(() => rmSync(folder, { recursive: true }))
const secretFile = () => join(folder, 'instance-secret')
const writeSecret = (bytes: number) =>
  writeFileSync(secretFile(), Buffer.alloc(bytes, 7).toString('base64url'), { mode: 0o600 })

test('a secret is made once, for its owner alone, and gives the same keys each time', () => {
  const secrets = openSecrets(join(folder, 'instance-secret'))
  expect(openSecrets(join(folder, 'instance-secret'))).toEqual(secrets)
  expect(readdirSync(folder)).toEqual(['instance-secret'])
  expect(statSync(secretFile()).mode & 0o777).toBe(0o600)
  expect(Buffer.from(readFileSync(secretFile(), 'utf8').trim(), 'base64url').length).toBe(32)
})

test('each purpose has a key of its own', () => {
  const { pseudonym, ...keys } = openSecrets(join(folder, 'instance-secret'))
  expect(new Set(Object.values(keys).map((key) => key.toString('hex'))).size).toBe(Object.keys(keys).length)
  for (const key of Object.values(keys)) expect(key.length).toBe(32)
  expect(pseudonym).toMatch(/^postern-[0-9a-f]{12}$/)
})

test('a secret of another length is damaged, not used', () => {
  for (const bytes of [0, 31, 33]) {
    writeSecret(bytes)
    expect(() => openSecrets(join(folder, 'instance-secret'))).toThrow(
      'is damaged, or is not an instance secret, which is 32 bytes in base64url: restore it from a backup, or copy',
    )
  }
  writeSecret(32)
  expect(openSecrets(join(folder, 'instance-secret')).cursorKey.length).toBe(32)
})

test('a secret that others may read, or that is a link, is refused before it is read', () => {
  writeSecret(32)
  for (const mode of [0o640, 0o604, 0o610, 0o601]) {
    chmodSync(secretFile(), mode)
    expect(() => openSecrets(join(folder, 'instance-secret'))).toThrow('is accessible to other users: run `chmod 600')
  }
  rmSync(secretFile())
  symlinkSync('/dev/null', secretFile())
  expect(() => openSecrets(join(folder, 'instance-secret'))).toThrow('is a symbolic link')
})

test('whoever comes second keeps what the first wrote', () => {
  expect(readOrCreate(secretFile(), () => 'first')).toBe('first')
  expect(readOrCreate(secretFile(), () => 'second')).toBe('first')
  expect(readOrCreate(join(folder, 'other'), () => readOrCreate(join(folder, 'other'), () => 'inner'))).toBe('inner')
})

test('a process with the same id that writes at the same time changes nothing: containers on one volume', () => {
  const path = join(folder, 'shared')
  const create = () => {
    // The other process has just linked its draft.
    writeFileSync(`${path}.${process.pid}.new`, 'first\n', { mode: 0o600 })
    linkSync(`${path}.${process.pid}.new`, path)
    return 'second'
  }
  expect(readOrCreate(path, create)).toBe('first')
})

test('a file that cannot be written is said with its path', () => {
  const path = join(folder, 'none', 'a')
  expect(() => readOrCreate(path, () => 'a')).toThrow(
    expect.objectContaining({ message: expect.stringContaining(`cannot write ${path}: `), exitCode: 1 }),
  )
})

test('what is sealed opens with its key at its place, and nowhere else', () => {
  const key = seed('key')
  const sealed = seal(key, 'text é', 'here')
  expect(openSealed(key, sealed, 'here')).toBe('text é')
  expect(seal(key, 'text é', 'here').equals(sealed)).toBe(false)
  for (const opened of [
    openSealed(key, sealed, 'there'),
    openSealed(key, sealed),
    openSealed(seed('other'), sealed, 'here'),
  ])
    expect(opened).toBeUndefined()
  expect(openSealed(key, seal(key, ''))).toBe('')
})

test('what was changed or cut anywhere does not open', () => {
  const key = seed('key')
  const sealed = seal(key, 'text')
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed)
    changed[at] = (changed[at] as number) ^ 1
    expect(openSealed(key, changed)).toBeUndefined()
    expect(openSealed(key, sealed.subarray(0, at))).toBeUndefined()
  }
})
