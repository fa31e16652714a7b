/** Joined lists that were answered a moment ago. */

import { heapStats } from 'bun:jsc'
import { expect, test } from 'bun:test'
import { createJoinedAnswers } from '../../../src/features/endpoint/joined-answers.ts'
import { clockOf } from '../../support/clock.ts'

test('an answer that is kept does not keep the lines that its parts were cut from', async () => {
  const store = { get: async () => Buffer.from('a version of 16 bytes') }
  const answerOf = createJoinedAnswers(
    store,
    { changes: 0 },
    clockOf(() => 0),
  )
  const of = (index: number) => {
    const caller = { userId: 'ada', keyId: `key ${index}` }
    const context = { directory: { version: '1' }, caller }
    const asked = { context, namespace: { namespace: 'ada' }, message: { era: 'handshake' }, options: { length: 64 } }
    const line = `${index}${'x'.repeat(2 ** 21)}${index},"description":"of this tool"}`
    return answerOf(asked as never, 'tools', async () => `{"name":"one"${line.slice(-3000)}`)
  }
  const used = () => heapStats().heapSize + heapStats().extraMemorySize
  const results: Uint8Array[] = []
  Bun.gc(true)
  const before = used()
  for (let index = 0; index < 30; index += 1) results.push(await of(index))
  Bun.gc(true)
  expect((used() - before) / 2 ** 20).toBeLessThan(16)
  expect(await of(29)).toBe(results.at(-1) as Uint8Array)
})
