/** The credential of a request, and the framework's own reading of it. */

import { expect, test } from 'bun:test'
import { contradictsBearer, readCredential } from '../../src/http/credential.ts'

test('a credential is one token after the scheme, in any case and after any number of spaces', () => {
  for (const header of ['Bearer abc', 'bearer abc', 'BEARER   abc']) expect(readCredential(header)).toBe('abc')
  expect(readCredential('Bearer a-Z.0_~+/==')).toBe('a-Z.0_~+/==')
  for (const header of ['', 'Bearer', 'Bearer ', 'Bearerabc', 'Basic abc', 'Bearer a b', 'Bearer a, Bearer b'])
    expect(readCredential(header), header).toBeUndefined()
})

test('another reading of a header contradicts it only where both find a credential', () => {
  const rows: [header: string | null, bearer: string | undefined, contradicts: boolean][] = [
    ['Bearer abc', 'abc', false],
    ['Bearer   abc', '  abc', false],
    ['Bearer abc', 'abd', true],
    ['Bearer abc', undefined, true],
    ['bearer abc', undefined, false],
    ['bearer abc', 'abd', false],
    ['Bearer a b', 'a b', false],
    ['Bearer a b', undefined, false],
    [null, 'abc', false],
    [null, undefined, false],
  ]
  for (const [header, bearer, contradicts] of rows)
    expect({ header, bearer, contradicts: contradictsBearer(header, bearer) }).toEqual({ header, bearer, contradicts })
})
