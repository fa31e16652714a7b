/** What the audit log has of writes to the directory: each change once, and nothing where nothing changed. */

import { expect, test } from 'bun:test'
import { apiOf } from '../../support/api.ts'
import { createTestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'

test('a write that changes nothing is answered as the one before, and is not in the audit log', async () => {
  const platform = await createTestPlatform()
  const ada = apiOf(platform.fetch, sampleKeys.ada)
  const operator = ada.as(sampleKeys.operator)
  const writes: [api: typeof ada, path: string, body: object, event: string][] = [
    [operator, 'PUT /organizations/acme', { owner: 'ada' }, 'organization.created'],
    [operator, 'PUT /organizations/acme', { owner: 'ada', name: 'Acme' }, 'organization.changed'],
    [ada, 'PUT /organizations/acme/members/grace', { role: 'member' }, 'member.changed'],
    [ada, 'PUT /namespaces/lab-one', {}, 'namespace.created'],
    [ada, 'PATCH /namespaces/lab-one', { pins: 'block' }, 'namespace.changed'],
    [ada, 'PUT /servers/lab-one/thing', { description: 'Does it' }, 'server.created'],
    [ada, 'PUT /servers/lab-one/thing', { description: 'Does more' }, 'server.changed'],
    [ada, 'PATCH /servers/lab-one/thing', { license: 'MIT' }, 'server.changed'],
  ]
  for (const [api, path, body, event] of writes) {
    platform.audited.length = 0
    const first = await api(path, body)
    const again = await api(path, body)
    expect({ path, events: platform.audited.map((one) => one['event']) }).toEqual({ path, events: [event] })
    expect([first.status < 300, again.status < 300, again.body]).toEqual([true, true, first.body])
  }
})
