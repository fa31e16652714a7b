/** The names of many connections' tools in one list: every client takes them, and none means two tools. */

import { expect, test } from 'bun:test'
import { createHash } from 'node:crypto'
import { listedName, nameLengths, readCalledName } from '../../../src/features/endpoint/listed-names.ts'
import { isConnectionId } from '../../../src/model/names.ts'
import { type Random, random } from '../../support/random.ts'

const pairs = 20_000

test('20,000 pairs of ids and names: every client takes each name, and no two are the same', () => {
  const chance = random(29)
  for (const length of nameLengths) {
    const byName = new Map<string, string>()
    for (let i = 0; i < pairs; i += 1) {
      const [id, own] = [idOf(chance), ownOf(chance)]
      const name = listedName(id, own, length)
      expect(name).toMatch(/^[A-Za-z0-9_-]{1,64}$/)
      expect(name.length).toBeLessThanOrEqual(length)
      // The same on every replica, at any time.
      expect(listedName(id, own, length)).toBe(name)
      const pair = JSON.stringify([id, own])
      expect(byName.get(name) ?? pair).toBe(pair)
      byName.set(name, pair)
      const called = readCalledName(name)
      expect(called).toEqual(
        /_[0-9a-f]{8}$/.test(name) ? { kind: 'listed' } : { kind: 'joined', connectionId: id, own },
      )
    }
  }
})

test('plain names are the id and the own name; all others end with a hash of both', () => {
  const hashed = (id: string, own: string, readable: string) =>
    `${readable}_${createHash('sha256').update(`${id}\0${own}`).digest('hex').slice(0, 8)}`
  const cases: readonly [string, string, string][] = [
    ['github', 'search', 'github__search'],
    ['a-b_c', '_x', 'a-b_c___x'],
    ['github', 'a__b', 'github__a__b'],
    ['a.b', 'search', hashed('a.b', 'search', 'a_b__search')],
    ['a__b', 'search', hashed('a__b', 'search', 'a__b__search')],
    ['a_', 'search', hashed('a_', 'search', 'a___search')],
    ['github', '', hashed('github', '', 'github__')],
    ['github', 'issues.get', hashed('github', 'issues.get', 'github__issues_get')],
    ['github', '😀é', hashed('github', '😀é', 'github____')],
    ['github', '😀'.repeat(60), hashed('github', '😀'.repeat(60), `github__${'_'.repeat(29)}`)],
    ['github', 'x_0123abcd', hashed('github', 'x_0123abcd', 'github__x_0123abcd')],
    ['github', 'x'.repeat(38), `github__${'x'.repeat(38)}`],
    ['github', 'x'.repeat(39), hashed('github', 'x'.repeat(39), `github__${'x'.repeat(29)}`)],
  ]
  for (const [id, own, name] of cases) expect(listedName(id, own, 46)).toBe(name)
  expect(listedName('github', 'x'.repeat(56), 64)).toBe(`github__${'x'.repeat(56)}`)
  expect(listedName('github', 'x'.repeat(57), 64)).toBe(hashed('github', 'x'.repeat(57), `github__${'x'.repeat(47)}`))
})

test('a called name is divided at its first separator', () => {
  const cases: readonly [string, object][] = [
    ['a.b__c', { kind: 'joined', connectionId: 'a', own: 'b__c' }],
    ['a__b.c', { kind: 'joined', connectionId: 'a', own: 'b.c' }],
    ['a___b', { kind: 'joined', connectionId: 'a', own: '_b' }],
    ['a.x_0123abcd', { kind: 'joined', connectionId: 'a', own: 'x_0123abcd' }],
    ['a__x_0123abcd', { kind: 'listed' }],
    ['search', { kind: 'bare' }],
  ]
  for (const [name, read] of cases) expect(readCalledName(name)).toEqual(read as ReturnType<typeof readCalledName>)
})

function idOf(chance: Random): string {
  for (;;) {
    const characters = chance.pick(['ab', 'ab_-', 'aB9._-'])
    const id = Array.from({ length: 1 + chance.int(chance.pick([3, 12, 128])) }, () =>
      chance.pick([...characters]),
    ).join('')
    if (isConnectionId(id)) return id
  }
}

function ownOf(chance: Random): string {
  const characters = chance.pick(['ab', 'ab_-', 'a.b/ _', 'é😀\u0000\ud83d', '0123456789abcdef_'])
  return Array.from({ length: chance.int(chance.pick([4, 20, 80])) }, () => chance.pick([...characters]))
    .join('')
    .toWellFormed()
}
