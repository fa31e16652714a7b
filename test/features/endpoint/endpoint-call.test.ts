/** The message for a server, as far as it repeats the client's. */

import { expect, test } from 'bun:test'
import { repeatedArguments } from '../../../src/features/endpoint/endpoint-call.ts'

const tool = (names: readonly string[]) => ({
  name: 'do',
  inputSchema: { properties: Object.fromEntries(names.map((name) => [name, { 'x-mcp-header': name }])) },
})

test('arguments are repeated in headers where the schema of the tool wants it', () => {
  const given = { arguments: { region: 'eu', count: 3, dry: false, list: ['a'], other: 'x' } }
  expect(repeatedArguments(tool(['region', 'count', 'dry', 'list', 'missing']), given)).toEqual([
    ['region', 'eu'],
    ['count', '3'],
    ['dry', 'false'],
  ])
  expect(repeatedArguments(tool(['a b']), { arguments: { 'a b': 'x' } })).toEqual([])
  expect(repeatedArguments(undefined, given)).toEqual([])
})

test('they are few, and none is long', () => {
  const names = Array.from({ length: 1000 }, (_, i) => `p${i}`)
  const given = Object.fromEntries(names.map((name, i) => [name, i === 0 ? 'x'.repeat(5000) : name]))
  const repeated = repeatedArguments(tool(names), { arguments: given })
  expect([repeated.length, repeated[0]]).toEqual([64, ['p1', 'p1']])
})
