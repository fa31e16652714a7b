/** The catalogue, held to what is in the store after any writes. */

import { expect, test } from 'bun:test'
import { createCatalogue } from '../../../src/features/servers/catalogue.ts'
import { newDetail } from '../../../src/features/servers/merge.ts'
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
