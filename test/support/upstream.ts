/** A real upstream for tests that need one on this machine, as a platform may reach it. */

import { expect } from 'bun:test'
import { createAddresses, readAllowedUpstream } from '../../src/upstream/addresses.ts'
import { createUpstream } from '../../src/upstream/pooled-upstream.ts'
import type { TestPlatform } from './platform.ts'
import { sampleKeys } from './sample.ts'

/** The upstream that reaches servers on 127.0.0.1, and no others. */
export function localUpstream() {
  const allowed = ['127.0.0.1'].flatMap((text) => readAllowedUpstream(text) ?? [])
  const addresses = createAddresses({ allowed, isPublicAllowed: false, isSelf: () => false })
  return createUpstream(addresses, { pseudonym: 'postern-test' })
}

/** A server on a free port of this machine. */
export function localServer(fetch: (request: Request) => Promise<Response> | Response): Bun.Server<undefined> {
  return Bun.serve({ port: 0, hostname: '127.0.0.1', idleTimeout: 0, fetch })
}

/** Headers of an MCP client. */
export const bearer = (credential: string, headers: Record<string, string> = {}) => ({
  authorization: `Bearer ${credential}`,
  'content-type': 'application/json',
  accept: 'application/json, text/event-stream',
  ...headers,
})

/** Makes a connection of Ada's that leads to a server. `more`: further members of the body. */
export async function connectTo(
  { fetch }: Pick<TestPlatform, 'fetch'>,
  id: string,
  mcpUrl: string,
  more: object = {},
): Promise<void> {
  const body = JSON.stringify({ mcpUrl, ...more })
  const response = await fetch(`/connect/ada/${id}`, { method: 'PUT', headers: bearer(sampleKeys.ada), body })
  expect(response.status).toBe(201)
}

/** The message in an answer: the whole body, or the first event. */
export async function messageIn(response: Response) {
  const text = await response.text()
  const json = /^(?:event|data):/.test(text) ? text.slice(text.indexOf('data: ') + 6) : text
  return json === '' ? undefined : JSON.parse(json)
}
