/** Callers, admissions and versions that are remembered: until when, and whose they are. */

import { expect, test } from 'bun:test'
import type { Caller } from '../../src/auth/authenticate.ts'
import { admissionUrlCharsMax, createAdmissions } from '../../src/fast-lane/admissions.ts'
import { createCallers } from '../../src/fast-lane/callers.ts'
import { createRemembered } from '../../src/fast-lane/fast-lane.ts'
import { createLocalVersions } from '../../src/fast-lane/known-versions.ts'
import { clockOf } from '../support/clock.ts'

const requestOf = (authorization: string) => new Request('http://a/', { headers: { authorization } })
const callerOf = (userId: string, token?: { iat: number; exp: number }) => ({ userId, token }) as unknown as Caller
const directoryOf = (version: string) => ({ version }) as never

test('a caller is known by its very header, under the version of the directory that it came with', () => {
  const callers = createCallers(clockOf(() => 0))
  const [ada, request] = [callerOf('ada'), requestOf('Bearer ada')]
  const remember = (version: string, header = 'Bearer ada') =>
    callers.remember({
      caller: ada,
      directory: directoryOf(version),
      request: requestOf(header),
      at: 0,
      namespaces: new Map(),
    })
  // Nobody has asked under a version yet.
  remember('1')
  expect(callers.find(request, '1')).toBeUndefined()
  remember('1')
  expect(callers.find(request, '1')?.caller).toBe(ada)
  expect(callers.find(requestOf('Bearer eve'), '1')).toBeUndefined()
  // Another version forgets it, and the old one does not bring it back.
  expect([callers.find(request, '2'), callers.find(request, '1')]).toEqual([undefined, undefined])
  remember('2')
  expect(callers.find(request, '1')).toBeUndefined()
  for (const spelt of ['bearer ada', 'Bearer  ada', 'Bearer a b', 'Basic ada']) {
    remember('1', spelt)
    expect(callers.find(requestOf(spelt), '1')).toBeUndefined()
  }
  callers.find(request, '')
  remember('')
  expect(callers.find(request, '')).toBeUndefined()
})

test('callers with large policies are kept as far as 32 MB have room for what they are parsed to', () => {
  const callers = createCallers(clockOf(() => 0))
  const token = { policy: [{ metadata: Array.from({ length: 300 }, () => ({ a: 'x' })) }] }
  const requests = Array.from({ length: 400 }, (_, index) => requestOf(`Bearer ${index} `.trim()))
  callers.find(requestOf('Bearer none'), '1')
  for (const request of requests)
    callers.remember({
      caller: callerOf('ada', token as never),
      ...{ directory: directoryOf('1'), request, at: 0, namespaces: new Map() },
    })
  const kept = requests.filter((request) => callers.likely(request) !== undefined).length
  // Measured: 120 kB each, and 180 kB where each set has a key of its own.
  expect(kept).toBeGreaterThan(150)
  expect(kept).toBeLessThan(200)
})

test('a token is known until the second in which it is over', () => {
  let now = 0
  const callers = createCallers(clockOf(() => now))
  const [caller, request] = [callerOf('ada', { iat: 0, exp: 10 }), requestOf('Bearer token')]
  callers.find(request, '1')
  callers.remember({ caller, directory: directoryOf('1'), request, at: 0, namespaces: new Map() })
  now = 9999
  expect(callers.find(request, '1')?.caller).toBe(caller)
  now = 10_000
  expect(callers.find(request, '1')).toBeUndefined()
})

test('an admission is one caller’s to one URL, that is not too long', () => {
  const admissions = createAdmissions<{ what: string }>({ maxSize: 1000, sizeOf: () => 1 })
  const [ada, eve] = [callerOf('ada'), callerOf('ada')]
  const long = 'x'.repeat(admissionUrlCharsMax)
  expect(admissions.find(ada, 'a')).toBeUndefined()
  admissions.remember(ada, 'a', { what: 'ada a' })
  admissions.remember(eve, 'a', { what: 'eve a' })
  admissions.remember(ada, 'b', { what: 'ada b' })
  admissions.remember(ada, long, { what: 'long' })
  admissions.remember(ada, `${long}x`, { what: 'too long' })
  const found = [admissions.find(ada, 'a'), admissions.find(eve, 'a'), admissions.find(ada, 'b')]
  expect(found.map((one) => one?.what)).toEqual(['ada a', 'eve a', 'ada b'])
  expect([admissions.find(eve, 'b'), admissions.find(callerOf('ada'), 'a')]).toEqual([undefined, undefined])
  expect([admissions.find(ada, long)?.what, admissions.find(ada, `${long}x`)]).toEqual(['long', undefined])
})

test('large admissions are forgotten before others', () => {
  const admissions = createAdmissions<{ bytes: number }>({ maxSize: 10, sizeOf: ({ bytes }) => bytes })
  const ada = callerOf('ada')
  for (const url of ['a', 'b', 'c']) admissions.remember(ada, url, { bytes: 4 })
  expect(['a', 'b', 'c'].map((url) => admissions.find(ada, url)?.bytes)).toEqual([undefined, 4, 4])
})

test('a list counts with the policy that stays in memory with it', () => {
  const { lists } = createRemembered(clockOf(() => 0))
  const policy = [
    { metadata: Array.from({ length: 60 }, (_, i) => ({ [`m${i}`]: '1', [`n${i}`]: '0', [`o${i}`]: '1' })) },
  ]
  const callers = Array.from({ length: 2000 }, () => ({ ...callerOf('ada'), token: { policy } as never }))
  const list = { cacheKey: 'x'.repeat(100) } as never
  for (const caller of callers) lists.remember(caller, 'a', list)
  const kept = callers.filter((caller) => lists.find(caller, 'a') !== undefined).length
  // Of 16 MB, where each policy takes about 20 kB. Without one there is room for all.
  expect([kept > 100, kept < 1000]).toEqual([true, true])
  const plain = callers.map(() => callerOf('ada'))
  for (const caller of plain) lists.remember(caller, 'a', list)
  expect(plain.every((caller) => lists.find(caller, 'a') !== undefined)).toBe(true)
})

test('a version is read once until something is written, and each time where writes are not counted', () => {
  let version = 'one'
  let commits: number | undefined = 1
  let reads = 0
  const versions = createLocalVersions({
    get() {
      reads += 1
      return Buffer.from(version)
    },
    commitCount: () => commits,
  })
  const current = () => versions.current()
  expect([current(), current(), reads]).toEqual(['one', 'one', 1])
  version = 'two'
  expect([current(), reads]).toEqual(['one', 1])
  commits = 2
  expect([current(), current(), reads]).toEqual(['two', 'two', 2])
  commits = undefined
  expect([current(), current(), reads]).toEqual(['two', 'two', 4])
})
