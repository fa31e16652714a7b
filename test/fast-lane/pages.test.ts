/** Pages that are kept ready: which, for how long, and what is counted. */

import { expect, test } from 'bun:test'
import type { Caller } from '../../src/auth/authenticate.ts'
import type { RequestContext } from '../../src/auth/authorizer.ts'
import type { DirectorySnapshot } from '../../src/auth/directory.ts'
import { admissionUrlCharsMax, createAdmissions } from '../../src/fast-lane/admissions.ts'
import { createCallers } from '../../src/fast-lane/callers.ts'
import { createKeptPages, pagesRequestedOnceMax } from '../../src/fast-lane/kept-pages.ts'
import { createLocalVersions } from '../../src/fast-lane/known-versions.ts'
import type { Page, PreparedList } from '../../src/features/connections/connection-lists.ts'
import { keyOf } from '../../src/storage/keys.ts'
import type { LocalReads } from '../../src/storage/store.ts'
import { clockOf } from '../support/clock.ts'
import { openMemoryStore } from '../support/memory-store.ts'

const store = openMemoryStore()
const local = store.local as LocalReads
const versionOf = (text: string) =>
  store.commit({ puts: [{ key: keyOf('connectionsVersion', 'acme'), value: Buffer.from(text) }] })

function pagesOf() {
  const pages = createKeptPages()
  const versions = createLocalVersions(local)
  const list = (name: string) => ({ cacheKey: name }) as unknown as PreparedList
  const page = (version: string): Page =>
    ({ body: new TextEncoder().encode(version), etag: `"${version}"`, version }) as unknown as Page
  const ask = (name: string, headers: Record<string, string> = {}) =>
    pages.respond(list(name), versions.current('acme'), new Request('http://a/', { headers }), () => 'id')
  return { pages, list, page, ask }
}

test('a page is kept once it was asked for twice in one version, until the next', async () => {
  const { pages, list, page, ask } = pagesOf()
  await versionOf('1')
  pages.remember(list('a'), page('1'))
  expect(ask('a')).toBeUndefined()
  pages.remember(list('a'), page('1'))
  expect(await ask('a')?.text()).toBe('1')
  expect(ask('b')).toBeUndefined()
  const unchanged = ask('a', { 'if-none-match': '"1"' })
  expect([unchanged?.status, unchanged?.headers.get('x-request-id')]).toEqual([304, 'id'])
  await versionOf('2')
  expect(ask('a')).toBeUndefined()
  pages.remember(list('a'), page('2'))
  expect(ask('a')).toBeUndefined()
})

test('a page that has no version is not kept', async () => {
  const { pages, list, page, ask } = pagesOf()
  await versionOf('')
  for (let i = 0; i < 3; i += 1) pages.remember(list('a'), page(''))
  await versionOf('1')
  for (let i = 0; i < 3; i += 1) pages.remember(list('a'), { ...page('1'), etag: undefined } as unknown as Page)
  expect(ask('a')).toBeUndefined()
})

test('pages that were made, and that were ready, are counted', async () => {
  const { pages, list, page, ask } = pagesOf()
  await versionOf('1')
  expect(pages.statistics()).toEqual({ hits: 0, misses: 0 })
  pages.remember(list('a'), page('1'))
  pages.remember(list('a'), page('1'))
  for (let i = 0; i < 3; i += 1) ask('a')
  expect(pages.statistics()).toEqual({ hits: 3, misses: 2 })
})

test('what was asked for once is remembered for a thousand pages', async () => {
  const { pages, list, page, ask } = pagesOf()
  await versionOf('1')
  const walk = (count: number) => {
    for (let i = 0; i < count; i += 1) pages.remember(list(`walk ${i}`), page('1'))
  }
  pages.remember(list('a'), page('1'))
  walk(pagesRequestedOnceMax - 1)
  pages.remember(list('a'), page('1'))
  expect(ask('a')).toBeDefined()
})

test('what one caller was admitted to is nobody else’s', () => {
  const admissions = createAdmissions<{ name: string }>({ maxSize: 1000, sizeOf: () => 1 })
  const [ada, eve] = [{}, {}] as [Caller, Caller]
  const admission = { name: 'a' }
  expect(admissions.find(ada, 'u')).toBeUndefined()
  admissions.remember(ada, 'u', admission)
  admissions.remember(ada, 'v', { name: 'b' })
  expect(admissions.find(ada, 'u')).toBe(admission)
  expect(admissions.find(eve, 'u')).toBeUndefined()
  admissions.remember(eve, 'v', { name: 'c' })
  expect([admissions.find(eve, 'u'), admissions.find(ada, 'v'), admissions.find(eve, 'v')]).toEqual([
    undefined,
    { name: 'b' },
    { name: 'c' },
  ])
  const long = 'x'.repeat(admissionUrlCharsMax)
  admissions.remember(ada, long, admission)
  admissions.remember(ada, `${long}x`, admission)
  expect([admissions.find(ada, long), admissions.find(ada, `${long}x`)]).toEqual([admission, undefined])
})

test('a caller is known in the version that it was authenticated under, by one spelling, until its token is over', () => {
  let now = 0
  const callers = createCallers(clockOf(() => now))
  const request = (authorization: string) => new Request('http://a/', { headers: { authorization } })
  const known = (authorization: string, version: string) => callers.find(request(authorization), version) !== undefined
  const remember = (authorization: string, version: string, exp?: number) =>
    callers.remember({
      request: request(authorization),
      caller: { token: exp === undefined ? undefined : { iat: 0, exp } },
      directory: { version } as DirectorySnapshot,
    } as unknown as RequestContext)

  expect(known('Bearer a', '1')).toBe(false)
  remember('Bearer a', '1')
  expect([known('Bearer a', '1'), known('Bearer b', '1')]).toEqual([true, false])
  for (const other of ['bearer b', 'Bearer  b', 'Bearer b c', 'b']) {
    remember(other, '1')
    expect(known(other, '1')).toBe(false)
  }
  // Of a version that is over by now nothing is remembered, and of none nothing either.
  remember('Bearer b', '0')
  expect(known('Bearer b', '1')).toBe(false)
  expect([known('Bearer a', '2'), known('Bearer a', '1')]).toEqual([false, false])
  expect(known('Bearer a', '')).toBe(false)
  remember('Bearer a', '')
  expect(known('Bearer a', '')).toBe(false)

  expect(known('Bearer t', '3')).toBe(false)
  remember('Bearer t', '3', 10)
  now = 9999
  expect(known('Bearer t', '3')).toBe(true)
  now = 10_000
  expect(known('Bearer t', '3')).toBe(false)
})

test('a version is read again after a commit, and not before', async () => {
  let reads = 0
  const versions = createLocalVersions({
    ...local,
    get: (key) => {
      reads += 1
      return local.get(key)
    },
  })
  const current = () => versions.current('acme')
  await versionOf('x')
  expect([current(), current(), reads]).toEqual(['x', 'x', 1])
  await versionOf('y')
  expect([current(), current(), reads]).toEqual(['y', 'y', 2])
  expect(versions.current('other')).toBe('')
  const blind = createLocalVersions({ get: local.get, commitCount: () => undefined })
  expect(blind.current('acme')).toBe('y')
  await versionOf('z')
  expect(blind.current('acme')).toBe('z')
})
