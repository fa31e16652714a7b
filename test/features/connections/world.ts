/**
 * A small world of connections in which filters, constraints and rows meet often, and the oracle: what a list of
 * it must hold, said as plainly as can be.
 */

import type { Connection } from '../../../src/model/connection.ts'
import { connectionEntry, indexEntries, newConnectionsVersion, termsOf } from '../../../src/storage/connections.ts'
import { keyOf, termKey } from '../../../src/storage/keys.ts'
import type { Store } from '../../../src/storage/store.ts'
import { source, type TestPlatform } from '../../support/platform.ts'
import type { Random } from '../../support/random.ts'

export const namespace = 'acme'
export const key = 'a-key-for-the-tests-of-lists-0000000001'
export const skeleton = source('acme.json', {
  organizations: [{ organizationId: 'org', name: 'Org', members: [{ userId: 'ada', role: 'owner' }] }],
  namespaces: [
    { namespace, organizationId: 'org' },
    { namespace: 'other', organizationId: 'org' },
  ],
  apiKeys: [{ userId: 'ada', key }],
})

const metadataKeys = ['team', 'env', 'a.b', 'connectionId', '__proto__']
const metadataValues = ['x', 'y', '', '5', 'true', 'ü', 5, true, null, { x: 1 }]
const urls = ['https://a.example.com/mcp', 'https://b.example.com/mcp', null]

/** One like any other. */
export function connection(connectionId: string): Connection {
  return {
    connectionId,
    name: connectionId,
    mcpUrl: 'https://a.example.com/mcp',
    metadata: { team: 'x' },
    transport: 'http',
    createdAt: '2026-03-02T09:00:00.000Z',
    status: { state: 'connected' },
  }
}

export function pickConnection(chance: Random, connectionId: string): Connection {
  const metadata: Record<string, unknown> = {}
  for (const metadataKey of metadataKeys) {
    if (chance.chance(0.5))
      Object.defineProperty(metadata, metadataKey, { value: chance.pick(metadataValues), enumerable: true })
  }
  return {
    ...connection(connectionId),
    name: chance.pick(['one', 'two', connectionId]),
    mcpUrl: chance.pick(urls),
    metadata: chance.chance(0.1) ? null : metadata,
  }
}

export async function write(
  store: Store,
  changes: ReadonlyMap<string, Connection | undefined>,
  rows: Map<string, Connection>,
): Promise<void> {
  const deletes: Uint8Array[] = []
  const puts = [newConnectionsVersion(namespace)]
  for (const [id, connection] of changes) {
    const before = rows.get(id)
    if (before !== undefined)
      deletes.push(keyOf('connection', namespace, id), ...termsOf(before).map((term) => termKey(namespace, term, id)))
    if (connection === undefined) rows.delete(id)
    else {
      rows.set(id, connection)
      puts.push(connectionEntry(namespace, connection), ...indexEntries(namespace, connection))
    }
  }
  await store.commit({ deletes, puts })
}

export type Filters = Record<string, string>
export type Metadata = Record<string, string> | Record<string, string>[]

/** The oracle: what a list must hold, said as plainly as can be. */
export function expectedIds(
  rows: Map<string, Connection>,
  filters: Filters,
  policy: readonly { metadata?: Metadata }[],
): string[] {
  const text = (value: unknown) => (typeof value === 'string' ? value : JSON.stringify(value))
  const stored = (row: Connection, name: string) =>
    row.metadata !== null && Object.hasOwn(row.metadata, name) ? row.metadata[name] : undefined
  const passes = (row: Connection) =>
    Object.entries(filters).every(([name, value]) => {
      if (name === 'name' || name === 'mcpUrl') return row[name] === value
      const found = stored(row, name.slice('metadata.'.length))
      return found !== undefined && text(found) === value
    })
  const allowed = (row: Connection) =>
    policy.every(({ metadata }) => {
      if (metadata === undefined) return true
      const sets = Array.isArray(metadata) ? metadata : [metadata]
      return sets.some((set) =>
        Object.entries(set).every(
          ([name, value]) => (name === 'connectionId' ? row.connectionId : stored(row, name)) === value,
        ),
      )
    })
  const ids = [...rows.values()].filter((row) => passes(row) && allowed(row)).map((row) => row.connectionId)
  return ids.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

export function pickFilters(chance: Random): Filters {
  const filters: Filters = {}
  if (chance.chance(0.2)) filters['name'] = chance.pick(['one', 'two', 'nope'])
  if (chance.chance(0.2)) filters['mcpUrl'] = chance.pick(['https://a.example.com/mcp', 'null'])
  while (chance.chance(0.4)) {
    filters[`metadata.${chance.pick(metadataKeys)}`] = chance.pick([
      'x',
      'y',
      '',
      '5',
      'true',
      'null',
      '{"x":1}',
      '{"x": 1}',
      'ü',
    ])
  }
  return filters
}

export function pickPolicy(chance: Random, ids: readonly string[]): { metadata?: Metadata; ttl?: number }[] {
  const set = () => {
    const pairs: [string, string][] = []
    do pairs.push([chance.pick(['team', 'env', 'a.b', '__proto__']), chance.pick(['x', 'y', '', '5', 'ü'])])
    while (chance.chance(0.3))
    if (chance.chance(0.2)) pairs.push(['connectionId', chance.pick(ids)])
    return Object.fromEntries(pairs)
  }
  const constraints: { metadata?: Metadata; ttl?: number }[] = []
  while (chance.chance(0.5)) {
    if (chance.chance(0.3)) constraints.push({ ttl: 3600 })
    else constraints.push({ metadata: chance.chance(0.5) ? set() : [set(), set(), set()].slice(0, 1 + chance.int(3)) })
  }
  return constraints
}

interface Walked {
  readonly ids: string[]
  readonly pages: number[]
}

/** Walks a list to its end; `between` runs before each further page. */
export async function walk(
  platform: TestPlatform,
  token: string,
  filters: Filters,
  limit: () => number,
  between: () => Promise<void> = async () => {},
): Promise<Walked> {
  const ids: string[] = []
  const pages: number[] = []
  let cursor: string | null = null
  do {
    const query = new URLSearchParams({ ...filters, limit: String(limit()) })
    if (cursor !== null) query.set('cursor', cursor)
    const response = await platform.fetch(`/connect/${namespace}?${query}`, {
      headers: { authorization: `Bearer ${token}` },
    })
    const page = (await response.json()) as { connections: Connection[]; nextCursor: string | null; message?: string }
    if (response.status !== 200) throw new Error(`${response.status} ${page.message}`)
    ids.push(...page.connections.map(({ connectionId }) => connectionId))
    pages.push(page.connections.length)
    cursor = page.nextCursor
    if (cursor !== null) await between()
  } while (cursor !== null)
  return { ids, pages }
}

export const idsOf = (chance: Random, count: number) =>
  Array.from(
    { length: count },
    () => `${chance.pick(['a', 'B', 'b', '_', '-', '0'])}${chance.pick(['', '.', '-', 'z'])}${chance.int(50)}`,
  )
