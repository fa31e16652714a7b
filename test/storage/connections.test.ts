/** The writes of connections: what changes nothing of the index leaves it alone. */

import { expect, test } from 'bun:test'
import type { Connection } from '../../src/model/connection.ts'
import {
  connectionBytes,
  connectionChange,
  indexEntries,
  type StoredConnection,
} from '../../src/storage/connections.ts'

const made = (metadata: Connection['metadata'], name = 'one'): Connection => ({
  connectionId: 'c',
  name,
  mcpUrl: 'https://tools.example.com/mcp',
  metadata,
  transport: 'http',
  createdAt: '2026-03-02T09:00:00.000Z',
  status: { state: 'connected' },
})
const stored = (connection: Connection): StoredConnection => ({
  connection,
  privatePart: {},
  bytes: connectionBytes(connection),
  privateBytes: undefined,
})
const pairs = Object.fromEntries(Array.from({ length: 64 }, (_, i) => [`k${i}`, 'v']))
const keysOf = (connection: Connection) =>
  [...indexEntries('acme', connection)].map(({ key }) => Buffer.from(key).toString('latin1'))

/** The keys of the index that a write deletes and puts. */
function indexOf(before: Connection | undefined, after: Connection | undefined) {
  const change = connectionChange(
    { namespace: 'acme', connectionId: 'c' },
    before && stored(before),
    after && { connection: after, privatePart: {} },
  )
  const all = new Set([...(before ? keysOf(before) : []), ...(after ? keysOf(after) : [])])
  const inIndex = (keys: Iterable<Uint8Array>) =>
    [...keys].map((key) => Buffer.from(key).toString('latin1')).filter((key) => all.has(key))
  return { deleted: inIndex(change.deletes ?? []), put: inIndex([...(change.puts ?? [])].map(({ key }) => key)) }
}

test('tokens that are renewed, and a status that changes, change nothing of the index', () => {
  const signedOut: Connection = { ...made(pairs), status: { state: 'auth_required' } }
  expect(indexOf(made(pairs), signedOut)).toEqual({ deleted: [], put: [] })
})

test('of what changes, the old entry is deleted and the new one put', () => {
  const changed = indexOf(made(pairs), made({ ...pairs, k7: 'w' }))
  expect([changed.deleted.length, changed.put.length]).toEqual([1, 1])
  expect(keysOf(made(pairs))).toContain(changed.deleted[0] as string)
  expect(keysOf(made({ ...pairs, k7: 'w' }))).toContain(changed.put[0] as string)
})

test('a new connection has all its entries, and a deleted one none', () => {
  const all = keysOf(made(pairs))
  expect(indexOf(undefined, made(pairs))).toEqual({ deleted: [], put: all })
  expect(indexOf(made(pairs), undefined)).toEqual({ deleted: all, put: [] })
})
