/** What a client has already, by its tags. */

import { expect, test } from 'bun:test'
import { isUnchanged, jsonResponse } from '../../src/http/respond.ts'

test('an answer is unchanged where its tag is among those that the client knows', () => {
  const rows: [known: string | undefined, etag: string | undefined, isUnchanged: boolean][] = [
    ['"a"', '"a"', true],
    ['W/"a"', '"a"', true],
    ['"b", "a"', '"a"', true],
    ['*', '"a"', true],
    ['"b"', '"a"', false],
    ['a', '"a"', false],
    [undefined, '"a"', false],
    ['*', undefined, false],
    ['"a"', undefined, false],
    [undefined, undefined, false],
  ]
  for (const [known, etag, expected] of rows) {
    const headers = known === undefined ? {} : { 'if-none-match': known }
    const request = new Request('http://a/', { headers })
    expect({ known, etag, isUnchanged: isUnchanged(request, etag) }).toEqual({ known, etag, isUnchanged: expected })
  }
})

test('a text or bytes are JSON, with the headers that are given', async () => {
  for (const body of ['{"a":1}', new TextEncoder().encode('{"a":1}')]) {
    const response = jsonResponse(body, { 'x-a': '1' })
    expect([Object.fromEntries(response.headers), await response.text()]).toEqual([
      { 'content-type': 'application/json', 'x-a': '1' },
      '{"a":1}',
    ])
  }
})
