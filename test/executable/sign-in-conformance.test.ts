/**
 * The suite of the MCP project for sign-in, at both revisions: its clients scenarios against the upstream half, those
 * for authorization servers against the other. Left out: the two of 2025-03-26 (an issuer that is not identical, and
 * guessed endpoints, are refused on purpose), and the extensions (client credentials, cross-app access, proofs of
 * possession, workload identity). `basic-cimd` passes with a warning: it knows one document of a client, and not ours
 * (oidc-provider fetches it in `sign-in-upstream.test.ts`).
 */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join, resolve } from 'node:path'
import { signInAndConsent } from '../clients/browser.ts'
import { type Server, startServer, unlimited, type Workplace, workplace } from '../support/executable.ts'
import { freePort } from '../support/free-port.ts'
import { sampleKeys } from '../support/sample.ts'

const root = resolve(import.meta.dir, '../..')
const suite = join(root, 'node_modules/@modelcontextprotocol/conformance/dist/index.js')
const client = `${process.execPath} ${join(root, 'test/clients/conformance-client.ts')}`

/** In the suite `auth`, at both revisions. */
const common = [
  'basic-cimd',
  'metadata-default',
  'metadata-var1',
  'metadata-var2',
  'metadata-var3',
  'pre-registration',
  'scope-from-scopes-supported',
  'scope-from-www-authenticate',
  'scope-omitted-when-undefined',
  'scope-retry-limit',
  'scope-step-up',
  'token-endpoint-auth-basic',
  'token-endpoint-auth-none',
  'token-endpoint-auth-post',
]
/** Those of the suite `draft` at 2026-07-28 that are about sign-in. */
const newer = [
  'authorization-server-migration',
  'iss-normalized',
  'iss-not-advertised',
  'iss-supported',
  'iss-supported-missing',
  'iss-unexpected',
  'iss-wrong-issuer',
  'metadata-issuer-mismatch',
  'offline-access-not-supported',
  'offline-access-scope',
  'resource-mismatch',
]

let place: Workplace
let server: Server
beforeAll(async () => {
  place = workplace()
  server = await startServer(place, [...unlimited, '--allow-upstream', 'localhost'])
})
afterAll(async () => {
  await server.kill('SIGTERM')
  place[Symbol.dispose]()
})

/** What the suite prints, without colours. */
async function conformance(args: readonly string[], visit?: (url: string) => Promise<void>): Promise<string> {
  const child = Bun.spawn([process.execPath, suite, ...args], {
    cwd: place.folder,
    env: {
      PATH: process.env['PATH'] ?? '',
      POSTERN_URL: server.url,
      POSTERN_KEY: sampleKeys.ada,
    },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const err = new Response(child.stderr).text()
  let out = ''
  let isVisited = false
  for await (const chunk of child.stdout) {
    out += Buffer.from(chunk).toString()
    const url = new RegExp(`${server.url}/oauth/authorize\\S+(?=\\s)`).exec(out)?.[0]
    if (url === undefined || visit === undefined || isVisited) continue
    isVisited = true
    await visit(url)
  }
  await child.exited
  return Bun.stripANSI(`${out}\n${await err}`)
}

const asClient = (revision: string, ...which: string[]) =>
  conformance(['client', '--command', client, ...which, '--spec-version', revision, '--timeout', '300000'])
/** The scenarios that a suite ran, with how many checks passed and what else became of them. */
const seenIn = (told: string) => [...told.matchAll(/^[✓✗] auth\/(\S+): (\d+) passed, (.*)$/gm)]
// A suite that checks nothing passes too.
const leastChecks = (seen: ReturnType<typeof seenIn>) => Math.min(...seen.map(([, , passed]) => Number(passed)))

for (const revision of ['2025-11-25', '2026-07-28']) {
  test.concurrent(`as a client at ${revision}`, async () => {
    const told = await asClient(revision, '--suite', 'auth')
    const seen = seenIn(told)
    const wrong = seen.filter(([, name, , others]) => others !== '0 failed' && name !== 'basic-cimd')
    expect(wrong.map(([line]) => line)).toEqual([])
    expect(seen.map(([, name = '']) => name).sort()).toEqual(common)
    expect(leastChecks(seen)).toBeGreaterThan(8)
  })

  test.concurrent(`as an authorization server at ${revision}`, async () => {
    const port = await freePort()
    const registration = { redirect_uris: [`http://127.0.0.1:${port}/callback`], client_name: 'Conformance' }
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify(registration)
    const made = await fetch(`${server.url}/oauth/register`, { method: 'POST', headers, body })
    const { client_id: clientId } = (await made.json()) as { client_id: string }
    const resource = `${server.url}/connect/northwind/inventory-us-west/mcp`
    const as = ['--url', server.url, '--client-id', clientId, '--resource', resource, '-p', String(port)]
    // It waits for a person with a browser.
    const visit = async (url: string) => void (await fetch(await signInAndConsent(url, sampleKeys.ada)))
    const told = await conformance(['authorization', ...as, '--spec-version', revision], visit)
    const seen = [...told.matchAll(/^[✓✗] (\S+): (.*)$/gm)].map(([, name, result]) => [name, result])
    expect(seen).toEqual([
      ['authorization-server-metadata-endpoint', '2 passed, 0 failed'],
      ['authorization-code-grant', '1 passed, 0 failed'],
    ])
  })
}

test.concurrent('as a client at 2026-07-28, of the suite that is not final yet', async () => {
  const seen = seenIn(await asClient('2026-07-28', '--suite', 'draft'))
  expect(seen.map(([, name, , others]) => [name, others]).sort()).toEqual(newer.map((name) => [name, '0 failed']))
  expect(leastChecks(seen)).toBeGreaterThan(0)
})
