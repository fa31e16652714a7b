/** A credential that is revoked while its question is under way is told nothing. */

import { expect, test } from 'bun:test'
import { revokeToken } from '../../../src/auth/revocation.ts'
import { mintToken } from '../../api/cases.ts'
import { openMemoryStore } from '../../support/memory-store.ts'
import { slowBody } from '../../support/pages.ts'
import { createTestPlatform, issuer, startOfTime } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { bearer, localUpstream } from '../../support/upstream.ts'
import { callTool, signInClient } from '../authorization/world.ts'
import { ada, world } from './acme.ts'

/** `whenAsked`: before the last byte of the body arrives, once the request has been accepted. */
async function asked(path: string, body: object, whenAsked: () => Promise<unknown>, store = openMemoryStore()) {
  const platform = await createTestPlatform({ sources: [world], store })
  const token = await mintToken(platform.fetch, ada)
  const { jti } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
  const revoke = () => revokeToken(platform.store, jti, { exp: undefined, nowSeconds: startOfTime / 1000 })
  const send = () =>
    platform.fetch(path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: slowBody(JSON.stringify(body), whenAsked),
    })
  return { platform, revoke, send }
}

for (const [operation, body] of Object.entries({
  explain: { request: { namespace: 'acme', connection: 'crm', tool: 'find' } },
  lint: { policy: [{ operations: 'execute' }] },
  coverage: {},
  diff: { old: { policy: [{ operations: 'write' }] }, new: { policy: [{ operations: 'read' }] } },
  suggest: {},
}))
  test(`${operation} with a body that takes its time`, async () => {
    let revoke = async () => {}
    const question = await asked(`/tokens/${operation}`, body, () => revoke())
    revoke = question.revoke
    expect((await question.send()).status).toBe(401)
  })

test('coverage that takes its time', async () => {
  const store = openMemoryStore()
  let revoke: (() => Promise<void>) | undefined
  const { getMany } = store
  store.getMany = async (...wanted) => {
    const once = revoke
    revoke = undefined
    await once?.()
    if (once !== undefined) question.platform.now += 100
    return getMany.apply(store, wanted)
  }
  const question: Awaited<ReturnType<typeof asked>> = await asked('/tokens/coverage', {}, async () => {}, store)
  revoke = question.revoke
  expect((await question.send()).status).toBe(401)
  expect(revoke).toBeUndefined()
})

test('a client that was allowed a connection is refused at another one of its name, as explained', async () => {
  const platform = await createTestPlatform({ upstream: localUpstream() })
  const send = (method: string, path: string, body?: object) =>
    platform.fetch(path, {
      method,
      headers: bearer(sampleKeys.ada),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
  const make = () => send('PUT', '/connect/ada/mine', { server: 'northwind/weather', mock: { enabled: true } })
  expect((await make()).status).toBe(201)
  const resource = `${issuer}/connect/ada/mine/mcp`
  const { access_token: token } = (await signInClient(platform, {}, 'ada', { resource })).answer
  const explained = async () => {
    const request = { namespace: 'ada', connection: 'mine', tool: 'get_forecast' }
    const answer = await (await send('POST', '/tokens/explain', { token, request })).json()
    return (answer as { verdict: string; status: number }).verdict
  }
  const called = async () => (await callTool(platform, token, 'get_forecast', new URL(resource).pathname)).status
  expect([await explained(), await called()]).toEqual(['allow', 200])
  expect((await send('DELETE', '/connect/ada/mine')).status).toBe(200)
  platform.now += 1000
  expect((await make()).status).toBe(201)
  expect([await explained(), await called()]).toEqual(['refuse', 401])
})
