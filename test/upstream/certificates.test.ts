/** Whose certificates are taken, and what is said of those that are not. A real server counts. */

import { expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { unauthorized } from '../../src/errors.ts'
import { createAddresses, readAllowedUpstream } from '../../src/upstream/addresses.ts'
import { createUpstream } from '../../src/upstream/pooled-upstream.ts'
import { cert, key } from '../support/tls.ts'

const holder = { keyId: 'key', family: 'key' }

const upstreamTrusting = (authorities: readonly string[]) => {
  const addresses = createAddresses({
    allowed: ['127.0.0.1', 'tools.lan'].flatMap((text) => readAllowedUpstream(text) ?? []),
    isPublicAllowed: false,
    isSelf: () => false,
    resolve: async () => ['127.0.0.1'],
  })
  return createUpstream(addresses, { authorities })
}

test('a certificate that nobody vouches for is not taken, and nothing is sent to whoever showed it', async () => {
  let asked = 0
  const fetch = () => {
    asked += 1
    return Response.json({})
  }
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls: { key, cert }, fetch })
  const request = { holder, url: `https://127.0.0.1:${server.port}/`, headers: {}, body: '{}', timeoutMs: 60_000 }
  await expect(upstreamTrusting([]).send(request)).rejects.toMatchObject({ kind: 'down' })
  // What was sent before it was closed is read until then.
  await server.stop()
  expect(asked).toBe(0)
})

test('why a certificate is not taken is told, and what to do', async () => {
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls: { key, cert }, fetch: () => Response.json({}) })
  const request = { holder, url: `https://127.0.0.1:${server.port}/`, headers: {}, timeoutMs: 60_000 }
  await expect(upstreamTrusting([]).send(request)).rejects.toThrow('--upstream-ca')
})

test('an authority that the operator names is trusted, beside those of the machine, for its names alone', async () => {
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls: { key, cert }, fetch: () => Response.json({}) })
  const upstream = upstreamTrusting([cert])
  const send = (host: string) =>
    upstream.send({ holder, url: `https://${host}:${server.port}/`, headers: {}, body: '{}', timeoutMs: 60_000 })
  expect((await send('127.0.0.1')).status).toBe(200)
  await expect(send('tools.lan')).rejects.toThrow('its certificate is for another name')
})

test('a server that renegotiates has the request already, which is not asked about again', async () => {
  await using server = Bun.spawn(['node', join(import.meta.dir, 'renegotiating-server.mjs')], {
    env: { ...process.env, KEY: key, CERT: cert },
    stdout: 'pipe',
  })
  const { value: port } = await server.stdout.getReader().read()
  let asked = 0
  let written = 0
  const response = await upstreamTrusting([cert]).send({
    ...{
      holder,
      url: `https://127.0.0.1:${Number(Buffer.from(port ?? []))}/`,
      headers: {},
      body: '{}',
      timeoutMs: 60_000,
    },
    requireAccess() {
      asked += 1
      return asked === 1 ? undefined : Promise.reject(unauthorized())
    },
    progress: {
      set isSent(_: boolean) {
        written += 1
      },
    },
  })
  expect([response.status, asked, written]).toEqual([200, 1, 1])
})

test('a certificate that is vouched for is taken for its own name alone', async () => {
  using server = Bun.serve({ port: 0, hostname: '127.0.0.1', tls: { key, cert }, fetch: () => Response.json({}) })
  const folder = mkdtempSync(join(tmpdir(), 'postern-test-'))
  const authority = join(folder, 'ca.pem')
  writeFileSync(authority, cert)
  // Who is trusted is read when a process starts.
  const asker = Bun.spawn([process.execPath, join(import.meta.dir, 'tls-asker.ts'), String(server.port)], {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: authority },
    stdout: 'pipe',
  })
  expect(await new Response(asker.stdout).json()).toEqual({ '127.0.0.1': 200, 'tools.lan': 'down' })
  rmSync(folder, { recursive: true })
})
