/** A token may never do more to the directory than the one that minted it, and lists show it no more. */

import { expect, test } from 'bun:test'
import { mintToken } from '../../api/cases.ts'
import { type Api, apiOf } from '../../support/api.ts'
import { createTestPlatform } from '../../support/platform.ts'
import { type Random, random } from '../../support/random.ts'
import { sampleKeys } from '../../support/sample.ts'

const namespaces = ['northwind', 'northwind-ops', 'ada', 'priya', 'lab-one', 'nowhere']

function constraint(chance: Random): object {
  const some = (all: readonly string[]) => all.filter(() => chance.chance(0.6))
  const fields: Record<string, unknown> = {}
  const add = (name: string, values: readonly string[]) => {
    if (values.length > 0 && chance.chance(0.4)) fields[name] = values
  }
  add('namespaces', some(namespaces))
  add('resources', some(['connections', 'servers', 'namespaces', 'skills']))
  add('operations', some(['read', 'write', 'execute']))
  if (chance.chance(0.1)) fields['metadata'] = { team: 'x' }
  return Object.keys(fields).length === 0 ? { ttl: '1h' } : fields
}

/** Requests that change nothing, whoever may make them. */
const requests = [
  'GET /me',
  'GET /servers?pageSize=100',
  'GET /servers?q=weather',
  'GET /namespaces',
  ...namespaces.flatMap((name) => [`GET /namespaces/${name}`, `PUT /namespaces/${name}`]),
  'GET /servers/northwind/weather',
  'PUT /servers/lab-one/thing',
  'PATCH /servers/lab-one/thing',
  'POST /servers/lab-one/thing/.introspect',
  'DELETE /namespaces/northwind',
  'GET /organizations/org_northwind',
  'GET /organizations/org_northwind/api-keys',
]

/** The names that a response shows. */
function shown(body: unknown): string[] {
  const { servers = [], namespaces: listed = [] } = body as Record<string, { qualifiedName?: string; name?: string }[]>
  return [...servers, ...listed].map(({ qualifiedName, name }) => qualifiedName ?? name ?? '')
}
/** What is only said to those whom policy and role let pass: a 400 or 409 comes after them. */
const passed = (status: number) => ![401, 403, 404].includes(status)

test('for random chains of tokens, every operation and every list', async () => {
  const platform = await createTestPlatform()
  const chance = random(11)
  const key = apiOf(platform.fetch, sampleKeys.ada)
  await key('PUT /namespaces/lab-one')
  await key('PUT /servers/lab-one/thing')
  await key('PUT /servers/lab-one/hidden', { unlisted: true })
  let [allowed, denied] = [0, 0]
  for (let chain = 0; chain < 30; chain += 1) {
    let parent: Api = key
    let credential: string = sampleKeys.ada
    const policy: object[] = []
    for (let depth = 0; depth < 3; depth += 1) {
      policy.push(constraint(chance))
      const scope = depth === 0 && chance.chance(0.2) ? { organizationId: 'org_northwind' } : {}
      credential = await mintToken(platform.fetch, credential, { policy: policy.slice(-1), ...scope })
      const child = key.as(credential)
      for (const request of requests) {
        const [mine, theirs] = [await child(request), await parent(request)]
        const isMore = passed(mine.status) && !passed(theirs.status)
        const more = shown(mine.body).filter((name) => !shown(theirs.body).includes(name))
        expect({ policy, request, isMore, more }).toEqual({ policy, request, isMore: false, more: [] })
        if (passed(mine.status)) allowed += 1
        else denied += 1
      }
      parent = child
    }
  }
  // Neither is nearly all.
  expect(Math.min(allowed, denied)).toBeGreaterThan(500)
})
