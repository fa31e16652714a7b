/** Requests to authorization servers over the real upstream client: what is read of them, and where they go. */

import { expect, test } from 'bun:test'
import { createOAuthFetch, oauthResponseBytesMax } from '../../../src/features/upstream-sign-in/oauth-fetch.ts'
import { createAddresses, readAllowedUpstream } from '../../../src/upstream/addresses.ts'
import { createUpstream } from '../../../src/upstream/pooled-upstream.ts'

const allowed = readAllowedUpstream('127.0.0.1')
const addresses = createAddresses({ allowed: allowed ? [allowed] : [], isPublicAllowed: false, isSelf: () => false })
const fetch = createOAuthFetch(createUpstream(addresses), 'Trying', { keyId: 'key', family: 'key' })

function serving(answer: (request: Request) => Response | Promise<Response>) {
  const seen: string[] = []
  const server = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      seen.push(new URL(request.url).pathname)
      return answer(request)
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, seen, [Symbol.dispose]: () => void server.stop(true) }
}

test('a document is read to its bound, whatever its type, and not past it', async () => {
  using server = serving((request) => new Response('a'.repeat(Number(new URL(request.url).searchParams.get('n')))))
  const whole = await fetch(`${server.url}/?n=${oauthResponseBytesMax}`)
  expect((await whole.text()).length).toBe(oauthResponseBytesMax)
  await expect(fetch(`${server.url}/?n=${oauthResponseBytesMax + 1}`)).rejects.toThrow(
    /^Trying: 127\.0\.0\.1:\d+ cannot be reached/,
  )
})

test('the body of a refusal is read too: it says which error it is', async () => {
  using server = serving(() => Response.json({ error: 'invalid_client' }, { status: 401 }))
  const refused = await fetch(server.url, { method: 'POST', body: 'a=b' })
  expect([refused.status, await refused.json()]).toEqual([401, { error: 'invalid_client' }])
})

test('a redirect is not followed', async () => {
  using server = serving(() => new Response(null, { status: 302, headers: { location: '/elsewhere' } }))
  expect([(await fetch(`${server.url}/here`)).status, server.seen]).toEqual([302, ['/here']])
})

test('nothing is sent over plain HTTP to another machine, or to an address that is not allowed', async () => {
  await expect(fetch('http://as.example.com/token')).rejects.toThrow('Trying')
  await expect(fetch('https://10.1.2.3/token')).rejects.toThrow('Trying: 10.1.2.3 cannot be reached')
})
