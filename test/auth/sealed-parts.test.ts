/** The own headers of a connection, as they are kept. */

import { expect, test } from 'bun:test'
import { openHeaders, openPart, sealHeaders, sealPart } from '../../src/auth/sealed-parts.ts'
import { seed } from '../support/platform.ts'

const key = seed('headers key')
const ref = { namespace: 'acme', connectionId: 'one' }
const headers = { Authorization: 'Bearer é', 'X-Other': '' }

test('headers open as they were, for their connection and with their key alone', () => {
  const sealed = sealHeaders(headers, ref, key)
  expect(openHeaders(sealed, ref, key)).toEqual(headers)
  for (const [other, otherKey] of [
    [{ ...ref, connectionId: 'two' }, key],
    [{ ...ref, namespace: 'other' }, key],
    [ref, seed('another')],
  ] as const)
    expect(() => openHeaders(sealed, other, otherKey)).toThrow('were sealed with another secret')
  expect(JSON.stringify(sealed)).not.toContain('Bearer')
})

test('no part opens as another, though they have one key', () => {
  const parts = ['headers', 'input', 'oauth', 'tokens'] as const
  for (const part of parts) {
    const sealed = { [part]: sealPart(part, headers, ref, key) }
    expect(openPart<object>(part, sealed, ref, key)).toEqual(headers)
    for (const other of parts.filter((one) => one !== part))
      expect(() => openPart(other, { [other]: sealed[part] }, ref, key)).toThrow('were sealed with another secret')
  }
})

test('no headers are kept as nothing', () => {
  expect(sealHeaders({}, ref, key)).toEqual({})
  expect(openHeaders({}, ref, key)).toEqual({})
})
