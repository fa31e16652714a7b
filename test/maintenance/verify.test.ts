/** What `postern store verify` says of records that belong to an organization which is missing. */

import { expect, test } from 'bun:test'
import { makeApiKey } from '../../src/auth/api-key.ts'
import { memberEntry, namespaceEntry, organizationEntry, withIndex } from '../../src/storage/directory-records.ts'
import { keyOf } from '../../src/storage/keys.ts'
import { createTestPlatform, problemsOf, startOfTime } from '../support/platform.ts'

const organizationId = 'acme'
const now = new Date(startOfTime)
const wanted = { userId: 'organization:acme', organizationId, name: 'ci', operator: false, now }

test.each([
  ['member acme/ada', () => withIndex(memberEntry(organizationId, 'ada', 'owner'))],
  ['namespace acme-one', () => withIndex(namespaceEntry({ namespace: 'acme-one', organizationId }))],
  ['API key key_', () => makeApiKey(Buffer.alloc(32), wanted).puts],
])('%s needs its organization', async (name, entries) => {
  const { store } = await createTestPlatform()
  const organization = organizationEntry({ organizationId, name: 'Acme' })
  await store.commit({ puts: [organization, ...entries()] })
  expect(await problemsOf({ store })).toEqual([])
  await store.commit({ deletes: [keyOf('organization', organizationId)] })
  const [problem, ...others] = await problemsOf({ store })
  expect(others).toEqual([])
  expect(problem).toStartWith(name)
  expect(problem).toEndWith(': its organization acme is missing')
})
