/** A client that knows only a URL, and the browser of its user. */

import { createHash, randomBytes } from 'node:crypto'
import { cookieIn, fieldsOf, post } from '../../support/pages.ts'
import { issuer, type TestPlatform } from '../../support/platform.ts'
import { type SampleUser, sampleKeys } from '../../support/sample.ts'

export const redirectUri = 'http://127.0.0.1:4444/callback'
export const resource = `${issuer}/connect/northwind/inventory-us-west/mcp`

/** In process, or an executable. */
export type Fetches = Pick<TestPlatform, 'fetch'>

export interface TokenAnswer {
  readonly status: number
  readonly access_token: string
  readonly refresh_token: string
  readonly expires_in: number
  readonly error?: string
  readonly error_description?: string
}

export async function register(platform: Fetches, more: object = {}, address = 'here') {
  const response = await platform.fetch('/oauth/register', {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-test-address': address },
    body: JSON.stringify({
      redirect_uris: [redirectUri],
      client_name: 'Tester',
      grant_types: ['authorization_code', 'refresh_token'],
      ...more,
    }),
  })
  return { status: response.status, ...((await response.json()) as { client_id: string; error?: string }) }
}

export async function signedIn(platform: Fetches, user: SampleUser = 'ada'): Promise<string> {
  return cookieIn(await post(platform, '/signin', { key: sampleKeys[user] }))
}

export const newVerifier = () => randomBytes(32).toString('base64url')
export const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url')

export interface Asking {
  readonly clientId: string
  readonly verifier: string
}

export function authorizePath({ clientId, verifier }: Asking, more: Record<string, string | undefined> = {}): string {
  const parameters: Record<string, string | undefined> = {
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    code_challenge: challengeOf(verifier),
    code_challenge_method: 'S256',
    resource,
    state: 'st/ate +1',
    ...more,
  }
  const given = Object.entries(parameters).filter((pair): pair is [string, string] => pair[1] !== undefined)
  return `/oauth/authorize?${new URLSearchParams(given)}`
}

/** Opens the consent page and sends its form. */
export async function decide(
  platform: Fetches,
  path: string,
  cookie: string,
  fields: Record<string, string | string[]> = {},
): Promise<Response> {
  const page = await (await platform.fetch(path, { headers: { cookie } })).text()
  const { form = '' } = fieldsOf(page)
  return post(platform, path, { form, access: 'all', days: '30', decision: 'allow', ...fields }, cookie)
}

export function sentBack(response: Response): URLSearchParams {
  return new URL(response.headers.get('location') ?? 'none:').searchParams
}

export async function exchange(platform: Fetches, fields: Record<string, string>): Promise<TokenAnswer> {
  const response = await post(platform, '/oauth/token', fields)
  return { status: response.status, ...((await response.json()) as Omit<TokenAnswer, 'status'>) }
}

export interface SignedInClient {
  readonly clientId: string
  readonly answer: TokenAnswer
  /** The exchange that was made. */
  readonly fields: Record<string, string>
}

/** The whole way of a user of the sample. */
export async function signInClient(
  platform: Fetches,
  fields: Record<string, string | string[]> = {},
  user: SampleUser = 'ada',
  parameters: Record<string, string> = {},
): Promise<SignedInClient> {
  return signInWith(platform, await signedIn(platform, user), fields, parameters)
}

/** The whole way of whoever has this cookie: registration, consent, code, token. */
export async function signInWith(
  platform: Fetches,
  cookie: string,
  fields: Record<string, string | string[]> = {},
  parameters: Record<string, string> = {},
): Promise<SignedInClient> {
  const { client_id: clientId } = await register(platform)
  const verifier = newVerifier()
  const path = authorizePath({ clientId, verifier }, parameters)
  const code = sentBack(await decide(platform, path, cookie, fields)).get('code') ?? ''
  const sent = {
    grant_type: 'authorization_code',
    code,
    client_id: clientId,
    redirect_uri: redirectUri,
    code_verifier: verifier,
  }
  return { clientId, answer: await exchange(platform, sent), fields: sent }
}

export const refresh = (platform: Fetches, clientId: string, token: string) =>
  exchange(platform, { grant_type: 'refresh_token', refresh_token: token, client_id: clientId })

/** Calls a tool of the connection through its MCP endpoint. */
export async function callTool(platform: Fetches, token: string, name: string, path = new URL(resource).pathname) {
  const response = await platform.fetch(path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: {} } }),
  })
  return { status: response.status, challenge: response.headers.get('www-authenticate'), text: await response.text() }
}
