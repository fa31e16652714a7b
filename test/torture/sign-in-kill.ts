/**
 * The server killed in the middle of sign-ins, in both directions: somebody signs in to a server behind a connection,
 * and clients sign in to postern. Whatever was answered or used before must hold afterwards.
 */

import {
  authorizePath,
  callTool,
  decide,
  type Fetches,
  newVerifier,
  refresh,
  register,
  sentBack,
  signedIn,
} from '../features/authorization/world.ts'
import { startServer, unlimited, workplace } from '../support/executable.ts'
import { cookieIn, fieldsOf, post } from '../support/pages.ts'
import { random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { strictServers } from '../support/strict-authorization-server.ts'
import { collector, inTurn, type Trial } from './trial.ts'

/**
 * Connections in turn: after a kill in the middle of a refresh, the next one waits until the claim of the dead process
 * has ended, 15 s. Others are looked at meanwhile.
 */
const connections = 12
/** Few, so that refreshes come often. */
const usesOfToken = 4
/** On another host than the server, so that the browser's session outlives each consent: cookies have no port. */
const redirectUri = 'http://localhost:4444/callback'
/** Milliseconds after which a call is taken to wait for such a claim. */
const patienceMs = 1000
const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }

/** A client that signed in to postern, as far as it knows. */
interface Client {
  readonly code: Record<string, string>
  accessToken: string
  refreshToken: string
  /** A request is under way, or its answer never came: which token is good is unknown. */
  isUncertain: boolean
  isRevoked: boolean
}

export const signInKill: Trial = {
  name: 'sign-in-kill',
  promise:
    'When postern is killed (kill -9) during a sign-in, no token is lost, no code works twice, and postern shows no connection without a token as connected',
  times: { full: 200, short: 2 },

  async run(times, seed) {
    const { broken, expect } = collector()
    const chance = random(seed)
    using place = workplace()
    using servers = strictServers(usesOfToken)
    const clients: Client[] = []
    let port = '0'
    let resource = ''
    let clientId = ''
    let cookie = ''
    const counted = { clients: 0 }
    let looked = 0
    const turns = inTurn({
      'sign-ins to a server': () => servers.counted.signIns,
      'clients that signed in': () => counted.clients,
      calls: () => servers.counted.calls,
      refreshes: () => servers.counted.refreshes,
    })

    // The last time, nothing is killed any more.
    for (let cycle = 0; cycle <= times; cycle += 1) {
      await using server = await startServer(place, [...unlimited, '--allow-upstream', '127.0.0.1', '--port', port])
      port = new URL(server.url).port
      const origin = server.url
      const here: Fetches = { fetch: (path, init) => fetch(`${origin}${path}`, { ...init, redirect: 'manual' }) }
      if (clientId === '') {
        resource = `${origin}/connect/northwind/inventory-us-west/mcp`
        clientId = (await register(here, { redirect_uris: [redirectUri] })).client_id
        cookie = await signedIn(here)
      }
      const id = `strict-${cycle % connections}`
      const path = `/connect/ada/${id}`
      const call = async (): Promise<number | undefined> => {
        const body = JSON.stringify({
          jsonrpc: '2.0',
          id: 1,
          method: 'tools/call',
          params: { name: 'a', arguments: {} },
        })
        const signal = AbortSignal.timeout(patienceMs)
        return here.fetch(`${path}/mcp`, { method: 'POST', headers, body, signal }).then(
          async (response) => {
            await response.text()
            return response.status
          },
          () => undefined,
        )
      }
      const stateOf = async () => {
        const response = await here.fetch(path, { headers })
        const { status } = (await response.json()) as { status?: { state: string; setupUrl?: string } }
        return status
      }

      // What the last run of this connection, and of all clients, has left.
      const state = (await stateOf())?.state
      if (state === 'connected') {
        const status = await call()
        looked += 1
        // 502: the claim of a dead process was still held, or the call ended with it.
        expect(
          [200, 502, undefined].includes(status),
          () => `cycle ${cycle}: ${id} is connected, and a call gets ${status}`,
        )
      }
      for (const client of clients.splice(0)) {
        const { status } = await callTool(here, client.accessToken, 'find_product', new URL(resource).pathname)
        const isRight = client.isUncertain ? status === 200 || status === 401 : (status === 200) !== client.isRevoked
        expect(isRight, () => `cycle ${cycle}: a client’s token gets ${status}; revoked: ${client.isRevoked}`)
        if (client.isUncertain || client.isRevoked) continue
        looked += 1
        const renewed = await refresh(here, clientId, client.refreshToken)
        expect(renewed.status === 200, () => `cycle ${cycle}: an acknowledged refresh token gets ${renewed.error}`)
        const again = await post(here, '/oauth/token', client.code)
        expect(again.status === 400, () => `cycle ${cycle}: a code worked twice: ${again.status}`)
      }

      if (cycle === times) break

      const happened = turns.happens(cycle)
      let isOver = false
      const repeat = async (act: () => Promise<unknown>) => {
        while (!isOver) await act().catch(() => {})
      }
      const working = [
        repeat(() =>
          signInUpstream(here, { id, servers, isConnected: async () => (await stateOf())?.state === 'connected' }),
        ),
        repeat(call),
        repeat(call),
        repeat(() => signInHere(here, { clients, counted, clientId, cookie, resource })),
        repeat(() => signInHere(here, { clients, counted, clientId, cookie, resource })),
      ]
      await happened
      await Bun.sleep(chance.int(300))
      isOver = true
      await server.kill('SIGKILL')
      await Promise.all(working)
    }
    broken.push(...servers.broken.slice(0, 10))
    const { signIns, refreshes, calls } = servers.counted
    const figure = `${times} kills, ${signIns} sign-ins to a server, ${refreshes} refreshes, ${calls} calls; after the kills, the trial checked ${looked} states and tokens`
    const seen = turns.seen(times)
    const [, least = 0] = seen['clients that signed in'] ?? []
    return { figure, broken, seen: { ...seen, 'states and tokens looked at afterwards': [looked, least] } }
  },
}

interface Upstream {
  readonly id: string
  readonly servers: ReturnType<typeof strictServers>
  readonly isConnected: () => Promise<boolean>
}

/** A person signs in to the server behind the connection, or out of it where somebody has. */
async function signInUpstream(here: Fetches, { id, servers, isConnected }: Upstream): Promise<void> {
  const path = `/connect/ada/${id}`
  const write = JSON.stringify({ mcpUrl: servers.mcpUrl(id) })
  const made = await here.fetch(path, { method: 'PUT', headers, body: write })
  const { status } = (await made.json()) as { status: { state: string; setupUrl?: string } }
  if (status.state === 'connected') {
    // Most runs only call. Some begin anew.
    if (Math.random() < 0.9) await Bun.sleep(5)
    else await here.fetch(path, { method: 'DELETE', headers })
    return
  }
  // Only the answer that makes a connection has a ticket.
  if (status.setupUrl?.includes('?ticket=') !== true) {
    await here.fetch(path, { method: 'DELETE', headers })
    return
  }
  const setup = new URL(status.setupUrl)
  const setupPath = `${setup.pathname}${setup.search}`
  const { form = '' } = fieldsOf(await (await here.fetch(setupPath)).text())
  const begun = await post(here, setupPath, { form })
  const href = /id="continue" href="([^"]*)"/.exec(await begun.text())?.[1]?.replaceAll('&amp;', '&')
  if (href === undefined) return
  const callback = `/oauth/callback?${servers.approve(new URL(href))}`
  const back = await here.fetch(callback, { headers: { cookie: cookieIn(begun) } })
  if (back.status === 303 && !(await isConnected())) servers.broken.push('a sign-in ended well, and is not connected')
  const twice = await here.fetch(callback, { headers: { cookie: cookieIn(begun) } })
  if (twice.status !== 400) servers.broken.push(`a callback worked twice: ${twice.status}`)
}

interface Here {
  readonly clients: Client[]
  /** Clients that know their tokens, and did not sign out. */
  readonly counted: { clients: number }
  readonly clientId: string
  readonly cookie: string
  readonly resource: string
}

/** A client signs in to postern, refreshes, and perhaps signs out. */
async function signInHere(here: Fetches, { clients, counted, clientId, cookie, resource }: Here): Promise<void> {
  const verifier = newVerifier()
  const back = await decide(
    here,
    authorizePath({ clientId, verifier }, { resource, redirect_uri: redirectUri }),
    cookie,
  )
  const code = {
    grant_type: 'authorization_code',
    code: sentBack(back).get('code') ?? '',
    client_id: clientId,
    redirect_uri: redirectUri,
    code_verifier: verifier,
  }
  const response = await post(here, '/oauth/token', code)
  const answer = (await response.json()) as { access_token: string; refresh_token: string }
  if (response.status !== 200) return
  const client: Client = {
    code,
    accessToken: answer.access_token,
    refreshToken: answer.refresh_token,
    isUncertain: false,
    isRevoked: false,
  }
  clients.push(client)
  client.isUncertain = true
  const renewed = await refresh(here, clientId, client.refreshToken)
  if (renewed.status !== 200) return
  client.accessToken = renewed.access_token
  client.refreshToken = renewed.refresh_token
  client.isUncertain = false
  if (Math.random() < 0.7) {
    counted.clients += 1
    return
  }
  client.isUncertain = true
  const { status } = await post(here, '/oauth/revoke', { token: client.refreshToken, client_id: clientId })
  client.isRevoked = status === 200
  client.isUncertain = false
}
