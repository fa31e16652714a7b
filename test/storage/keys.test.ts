/** The layout of keys: what is put together is taken apart again, and nothing runs into anything else. */

import { expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import {
  directoryVersionKey,
  expiringKey,
  idOfKey,
  keyOf,
  listingKey,
  manifestKey,
  namespaceIn,
  prefixOf,
  prefixRange,
  signingKeysKey,
  stagedKey,
  termDigest,
  termEntries,
  termKey,
} from '../../src/storage/keys.ts'
import { isSmall, type ParsedKey, parseKey, recordKinds, recordName } from '../../src/storage/record-kinds.ts'
import type { Key } from '../../src/storage/store.ts'

/** A term may hold any byte. */
const term = Buffer.from('00ff2f0061000000ff6178000a0d0063', 'hex')

const rows: [key: Key, parsed: ParsedKey, name: string][] = [
  [keyOf('organization', 'org'), { kind: 'organization', organizationId: 'org' }, 'organization org'],
  [keyOf('member', 'org', 'änne'), { kind: 'member', organizationId: 'org', userId: 'änne' }, 'member org/änne'],
  [keyOf('namespace', 'acme'), { kind: 'namespace', namespace: 'acme' }, 'namespace acme'],
  [keyOf('apiKey', 'key_1'), { kind: 'apiKey', keyId: 'key_1' }, 'API key key_1'],
  [keyOf('apiKeyDigest', 'ab12'), { kind: 'apiKeyDigest', digest: 'ab12' }, 'hash of an API key ab12'],
  [keyOf('server', 'acme/notes'), { kind: 'server', qualifiedName: 'acme/notes' }, 'server acme/notes'],
  [keyOf('mock', 'acme/notes', '01'), { kind: 'mock', server: 'acme/notes', position: '01' }, 'mock acme/notes/01'],
  [
    keyOf('connection', 'acme', 'notes'),
    { kind: 'connection', namespace: 'acme', connectionId: 'notes' },
    'connection acme/notes',
  ],
  [
    keyOf('connectionPrivate', 'acme', 'notes'),
    { kind: 'connectionPrivate', namespace: 'acme', connectionId: 'notes' },
    'private part of connection acme/notes',
  ],
  [
    termKey('acme', term, 'notes'),
    { kind: 'indexEntry', namespace: 'acme', connectionId: 'notes' },
    'index entry of connection acme/notes',
  ],
  [
    keyOf('connectionsVersion', 'acme'),
    { kind: 'connectionsVersion', namespace: 'acme' },
    'version of the connections of acme',
  ],
  [keyOf('usage', 'acme'), { kind: 'usage', namespace: 'acme' }, 'usage of namespace acme'],
  [keyOf('revocation', 'tok_1'), { kind: 'revocation', jti: 'tok_1' }, 'revocation of token tok_1'],
  [signingKeysKey, { kind: 'signingKeys' }, 'signing keys'],
  [directoryVersionKey, { kind: 'directoryVersion' }, 'version of the directory'],
  [keyOf('started'), { kind: 'started' }, 'time of the first start'],
  [keyOf('baseUrl'), { kind: 'baseUrl' }, 'base URL'],
  [keyOf('fixturesDigest'), { kind: 'fixturesDigest' }, 'list of the loaded fixtures'],
  [manifestKey(12), { kind: 'fixturesManifest', part: '000012' }, 'list of the loaded fixtures'],
  [stagedKey, { kind: 'staged' }, 'list of namespaces that are being loaded'],
]
for (const [key, parsed, name] of rows) {
  test(`${parsed.kind}: read as it was written, and called ${name}`, () => {
    expect(parseKey(key)).toEqual(parsed)
    expect(recordName(key)).toBe(name)
  })
}

test('each kind of record has its own letter, and a row in the README', () => {
  const letters = Object.values(recordKinds).map(({ letter }) => letter)
  expect(new Set(letters).size).toBe(letters.length)
  const table = readFileSync(join(import.meta.dir, '../../src/storage/README.md'), 'utf8')
  const rows = [...table.matchAll(/^\|([^|]+)\|/gm)].map(([, cell = '']) => cell)
  const described = rows.flatMap((cell) => [...cell.matchAll(/`(\w)`/g)].map(([, letter]) => letter))
  expect(letters.filter((letter) => !described.includes(letter))).toEqual([])
})

test('records that somebody else can make large are of no small kind', () => {
  const large = rows.filter(([key]) => !isSmall(key)).map(([, { kind }]) => kind)
  const others = ['server', 'mock', 'connection', 'connectionPrivate', 'fixturesManifest', 'staged']
  expect(new Set<string>(large)).toEqual(new Set(others))
  const rest = [
    listingKey('a/b'),
    expiringKey(1, 'a'),
    keyOf('grant', 'a'),
    keyOf('oauthClient', 'a'),
    keyOf('upstreamClient', 'a'),
  ]
  expect(rest.filter(isSmall)).toEqual([])
  expect(isSmall(Buffer.from('?a'))).toBe(false)
})

test('a key of a later version is read by nobody, and named as it is', () => {
  expect(parseKey(Buffer.from('?a\0b'))).toBeUndefined()
  expect(recordName(Buffer.from('?a\0b'))).toBe('record ?a/b')
})

test('all keys with a prefix, and no others, are in its range', () => {
  const { gte, lt } = prefixRange(prefixOf('connection', 'acme'))
  const isIn = (key: Key) => Buffer.compare(key, gte) >= 0 && Buffer.compare(key, lt) < 0
  for (const id of ['a', 'zzz', '\xff'])
    expect(isIn(Buffer.concat([prefixOf('connection', 'acme'), Buffer.from(id, 'latin1')]))).toBe(true)
  for (const other of ['acm', 'acme-2', 'acmf']) expect(isIn(keyOf('connection', other, 'a'))).toBe(false)
  expect([...prefixRange(Buffer.of(1, 0xff, 0xff)).lt]).toEqual([2])
  expect(() => prefixRange(Buffer.of(0xff))).toThrow('has no end')
  expect(isIn(prefixOf('mock', 'acme'))).toBe(false)
})

test('parts of a key are found again without taking all of it apart', () => {
  const key = keyOf('connection', 'acme', 'notes')
  expect([namespaceIn(key), idOfKey(prefixOf('connection', 'acme'), key)]).toEqual(['acme', 'notes'])
  expect(idOfKey(termEntries('acme', term), termKey('acme', term, 'notes'))).toBe('notes')
})

test('facts that are not the same have other terms', () => {
  const facts: Parameters<typeof termDigest>[] = [
    ['name', '', 'x'],
    ['mcpUrl', '', 'x'],
    ['string', '', 'x'],
    ['json', '', 'x'],
    ['string', 'x', ''],
    ['string', 'a', 'bc'],
    ['string', 'ab', 'c'],
  ]
  const terms = facts.map((fact) => Buffer.from(termDigest(...fact)).toString('hex'))
  expect(new Set(terms).size).toBe(facts.length)
  for (const one of terms) expect(one).toHaveLength(32)
  // They are on disk.
  expect(terms[0]).toBe('473caaa229424ae05e1b015cb954f3ec')
})
