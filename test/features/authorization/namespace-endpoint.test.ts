/** Sign-in at the endpoint of a namespace, and of a view of it. */

import { beforeEach, describe, expect, test } from 'bun:test'
import { createTestPlatform, issuer, type TestPlatform } from '../../support/platform.ts'
import { sampleKeys } from '../../support/sample.ts'
import { bearer } from '../../support/upstream.ts'
import { authorizePath, callTool, newVerifier, refresh, register, signedIn, signInClient } from './world.ts'

let platform: TestPlatform
beforeEach(async () => {
  platform = await createTestPlatform()
})
const endpoint = '/connect/northwind/mcp'
const view = `${endpoint}/merchandising`
const ask = (method: string, path: string, body?: object) =>
  platform.fetch(path, { method, headers: bearer(sampleKeys.ada), ...(body && { body: JSON.stringify(body) }) })
const toolsAt = async (path: string, token: string) => {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  const response = await platform.fetch(path, { method: 'POST', headers: bearer(token), body })
  if (response.status !== 200) return response.status
  const { result } = (await response.json()) as { result: { tools: { name: string }[] } }
  return result.tools.map(({ name }) => name)
}

for (const path of [endpoint, view]) {
  describe(path, () => {
    const parameters = { resource: `${issuer}${path}` }

    test('leads to its document, and a token of it is good there alone', async () => {
      const refused = await platform.fetch(path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      })
      const document = `/.well-known/oauth-protected-resource${path}`
      expect(refused.headers.get('www-authenticate')).toContain(`resource_metadata="${issuer}${document}"`)
      expect(await (await platform.fetch(document)).json()).toMatchObject({ resource: `${issuer}${path}` })
      const { answer } = await signInClient(platform, {}, 'ada', parameters)
      const token = answer.access_token ?? ''
      expect(String(await toolsAt(path, token))).toContain('__get_forecast')
      for (const other of [path === view ? endpoint : view, '/connect/northwind/weather-ada/mcp'])
        expect((await callTool(platform, token, 'x', other)).status).toBe(401)
    })

    test('the consent page says what is asked for, and its tools by their own names', async () => {
      const { client_id: clientId } = await register(platform)
      const asked = authorizePath({ clientId, verifier: newVerifier() }, parameters)
      const page = await (await platform.fetch(asked, { headers: { cookie: await signedIn(platform) } })).text()
      expect(page).toContain(path === view ? 'northwind, view merchandising' : 'northwind, all connections')
      expect(page).toContain('value="get_forecast"')
      const { answer } = await signInClient(platform, { access: 'some', tool: ['get_forecast'] }, 'ada', parameters)
      const tools = (await toolsAt(path, answer.access_token ?? '')) as string[]
      expect(tools.length).toBeGreaterThan(0)
      expect(tools.filter((name) => !name.endsWith('__get_forecast'))).toEqual([])
    })

    test('a refresh goes on, and ends when what was allowed is made anew', async () => {
      const made = path === view ? '/namespaces/ada/views/mine' : '/namespaces/ada-two'
      const body = path === view ? { policy: [] } : {}
      await ask('PUT', made, body)
      const resource = `${issuer}/connect/${path === view ? 'ada/mcp/mine' : 'ada-two/mcp'}`
      platform.now += 2000
      const { answer, clientId } = await signInClient(platform, {}, 'ada', { resource })
      const next = await refresh(platform, clientId, answer.refresh_token ?? '')
      expect(next.status).toBe(200)
      expect(await toolsAt(new URL(resource).pathname, next.access_token ?? '')).toBeArray()
      expect((await ask('DELETE', made)).status).toBe(200)
      platform.now += 2000
      expect((await ask('PUT', made, body)).status).toBe(201)
      expect(await toolsAt(new URL(resource).pathname, next.access_token ?? '')).toBe(401)
      const last = await refresh(platform, clientId, next.refresh_token ?? '')
      expect(last).toMatchObject({ status: 400, error: 'invalid_grant' })
    })
  })
}

test('names that cannot exist have no document', async () => {
  for (const name of ['north%00wind/mcp', 'northwind/mcp/A', 'northwind/mcp/a/b', 'a%2Fb/mcp'])
    expect((await platform.fetch(`/.well-known/oauth-protected-resource/connect/${name}`)).status).toBe(404)
})
