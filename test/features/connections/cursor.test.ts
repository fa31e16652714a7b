/** Sealed positions in a list, by themselves. */

import { expect, test } from 'bun:test'
import { openText } from '../../../src/auth/secrets.ts'
import { sealCursor } from '../../../src/features/connections/cursor.ts'
import { seed } from '../../support/platform.ts'

const key = seed('cursor key')
const from = 'clever-dolphin-a9X3\0'
const cursor = sealCursor(key, 'acme', from)

test('a cursor opens to its position with its key, and always has the same bytes', () => {
  for (const position of ['a', from, 'x'.repeat(128)]) {
    const sealed = sealCursor(key, 'acme', position)
    expect(openText(key, sealed, 'acme')).toBe(position)
    expect(openText(seed('another'), sealed, 'acme')).toBeUndefined()
    expect(sealCursor(key, 'acme', position)).toBe(sealed)
  }
})

test('a cursor is of one list alone', () => {
  for (const binding of ['', 'acm', 'acme2', 'acme\0']) expect(openText(key, cursor, binding)).toBeUndefined()
  // Neither do two lists, positions or keys share a nonce.
  const others = [
    ...[sealCursor(key, 'other', from), sealCursor(key, 'acme', 'b')],
    sealCursor(seed('another'), 'acme', from),
  ]
  expect(new Set([cursor, ...others].map((text) => text.slice(0, 16))).size).toBe(4)
})

test('a cursor that was changed or cut anywhere does not open, nor one that is spelt in another way', () => {
  const bytes = Buffer.from(cursor, 'base64url')
  for (let at = 0; at < bytes.length; at += 1) {
    const changed = Buffer.from(bytes)
    changed[at] = (changed[at] as number) ^ 1
    expect(openText(key, changed.toString('base64url'), 'acme')).toBeUndefined()
    expect(openText(key, bytes.subarray(0, at).toString('base64url'), 'acme')).toBeUndefined()
  }
  for (const spelt of [`${cursor}=`, `${cursor} `, `.${cursor}`, bytes.toString('hex'), ''])
    expect(openText(key, spelt, 'acme')).toBeUndefined()
})
