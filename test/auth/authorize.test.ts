/** Names in paths that can be nobody's: they are looked up nowhere, and answered like what does not exist. */

import { describe, expect, test } from 'bun:test'
import { connectionIdCharsMax, slugCharsMax, storeKeyBytesMax } from '../../src/limits.ts'
import { createTestPlatform } from '../support/platform.ts'
import { sampleKeys } from '../support/sample.ts'

const platform = await createTestPlatform()
const call = { body: '{"jsonrpc":"2.0","id":1,"method":"ping"}' }
const requests: [method: string, below: string, init?: RequestInit][] = [
  ['GET', ''],
  ['PUT', '', { body: '{"mcpUrl":"https://example.com/mcp"}' }],
  ['DELETE', ''],
  ['POST', '/mcp', call],
  ['GET', '/.tools'],
  ['GET', '/.tools/x'],
]
const ask = async (path: string, [method, below, init]: (typeof requests)[number]) => {
  const headers = { authorization: `Bearer ${sampleKeys.operator}`, 'content-type': 'application/json' }
  return (await platform.fetch(`${path}${below}`, { method, headers, ...init })).status
}

describe('nothing is there', () => {
  for (const one of requests) {
    const [method, below] = one
    test(`below an id that is none: ${method} ${below}`, async () => {
      for (const id of ['a%20b', '%00', '%C3%A9', 'a%2Fb', ...[connectionIdCharsMax, storeKeyBytesMax].map(tooLong)])
        expect({ id, status: await ask(`/connect/ada/${id}`, one) }).toEqual({ id, status: 404 })
    })
    test(`in a namespace that is none: ${method} ${below}`, async () => {
      for (const name of ['a%20b', '%00', 'ADA', '-', ...[slugCharsMax, storeKeyBytesMax].map(tooLong)])
        expect({ name, status: await ask(`/connect/${name}/one`, one) }).toEqual({ name, status: 404 })
    })
  }
  test('in a list of a namespace that is none', async () => {
    for (const name of ['a%20b', '%00', 'ADA', '-', ...[slugCharsMax, storeKeyBytesMax].map(tooLong)])
      expect({ name, status: await ask(`/connect/${name}`, ['GET', '']) }).toEqual({ name, status: 404 })
  })
})

function tooLong(charsMax: number): string {
  return 'x'.repeat(charsMax + 1)
}
