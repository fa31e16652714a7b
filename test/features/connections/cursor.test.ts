/** Sealed positions in a list, by themselves. */

import { expect, test } from 'bun:test'
import { createCipheriv } from 'node:crypto'
import { createCursors, cursorCharsMax } from '../../../src/features/connections/cursor.ts'
import { seed } from '../../support/platform.ts'

const key = seed('cursor key')
/** Knows nothing of what another sealed: a process that has just begun. */
const fresh = (other = key) => createCursors(other)
const from = 'clever-dolphin-a9X3\0'

test('a cursor opens to its position, where it was sealed and elsewhere with its key', () => {
  const cursors = fresh()
  for (const position of ['a', from, 'x'.repeat(128)]) {
    const cursor = cursors.seal('acme', position)
    for (const one of [cursors, fresh()]) expect(one.open('acme', cursor)).toBe(position)
    expect(fresh(seed('another')).open('acme', cursor)).toBeUndefined()
    expect([cursors.seal('acme', position), fresh().seal('acme', position)]).toEqual([cursor, cursor])
  }
})

test('a cursor is of one list alone', () => {
  const cursors = fresh()
  const cursor = cursors.seal('acme', from)
  for (const one of [cursors, fresh()])
    for (const binding of ['', 'acm', 'acme2', 'acme\0']) expect(one.open(binding, cursor)).toBeUndefined()
  // Neither do two lists share what it is encrypted with.
  const nonces = [cursor, cursors.seal('other', from), cursors.seal('acme', 'b')].map((text) => text.slice(2, 18))
  expect(new Set(nonces).size).toBe(3)
})

test('a cursor that was changed or cut anywhere does not open, nor one that is spelt in another way', () => {
  const cursor = fresh().seal('acme', from)
  const bytes = Buffer.from(cursor, 'base64url')
  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] as number) ^ 1
    expect(fresh().open('acme', changed.toString('base64url'))).toBeUndefined()
    expect(fresh().open('acme', bytes.subarray(0, at).toString('base64url'))).toBeUndefined()
  }
  for (const spelt of [`${cursor}=`, `${cursor} `, `.${cursor}`, bytes.toString('hex'), ''])
    expect(fresh().open('acme', spelt)).toBeUndefined()
})

test('a cursor has so many characters, and says where something is', () => {
  // Version, nonce and tag take 29 bytes.
  const most = Math.floor((cursorCharsMax * 3) / 4) - 29
  expect(fresh().seal('acme', 'x'.repeat(most))).toHaveLength(cursorCharsMax)
  expect(fresh().open('acme', fresh().seal('acme', 'x'.repeat(most)))).toHaveLength(most)
  expect(fresh().open('acme', fresh().seal('acme', 'x'.repeat(most + 1)))).toBeUndefined()
  expect(fresh().open('acme', fresh().seal('acme', ''))).toBeUndefined()
})

test('a cursor of another version does not open, however well it is sealed', () => {
  const [nonce, position] = [Buffer.alloc(12, 7), 'a']
  const sealed = (version: number) => {
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from('acme'))
    const text = Buffer.concat([cipher.update(position), cipher.final()])
    return Buffer.concat([Buffer.of(version), nonce, text, cipher.getAuthTag()]).toString('base64url')
  }
  expect([0, 1, 2].map((version) => fresh().open('acme', sealed(version)))).toEqual([undefined, position, undefined])
})
