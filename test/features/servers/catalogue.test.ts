/** The catalogue, held to what is in the store after any writes. */

import { expect, test } from 'bun:test'
import { Catalogue } from '../../../src/features/servers/catalogue.ts'
import { newDetail } from '../../../src/features/servers/changed-server.ts'
import { createSearchedWords } from '../../../src/features/servers/searched-words.ts'
import { allSearchedWordsMax, namespaceSearchedWordsMax, searchedWordsMax } from '../../../src/limits.ts'
import { namespaceOf } from '../../../src/model/names.ts'
import { listingOf, noExtras } from '../../../src/model/server.ts'
import { drained } from '../../../src/schema/steps.ts'
import {
  listingChangesKept,
  listingEntry,
  namespaceEntry,
  newListingVersions,
} from '../../../src/storage/directory-records.ts'
import { listingChangesKey, listingKey } from '../../../src/storage/keys.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { random } from '../../support/random.ts'

test('has all servers in the order of their names, after few changes and after many', async () => {
  const chance = random(11)
  const store = openMemoryStore()
  const catalogue = new Catalogue(store)
  const stored = new Map<string, string>()
  const namespaces = ['a', 'a-b', 'ab', 'b', 'B']
  for (let round = 0; round < 400; round += 1) {
    const changes = new Map<string, string | undefined>()
    const many = chance.pick([1, 1, 2, 5, 60])
    while (changes.size < many) {
      const server = chance.pick(['', '/x', `/${chance.int(40)}`, `/x${chance.int(9)}`])
      changes.set(`${chance.pick(namespaces)}${server}`, chance.int(3) === 0 ? undefined : `version ${round}`)
    }
    for (const [name, url] of changes) {
      if (url === undefined) stored.delete(name)
      else stored.set(name, url)
    }
    const before = await store.get(listingChangesKey)
    const of = (url: string | undefined) => (url === undefined ? [] : [url])
    await store.commit({
      puts: [
        ...[...changes].flatMap(([name, given]) =>
          of(given).map((repositoryUrl) =>
            listingEntry(listingOf(newDetail(name).detail, { ...noExtras, repositoryUrl })),
          ),
        ),
        ...newListingVersions([...changes.keys()], chance.int(10) === 0 ? undefined : before),
      ],
      deletes: [...changes].flatMap(([name, given]) => (given === undefined ? [listingKey(name)] : [])),
    })
    // One, a few or many changes after the last time.
    if (chance.int(round < 60 ? 2 : 40) > 0) continue
    await catalogue.refresh()
    expect(catalogue.all().map(({ qualifiedName, repositoryUrl }) => [qualifiedName, repositoryUrl])).toEqual(
      [...stored].sort(([a], [b]) => (a < b ? -1 : 1)),
    )
    const withServers = new Set([...stored.keys()].map(namespaceOf))
    for (const namespace of [...namespaces, 'c'])
      expect({ namespace, has: catalogue.hasServers(namespace) }).toEqual({
        namespace,
        has: withServers.has(namespace),
      })
  }
})

const textOf = (server: string, count: number) => Array.from({ length: count }, (_, i) => `w${server}x${i}`).join(' ')
const findIn = (searched: Pick<Catalogue, 'search'>, word: string) =>
  drained(searched.search([word], { most: 500, isWanted: () => true })).map(({ id }) => id)

test('has so many words of a server, and of a namespace, that nobody fills the memory with them', async () => {
  const words = createSearchedWords()
  const find = (word: string) => findIn(words, word)
  const put = (server: number, namespace = 'a') => {
    const holder = { keyId: namespace, family: namespace }
    const qualifiedName = `${namespace}/s${server}`
    words.put(qualifiedName, holder, [qualifiedName, 'Name', '', textOf(`${server}`, 3000)], true)
  }
  put(0)
  // Three words are those of its names.
  expect([find(`w0x${searchedWordsMax - 4}`), find(`w0x${searchedWordsMax - 3}`)]).toEqual([['a/s0'], []])
  const full = namespaceSearchedWordsMax / searchedWordsMax
  for (let server = 1; server <= full; server += 1) put(server)
  // The namespace is full: another server is found by its names, and in another namespace by all.
  put(full + 1)
  put(full + 1, 'b')
  expect([find(`s${full + 1}`).sort(), find(`w${full + 1}x100`)]).toEqual([
    [`a/s${full + 1}`, `b/s${full + 1}`],
    [`b/s${full + 1}`],
  ])
  // What goes makes room.
  for (const server of [0, 1]) words.remove(`a/s${server}`)
  put(full + 1)
  expect(find(`w${full + 1}x100`).sort()).toEqual([`a/s${full + 1}`, `b/s${full + 1}`])
})

test.each(['a', 'z'])(
  'an owner of many namespaces, who comes first or last, leaves room for the words of others (%s)',
  async (other) => {
    const store = openMemoryStore()
    const many = Array.from({ length: 8 }, (_, i) => `m${i}`)
    const [servers, words] = [35, 1400]
    const all = [...many, other, 'late']
    const named = (namespace: string) =>
      Array.from({ length: servers }, (_, i) => {
        const first = (all.indexOf(namespace) * servers + i) * words
        return { name: `s${namespace}${i}q`, word: (at: number) => `w${(first + at).toString(36)}` }
      })
    const put = (namespace: string, some: number) => {
      const entries = named(namespace)
        .slice(0, some)
        .map(({ name, word }) => {
          const description = Array.from({ length: words }, (_, at) => word(at)).join(' ')
          return listingEntry(listingOf({ ...newDetail(`${namespace}/${name}`).detail, description }, noExtras))
        })
      return store.commit({
        puts: [...entries, ...newListingVersions(named(namespace).map(({ name }) => `${namespace}/${name}`))],
      })
    }
    const owners = [
      { namespace: other, userId: 'ada' },
      ...many.map((namespace) => ({ namespace, organizationId: 'org' })),
    ]
    await store.commit({ puts: owners.map(namespaceEntry) })
    for (const namespace of many) await put(namespace, servers)
    await put(other, 20)
    // As after a restart, in the order of the store; and then one that comes when all others are there.
    const catalogue = new Catalogue(store)
    await catalogue.refresh()
    await put('late', 5)
    await catalogue.refresh()
    const wholly = all.map((namespace) => {
      const there = named(namespace).filter(({ name }) => catalogue.find(`${namespace}/${name}`) !== undefined)
      for (const { name } of there) expect(findIn(catalogue, name)).toEqual([`${namespace}/${name}`])
      return there.filter(({ word }) => findIn(catalogue, word(words - 1)).length > 0).length
    })
    expect(wholly.slice(-2)).toEqual([20, 5])
    const held = wholly.slice(0, -2).reduce((sum, one) => sum + one, 0) * words
    expect({ held, isHalf: held <= allSearchedWordsMax / 2, isUsed: held > allSearchedWordsMax / 4 }).toEqual({
      held,
      isHalf: true,
      isUsed: true,
    })
  },
)

test('reads the listings that were written since, and not their groups', async () => {
  const store = openMemoryStore()
  const read: string[] = []
  const catalogue = new Catalogue({
    ...store,
    getMany(keys) {
      read.push(...keys.map((key) => Buffer.from(key).toString()))
      return store.getMany(keys)
    },
    range(range) {
      read.push('a range')
      return store.range(range)
    },
  })
  const write = async (name: string, repositoryUrl: string) => {
    const entry = listingEntry(listingOf(newDetail(name).detail, { ...noExtras, repositoryUrl }))
    await store.commit({ puts: [entry, ...newListingVersions([name], await store.get(listingChangesKey))] })
  }
  const written = async (times: number) => {
    read.length = 0
    for (let i = 0; i < times; i += 1) await write(`a/s${i % 3}`, `text ${i}`)
    await catalogue.refresh()
    return read
  }
  expect(await written(3)).toContain('a range')
  expect(await written(1)).toEqual([Buffer.from(listingKey('a/s0')).toString()])
  expect((await written(listingChangesKept - 1)).sort()).toEqual(
    [0, 1, 2].map((i) => Buffer.from(listingKey(`a/s${i}`)).toString()).sort(),
  )
  expect(await written(listingChangesKept)).toContain('a range')
  expect(catalogue.find('a/s0')?.repositoryUrl).toBe(`text ${listingChangesKept - 1}`)
})

test('keeps no text of a listing that its owner can make as long as it likes', async () => {
  const store = openMemoryStore()
  const long = 'weather '.repeat(1000)
  const tools = [{ name: 'find_weather', description: long, inputSchema: { type: 'object' as const } }]
  const detail = { ...newDetail('a/s').detail, displayName: long, description: long, iconUrl: `data:,${long}`, tools }
  const serverJson = { name: 'com.a/s', description: long, version: '1', title: long }
  const listing = listingOf(detail, { ...noExtras, license: long, homepage: long, serverJson })
  await store.commit({ puts: [listingEntry(listing), ...newListingVersions(['a/s'])] })
  const catalogue = new Catalogue(store)
  await catalogue.refresh()
  const { searched, ...kept } = catalogue.find('a/s') ?? {}
  expect(JSON.stringify(kept).length).toBeLessThan(300)
  expect(findIn(catalogue, 'weather')).toEqual(['a/s'])
})

test('counts the servers of an owner in all of its namespaces', async () => {
  const store = openMemoryStore()
  const owned = { a: { organizationId: 'org_x' }, b: { organizationId: 'org_x' }, c: { userId: 'ada' } }
  await store.commit({
    puts: Object.entries(owned).map(([namespace, owner]) => namespaceEntry({ namespace, ...owner })),
  })
  const catalogue = new Catalogue(store)
  const counts = async () => {
    await catalogue.refresh()
    return Promise.all(['a', 'b', 'c', 'none'].map((namespace) => catalogue.ownedWith(namespace)))
  }
  const put = async (...names: string[]) => {
    const puts = names.map((name) => listingEntry(listingOf(newDetail(name).detail, noExtras)))
    await store.commit({ puts: [...puts, ...newListingVersions(names, await store.get(listingChangesKey))] })
  }
  expect(await counts()).toEqual([0, 0, 0, 0])
  await put('a', 'a/one', 'b/one', 'c/one')
  expect(await counts()).toEqual([3, 3, 1, 0])
  await put('a/one')
  await store.commit({
    puts: newListingVersions(['b/one'], await store.get(listingChangesKey)),
    deletes: [listingKey('b/one')],
  })
  expect(await counts()).toEqual([2, 2, 1, 0])
})
