/** How often a server is asked for one write. */

import { expect, test } from 'bun:test'
import { createProbing } from '../../../src/features/connections/probing.ts'

test('a server whose tokens end at once is asked three times, and its last answer stands', async () => {
  let sent = 0
  const upstream = {
    async send() {
      sent += 1
      return { status: 401, headers: {}, body: undefined }
    },
  }
  const context = { caller: { keyId: 'k', family: 'k' }, request: new Request('http://localhost/') }
  const probing = createProbing(upstream as never, context as never)
  const draft = (tokens: string, url = 'https://a.example.com/') =>
    ({ connection: { mcpUrl: url }, target: { url, headers: {} }, privatePart: { tokens } }) as never
  let asks = 0
  for (; probing.probed(draft(`tokens ${asks}`)) === undefined && asks < 20; asks += 1) await probing.ask()
  expect(asks).toBe(3)
  expect(sent).toBeGreaterThanOrEqual(3)
  // Of another server it says nothing.
  expect(probing.probed(draft('tokens', 'https://b.example.com/'))).toBeUndefined()
})
