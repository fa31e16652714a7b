import { expect, test } from 'bun:test'
import { filterAllows } from '../../src/policy/metadata.ts'

const facts = (metadata: Record<string, unknown> | null) => ({ connectionId: 'c1', metadata })

const rows: [metadata: Record<string, unknown> | null, key: string, value: string, found: boolean][] = [
  [{ team: 'ops' }, 'team', 'ops', true],
  [{ team: 'ops' }, 'team', 'Ops', false],
  [{ team: 'ops' }, 'team', '"ops"', false],
  [{ team: 'ops' }, 'env', 'ops', false],
  [{ priority: 1 }, 'priority', '1', true],
  [{ priority: 1 }, 'priority', '1.0', false],
  [{ on: true }, 'on', 'true', true],
  [{ none: null }, 'none', 'null', true],
  [{ some: { a: [1] } }, 'some', '{"a":[1]}', true],
  [null, 'team', 'ops', false],
  [null, 'team', 'undefined', false],
  // Not own properties: of no object are these metadata.
  [{}, 'constructor', 'undefined', false],
  [{}, 'toString', 'undefined', false],
]

for (const [metadata, key, value, found] of rows) {
  test(`a filter ${key}=${value} ${found ? 'finds' : 'does not find'} ${JSON.stringify(metadata)}`, () => {
    expect(filterAllows(facts(metadata), key, value)).toBe(found)
  })
}
