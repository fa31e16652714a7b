/** Base64 of clients has one spelling. */

import { expect, test } from 'bun:test'
import { canonicalBytes } from '../../src/schema/base64.ts'
import { otherSpellings } from '../support/spellings.ts'

test('bytes have one spelling', () => {
  for (const text of ['a', 'é>?', 'abc', 'three bytes']) {
    const bytes = Buffer.from(text)
    expect(canonicalBytes(bytes.toString('base64url'))).toEqual(bytes)
    expect(canonicalBytes(bytes.toString('base64'), 'base64')).toEqual(bytes)
    const others = otherSpellings(bytes.toString('base64url'))
    expect(others.length).toBeGreaterThan(1)
    for (const other of others) expect({ other, bytes: canonicalBytes(other) }).toEqual({ other, bytes: undefined })
  }
  expect(canonicalBytes('YQ', 'base64')).toBeUndefined()
})
