/**
 * Real calls of the sample's mocks, about one a second, for somebody who looks around (`--sample-traffic`). They are
 * made over HTTP with a key of their own, some with a token that refuses them, and recorded like any call.
 */

import { setTimeout } from 'node:timers/promises'
import type { Fixtures } from '../maintenance/seed/read-fixtures.ts'
import type { ApiKeyList, ApiKeyMade, Me } from '../model/organization.ts'
import type { Log } from '../ops/log.ts'
import { greetedKey } from './greeting.ts'

const keyName = 'sample traffic'
const pauseMs = 1000
/** One call of so many is made with a token that allows another tool alone, and refused. */
const refusedEvery = 5

interface SampleCall {
  readonly path: string
  readonly args: unknown
}

/** The recorded answers of mocked connections in namespaces that are seen. */
function callsIn({ connections, mocks }: Fixtures, namespaces: ReadonlySet<string>): SampleCall[] {
  return [...connections.inOrder()].flatMap(({ value }) => {
    const { namespace, connectionId, server, mock } = JSON.parse(Buffer.from(value).toString())
    if (mock?.enabled !== true || !namespaces.has(namespace)) return []
    return mocks
      .filter((one) => one.server === server && one.arguments !== undefined)
      .map(({ tool, arguments: args }) => ({ path: `/connect/${namespace}/${connectionId}/.tools/${tool}`, args }))
  })
}

/** Calls until the returned function is called, which deletes their key. A failure ends them, and is logged. */
export function startSampleTraffic(url: string, fixtures: Fixtures, log: Log): () => Promise<void> {
  const key = greetedKey(fixtures) as string
  const end = new AbortController()

  async function ask<T>(credential: string, method: string, path: string, body?: unknown): Promise<T> {
    const headers = { authorization: `Bearer ${credential}`, 'content-type': 'application/json' }
    const response = await fetch(`${url}${path}`, { method, headers, body: JSON.stringify(body) })
    // Refusals are part of the traffic, too.
    return response.json() as Promise<T>
  }

  async function removeKeys(): Promise<void> {
    const { apiKeys } = await ask<ApiKeyList>(key, 'GET', '/me/api-keys')
    for (const { id, name } of apiKeys) if (name === keyName) await ask(key, 'DELETE', `/me/api-keys/${id}`)
  }

  async function run(): Promise<void> {
    const { namespaces } = await ask<Me>(key, 'GET', '/me')
    const calls = callsIn(fixtures, new Set(namespaces.map(({ name }) => name)))
    // One that a killed server left behind.
    await removeKeys()
    const { key: ownKey } = await ask<ApiKeyMade>(key, 'POST', '/me/api-keys', { name: keyName })
    log.info('sample traffic started', { calls: calls.length })
    for (let made = 0; !end.signal.aborted && calls.length > 0; made += 1) {
      const { path, args } = calls[made % calls.length] as SampleCall
      const isRefused = made % refusedEvery === 0
      const narrow = { policy: [{ rpcReqMatch: { 'params.name': 'another_tool' }, ttl: '1m' }] }
      const { token } = isRefused ? await ask<{ token: string }>(ownKey, 'POST', '/tokens', narrow) : { token: ownKey }
      await ask(token, 'POST', path, args)
      await setTimeout(pauseMs, undefined, { signal: end.signal }).catch(() => {})
    }
  }

  const done = run().catch((error: Error) => log.warn('sample traffic ended', { message: error.message }))
  return async () => {
    end.abort()
    await done
    await removeKeys().catch(() => {})
  }
}
