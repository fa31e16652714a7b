/** Headers that repeat arguments, where a rule speaks of arguments. */

import { expect, test } from 'bun:test'
import { messageOf, withoutRenamedParams } from '../../../src/features/gateway/message.ts'

function keptOf(given: object, headers: Record<string, string>): string[] {
  const params = { name: 'echo', arguments: given }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params })
  const named = Object.entries(headers).map(([name, value]): [string, string] => [`Mcp-Param-${name}`, value])
  const kept = withoutRenamedParams(new Headers(named), messageOf(new TextEncoder().encode(body)))
  return [...kept.keys()].map((name) => name.slice('mcp-param-'.length))
}

test('only those go on that bear the name of the argument they repeat', () => {
  const given = { tenantId: 'me', note: 'evil', deep: { list: [{ region: 'eu' }, 'x'] }, count: 5 }
  const good = { 'Tenant-Id': 'me', region: 'eu', list: 'x', count: '5' }
  expect(keptOf(given, good).sort()).toEqual(['count', 'list', 'region', 'tenant-id'])
  expect(keptOf(given, { 'Tenant-Id': 'evil', note: 'me', region: 'x' })).toEqual([])
})

test('a hundred thousand texts below a long key are looked at with it once', () => {
  // Its name was made anew for each: ten gigabytes.
  const given = { owner: 'me', [`x${'y'.repeat(100_000)}`]: Array.from({ length: 100_000 }, () => 1) }
  expect(keptOf(given, { owner: 'me', other: '1' })).toEqual(['owner'])
})

test('a key of a hundred thousand marks is no field of MCP, and looked past', () => {
  const marks = '\u0315'.repeat(5e4) + '\u0300'.repeat(5e4)
  const text = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: { [marks]: 1 }, [`a${marks}`]: 1 })
  expect(messageOf(new TextEncoder().encode(text)).method).toBe('ping')
  const caseVariant = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', '\u{1d526}\u{1d521}': 2 })
  expect(() => messageOf(new TextEncoder().encode(caseVariant))).toThrow('differs only in case from a field of MCP')
})
