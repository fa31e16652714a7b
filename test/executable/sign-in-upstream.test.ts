/**
 * Signing in to a server that oidc-provider guards, through the executable. Where it is not installed (`test/clients`),
 * the tests are skipped.
 */

import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { browser, signInAndConsent } from '../clients/browser.ts'
import { startServer, unlimited, type Workplace, workplace } from '../support/executable.ts'
import { fieldsOf } from '../support/pages.ts'
import { sampleKeys } from '../support/sample.ts'
import { cert, httpsFront } from '../support/tls.ts'

const modes = ['register', 'by-hand', 'document'] as const
type Mode = (typeof modes)[number]
const clients = resolve(import.meta.dir, '../clients')
const isInstalled = existsSync(join(clients, 'node_modules/oidc-provider'))
const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }

/** The servers behind, and the executable in front. */
async function start(place: Workplace, usesOfToken: number, mode: Mode) {
  // An authorization server fetches the document of a client over https alone.
  const front = mode === 'document' ? httpsFront() : undefined
  const base = front === undefined ? [] : ['--base-url', front.url]
  const server = await startServer(place, [...unlimited, '--allow-upstream', '127.0.0.1', ...base])
  front?.to(server.url)
  const url = front?.url ?? server.url
  const authority = join(place.folder, 'ca.pem')
  writeFileSync(authority, cert)
  const child = Bun.spawn(['node', 'authorization-server.mjs', String(usesOfToken), mode], {
    cwd: clients,
    env: {
      PATH: process.env['PATH'] ?? '',
      REDIRECT_URI: `${url}/oauth/callback`,
      NODE_EXTRA_CA_CERTS: authority,
    },
    stdout: 'pipe',
    stderr: 'ignore',
  })
  const { value } = await child.stdout.getReader().read()
  const { issuer, resource } = JSON.parse(Buffer.from(value ?? []).toString()) as { issuer: string; resource: string }
  const stop = () => {
    child.kill()
    front?.[Symbol.dispose]()
  }
  return { server, url, issuer, resource, [Symbol.dispose]: stop }
}

async function signIn(url: string, issuer: string, setupUrl: string): Promise<string> {
  const visit = browser(cert)
  const { form = '' } = fieldsOf((await visit(setupUrl)).page)
  const { page } = await visit(setupUrl, { form })
  expect(page).toContain(issuer)
  const href = /id="continue" href="([^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&') ?? url
  const end = await visit(href)
  return end.url
}

describe.skipIf(!isInstalled)('a server that oidc-provider guards', () => {
  for (const mode of modes) {
    test.concurrent(`is signed in to, called, refreshed and signed out of: ${mode}`, async () => {
      using place = workplace()
      // The greeting alone takes several.
      using world = await start(place, 10, mode)
      const { server, url, issuer, resource } = world
      const oauth = { clientId: 'by:hand', clientSecret: 'a secret/with %', scope: 'read offline_access' }
      const write = { mcpUrl: resource, ...(mode === 'by-hand' && { oauth }) }
      const connection = `${server.url}/connect/ada/guarded`
      const made = (await (
        await fetch(connection, { method: 'PUT', headers, body: JSON.stringify(write) })
      ).json()) as { status: { state: string; setupUrl: string } }
      expect(made.status.state).toBe('auth_required')
      expect(await signIn(url, issuer, made.status.setupUrl)).toStartWith(`${url}/oauth/done?namespace=`)
      const call = async () => {
        const body = JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'a', arguments: {} },
        })
        const response = await fetch(`${connection}/mcp`, { method: 'POST', headers, body })
        const text = await response.text()
        const json = /^data: (.*)$/m.exec(text)?.[1] ?? text
        const answer = JSON.parse(json) as { result?: { content: [{ text: string }] } }
        return {
          status: response.status,
          said: JSON.parse(answer.result?.content[0].text ?? 'null') as { refreshes: number } | null,
        }
      }
      expect(await call()).toMatchObject({
        status: 200,
        said: { user: 'grace', scope: mode === 'by-hand' ? 'read' : 'read write' },
      })
      // Until the token was replaced twice, each time at a 401 that nobody sees.
      for (let replaced = 0; replaced < 2; ) {
        const { status, said } = await call()
        expect(status).toBe(200)
        replaced = said?.refreshes ?? 0
      }
      expect((await fetch(connection, { method: 'DELETE', headers })).status).toBe(200)
      expect(readFileSync(join(place.data, 'audit.jsonl'), 'utf8')).toMatch(
        /upstream\.signed_in[^]*upstream\.signed_out/,
      )
      await server.kill('SIGTERM')
    })
  }

  test.concurrent('is used by the official client in one conversation with others, under a view that hides one', async () => {
    using place = workplace()
    using world = await start(place, 10, 'register')
    const { server, url, issuer, resource } = world
    using plain = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      async fetch(request) {
        if (request.method !== 'POST') return new Response(null, { status: 405 })
        const { id, method } = (await request.json()) as { id?: number; method: string }
        if (id === undefined) return new Response(null, { status: 202 })
        const results: Readonly<Record<string, object>> = {
          initialize: {
            protocolVersion: '2025-06-18',
            capabilities: { tools: {} },
            serverInfo: { name: 'plain', version: '1' },
          },
          'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
          'tools/call': { content: [{ type: 'text', text: 'echoed' }] },
        }
        return Response.json({ jsonrpc: '2.0', id, result: results[method] ?? {} })
      },
    })
    const put = async (path: string, body: object) =>
      (await (await fetch(`${server.url}${path}`, { method: 'PUT', headers, body: JSON.stringify(body) })).json()) as {
        status: { setupUrl: string }
      }
    const { status } = await put('/connect/ada/guarded', { mcpUrl: resource })
    await signIn(url, issuer, status.setupUrl)
    for (const id of ['plain', 'hidden']) await put(`/connect/ada/${id}`, { mcpUrl: `${plain.url}mcp` })
    // One server is dead, which must cost the others nothing.
    await put('/connect/ada/dead', { mcpUrl: 'http://127.0.0.1:9/mcp' })
    const metadata = ['guarded', 'plain', 'weather-cabin', 'dead'].map((connectionId) => ({ connectionId }))
    await put('/namespaces/ada/views/work', { policy: [{ metadata }] })

    const client = await signedInClient(`${server.url}/connect/ada/mcp/work`)
    const { tools, _meta } = await client.listTools()
    const ids = new Set(tools.map(({ name }) => name.split('__')[0]))
    expect([...ids].sort()).toEqual(['guarded', 'plain', 'weather-cabin'])
    expect(JSON.stringify(_meta)).toContain('"connectionId":"dead"')
    const call = async (name: string, given: Record<string, unknown> = {}) =>
      JSON.stringify(await client.callTool({ name, arguments: given }))
    expect(await call('guarded__a')).toContain('grace')
    expect(await call('plain__echo')).toContain('echoed')
    expect(await call('weather-cabin__get_current_conditions', { latitude: 45, longitude: 7 })).toContain('content')
    await expect(call('hidden__echo')).rejects.toThrow('Unknown tool')
    await client.close()
    await server.kill('SIGTERM')
  })
})

/** The official client, given a URL and a person who signs in. */
async function signedInClient(endpoint: string): Promise<Client> {
  const kept: { client?: unknown; tokens?: unknown; verifier?: string } = {}
  let away = ''
  const authProvider = {
    redirectUrl: 'http://localhost:1/callback',
    clientMetadata: {
      client_name: 'conversation',
      redirect_uris: ['http://localhost:1/callback'],
      token_endpoint_auth_method: 'none',
    },
    clientInformation: () => kept.client,
    saveClientInformation: (client: unknown) => Object.assign(kept, { client }),
    tokens: () => kept.tokens,
    saveTokens: (tokens: unknown) => Object.assign(kept, { tokens }),
    saveCodeVerifier: (verifier: string) => Object.assign(kept, { verifier }),
    codeVerifier: () => kept.verifier ?? '',
    redirectToAuthorization(to: URL) {
      away = to.href
    },
  } as never
  const transport = () => new StreamableHTTPClientTransport(new URL(endpoint), { authProvider })
  const client = () => new Client({ name: 'conversation', version: '1' })
  const first = transport()
  await expect(client().connect(first as Transport)).rejects.toThrow()
  const callback = new URL(await signInAndConsent(away, sampleKeys.ada))
  await first.finishAuth(callback.searchParams.get('code') ?? '')
  const connected = client()
  await connected.connect(transport() as Transport)
  return connected
}
