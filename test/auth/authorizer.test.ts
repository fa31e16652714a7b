/** Names in paths that can be nobody's: they are looked up nowhere, and answered like what does not exist. */

import { describe, expect, test } from 'bun:test'
import { connectionIdCharsMax, slugCharsMax, storeKeyBytesMax } from '../../src/limits.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { createTestPlatform } from '../support/platform.ts'
import { sampleKeys } from '../support/sample.ts'

/** All keys that were looked up, as text. */
const asked: string[] = []
const memory = openMemoryStore()
const platform = await createTestPlatform({
  store: {
    ...memory,
    get(key) {
      asked.push(Buffer.from(key).toString())
      return memory.get(key)
    },
    getMany(keys) {
      asked.push(...keys.map((key) => Buffer.from(key).toString()))
      return memory.getMany(keys)
    },
  },
})
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
  asked.length = 0
  const { status } = await platform.fetch(`${path}${below}`, { method, headers, ...init })
  return { status, isLookedUp: (encoded: string) => asked.some((key) => key.endsWith(decodeURIComponent(encoded))) }
}
/** Absent, and nothing was asked of the store that ends in this name. */
async function expectAbsent(name: string, path: string, request: (typeof requests)[number]): Promise<void> {
  const { status, isLookedUp } = await ask(path, request)
  expect({ name, status, isLookedUp: isLookedUp(name) }).toEqual({ name, status: 404, isLookedUp: false })
}

test('a name that could be somebody’s is looked up', async () => {
  const { status, isLookedUp } = await ask('/connect/ada/none', ['GET', ''])
  expect([status, isLookedUp('none'), isLookedUp('ada')]).toEqual([404, true, true])
})

describe('nothing is there', () => {
  for (const one of requests) {
    const [method, below] = one
    test(`below an id that is none: ${method} ${below}`, async () => {
      for (const id of ['a%20b', '%00', '%C3%A9', 'a%2Fb', ...[connectionIdCharsMax, storeKeyBytesMax].map(tooLong)])
        await expectAbsent(id, `/connect/ada/${id}`, one)
    })
    test(`in a namespace that is none: ${method} ${below}`, async () => {
      for (const name of ['a%20b', '%00', '%C3%A9', ...[slugCharsMax, storeKeyBytesMax].map(tooLong)])
        await expectAbsent(name, `/connect/${name}/one`, one)
    })
  }
  test('in a list of a namespace that is none', async () => {
    for (const name of ['a%20b', '%00', '%C3%A9', ...[slugCharsMax, storeKeyBytesMax].map(tooLong)])
      await expectAbsent(name, `/connect/${name}`, ['GET', ''])
  })
})

function tooLong(charsMax: number): string {
  return 'x'.repeat(charsMax + 1)
}
