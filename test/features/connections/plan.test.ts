/** What is in the scope of a list, record by record. */

import { expect, test } from 'bun:test'
import type { Filter } from '../../../src/features/connections/list-query.ts'
import { inScope, isNarrowed } from '../../../src/features/connections/plan.ts'
import type { Block } from '../../../src/policy/block.ts'
import { connection } from './world.ts'

const row = { ...connection('notes'), name: 'Notes', metadata: { team: 'x', n: 5 } }
const blockOf = (...metadata: (readonly [string, string])[][]) => ({ metadata }) as unknown as Block
const filter = (key: string, value: string): Filter => ({ field: 'metadata', key, value })

test('every filter must find it, and every block must let it be seen by one of its sets', () => {
  const rows: [filters: Filter[], blocks: Block[], isIn: boolean][] = [
    [[], [], true],
    [[{ field: 'name', value: 'Notes' }], [], true],
    [[{ field: 'name', value: 'notes' }], [], false],
    [[{ field: 'mcpUrl', value: row.mcpUrl ?? '' }], [], true],
    [[{ field: 'mcpUrl', value: 'https://b.example.com/mcp' }], [], false],
    [[filter('team', 'x'), filter('n', '5')], [], true],
    [[filter('team', 'x'), filter('n', '6')], [], false],
    [[filter('none', '')], [], false],
    [[], [blockOf([['team', 'x']])], true],
    [[], [blockOf([['team', 'y']])], false],
    [[], [blockOf([['team', 'y']], [['team', 'x']])], true],
    [
      [],
      [
        blockOf([
          ['team', 'x'],
          ['connectionId', 'notes'],
        ]),
      ],
      true,
    ],
    [
      [],
      [
        blockOf([
          ['team', 'x'],
          ['connectionId', 'other'],
        ]),
      ],
      false,
    ],
    [[], [blockOf([['team', 'x']]), blockOf([['team', 'y']])], false],
    // A constraint is of texts alone.
    [[], [blockOf([['n', '5']])], false],
    [[filter('team', 'x')], [blockOf([['team', 'y']])], false],
    [[filter('team', 'x')], [{} as Block], true],
  ]
  for (const [filters, blocks, isIn] of rows)
    expect({ filters, blocks, isIn: inScope(row, { filters, blocks }) }).toEqual({ filters, blocks, isIn })
  expect(inScope({ ...row, metadata: null }, { filters: [filter('team', 'x')], blocks: [] })).toBe(false)
})

test('a list is narrowed by a filter, or by what a block says of metadata', () => {
  const namespace = 'acme'
  expect(isNarrowed({ namespace, filters: [], blocks: [{} as Block] })).toBe(false)
  expect(isNarrowed({ namespace, filters: [filter('a', 'b')], blocks: [] })).toBe(true)
  expect(isNarrowed({ namespace, filters: [], blocks: [blockOf([['team', 'x']])] })).toBe(true)
})
