/** What operators do and see while the server runs. */

import { describe, expect, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mintToken } from '../api/cases.ts'
import { get, run, samePort, sampleFolder, sendTo, startServer, workplace } from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'

/** All that comes back on one connection, until the other side closes it. */
async function sentAhead(url: string, bytes: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let received = ''
  const { hostname, port } = new URL(url)
  const data = (_: unknown, chunk: Buffer) => {
    received += chunk.toString('latin1')
    // All were answered, and the connection stays open.
    if (received.split('HTTP/1.1').length > 100) resolve(received)
  }
  const close = () => resolve(received)
  const socket = await Bun.connect({ hostname, port: Number(port), socket: { data, close, error: close } })
  socket.write(bytes)
  return promise.finally(() => socket.end())
}

describe('operators act while the server runs, and what they did survives a kill right after', () => {
  const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())

  test('token revoke: the token and its children', async () => {
    using place = workplace()
    let server = await startServer(place)
    const parent = await mintToken(sendTo(server), sampleKeys.ada)
    const child = await mintToken(sendTo(server), parent)
    const other = await mintToken(sendTo(server), sampleKeys.ada)
    const statuses = () =>
      Promise.all([parent, child, other].map(async (token) => (await get(server, '/connect/ada', token)).status))
    expect(await statuses()).toEqual([200, 200, 200])
    const revoke = (named: string) => run(place, ['token', 'revoke', named, '--data', place.data])
    const { jti } = claimsOf(parent)
    expect(await revoke(parent)).toEqual({
      code: 0,
      stdout: `${jti} is revoked, and every token minted with it\n`,
      stderr: '',
    })
    expect(await statuses()).toEqual([401, 401, 200])
    expect((await revoke(claimsOf(other).jti)).code).toBe(0)
    await server.kill('SIGKILL')
    server = await startServer(place, samePort(server))
    expect(await statuses()).toEqual([401, 401, 401])
    expect(await revoke('tok_x')).toMatchObject({ code: 2, stdout: '' })
    const explained = await run(place, ['token', 'explain', child, '--data', place.data])
    expect(explained.stdout).toContain(`\n  REVOKED by ${jti}: it is refused everywhere\n`)
    const foreign = `${other.split('.').slice(0, 2).join('.')}.${'A'.repeat(86)}`
    expect(await revoke(foreign)).toMatchObject({ code: 1, stdout: '' })
    await server.kill('SIGKILL')
  })

  test('signing-key: rotate keeps old tokens, revoke kills them', async () => {
    using place = workplace()
    let server = await startServer(place)
    const signingKey = (...args: string[]) => run(place, ['signing-key', ...args, '--data', place.data])
    const published = async () => {
      const { keys } = (await (await fetch(`${server.url}/.well-known/jwks.json`)).json()) as {
        keys: { kid: string }[]
      }
      return keys.map(({ kid }) => kid)
    }
    const kidOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[0] ?? '', 'base64url').toString()).kid
    const old = await mintToken(sendTo(server), sampleKeys.ada)
    const [next = '', active = ''] = await published()
    expect(kidOf(old)).toBe(active)
    expect(await signingKey('rotate')).toMatchObject({ code: 0, stderr: '' })
    const fresh = await mintToken(sendTo(server), sampleKeys.ada)
    expect(kidOf(fresh)).toBe(next)
    expect(await published()).toEqual([expect.any(String), next, active])
    expect((await get(server, '/connect/ada', old)).status).toBe(200)
    const again = await signingKey('rotate')
    expect(again).toMatchObject({ code: 1, stdout: '' })
    expect(again.stderr).toMatch(/^the next key was published \d+ s ago, .* try again in \d+ s\n$/)
    expect((await signingKey('list')).stdout).toMatch(
      /^KID +STATE +SINCE\n\S+ +next +\S+\n\S+ +active +\S+\n\S+ +retired +\S+ +accepted until \S+\n$/,
    )
    expect((await signingKey('revoke', active)).code).toBe(0)
    await server.kill('SIGKILL')
    server = await startServer(place, samePort(server))
    expect((await get(server, '/connect/ada', old)).status).toBe(401)
    expect((await get(server, '/connect/ada', fresh)).status).toBe(200)
    expect(await signingKey('revoke', active)).toMatchObject({ code: 1, stdout: '' })
    const dashed = await signingKey('revoke', '-begins-with-a-dash')
    expect(dashed).toMatchObject({ code: 1, stderr: expect.stringMatching(/^there is no signing key "-begins/) })
    await server.kill('SIGKILL')
  })
})

describe('operators see', () => {
  test('the audit log: what the server and the commands did, in one chain', async () => {
    using place = workplace()
    const server = await startServer(place)
    const token = await mintToken(sendTo(server), sampleKeys.ada, { policy: [{ namespaces: 'ada' }] })
    expect((await get(server, '/connect/northwind', token)).status).toBe(404)
    await run(place, ['token', 'revoke', token, '--data', place.data])
    await mintToken(sendTo(server), sampleKeys.ada)
    const { stdout } = await run(place, ['keys', 'create', '--user', 'eve', '--data', place.data])
    await server.kill('SIGTERM')
    const log = readFileSync(join(place.data, 'audit.jsonl'), 'utf8')
    expect(
      log
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).event),
    ).toEqual(['token.minted', 'access.refused', 'token.revoked', 'token.minted', 'key.created'])
    for (const secret of [stdout.trim(), sampleKeys.ada, token.split('.')[2] ?? '']) expect(log).not.toContain(secret)
    const verify = () => run(place, ['audit', 'verify', '--data', place.data])
    expect(await verify()).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^5 entries, none changed/),
    })
    const hashOf = (line: string) => JSON.parse(line).hash as string
    const third = ['--hash', hashOf(log.split('\n')[2] ?? '')]
    const verifyHash = () => run(place, ['audit', 'verify', '--data', place.data, ...third])
    expect((await verifyHash()).code).toBe(0)
    writeFileSync(join(place.data, 'audit.jsonl'), log.split('\n').slice(0, 2).join('\n').concat('\n'))
    expect((await verify()).code).toBe(0)
    expect(await verifyHash()).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('the log was truncated'),
    })
    for (const [from, to, line] of [
      ['token.revoked', 'token.minted', 3],
      ['"userId":"eve"', '"userId":"ada"', 5],
    ] as const) {
      writeFileSync(join(place.data, 'audit.jsonl'), log.replace(from, to))
      const changed = await verify()
      expect(changed).toMatchObject({ code: 1, stdout: '' })
      expect(changed.stderr).toContain(`audit.jsonl:${line}: was changed`)
    }
  })

  test('metrics and readiness, on a listener of their own', async () => {
    using place = workplace()
    await using server = await startServer(place, ['--fixtures', sampleFolder, '--metrics-listen', '127.0.0.1:0'])
    const [, metrics = ''] = /"metrics listening","url":"([^"]+)"/.exec(server.stderr()) ?? []
    expect((await fetch(`${server.url}/metrics`)).status).toBe(404)
    const token = await mintToken(sendTo(server), sampleKeys.ada)
    for (let i = 0; i < 4; i += 1) await get(server, '/connect/ada', token)
    await get(server, '/connect/ada', 'wrong')
    await sendTo(server)('/tokens', { method: 'POST' })
    const made = async (mcpUrl: string) => {
      const response = await sendTo(server)('/connect/ada', {
        method: 'POST',
        headers: { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' },
        body: JSON.stringify({ mcpUrl }),
      })
      return { status: response.status, text: await response.text() }
    }
    const itself = { status: 400, text: expect.stringContaining('leads back to this postern: name another server') }
    expect([await made(`${metrics}/ready`), await made(`${server.url}/mcp`)]).toEqual([itself, itself])
    // A page of a name that was made to point here reads nothing; names without a dot are nobody else's.
    for (const path of ['/metrics', '/ready']) {
      expect((await fetch(`${metrics}${path}`, { headers: { host: 'evil.example' } })).status).toBe(403)
      expect((await fetch(`${metrics}${path}`, { headers: { host: 'postern:9464' } })).status).toBe(200)
    }
    // Of requests that were sent ahead, none holds the loop that everybody shares.
    for (const path of ['/metrics', '/ready', '/x']) {
      const answers = await sentAhead(metrics, `GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(100))
      expect({ path, isMany: answers.split('HTTP/1.1').length > 10 }).toEqual({ path, isMany: false })
    }
    const text = await (await fetch(`${metrics}/metrics`)).text()
    for (const line of [
      'postern_request_duration_seconds_count{operation="createToken",status="200"} 1',
      'postern_request_duration_seconds_count{operation="listConnections",status="200"} 4',
      'postern_request_duration_seconds_count{operation="listConnections",status="401"} 1',
      'postern_request_duration_seconds_count{operation="other",status="404"} 1',
      'postern_tokens_minted_total 1',
      'postern_tokens_refused_total{reason="unauthorized"} 1',
      'postern_credentials_refused_total{reason="unknown"} 1',
      'postern_credentials_refused_total{reason="missing"} 1',
      'postern_page_cache_hits_total 2',
      'postern_page_cache_misses_total 2',
      'postern_upstream_request_duration_seconds_count{outcome="refused"} 2',
    ]) {
      expect(text.split('\n')).toContain(line)
    }
    expect(text).toMatch(/^postern_store_bytes [1-9]\d+$/m)
    const ready = await fetch(`${metrics}/ready`)
    expect({ status: ready.status, body: await ready.json() }).toEqual({
      status: 200,
      body: { status: 'ready', durability: 'local' },
    })
  })
})
