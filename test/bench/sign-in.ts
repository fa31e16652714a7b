/** Sign-ins: what they cost, and what a call costs through a connection that somebody has signed in. */

import {
  authorizePath,
  decide,
  type Fetches,
  newVerifier,
  register,
  sentBack,
  signedIn,
} from '../features/authorization/world.ts'
import { startServer, unlimited, workplace } from '../support/executable.ts'
import { cookieIn, fieldsOf, post as sendForm } from '../support/pages.ts'
import { sampleKeys } from '../support/sample.ts'
import { strictServers } from '../support/strict-authorization-server.ts'
import type { Report } from './gateway.ts'
import { median, micro, post, privatePart, serve, startScript } from './measure.ts'

const roundSeconds = 1.5
const signIns = 30
const callsAtOnce = 200
const pages = 200
const json = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
const call = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'echo', arguments: { text: 'hello' } },
})

export async function signIn(report: Report, rounds: number): Promise<void> {
  using place = workplace()
  using servers = strictServers(Number.POSITIVE_INFINITY)
  await using ours = await startServer(place, [...unlimited, '--allow-upstream', '127.0.0.1'])
  const here: Fetches = { fetch: (path, init) => fetch(`${ours.url}${path}`, { ...init, redirect: 'manual' }) }
  const cookie = await signedIn(here)

  await calls(report, { rounds, here, servers, cookie, pid: ours.pid, port: Number(new URL(ours.url).port) })

  const times: number[] = []
  for (let i = 0; i < signIns; i += 1) {
    const write = { mcpUrl: servers.mcpUrl(`bench-${i}`) }
    times.push(await setUp(here, `bench-${i}`, write, { servers, cookie }))
  }
  const own = median(times)
  report(
    'From `POST setup` to `connected`, the authorization server’s time included',
    `${own.toFixed(1)} ms`,
    '50 ms',
    own < 50,
  )

  const before = servers.counted.refreshes
  servers.expireTokens()
  const answers = await Promise.all(
    Array.from({ length: callsAtOnce }, async () => {
      const response = await here.fetch('/connect/ada/bench-0/mcp', { method: 'POST', headers: json, body: call })
      await response.text()
      return response.status
    }),
  )
  const refreshes = servers.counted.refreshes - before
  const failed = answers.filter((status) => status !== 200).length
  report(
    `${callsAtOnce} calls at once at a token that has expired`,
    `${refreshes} refresh, ${failed} failed`,
    '1 refresh, 0 failed',
    refreshes === 1 && failed === 0,
  )

  const { client_id: clientId } = await register(here)
  const resource = `${ours.url}/connect/northwind/inventory-us-west/mcp`
  const shown: number[] = []
  for (let i = 0; i < pages; i += 1) {
    const path = authorizePath({ clientId, verifier: newVerifier() }, { resource })
    const started = performance.now()
    await (await here.fetch(path, { headers: { cookie } })).text()
    shown.push(performance.now() - started)
  }
  const path = authorizePath({ clientId, verifier: newVerifier() }, { resource })
  if (!sentBack(await decide(here, path, cookie)).has('code')) throw new Error('nobody was let in')
  report('The consent page, with its tools', `${median(shown).toFixed(1)} ms`, '5 ms', median(shown) < 5)
}

interface Calls {
  readonly rounds: number
  readonly here: Fetches
  readonly servers: ReturnType<typeof strictServers>
  readonly cookie: string
  readonly pid: number
  readonly port: number
}

/** The same calls to the same server, through two connections: one with a header of its own, one signed in. */
async function calls(report: Report, { rounds, here, servers, cookie, pid, port }: Calls): Promise<void> {
  const upstream = await startScript('mcp-upstream.ts')
  const mcpUrl = `http://127.0.0.1:${upstream.port}/mcp`
  await here.fetch('/connect/ada/plain', {
    method: 'PUT',
    headers: json,
    body: JSON.stringify({ mcpUrl, headers: { Authorization: 'Bearer 0123456789' } }),
  })
  const oauth = { clientId: 'bench', issuer: servers.issuer }
  await setUp(here, 'signed-in', { mcpUrl, oauth }, { servers, cookie })
  const headers = {
    'Content-Type': 'application/json',
    Accept: 'application/json, text/event-stream',
    'MCP-Protocol-Version': '2025-06-18',
    Authorization: `Bearer ${sampleKeys.ada}`,
  }
  const cpu: Record<string, number[]> = { plain: [], 'signed-in': [] }
  for (let round = 0; round <= rounds; round += 1) {
    for (const [name, figures] of Object.entries(cpu)) {
      const requests = [post(port, `/connect/ada/${name}/mcp`, headers, call)]
      const load = { port, seconds: roundSeconds, connections: 32, requests }
      const served = await serve(pid, load, '200', privatePart(upstream.port))
      if (round > 0) figures.push(served.cpu)
    }
  }
  upstream.stop()
  const [plain, withToken] = [median(cpu['plain'] ?? []), median(cpu['signed-in'] ?? [])]
  report(
    'Extra processor time of a call through a connection with a sign-in, compared with a connection with a stored header',
    `${micro(withToken - plain)} (${micro(withToken)} and ${micro(plain)})`,
    '5 µs',
    withToken - plain < 5,
  )
}

/** A person signs in to the server of a new connection. Resolves with the milliseconds from the form to the end. */
async function setUp(
  here: Fetches,
  id: string,
  write: object,
  { servers, cookie }: Pick<Calls, 'servers' | 'cookie'>,
): Promise<number> {
  const path = `/connect/ada/${id}`
  await here.fetch(path, { method: 'PUT', headers: json, body: JSON.stringify(write) })
  const { form = '' } = fieldsOf(await (await here.fetch(`${path}/setup`, { headers: { cookie } })).text())
  const started = performance.now()
  const begun = await sendForm(here, `${path}/setup`, { form }, cookie)
  const page = await begun.text()
  const href = /id="continue" href="([^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&')
  if (href === undefined) throw new Error(page)
  const callback = `/oauth/callback?${servers.approve(new URL(href))}`
  const back = await here.fetch(callback, { headers: { cookie: cookieIn(begun) } })
  if (back.status !== 303) throw new Error(await back.text())
  return performance.now() - started
}
