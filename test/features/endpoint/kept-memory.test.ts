/** Lists that are kept in memory. */

import { expect, test } from 'bun:test'
import { createKeptMemory } from '../../../src/features/endpoint/kept-memory.ts'
import { type Kept, readingRecord } from '../../../src/features/endpoint/kept-record.ts'
import { drained } from '../../../src/schema/steps.ts'

/** A list of one tool with so many characters, or of so many tools. */
const keptOf = (characters: number, tools = 1, own = 'a') => {
  const rest = '\u0101'.repeat(characters)
  const lists = { tools: Array.from({ length: tools }, () => ({ own, rest })), prompts: [], resources: [] }
  return { id: 'a', of: '', listedAt: '', era: 'handshake', lists } as unknown as Kept
}

test('what is kept of a definition is not kept within its line', async () => {
  const lines = [
    JSON.stringify({
      id: 'a',
      of: '',
      listedAt: '',
      era: 'handshake',
      counts: { tools: 1, prompts: 0, resources: 0, templates: 0 },
    }),
    `${JSON.stringify('\u0001'.repeat(4000))},"description":"é"}`,
  ]
  const { lists } = drained(readingRecord(Buffer.from(lines.join('\n'))))
  const [one] = lists.tools
  expect([one?.own, one?.rest]).toEqual(['\u0001'.repeat(4000), ',"description":"é"}'])
})

test('lists take 64 MB together, with two bytes for a character, six for one of a name, and 600 for a definition', () => {
  for (const [kept, room] of [
    [keptOf(2 ** 20), 31],
    [keptOf(0, 4000), 27],
    [keptOf(0, 1, 'a'.repeat(2 ** 19)), 21],
  ] as const) {
    const memory = createKeptMemory({ get: async () => undefined })
    const refs = Array.from({ length: 80 }, (_, index) => ({ namespace: 'acme', connectionId: String(index) }))
    for (const ref of refs) memory.set(ref, kept)
    expect(refs.filter((ref) => memory.get(ref) !== undefined)).toHaveLength(room)
  }
})
