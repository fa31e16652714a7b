/** Hostile requests to everything that signs in: none may be answered 5xx, and none redirects to a stranger. */

import type { CliLoginMade } from '../../../src/model/cli-login.ts'
import { post } from '../../support/pages.ts'
import { createTestPlatform, issuer } from '../../support/platform.ts'
import type { Random } from '../../support/random.ts'
import { authorizePath, newVerifier, redirectUri, register, signedIn, signInClient } from './world.ts'

const nasty = [
  '',
  'x',
  '\u0000',
  '"><script>alert(1)</script>',
  'javascript:alert(1)',
  'https://evil.example/cb',
  '//evil.example',
  'http://127.0.0.1:4444@evil.example/callback',
  'http://127.0.0.1.evil.example/callback',
  'http://127.0.0.1:4444/callback\r\nSet-Cookie: a=b',
  `${redirectUri}/../../evil`,
  `${redirectUri}#x`,
  '../../..',
  '%00%0a%0d',
  'ünïcode 🏕️',
  'a'.repeat(5000),
  '[]',
  '{"a":1}',
  'grant_aaaaaaaaaaaaaaaaaaaaaa.0.aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa',
  'null',
  '-1',
  '1e309',
]
const names = [
  ...['response_type', 'client_id', 'redirect_uri', 'code_challenge', 'code_challenge_method', 'resource', 'state'],
  ...['grant_type', 'code', 'code_verifier', 'refresh_token', 'token', 'iss', 'error', 'error_description', 'ticket'],
  ...[
    'key',
    'next',
    'link',
    'login',
    'form',
    'end',
    'access',
    'tool',
    'days',
    'decision',
    'client_secret',
    'issuer',
    'scope',
  ],
  ...['__proto__', 'constructor', 'toString'],
]
const paths = [
  '/signin',
  '/signin/cli',
  '/api/auth/cli/session',
  '/api/auth/cli/poll/x.y',
  '/oauth/authorize',
  '/oauth/token',
  '/oauth/register',
  '/oauth/revoke',
  '/oauth/callback',
  '/oauth/done',
  '/oauth/client.json',
  '/connect/ada/weather-cabin/setup',
  '/connect/nobody/nothing/setup',
  '/.well-known/oauth-authorization-server',
  '/.well-known/oauth-authorization-server/x/y',
  '/.well-known/oauth-protected-resource/connect/a/b/mcp',
]

function parameters(chance: Random, good: readonly (readonly [string, string])[]): [string, string][] {
  const changed = good.map(([name, value]): [string, string] => [
    name,
    chance.chance(0.15) ? chance.pick(nasty) : value,
  ])
  const more = Array.from({ length: chance.int(3) }, (): [string, string] => [chance.pick(names), chance.pick(nasty)])
  return [...changed.filter(() => chance.chance(0.93)), ...more]
}

/** Sends `count` of them; `expect` collects what must not be. */
export async function hostileRequests(
  count: number,
  chance: Random,
  expect: (holds: boolean, what: () => string) => void,
): Promise<void> {
  const platform = await createTestPlatform()
  const { client_id: clientId } = await register(platform)
  const cookie = await signedIn(platform)
  const signedInClient = await signInClient(platform)
  const begun = await platform.fetch('/api/auth/cli/session', { method: 'POST' })
  const { sessionId, authUrl } = (await begun.json()) as CliLoginMade
  const goods: [string, string][][] = [
    [...new URL(authorizePath({ clientId, verifier: newVerifier() }), issuer).searchParams],
    Object.entries(signedInClient.fields),
    [
      ['grant_type', 'refresh_token'],
      ['refresh_token', signedInClient.answer.refresh_token],
      ['client_id', signedInClient.clientId],
    ],
    [
      ['login', new URL(authUrl).searchParams.get('login') ?? ''],
      ['decision', 'allow'],
    ],
    [
      ['access', 'some'],
      ['tool', 'find_product'],
      ['days', '30'],
      ['decision', 'allow'],
    ],
    [],
  ]
  for (let i = 0; i < count; i += 1) {
    const path = chance.pick([...paths, `/api/auth/cli/poll/${sessionId}`])
    const query = new URLSearchParams(parameters(chance, chance.pick(goods)))
    const target = chance.chance(0.7) ? `${path}?${query}` : path
    const fields = Object.fromEntries(parameters(chance, chance.pick(goods)))
    const sent = chance.chance(0.6)
      ? cookie
      : chance.pick(['', `${cookie}; ${cookie}`, 'postern=x', 'postern-signin=x'])
    const isPost = chance.chance(0.5)
    const headers = { cookie: sent, ...(chance.chance(0.2) && { 'content-type': 'application/json' }) }
    const response =
      isPost && chance.chance(0.8)
        ? await post(platform, target, fields, sent)
        : await platform.fetch(target, {
            method: isPost ? 'POST' : 'GET',
            headers,
            ...(isPost && { body: chance.pick(nasty) }),
          })
    const location = response.headers.get('location')
    const isOurs = location === null || location.startsWith(`${issuer}/`) || location.startsWith(`${redirectUri}?`)
    expect(response.status < 500, () => `${target} answers ${response.status}`)
    expect(isOurs, () => `${target} redirects to ${location}`)
    const text = await response.text()
    expect(!text.includes('<script'), () => `${target} shows foreign HTML`)
    expect(!text.includes('"apiKey"'), () => `${target} gives a token that nobody allowed`)
  }
}
