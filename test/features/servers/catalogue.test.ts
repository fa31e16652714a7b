/** The catalogue, held to what is in the store after any writes. */

import { expect, test } from 'bun:test'
import { createCatalogue } from '../../../src/features/servers/catalogue.ts'
import { newDetail } from '../../../src/features/servers/merge.ts'
import { createSearchedWords } from '../../../src/features/servers/searched-words.ts'
import { namespaceSearchedWordsMax, searchedWordsMax } from '../../../src/limits.ts'
import { namespaceOf } from '../../../src/model/names.ts'
import { listingOf, noExtras } from '../../../src/model/server.ts'
import { listingKey } from '../../../src/storage/keys.ts'
import { openMemoryStore } from '../../../src/storage/memory.ts'
import { listingEntry, newListingVersions } from '../../../src/storage/registry-records.ts'
import { random } from '../../support/random.ts'

test('has all servers in the order of their names, after few changes and after many', async () => {
  const chance = random(11)
  const store = openMemoryStore()
  const catalogue = createCatalogue(store)
  const stored = new Map<string, string>()
  const namespaces = ['a', 'a-b', 'ab', 'b', 'B']
  for (let round = 0; round < 200; round += 1) {
    const changes = new Map<string, string | undefined>()
    const many = chance.pick([1, 1, 2, 5, 60])
    while (changes.size < many) {
      const server = chance.pick(['', '/x', `/${chance.int(40)}`, `/x${chance.int(9)}`])
      changes.set(`${chance.pick(namespaces)}${server}`, chance.int(3) === 0 ? undefined : `version ${round}`)
    }
    for (const [name, description] of changes) {
      if (description === undefined) stored.delete(name)
      else stored.set(name, description)
    }
    const of = (description: string | undefined) => (description === undefined ? [] : [description])
    await store.commit({
      puts: [
        ...[...changes].flatMap(([name, given]) =>
          of(given).map((description) => listingEntry(listingOf({ ...newDetail(name).detail, description }, noExtras))),
        ),
        ...newListingVersions([...changes.keys()]),
      ],
      deletes: [...changes].flatMap(([name, given]) => (given === undefined ? [listingKey(name)] : [])),
    })
    await catalogue.refresh()
    expect(catalogue.all().map(({ listing }) => [listing.qualifiedName, listing.description])).toEqual(
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

test('has so many words of a server, and of a namespace, that nobody fills the memory with them', async () => {
  const words = createSearchedWords()
  const find = (word: string) => {
    const search = words.search([word], { most: 500, isWanted: () => true })
    let step = search.next()
    while (step.done !== true) step = search.next()
    return step.value.map(({ id }) => id)
  }
  const textOf = (server: number, count: number) => Array.from({ length: count }, (_, i) => `w${server}x${i}`).join(' ')
  const put = (server: number, namespace = 'a') =>
    words.put({
      qualifiedName: `${namespace}/s${server}`,
      namespace,
      texts: [`${namespace}/s${server}`, 'Name', '', textOf(server, 3000)],
      isListed: true,
    })
  put(0)
  expect([find(`w0x${searchedWordsMax - 10}`), find(`w0x${searchedWordsMax}`)]).toEqual([['a/s0'], []])
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
