/**
 * Servers that lie: metadata, registrations, challenges, tokens and callbacks with parts replaced by what an attacker
 * would write. Whatever they say, a token goes only where it belongs.
 */

import type { UpstreamRequest } from '../../../src/upstream/upstream.ts'
import { cookieIn, fieldsOf, post } from '../../support/pages.ts'
import { issuer as base, createTestPlatform, type TestPlatform } from '../../support/platform.ts'
import type { Random } from '../../support/random.ts'
import { sampleKeys } from '../../support/sample.ts'
import { createServers, issuer, mcpUrl, type Servers } from './world.ts'

/** One sign-in for each `count`; `expect` collects what must not be. */
export async function hostileServers(
  count: number,
  chance: Random,
  expect: (holds: boolean, what: () => string) => void,
): Promise<{ readonly connected: number; readonly refused: number }> {
  const world = { servers: createServers() }
  const sent: UpstreamRequest[] = []
  const platform = await createTestPlatform({
    upstream: {
      async send(request) {
        sent.push(request)
        return world.servers.upstream.send(request)
      },
    },
  })
  let connected = 0
  let refused = 0
  for (let number = 0; number < count; number += 1) {
    world.servers = createServers()
    sent.length = 0
    const lies = lie(world.servers, chance)
    // One each: the forms of a connection are limited.
    const connectionPath = `/connect/ada/lied-to-${number}`
    const about = () => `${number}: ${lies.join('; ')}`
    const seen = await signIn(platform, connectionPath, world.servers, chance, (holds, what) =>
      expect(holds, () => `${what()}: ${about()}`),
    )
    if (seen.isConnected) connected += 1
    else refused += 1
    checkRequests(sent, seen, (holds, what) => expect(holds, () => `${what()}: ${about()}`))
    await platform.fetch(connectionPath, { method: 'DELETE', headers })
  }
  return { connected, refused }
}

const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
const nastyUrls = [
  'https://evil.example/token',
  'https://evil.example',
  'http://as.example.com/token',
  'http://127.0.0.1.evil.example/token',
  'javascript:alert(1)',
  'data:text/html,x',
  '//evil.example/token',
  'https://user:pass@as.example.com/token',
  'https://as.example.com/token#x',
  'https://as.example.com.evil.example/token',
  'https://as.example.com/token\r\nx: y',
  `https://as.example.com/${'a'.repeat(10_000)}`,
  'https://[::1',
  '',
]
const nasty: unknown[] = [
  ...nastyUrls,
  null,
  5,
  true,
  {},
  [],
  ['https://evil.example'],
  [[]],
  { a: { b: 1 } },
  '\u0000',
  '<script>',
]

/** Replaces parts of what the servers say. Returns what was done, for the report. */
function lie(servers: Servers, chance: Random): string[] {
  const done: string[] = []
  const change = (name: string, record: Record<string, unknown>, field: string, value: unknown) => {
    done.push(`${name}.${field} = ${JSON.stringify(value)?.slice(0, 80)}`)
    if (value === undefined) delete record[field]
    else record[field] = value
  }
  const some = (name: string, record: Record<string, unknown>, special: Record<string, readonly unknown[]> = {}) => {
    for (const field of Object.keys(record)) {
      if (!chance.chance(0.12)) continue
      const of = special[field]
      change(
        name,
        record,
        field,
        of !== undefined && chance.chance(0.6) ? chance.pick(of) : chance.pick([...nasty, undefined]),
      )
    }
  }
  some('metadata', servers.metadata, {
    issuer: [`${issuer}/`, 'https://as.example.com/other', `${issuer}/.`, 'https://AS.example.com'],
    code_challenge_methods_supported: [['plain'], [], ['S256', 5], 'S256'],
    token_endpoint_auth_methods_supported: [
      ['client_secret_basic'],
      ['client_secret_post', 'none'],
      ['private_key_jwt'],
    ],
    authorization_response_iss_parameter_supported: [false, 'true'],
  })
  some('resource', servers.resource, {
    resource: [
      `${mcpUrl}/`,
      'https://mcp.example.com',
      'https://mcp.example.com/tea',
      'https://mcp.example.com.evil.example/team/mcp',
      `${mcpUrl}#x`,
    ],
    authorization_servers: [
      [issuer, 'https://evil.example'],
      ['https://evil.example'],
      ['http://as.example.com'],
      [`${issuer}/`],
    ],
    scopes_supported: [['a b'], ['"quoted"'], Array.from({ length: 2000 }, () => 's'), ['x'.repeat(5000)]],
  })
  if (chance.chance(0.3)) {
    servers.challenge = chance.pick([
      'Bearer resource_metadata="https://evil.example/metadata"',
      'Bearer resource_metadata="http://mcp.example.com/metadata"',
      'Bearer resource_metadata="javascript:alert(1)"',
      'Bearer resource_metadata=",,,"="',
      `Bearer ${'a="b", '.repeat(2000)}`,
      'Bearer scope="openid \\" offline"',
      'Basic realm="x"',
      '\u00ff',
    ])
    done.push(`challenge = ${servers.challenge.slice(0, 60)}`)
  }
  if (chance.chance(0.15)) {
    const answer: Record<string, unknown> = { client_id: 'c', token_endpoint_auth_method: 'none' }
    some('registered', { ...answer }, {})
    const [field, value] = [
      chance.pick(['client_id', 'client_secret', 'token_endpoint_auth_method', 'client_secret_expires_at']),
      chance.pick(nasty),
    ]
    change('registered', answer, field, value)
    servers.instead[`${issuer}/register`] = () => ({ status: chance.pick([200, 201, 201, 400, 500]), json: answer })
  }
  if (chance.chance(0.2)) {
    const answer: Record<string, unknown> = {
      access_token: 'access-secret-lied',
      token_type: 'bearer',
      expires_in: 60,
      refresh_token: 'refresh-secret-lied',
    }
    const field = chance.pick(Object.keys(answer))
    change(
      'token',
      answer,
      field,
      chance.pick([...nasty, 'a\r\nb: c', '\u0100', -1, 1e300, '1e9', undefined, 'x'.repeat(100_000)]),
    )
    servers.instead[`${issuer}/token`] = () => ({ status: chance.pick([200, 200, 200, 400, 500]), json: answer })
  }
  if (chance.chance(0.1)) {
    const url = chance.pick([
      `${issuer}/token`,
      `${issuer}/.well-known/oauth-authorization-server`,
      mcpUrl,
      `${issuer}/register`,
    ])
    const body = chance.pick([
      '',
      '[]',
      'null',
      '{',
      '{"a":1,"a":2}',
      `${'['.repeat(5000)}`,
      '\ufeff{}',
      'x'.repeat(200_000),
    ])
    servers.instead[url] = () => ({
      // A greeting that is answered with nothing in it waits for its answer, by the real clock.
      status: chance.pick(url === mcpUrl ? [301, 400, 401, 500] : [200, 301, 400, 401, 500]),
      body,
      headers: { 'content-type': 'application/json', location: 'https://evil.example/' },
    })
    done.push(`${url} = ${JSON.stringify(body.slice(0, 20))}`)
  }
  return done
}

interface Seen {
  readonly isConnected: boolean
  /** The state of the connection says so. */
  readonly tokenEndpoint: unknown
  readonly revocationEndpoint: unknown
}

/** The whole way of a person, as far as it goes. */
async function signIn(
  platform: TestPlatform,
  connectionPath: string,
  servers: Servers,
  chance: Random,
  expect: (holds: boolean, what: () => string) => void,
): Promise<Seen> {
  const nothing = { isConnected: false, tokenEndpoint: undefined, revocationEndpoint: undefined }
  const check = async (response: Response, what: string) => {
    const text = await response.text()
    const isFine = response.status < 500 || response.status === 502
    expect(isFine, () => `${what} answers ${response.status} ${text.slice(0, 200)}`)
    expect(!/<script|href="(?!https:|http:\/\/localhost)/.test(text), () => `${what} shows foreign HTML`)
    const location = response.headers.get('location')
    expect(location === null || location.startsWith(`${base}/`), () => `${what} redirects to ${location}`)
    // The server’s own answer to a call repeats the token that it got.
    expect(what === 'a call' || !/(?:access|refresh)-secret/.test(text), () => `${what} shows a token`)
    return text
  }
  const made = await platform.fetch(connectionPath, { method: 'PUT', headers, body: JSON.stringify({ mcpUrl }) })
  const { status } = JSON.parse(await check(made, 'PUT')) as { status?: { state: string; setupUrl?: string } }
  if (status?.setupUrl === undefined) return nothing
  const path = status.setupUrl.slice(base.length)
  const { form = '' } = fieldsOf(await check(await platform.fetch(path), 'GET setup'))
  const begun = await post(platform, path, { form })
  const page = await check(begun, 'POST setup')
  const href = /id="continue" href="([^"]*)"/.exec(page)?.[1]?.replaceAll('&amp;', '&')
  if (href === undefined) return nothing
  // As the page was made: what the metadata says later is of no account.
  const { token_endpoint: tokenEndpoint, revocation_endpoint: revocationEndpoint } = servers.metadata
  expect(new URL(href).protocol === 'https:', () => `the page leads to ${href}`)
  const query = servers.authorize(new URL(href))
  if (chance.chance(0.3)) {
    const name = chance.pick(['iss', 'state', 'code'])
    const act = chance.pick([
      () => query.delete(name),
      () => query.append(name, query.get(name) ?? ''),
      () => query.set(name, chance.pick(['', 'x', 'https://evil.example', 'code-1', '\u0000', '<script>'])),
    ])
    act()
  }
  const cookie = chance.chance(0.9) ? cookieIn(begun) : chance.pick(['', 'postern-signin=x', 'postern-signin='])
  await check(await platform.fetch(`/oauth/callback?${query}`, { headers: { cookie } }), 'the callback')
  const after = await platform.fetch(connectionPath, { headers })
  const { status: left } = JSON.parse(await check(after, 'GET')) as { status: { state: string } }
  const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'a', arguments: {} } }
  await check(
    await platform.fetch(`${connectionPath}/mcp`, { method: 'POST', headers, body: JSON.stringify(call) }),
    'a call',
  )
  const isConnected = left.state === 'connected'
  expect(
    !isConnected || servers.tokensSeen.some((token) => token !== undefined && servers.good.has(token)),
    () => 'connected without a token that the server takes',
  )
  return { isConnected, tokenEndpoint, revocationEndpoint }
}

/** Where secrets went: tokens to the MCP server, codes and refresh tokens to the endpoint of the server that was shown. */
function checkRequests(
  sent: readonly UpstreamRequest[],
  { tokenEndpoint, revocationEndpoint }: Seen,
  expect: (holds: boolean, what: () => string) => void,
): void {
  for (const { url, headers: given = {}, body } of sent) {
    const text = `${JSON.stringify(given)} ${Buffer.from(body ?? '').toString()}`
    const hasToken = /Bearer /.test(given['authorization'] ?? '')
    expect(!hasToken || url === mcpUrl, () => `a token went to ${url}`)
    const hasSecret = /code-\d|refresh-secret|code_verifier/.test(text)
    const isRight = [tokenEndpoint, revocationEndpoint].some(
      (one) => URL.canParse(String(one)) && new URL(String(one)).href === new URL(url).href,
    )
    expect(!hasSecret || isRight, () => `a code or refresh token went to ${url}`)
    expect(!/access-secret/.test(text) || hasToken || isRight, () => `an access token is in a request to ${url}`)
  }
}
