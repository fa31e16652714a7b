/** Names in paths and keys in bodies that mean something to somebody else: look-alikes, and the names of prototypes. */

import { beforeAll, describe, expect, test } from 'bun:test'
import { mintToken } from '../api/cases.ts'
import { createTestPlatform, source, type TestPlatform } from '../support/platform.ts'

const key = 'a-key-for-the-tests-of-names-0000000001'
const poison = ['__proto__', 'constructor', 'prototype', 'toString', 'hasOwnProperty', 'valueOf']

let platform: TestPlatform
beforeAll(async () => {
  const metadata = JSON.parse(`{${poison.map((name) => `${JSON.stringify(name)}:"own"`).join(',')}}`)
  platform = await createTestPlatform({
    sources: [
      source('names.json', {
        organizations: [{ organizationId: 'org', name: 'Org', members: [{ userId: 'kim', role: 'owner' }] }],
        namespaces: [
          { namespace: 'kim-files', organizationId: 'org' },
          { namespace: 'constructor', organizationId: 'org' },
        ],
        apiKeys: [{ userId: 'kim', key }],
        connections: [
          { namespace: 'kim-files', connectionId: 'poisoned', mcpUrl: 'https://a.example.com/mcp', metadata },
          { namespace: 'kim-files', connectionId: 'plain', mcpUrl: 'https://a.example.com/mcp' },
        ],
      }),
    ],
  })
})
const get = (path: string, credential = key) =>
  platform.fetch(path, { headers: { authorization: `Bearer ${credential}` } })
const idsOf = async (response: Response) => {
  const { connections } = (await response.json()) as { connections: { connectionId: string }[] }
  return connections.map(({ connectionId }) => connectionId)
}

describe('a name that looks like another is another', () => {
  const lookalikes = [
    ...[
      '\u212aim-files',
      'Kim-files',
      'kIm-files',
      'k\u0131m-files',
      'k\u0456m-files',
      'kim\u2010files',
      'kim\u2011files',
      'kim\u2013files',
    ],
    ...[
      'kim\u00adfiles',
      '\u200bkim-files',
      'kim-files\u200d',
      '\ufeffkim-files',
      '\uff4b\uff49\uff4d-files',
      'kim-\ufb01les',
      'kim-file\u017f',
    ],
    ...['k\u0069\u0307m-files', 'kim-files\u0301', 'kim-files ', 'kim-files.', '\u202ekim-files', 'kim_files'],
  ]
  for (const name of lookalikes) {
    test(JSON.stringify(name), async () => {
      expect((await get(`/connect/${encodeURIComponent(name)}`)).status).toBe(404)
      const token = await platform.fetch('/tokens', {
        method: 'POST',
        headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ policy: [{ namespaces: name }] }),
      })
      // Names of ASCII that could be are fine, and reach nothing here; all others cannot be.
      if (token.status === 200) {
        expect(name).toMatch(/^[\x21-\x7e]+$/)
        const { token: text } = (await token.json()) as { token: string }
        expect((await get('/connect/kim-files', text)).status).toBe(404)
      } else expect(token.status).toBe(400)
    })
  }
})

describe('names of prototypes are names', () => {
  for (const name of poison) {
    test(name, async () => {
      expect(await idsOf(await get(`/connect/kim-files?metadata.${name}=own`))).toEqual(['poisoned'])
      expect(await idsOf(await get(`/connect/kim-files?metadata[${name}]=other`))).toEqual([])
      const policy = JSON.parse(`[{"metadata":{${JSON.stringify(name)}:"own"}}]`)
      const token = await mintToken(platform.fetch, key, { policy })
      expect(await idsOf(await get('/connect/kim-files', token))).toEqual(['poisoned'])
      for (const body of [
        `{${JSON.stringify(name)}:{"polluted":true}}`,
        `{"policy":[{${JSON.stringify(name)}:"x"}]}`,
        `{"policy":[{"ttl":{${JSON.stringify(name)}:1}}]}`,
      ]) {
        const response = await platform.fetch('/tokens', {
          method: 'POST',
          headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
          body,
        })
        expect({ body, status: response.status }).toEqual({ body, status: 400 })
      }
      expect((await get(`/servers/${name}`)).status).toBe(404)
      expect((await get(`/${name}`)).status).toBe(404)
      expect(({} as Record<string, unknown>)['polluted']).toBeUndefined()
    })
  }
  test('an id that is one is found under it, and keeps all of its metadata', async () => {
    expect((await get('/connect/constructor')).status).toBe(200)
    const { connections } = (await (await get('/connect/kim-files')).json()) as { connections: { metadata: object }[] }
    const keys = Object.keys(connections.find(({ metadata }) => metadata !== null)?.metadata ?? {})
    expect(keys.sort()).toEqual([...poison].sort())
  })
})
