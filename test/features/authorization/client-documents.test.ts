/** Clients that name themselves by a document on the web (contract, 13.3). */

import { beforeEach, describe, expect, test } from 'bun:test'
import { clientDocumentBytesMax, clientDocumentSecondsMax } from '../../../src/features/authorization/clients.ts'
import { clientDocumentsPerMinuteMax } from '../../../src/limits.ts'
import { UpstreamError, type UpstreamRequest } from '../../../src/upstream/upstream.ts'
import { createTestPlatform, keyIdOf, type TestPlatform } from '../../support/platform.ts'
import { authorizePath, callTool, decide, exchange, newVerifier, redirectUri, sentBack, signedIn } from './world.ts'

const clientId = 'https://client.example/app.json'
const good = {
  client_id: clientId,
  client_name: 'A client',
  redirect_uris: [redirectUri],
  token_endpoint_auth_method: 'none',
  grant_types: ['authorization_code', 'refresh_token'],
}

let platform: TestPlatform
let cookie = ''
let fetched: UpstreamRequest[]
let answer: () => { status?: number; headers?: Record<string, string>; body?: string }
beforeEach(async () => {
  fetched = []
  answer = () => ({ body: JSON.stringify(good) })
  platform = await createTestPlatform({
    upstream: {
      async send(request) {
        fetched.push(request)
        const { status = 200, headers = {}, body = '' } = answer()
        return { status, headers, body: Buffer.from(body) as Uint8Array<ArrayBuffer> }
      },
    },
  })
  cookie = await signedIn(platform)
})

async function open(id = clientId) {
  const path = authorizePath({ clientId: id, verifier: newVerifier() })
  const response = await platform.fetch(path, { headers: { cookie } })
  return { path, status: response.status, page: await response.text() }
}

test('are fetched with their bounds, name a host that is shown, and lead to tokens', async () => {
  const { status, page } = await open()
  expect([status, page]).toEqual([200, expect.stringContaining('<dd>client.example</dd>')])
  expect(page).not.toContain('not verified')
  expect(fetched).toMatchObject([{ url: clientId, method: 'GET', bodyBytesMax: clientDocumentBytesMax }])
  const verifier = newVerifier()
  const code = sentBack(await decide(platform, authorizePath({ clientId, verifier }), cookie)).get('code') ?? ''
  const fields = { grant_type: 'authorization_code', code, client_id: clientId, redirect_uri: redirectUri }
  const tokens = await exchange(platform, { ...fields, code_verifier: verifier })
  expect(tokens).toMatchObject({ status: 200, refresh_token: expect.any(String) })
  expect((await callTool(platform, tokens.access_token, 'find_product')).status).toBe(200)
})

test('are fetched for their user, and a number of them in a minute', async () => {
  const first = await open()
  expect(first.status).toBe(200)
  expect(fetched[0]?.holder).toMatchObject({ keyId: await keyIdOf(platform, 'ada'), userId: 'ada' })
  answer = () => ({ status: 404 })
  const statuses = []
  for (let i = 1; i <= clientDocumentsPerMinuteMax; i += 1)
    statuses.push((await open(`https://client${i}.example/app.json`)).status)
  expect(statuses).toEqual([...Array(clientDocumentsPerMinuteMax - 1).fill(400), 429])
  expect(fetched).toHaveLength(clientDocumentsPerMinuteMax)
  // What is known is not fetched, and others have their own.
  expect((await open()).status).toBe(200)
  cookie = await signedIn(platform, 'grace')
  expect((await open('https://another.example/app.json')).status).toBe(400)
  expect(fetched).toHaveLength(clientDocumentsPerMinuteMax + 1)
  expect(fetched.at(-1)?.holder).toMatchObject({ userId: 'grace' })
})

describe('are a page that says what is wrong, and no redirect', () => {
  const wrong: Record<string, [what: ReturnType<typeof answer>, said: string]> = {
    'another client_id': [
      { body: JSON.stringify({ ...good, client_id: `${clientId}/` }) },
      'is about another client_id',
    ],
    'a secret': [
      { body: JSON.stringify({ ...good, token_endpoint_auth_method: 'client_secret_basic' }) },
      'only public clients are accepted',
    ],
    'no name': [{ body: JSON.stringify({ ...good, client_name: undefined }) }, 'does not describe a client'],
    'no redirect URI': [{ body: JSON.stringify({ ...good, redirect_uris: [] }) }, 'does not describe a client'],
    'another redirect URI': [
      { body: JSON.stringify({ ...good, redirect_uris: ['https://client.example/other'] }) },
      'is not one that this client has registered',
    ],
    'no JSON': [{ body: '<html>' }, 'is not JSON'],
    'a redirect': [{ status: 302, headers: { location: 'https://evil.example/' } }, 'it answered 302'],
    'nothing there': [{ status: 404 }, '--no-public-upstream'],
  }
  for (const [what, [given, said]] of Object.entries(wrong)) {
    test(`with ${what}`, async () => {
      answer = () => given
      const { status, page } = await open()
      expect([status, page]).toEqual([400, expect.stringContaining(said)])
      expect(fetched).toHaveLength(1)
    })
  }

  test('where they cannot be fetched', async () => {
    answer = () => {
      throw new UpstreamError('down', 'connection refused or reset')
    }
    const { status, page } = await open()
    expect([status, page]).toEqual([400, expect.stringContaining('--no-public-upstream')])
  })

  test('where they are not announced, and a client remembers that they were', async () => {
    const send = () => Promise.reject(new UpstreamError('down', 'connection refused or reset'))
    platform = await createTestPlatform({ takesDocuments: false, upstream: { send } })
    cookie = await signedIn(platform)
    const { status, page } = await open()
    expect([status, page]).toEqual([400, expect.stringContaining('remove postern from the client, and add it again')])
    expect(page).not.toContain('--no-public-upstream')
  })

  for (const id of [
    'https://client.example',
    'https://client.example/',
    'http://client.example/app.json',
    'https://a@client.example/x',
    'https://client.example/a/../b',
  ]) {
    test(`at ${id}, which is no document`, async () => {
      expect((await open(id)).status).toBe(400)
      expect(fetched).toEqual([])
    })
  }
})

describe('are kept as their headers say', () => {
  const kept: [cacheControl: string | undefined, seconds: number][] = [
    [undefined, 300],
    ['max-age=60', 60],
    ['public, max-age=99999999', clientDocumentSecondsMax],
    ['no-store', 0],
    ['no-cache, max-age=60', 0],
  ]
  test('`Age` counts, and `Expires` where nothing else is said', async () => {
    const ages: [headers: Record<string, string>, fetches: number][] = [
      [{ 'cache-control': 'max-age=60', age: '60' }, 2],
      [{ 'cache-control': 'max-age=60', age: '30' }, 1],
      [{ expires: new Date(platform.now + 60_000).toUTCString() }, 1],
      [{ expires: new Date(platform.now - 60_000).toUTCString() }, 2],
      [{ expires: '0' }, 2],
    ]
    for (const [index, [given, fetches]] of ages.entries()) {
      const id = `https://client.example/${index}.json`
      answer = () => ({ body: JSON.stringify({ ...good, client_id: id }), headers: given })
      fetched = []
      await open(id)
      await open(id)
      expect({ given, fetches: fetched.length }).toEqual({ given, fetches })
    }
  })

  for (const [cacheControl, seconds] of kept) {
    test(cacheControl ?? 'without any', async () => {
      answer = () => ({
        body: JSON.stringify(good),
        ...(cacheControl && { headers: { 'cache-control': cacheControl } }),
      })
      await open()
      if (seconds > 0) {
        platform.now += seconds * 1000 - 1
        cookie = await signedIn(platform)
        await open()
        expect(fetched).toHaveLength(1)
      }
      platform.now += 1
      await open()
      expect(fetched).toHaveLength(2)
    })
  }
})
