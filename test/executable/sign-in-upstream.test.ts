/**
 * Signing in to a server that oidc-provider guards, through the executable. Where it is not installed (`test/clients`),
 * the tests are skipped.
 */

import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { browser } from '../clients/browser.ts'
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
})
