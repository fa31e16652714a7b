import { describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { prefixRange, usageKey } from '../src/storage/keys.ts'
import { openLmdbStore } from '../src/storage/lmdb/store.ts'
import { mintToken } from './api/cases.ts'
import {
  executable,
  run,
  type Server,
  sampleFolder,
  sendTo,
  startServer,
  unlimited,
  until,
  type Workplace,
  workplace,
} from './support/executable.ts'
import { sampleKeys } from './support/sample.ts'

const get = (server: Server, path: string, credential: string) =>
  fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${credential}` } })
const ids = async (response: Response) => {
  const { connections } = (await response.json()) as { connections: { connectionId: string }[] }
  return connections.map(({ connectionId }) => connectionId)
}
/** The port of a server that starts again under the same name, which is the issuer of its tokens. */
const samePort = (server: Server) => ['--port', new URL(server.url).port]

describe('the main job', () => {
  test('load fixtures, mint a scoped token, list what it may see, read a server', async () => {
    using place = workplace()
    await using server = await startServer(place)
    const token = await mintToken(sendTo(server), sampleKeys.ada, {
      policy: [{ namespaces: 'northwind', metadata: { userId: 'ada' }, ttl: '30m' }],
    })
    expect(await ids(await get(server, '/connect/northwind', token))).toEqual([
      'calendar-ada',
      'crm-ada',
      'weather-ada',
    ])
    const detail = (await (await get(server, '/servers/northwind%2Fweather', sampleKeys.ada)).json()) as {
      tools: unknown[]
    }
    expect(detail.tools.length).toBeGreaterThan(1)
    expect((await get(server, '/connect/lumen', token)).status).toBe(404)
  })

  test('the company of the documentation takes the place of the sample, and every command opens the folder after it', async () => {
    using place = workplace()
    await (await startServer(place)).kill('SIGTERM')
    const own = join(place.folder, 'platform')
    mkdirSync(own)
    const document = readFileSync(join(import.meta.dir, '../docs/fixtures.md'), 'utf8')
    const company = /`platform\/company\.json`:\s+```json\n(.*?)```/s.exec(document)?.[1] ?? ''
    writeFileSync(join(own, 'company.json'), company)
    await using server = await startServer(place, ['--fixtures', own])
    const { code, stdout, stderr } = await run(place, ['keys', 'create', '--user', 'you', '--data', place.data])
    expect({ code, stderr }).toEqual({ code: 0, stderr: expect.not.stringContaining('damaged') })
    expect((await get(server, '/connect/acme', stdout.trim())).status).toBe(200)
    expect((await run(place, ['verify', '--data', place.data])).code).toBe(0)
    await server.kill('SIGTERM')
    await using again = await startServer(place, ['--fixtures', own])
    expect((await get(again, '/connect/acme', stdout.trim())).status).toBe(200)
  })

  test('tokens, cursors, keys and records survive a restart, and a kill', async () => {
    using place = workplace()
    let server = await startServer(place)
    const token = await mintToken(sendTo(server), sampleKeys.ada)
    const page = (await (await get(server, '/connect/northwind?limit=5', token)).json()) as { nextCursor: string }
    const next = `/connect/northwind?limit=2&cursor=${page.nextCursor}`
    const expected = await ids(await get(server, next, token))
    const { stdout: key } = await run(place, ['keys', 'create', '--user', 'ada', '--data', place.data])
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      await server.kill(signal)
      server = await startServer(place, samePort(server))
      expect(await ids(await get(server, next, token))).toEqual(expected)
      expect((await get(server, '/connect/ada', key.trim())).status).toBe(200)
    }
    await server.kill('SIGKILL')
  })
})

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

test('the reference is in the executable', async () => {
  using place = workplace()
  await using server = await startServer(place)
  const document = (await (await fetch(`${server.url}/openapi.json`)).json()) as { servers: { url: string }[] }
  expect(document.servers).toEqual([{ url: server.url }])
  expect(await (await fetch(`${server.url}/docs`)).text()).toMatch(/^<!doctype html>/)
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
    const made = await sendTo(server)('/connect/ada', {
      method: 'POST',
      headers: { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' },
      body: JSON.stringify({ mcpUrl: 'http://169.254.169.254/mcp' }),
    })
    expect(made.status).toBe(400)
    // A page of a name that was made to point here reads nothing; names without a dot are nobody else's.
    for (const path of ['/metrics', '/ready']) {
      expect((await fetch(`${metrics}${path}`, { headers: { host: 'evil.example' } })).status).toBe(403)
      expect((await fetch(`${metrics}${path}`, { headers: { host: 'postern:9464' } })).status).toBe(200)
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
      'postern_upstream_request_duration_seconds_count{outcome="refused"} 1',
    ]) {
      expect(text.split('\n')).toContain(line)
    }
    expect(text).toMatch(/^postern_store_bytes [1-9]\d+$/m)
    const ready = await fetch(`${metrics}/ready`)
    expect({ status: ready.status, body: await ready.json() }).toEqual({ status: 200, body: { status: 'ready' } })
  })
})

describe('data is safe', () => {
  test('an import keeps the headers of a connection that goes where it went, and gives them to no other server', async () => {
    using place = workplace()
    const got: (string | null)[] = []
    using upstream = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch: async (request) => {
        got.push(request.headers.get('x-secret'))
        const { id } = (await request.json()) as { id?: number }
        return Response.json({ jsonrpc: '2.0', id, result: {} })
      },
    })
    const mcpUrl = `http://127.0.0.1:${upstream.port}/mcp`
    await using server = await startServer(place, [...unlimited, '--allow-upstream', '127.0.0.1'])
    const bearer = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ mcpUrl, headers: { 'X-Secret': 'for that server' } })
    expect((await sendTo(server)('/connect/ada/kept', { method: 'PUT', headers: bearer, body })).status).toBe(201)
    const call = async () => {
      got.length = 0
      const ping = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' })
      await sendTo(server)('/connect/ada/kept/mcp', { method: 'POST', headers: bearer, body: ping })
      return new Set(got)
    }
    const file = join(place.folder, 'export.jsonl')
    expect((await run(place, ['export', file, '--data', place.data])).code).toBe(0)
    expect(readFileSync(file, 'utf8')).not.toContain('for that server')
    expect((await run(place, ['import', file, '--data', place.data])).code).toBe(0)
    expect(await call()).toEqual(new Set(['for that server']))
    writeFileSync(file, readFileSync(file, 'utf8').replaceAll(mcpUrl, mcpUrl.replace('/mcp', '/other')))
    expect((await run(place, ['import', file, '--data', place.data])).code).toBe(0)
    expect(await call()).toEqual(new Set([null]))
  })

  test('a restore of what is no backup leaves nothing behind', async () => {
    using place = workplace()
    const file = join(place.folder, 'no-backup')
    writeFileSync(file, 'x'.repeat(10_000))
    const { code, stderr } = await run(place, ['restore', file, '--data', place.data])
    expect({ code, stderr }).toEqual({ code: 1, stderr: `${file} is not a backup of postern, or is damaged\n` })
    expect(existsSync(place.data)).toBe(false)
  })

  test('backup while serving, restore: keys, tokens, cursors and rows are as they were', async () => {
    using place = workplace()
    const server = await startServer(place)
    const token = await mintToken(sendTo(server), sampleKeys.ada)
    const page = (await (await get(server, '/connect/northwind?limit=5', token)).json()) as { nextCursor: string }
    const next = `/connect/northwind?limit=50&cursor=${page.nextCursor}`
    const expected = await ids(await get(server, next, token))
    const file = join(place.folder, 'backup')
    const backUp = () => run(place, ['backup', file, '--data', place.data])
    expect(await backUp()).toMatchObject({ code: 0, stderr: '' })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(await backUp()).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/already exists/) })
    await run(place, ['token', 'revoke', token, '--data', place.data])
    await server.kill('SIGKILL')
    const restored = { ...place, data: join(place.folder, 'restored') }
    const restore = () => run(place, ['restore', file, '--data', restored.data])
    chmodSync(file, 0o644)
    expect(await restore()).toMatchObject({ code: 0, stderr: '' })
    expect(statSync(join(restored.data, 'store', 'data.mdb')).mode & 0o777).toBe(0o600)
    expect(await restore()).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/is not empty/) })
    expect(readdirSync(place.folder).filter((name) => name.startsWith('.postern'))).toEqual([])
    expect((await run(place, ['verify', '--data', restored.data])).code).toBe(0)
    const again = await startServer(restored, samePort(server))
    expect(await ids(await get(again, next, token))).toEqual(expected)
    expect((await get(again, '/connect/ada', sampleKeys.ada)).status).toBe(200)
    await again.kill('SIGTERM')
    rmSync(join(restored.data, 'instance-secret'))
    const without = await run(place, ['backup', join(place.folder, 'without'), '--data', restored.data])
    expect(without).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(/instance-secret is missing/) })
    for (const [what, bytes] of [
      ['cut short', readFileSync(file).subarray(0, 20_000)],
      ['something else', Buffer.alloc(100_000, 'x')],
    ] as const) {
      const bad = join(place.folder, 'bad')
      writeFileSync(bad, bytes)
      const ran = await run(place, ['restore', bad, '--data', join(place.folder, `from ${what}`)])
      expect({ what, ran }).toMatchObject({
        what,
        ran: { code: 1, stdout: '', stderr: expect.stringMatching(/^[^\n]+\n$/) },
      })
    }
  })

  test('export and import: the same records, all or none', async () => {
    using place = workplace()
    const server = await startServer(place)
    const file = join(place.folder, 'export.jsonl')
    const exported = await run(place, ['export', file, '--data', place.data])
    expect(exported).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^\d+ records are in /) })
    const text = readFileSync(file, 'utf8')
    const { stdout } = await run(place, ['export', '--data', place.data])
    expect(stdout).toBe(text)
    for (const key of Object.values(sampleKeys)) expect(text).not.toContain(key)
    const expected = await (await get(server, '/connect/northwind', sampleKeys.ada)).text()
    await server.kill('SIGTERM')

    // Into the same folder: nothing is other than it was, keys included.
    const into = (data: string, from = file) => run({ ...place, data }, ['import', from, '--data', data])
    expect(await into(place.data)).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/records are imported\n$/),
    })
    expect((await run(place, ['verify', '--data', place.data])).code).toBe(0)
    const again = await startServer(place, samePort(server))
    expect(await (await get(again, '/connect/northwind', sampleKeys.ada)).text()).toBe(expected)
    await again.kill('SIGTERM')

    // Into another: its keys are its own.
    const other = { ...place, data: join(place.folder, 'other') }
    const imported = await into(other.data)
    expect(imported.stderr).toMatch(/^made a new data folder at \S+\n\d+ API keys were left out: .*\n$/)
    const { stdout: key } = await run(other, ['keys', 'create', '--user', 'ada', '--data', other.data])
    const moved = await startServer(other, [])
    expect(await (await get(moved, '/connect/northwind', key.trim())).text()).toBe(expected)
    expect((await get(moved, '/connect/northwind', sampleKeys.ada)).status).toBe(401)
    await moved.kill('SIGTERM')
    expect((await run(other, ['verify', '--data', other.data])).code).toBe(0)

    // A changed connection replaces the old one, in the index too.
    const lines = text.trim().split('\n')
    const at = lines.findIndex((one) => one.includes('"connectionId":"crm-ada"'))
    const change = (from: string, to: string) => lines.with(at, (lines[at] ?? '').replaceAll(from, to)).join('\n')
    const bad = join(place.folder, 'bad.jsonl')
    writeFileSync(bad, change('"team":"wholesale"', '"team":"retail"'))
    expect((await into(other.data, bad)).code).toBe(0)
    expect((await run(other, ['verify', '--data', other.data])).code).toBe(0)
    const end = JSON.stringify({ postern: 'end', records: lines.length - 1 })
    const twice = [...lines.slice(0, -1), lines[at] ?? '', end]
    const wrong: [what: string, text: string, message: RegExp][] = [
      ['a field', change('"transport":"http"', '"transport":"smoke"'), /^\S+bad\.jsonl:\d+: connection\.transport: /],
      ['a kind', change('"kind":"connection"', '"kind":"toString"'), /:\d+: kind: "toString" is none of organization/],
      ['a connection twice', twice.join('\n'), /^\S+bad\.jsonl: has the connection northwind\/crm-ada twice\n$/],
      ['a cut line', text.slice(0, -20), /^\S+bad\.jsonl:\d+: /],
      [
        'a namespace',
        change('"namespace":"northwind"', '"namespace":"nowhere"'),
        /names the namespace nowhere, which is neither/,
      ],
      ['cut at a line end', lines.slice(0, -1).join('\n'), /is cut off: its last line is missing/],
      ['a line too few', lines.toSpliced(at, 1).join('\n'), /is the end of \d+ records, and there are \d+/],
      ['no head', lines.slice(1).join('\n'), /:1: is not the first line of an export/],
      ['nothing', '', /is empty/],
    ]
    for (const [what, content, message] of wrong) {
      writeFileSync(bad, content)
      const ran = await into(join(place.folder, 'never'), bad)
      expect({ what, code: ran.code, stdout: ran.stdout }).toEqual({ what, code: 1, stdout: '' })
      expect(ran.stderr).toMatch(message)
    }
    expect(existsSync(join(place.folder, 'never'))).toBe(false)

    // An older export does not bring a revoked key back.
    const keyId = (text.match(/"apiKey":\{"keyId":"(key_[^"]+)"/) ?? [])[1] ?? ''
    expect((await run(place, ['keys', 'revoke', keyId, '--data', place.data])).code).toBe(0)
    expect((await into(place.data)).code).toBe(0)
    expect((await run(place, ['keys', 'list', '--data', place.data])).stdout).toMatch(
      new RegExp(`^${keyId} .* revoked `, 'm'),
    )
  })

  test('verify tells what is damaged or missing, and repair makes the index anew', async () => {
    using place = workplace()
    await (await startServer(place)).kill('SIGTERM')
    const verify = (...flags: string[]) => run(place, ['verify', '--data', place.data, ...flags])
    expect(await verify()).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^\d+ records and \d+ index entries/),
    })
    const store = openLmdbStore(join(place.data, 'store'))
    const { keys } = await store.keys({ ...prefixRange(Buffer.from('xnorthwind\0')), limit: 1 })
    const stray = Buffer.concat([keys[0]?.subarray(0, 27) ?? Buffer.alloc(0), Buffer.from('nobody')])
    const miscounted = { key: usageKey('lumen'), add: [1, -5] }
    await store.commit({ deletes: keys, counts: [miscounted], puts: [{ key: stray, value: Buffer.alloc(0) }] })
    await store.close()
    const found = await verify()
    expect(found).toMatchObject({ code: 1, stdout: '' })
    expect(found.stderr).toMatch(
      /^index entry of connection northwind\/\S+: is missing\nindex entry of connection northwind\/nobody: belongs to no connection\nusage of namespace lumen: is counted as \d+ \d+, and is \d+ \d+\nrun `postern verify --repair`\n$/,
    )
    expect(await verify('--repair')).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/was rebuilt/),
    })
    expect(await verify()).toMatchObject({ code: 0, stderr: '' })
    // The disk changes the structure of the file itself, which LMDB does not survive.
    const structure = join(place.folder, 'structure')
    mkdirSync(join(structure, 'store'), { recursive: true, mode: 0o700 })
    const whole = readFileSync(join(place.data, 'store', 'data.mdb'))
    whole.fill(0xff, 8192, whole.length)
    writeFileSync(join(structure, 'store', 'data.mdb'), whole, { mode: 0o600 })
    writeFileSync(join(structure, 'instance-secret'), readFileSync(join(place.data, 'instance-secret')), {
      mode: 0o600,
    })
    const broken = await run(place, ['verify', '--data', structure])
    expect(broken).toMatchObject({ code: 1, stdout: '' })
    expect(broken.stderr).not.toContain('panic')
    // The disk changes a record.
    const file = join(place.data, 'store', 'data.mdb')
    const bytes = readFileSync(file)
    for (let at = bytes.indexOf('"displayName"'); at >= 0; at = bytes.indexOf('"displayName"', at + 1))
      bytes[at + 1] = 0x21
    writeFileSync(file, bytes)
    const damaged = await verify('--repair')
    expect(damaged).toMatchObject({ code: 1, stdout: '' })
    expect(damaged.stderr).toMatch(/^(?:server \S+: cannot be read: its checksum does not match\n)+restore a backup\n$/)
  })
})

describe('starting', () => {
  test('the first start prints one operator key, which works; later starts print none', async () => {
    using place = workplace()
    const first = await startServer(place)
    const [key] = /pst_[A-Za-z0-9_-]{43}/.exec(first.stdout()) ?? []
    expect((await get(first, '/connect/ada', key ?? '')).status).toBe(200)
    expect(await first.kill('SIGTERM')).toBe(0)
    await using second = await startServer(place, [])
    expect(second.stdout()).toBe(`postern listening on ${second.url}\n`)
    expect((await get(second, '/connect/ada', key ?? '')).status).toBe(200)
  })

  test('POSTERN_API_KEY supplies the operator key', async () => {
    using place = workplace()
    const env = { POSTERN_API_KEY: 'an-operator-key-of-my-own-choice-01' }
    await using server = await startServer(place, undefined, { env })
    expect(server.stdout()).toStartWith(`postern listening on ${server.url}\n`)
    expect((await get(server, '/connect/lumen', env.POSTERN_API_KEY)).status).toBe(200)
  })

  test('flags may come from the environment', async () => {
    using place = workplace()
    const env = { POSTERN_FIXTURES: sampleFolder, POSTERN_BASE_URL: 'https://mcp.example.com/' }
    await using server = await startServer(place, [], { env })
    const token = await mintToken(sendTo(server), sampleKeys.ada)
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    expect(claims).toMatchObject({ iss: 'https://mcp.example.com', aud: 'https://mcp.example.com' })
  })

  test('what it writes is for its owner only', async () => {
    using place = workplace()
    await using _server = await startServer(place)
    const files = readdirSync(place.data, { recursive: true, withFileTypes: true })
    expect(files.length).toBeGreaterThan(4)
    for (const file of files) {
      const mode = statSync(join(file.parentPath, file.name)).mode & 0o777
      expect({ name: file.name, mode }).toEqual({ name: file.name, mode: file.isDirectory() ? 0o700 : 0o600 })
    }
    expect(statSync(place.data).mode & 0o777).toBe(0o700)
  })

  test('.env, bunfig.toml and other files of the working directory decide nothing', async () => {
    using place = workplace()
    writeFileSync(join(place.folder, 'evil.ts'), 'console.log("EVIL")')
    writeFileSync(join(place.folder, 'bunfig.toml'), 'preload = ["./evil.ts"]\n')
    writeFileSync(join(place.folder, '.env'), 'POSTERN_API_KEY=short\nPOSTERN_PORT=1\n')
    writeFileSync(join(place.folder, 'package.json'), '{"name":"evil","imports":{"#x":"./evil.ts"}}')
    writeFileSync(join(place.folder, 'tsconfig.json'), '{"compilerOptions":{"paths":{"*":["./evil.ts"]}}}')
    await using server = await startServer(place)
    expect(server.stdout()).not.toContain('EVIL')
    expect((await fetch(`${server.url}/health`)).status).toBe(200)
  })

  test('the same fixtures are not loaded again', async () => {
    using place = workplace()
    const first = await startServer(place)
    expect(first.stderr()).toContain('fixtures loaded')
    await first.kill('SIGTERM')
    await using second = await startServer(place, ['--fixtures', sampleFolder, ...samePort(first)])
    expect(second.stderr()).not.toContain('fixtures loaded')
  })
})

describe('stopping', () => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    test(`${signal} finishes the request in flight and exits 0`, async () => {
      using place = workplace()
      await using server = await startServer(place)
      const slow = await slowRequest(server)
      const exit = server.kill(signal)
      // The port is closed when no new connection is taken; the request is answered all the same.
      await until(async () => !(await takesConnections(server)))
      slow.finish()
      expect(await slow.answer).toContain('HTTP/1.1 200')
      expect(await exit).toBe(0)
    })
  }

  test('a second signal exits at once', async () => {
    using place = workplace()
    await using server = await startServer(place)
    const slow = await slowRequest(server)
    process.kill(server.pid, 'SIGTERM')
    await until(async () => !(await takesConnections(server)))
    expect(await server.kill('SIGTERM')).toBe(143)
    await slow.answer
  })

  test('a base URL of a short name, without a port, routes like any other', async () => {
    using place = workplace()
    await using server = await startServer(place, ['--base-url', 'http://pi'])
    const answer = await exchange(server, 'GET /health HTTP/1.1\r\nHost: pi\r\nConnection: close\r\n\r\n')
    expect(answer).toMatch(/^HTTP\/1\.1 200/)
  })

  test('idle connections do not hold it up', async () => {
    using place = workplace()
    await using server = await startServer(place)
    // fetch keeps its connection open.
    await fetch(`${server.url}/health`)
    expect(await server.kill('SIGTERM')).toBe(0)
  })
})

describe('one clear line and an exit code', () => {
  const cases: [
    what: string,
    code: number,
    line: RegExp,
    args: (place: Workplace) => string[],
    env?: Record<string, string>,
  ][] = [
    ['an unknown command', 2, /unknown command 'nope'/, () => ['nope']],
    ['an unknown flag', 2, /^unknown option '--nope'; run `postern --help` for the list\n$/, () => ['serve', '--nope']],
    ['no command', 2, /Usage: postern/, () => []],
    ['a write rate that is none', 2, /--write-rate -1: must be a number/, () => ['serve', '--write-rate', '-1']],
    [
      'a bound of a namespace that is none',
      2,
      /--namespace-bytes 1GB: must be a whole number; 0 for no limit/,
      () => ['serve', '--namespace-bytes', '1GB'],
    ],
    ['a port that is none', 2, /--port http: must be a number from 0 to 65535/, () => ['serve', '--port', 'http']],
    [
      'a port from the environment that is none',
      2,
      /^POSTERN_PORT http: must be a number/,
      () => ['serve'],
      { POSTERN_PORT: 'http' },
    ],
    [
      'a host that is none of this machine',
      1,
      /cannot listen on 192\.0\.2\.1:\d+: this machine has no such address; choose with --host/,
      () => ['serve', '--host', '192.0.2.1'],
    ],
    [
      'a folder for temporary files that is not there',
      1,
      /^cannot make a temporary folder: ENOENT: .*; name another place with TMPDIR\n$/,
      () => ['dev'],
      { TMPDIR: '/nowhere' },
    ],
    ['a log that is none', 1, /is not an audit log/, () => ['audit', 'verify', '/etc/hostname']],
    ['a port out of range', 2, /--port 65536/, () => ['serve', '--port', '65536']],
    [
      'a base URL that is none',
      2,
      /--base-url nope: must be an http or https URL/,
      () => ['serve', '--base-url', 'nope'],
    ],
    ['an origin that is none', 2, /--cors-origin \*: must be an origin/, () => ['serve', '--cors-origin', '*']],
    [
      'a short POSTERN_API_KEY',
      2,
      /POSTERN_API_KEY: must have at least 32 characters/,
      () => ['serve'],
      { POSTERN_API_KEY: 'short' },
    ],
    ['a missing flag', 2, /required option '--user <id>'/, () => ['keys', 'create']],
    ['a user that is none', 2, /--user: must be 1 to 128 characters/, () => ['keys', 'create', '--user', '']],
    [
      'no data folder to list keys of',
      1,
      /there is no data folder at .*nowhere/,
      () => ['keys', 'list', '--data', 'nowhere'],
    ],
    [
      'a data folder that is a file',
      1,
      /cannot use the data folder .*: it is a file.*--data/,
      () => ['serve', '--data', executable],
    ],
    [
      'a fixtures folder that is not there',
      1,
      /cannot read the fixtures folder "nowhere": it is not there/,
      () => ['serve', '--port', '0', '--fixtures', 'nowhere'],
    ],
    ['a file to check', 1, /: it is a file: name the folder/, () => ['check', executable]],
    ['a folder to check without files', 1, /there is no \*\.json file/, (place) => ['check', place.folder]],
    ['a command whose help is not there', 2, /unknown command 'keys nope'/, () => ['help', 'keys', 'nope']],
    ['a token that is none', 1, /this is not a service token/, () => ['token', 'explain', 'nope']],
  ]
  for (const [what, code, line, args, env] of cases) {
    test(what, async () => {
      using place = workplace()
      const ran = await run(place, args(place), env)
      expect(ran).toMatchObject({ code, stdout: '' })
      expect(ran.stderr).toMatch(line)
      expect(ran.stderr).not.toMatch(/^\s+at /m)
    })
  }

  test('a busy port', async () => {
    using place = workplace()
    using other = workplace()
    await using server = await startServer(place)
    const ran = await run(other, ['serve', '--data', other.data, ...samePort(server)])
    expect(ran).toMatchObject({ code: 1, stdout: '' })
    expect(ran.stderr).toMatch(/^port \d+ on 127\.0\.0\.1 is taken: .*--port.*\n$/)
  })

  test('a second server on the folder', async () => {
    using place = workplace()
    await using _server = await startServer(place)
    const ran = await run(place, ['serve', '--data', place.data, '--port', '0'])
    expect(ran).toMatchObject({ code: 1, stdout: '' })
    expect(ran.stderr).toMatch(/^another postern serves the data folder .*--data\n$/)
  })

  test('a lost instance-secret: it is not made anew beside data that needs the old one', async () => {
    using place = workplace()
    await (await startServer(place)).kill('SIGTERM')
    const file = join(place.data, 'instance-secret')
    rmSync(file)
    const lost = await run(place, ['serve', '--data', place.data, '--port', '0'])
    expect(lost).toMatchObject({ code: 1, stdout: '' })
    expect(lost.stderr).toMatch(/is missing, and the store needs it: restore it from a backup\n$/)
    writeFileSync(file, Buffer.alloc(32, 'x').toString('base64url'), { mode: 0o600 })
    const other = await run(place, ['serve', '--data', place.data, '--port', '0'])
    expect(other).toMatchObject({ code: 1, stdout: '' })
    expect(other.stderr).toBe(
      'the signing keys do not belong to this instance secret: restore both from the same backup\n',
    )
  })

  const damages: [what: string, damage: (file: string) => void][] = [
    ['cut short', (file) => truncateSync(file, 9000)],
    ['emptied', (file) => truncateSync(file, 0)],
    ['overwritten', (file) => writeFileSync(file, Buffer.alloc(200_000, 'x'))],
    ['zeroed', (file) => writeFileSync(file, Buffer.alloc(200_000))],
  ]
  for (const [what, damage] of damages) {
    test(`a store that was ${what}`, async () => {
      using place = workplace()
      await (await startServer(place)).kill('SIGTERM')
      damage(join(place.data, 'store', 'data.mdb'))
      const ran = await run(place, ['serve', '--data', place.data, '--port', '0'])
      expect(ran).toMatchObject({ code: 1, stdout: '' })
      expect(ran.stderr).toMatch(/^\S+data\.mdb is damaged: restore it from a backup\n$/)
    })
  }

  test('a fixture that brings a key made at run time', async () => {
    using place = workplace()
    const key = 'a-key-that-is-the-same-for-two-users'
    await (await startServer(place, [], { env: { POSTERN_API_KEY: key } })).kill('SIGTERM')
    const fixtures = join(place.folder, 'fixtures')
    mkdirSync(fixtures)
    writeFileSync(join(fixtures, 'a.json'), JSON.stringify({ apiKeys: [{ userId: 'eve', key }] }))
    const ran = await run(place, ['serve', '--data', place.data, '--port', '0', '--fixtures', fixtures])
    expect(ran).toMatchObject({ code: 1, stdout: '' })
    expect(ran.stderr).toMatch(/a\.json: brings a key that was made at run time \(key_\S+\): choose another\n$/)
  })

  test('a data folder of somebody else', async () => {
    using place = workplace()
    await (await startServer(place)).kill('SIGTERM')
    // Root reads everything: it becomes somebody else. Anybody else takes its own right away.
    const isRoot = process.getuid?.() === 0
    chmodSync(place.folder, 0o711)
    if (!isRoot) chmodSync(place.data, 0)
    const somebody = isRoot ? ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups'] : []
    const { exitCode, stderr } = Bun.spawnSync([...somebody, executable, 'keys', 'list', '--data', place.data], {
      cwd: '/',
      env: {},
    })
    chmodSync(place.data, 0o700)
    expect(exitCode).toBe(1)
    expect(stderr.toString()).toMatch(/^the data folder \S+ cannot be read: run this as the user that it belongs to\n$/)
  })

  test('a secret that others can read', async () => {
    using place = workplace()
    await (await startServer(place)).kill('SIGTERM')
    chmodSync(join(place.data, 'instance-secret'), 0o644)
    const ran = await run(place, ['serve', '--data', place.data, '--port', '0'])
    expect(ran).toMatchObject({ code: 1, stdout: '' })
    expect(ran.stderr).toMatch(/^.*instance-secret is accessible to other users: run `chmod 600 .*`\n$/)
  })

  test('fixtures with problems: each with its file, none loaded, no key made', async () => {
    using place = workplace()
    const broken = join(place.folder, 'broken')
    mkdirSync(broken)
    writeFileSync(join(broken, 'a.json'), '{"namespaces":[{"namespace":"n","organizationId":"o"}],"x":1}')
    writeFileSync(join(broken, 'b.json'), '{"namespaces":[{"namespace":"ok","userId":"u"}]')
    const ran = await run(place, ['serve', '--data', place.data, '--port', '0', '--fixtures', broken])
    expect(ran).toMatchObject({ code: 1, stdout: '' })
    expect(ran.stderr.trim().split('\n')).toEqual([
      expect.stringMatching(/b\.json: is not JSON: .* \(line 1, column 48\)/),
      expect.stringMatching(/a\.json: has the unknown field "x"/),
      '2 problems: these fixtures are not loaded',
    ])
    await using server = await startServer(place)
    expect(server.stdout()).toMatch(/pst_/)
  })
})

describe('commands', () => {
  test('--version and --help', async () => {
    using place = workplace()
    expect(await run(place, ['--version'])).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' })
    for (const args of [
      ['--help'],
      ['help'],
      ['help', 'serve'],
      ['serve', '--help'],
      ['help', 'keys'],
      ['keys', 'create', '--help'],
      ['token', 'explain', '--help'],
    ]) {
      const ran = await run(place, args)
      expect({ args, code: ran.code, stderr: ran.stderr }).toEqual({ args, code: 0, stderr: '' })
      expect(ran.stdout).toStartWith('Usage: postern')
    }
  })

  test('keys: created and revoked while the server runs, in force at once', async () => {
    using place = workplace()
    await using server = await startServer(place)
    const created = await run(place, ['keys', 'create', '--user', 'ada', '--name', 'laptop', '--data', place.data])
    expect(created.stdout).toMatch(/^pst_[A-Za-z0-9_-]{43}\n$/)
    const key = created.stdout.trim()
    expect((await get(server, '/connect/ada', key)).status).toBe(200)
    const [keyId = ''] = /key_\S+/.exec(created.stderr) ?? []
    expect((await run(place, ['keys', 'list'], { POSTERN_DATA: place.data })).stdout).toMatch(
      new RegExp(`^${keyId} .*ada .*active .*laptop$`, 'm'),
    )
    const token = await mintToken(sendTo(server), key)
    expect((await run(place, ['keys', 'revoke', keyId, '--data', place.data])).code).toBe(0)
    for (const credential of [key, token]) expect((await get(server, '/connect/ada', credential)).status).toBe(401)
    expect((await run(place, ['keys', 'revoke', 'key_nope', '--data', place.data])).code).toBe(1)
  })

  test('keys: before there is a server', async () => {
    using place = workplace()
    const { stdout } = await run(place, ['keys', 'create', '--user', 'ada', '--operator', '--data', place.data])
    await using server = await startServer(place)
    expect((await get(server, '/connect/lumen', stdout.trim())).status).toBe(200)
  })

  test('check', async () => {
    using place = workplace()
    const ran = await run(place, ['check', sampleFolder])
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    expect(ran.stdout).toContain('48 connections')
  })

  test('token explain', async () => {
    using place = workplace()
    await using server = await startServer(place)
    const policy = [
      { namespaces: 'northwind', rpcReqMatch: { 'params.name': '^issues\\.' } },
      { operations: 'execute', rpcReqMatch: { method: 'call' } },
    ]
    const token = await mintToken(sendTo(server), sampleKeys.ada, { policy })
    const explain = (...args: string[]) => run(place, ['token', 'explain', token, '--data', place.data, ...args])
    const plain = await explain()
    expect(plain.stdout).toContain('acts for ada')
    expect(plain.stdout).toContain('signature is of a key in')
    expect(plain.stdout).toContain('params.name contains a match of ^issues\\.\n')
    expect(plain.stdout).toContain('method contains a match of call (anywhere in it: ')
    expect((await explain('--namespace', 'northwind')).stdout).toContain('Refused by policy[1].operations: 403.')
    expect((await explain('--namespace', 'lumen')).stdout).toContain('Refused by policy[0].namespaces: 404')
    writeFileSync(
      join(place.folder, 'call.json'),
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"weather"}}',
    )
    for (const rpc of ['call.json', readFileSync(join(place.folder, 'call.json'), 'utf8')]) {
      const call = await explain('--namespace', 'northwind', '--rpc', rpc)
      expect(call.stdout).toContain('Refused by policy[0].rpcReqMatch.params.name: 403.')
    }
    const without = await explain('--namespace', 'northwind', '--operation', 'execute')
    expect(without.stdout).toContain('policy[0].rpcReqMatch depends on the request')
    expect((await explain('--resource', 'tools', '--namespace', 'x')).code).toBe(2)
    const call = ['--namespace', 'northwind', '--rpc', '{"method":"call","params":{"name":"issues.list"}}']
    expect((await explain(...call)).stdout).toContain('Allowed by the token')
    await run(place, ['token', 'revoke', token, '--data', place.data])
    expect((await explain(...call)).stdout).toContain('Refused: the token is revoked, 401.')
  })

  test('what a token or a name says is printed as text, never acted on by the terminal', async () => {
    using place = workplace()
    const claims = {
      iss: 'x',
      aud: 'x',
      sub: 'a\u009b31m',
      key: 'k',
      jti: 'tok\n  signature is of a key in ./postern-data\u001b]0;x\u0007',
      iat: 0,
      exp: 1,
      policy: [{ metadata: { a: '\u202e' } }],
    }
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const ran = await run(place, ['token', 'explain', `${part({})}.${part(claims)}.x`])
    expect(ran.code).toBe(0)
    expect(ran.stdout).toContain('\\u001b')
    expect(ran.stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    expect(ran.stdout).not.toMatch(/^ {2}signature is of/m)
  })

  /** The lines to paste that a server printed, each run. */
  async function expectToPaste(server: Server): Promise<void> {
    const docs = `The interface is described at ${server.url}/docs\n`
    await until(async () => server.stdout().endsWith(docs))
    const curls = server
      .stdout()
      .split('\n\n')
      .filter((block) => block.trim().startsWith('curl'))
    expect(curls.length).toBe(3)
    for (const curl of curls) {
      const { stdout } = Bun.spawnSync(['bash', '-c', curl.trim()])
      expect(stdout.toString()).toMatch(/^\{"(?:connections|token|tools)":/)
    }
  }

  test('serve with the sample fixtures: the same lines to paste, also at later starts; of own fixtures no key is shown', async () => {
    using place = workplace()
    for (let start = 0; start < 2; start += 1) {
      await using server = await startServer(place)
      await expectToPaste(server)
      expect((await fetch(server.url)).url).toBe(`${server.url}/docs`)
    }
    using other = workplace()
    const fixtures = join(other.folder, 'fixtures')
    mkdirSync(fixtures)
    writeFileSync(join(fixtures, 'a.json'), '{"apiKeys":[{"userId":"u","key":"a-key-of-at-least-32-characters-0"}]}')
    await using server = await startServer(other, ['--fixtures', fixtures])
    expect(await server.kill('SIGTERM')).toBe(0)
    expect(server.stdout()).toEndWith(`postern listening on ${server.url}\n`)
  })

  test('dev: the sample fixtures, lines to paste that work, and nothing kept', async () => {
    using place = workplace()
    await using server = await startServer(place, [], { command: 'dev' })
    await expectToPaste(server)
    const [config = ''] = /^ +(\{"mcpServers":.*)$/m.exec(server.stdout())?.slice(1) ?? []
    const { url, headers } = JSON.parse(config).mcpServers.postern
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
    expect((await client.listTools()).tools.length).toBeGreaterThan(0)
    await client.close()
    expect(await server.kill('SIGINT')).toBe(0)
    expect(readdirSync(place.folder)).toEqual([])
  })

  test('dev: own fixtures are loaded again when a file changes, and not when it is broken', async () => {
    using place = workplace()
    const fixtures = join(place.folder, 'fixtures')
    const key = 'a-key-of-at-least-32-characters-0'
    const write = (namespace: string) =>
      writeFileSync(
        join(fixtures, 'a.json'),
        JSON.stringify({ namespaces: [{ namespace, userId: 'u' }], apiKeys: [{ userId: 'u', key }] }),
      )
    mkdirSync(fixtures)
    write('first')
    await using server = await startServer(place, ['--fixtures', fixtures], { command: 'dev' })
    expect((await get(server, '/connect/first', key)).status).toBe(200)
    write('second')
    await until(async () => (await get(server, '/connect/second', key)).status === 200)
    expect((await get(server, '/connect/first', key)).status).toBe(404)
    writeFileSync(join(fixtures, 'a.json'), '{')
    await until(async () => server.stderr().includes('were not reloaded'))
    expect((await get(server, '/connect/second', key)).status).toBe(200)
    expect(await server.kill('SIGTERM')).toBe(0)
  })
})

describe('on the wire', () => {
  const raw: [what: string, request: string, status: RegExp][] = [
    [
      'two Authorization headers',
      'GET /connect/ada HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 401/,
    ],
    [
      'two Host headers',
      'GET /connect/ada HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 4/,
    ],
    ['no Host header', 'GET /health HTTP/1.1\r\n\r\n', /^HTTP\/1\.1 4/],
    [
      'a backslash in the target',
      'GET /connect/ada\\x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 404/,
    ],
    [
      'backslashes that would lead to a name',
      'GET /connect/x\\..\\ada HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 404[^]*"not_found"/,
    ],
    [
      'backslashes that would lead to a tool',
      'GET /connect/ada/x\\..\\weather-cabin/.tools HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 404/,
    ],
    [
      'backslashes in a server',
      'GET /servers/x\\..\\lumen HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 404[^]*"Server not found"/,
    ],
    [
      'a backslash in a call',
      'POST /connect/ada/a\\b/mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Length: 0\r\n\r\n',
      /^HTTP\/1\.1 404[^]*"jsonrpc":"2\.0"[^]*-32000/,
    ],
    [
      'an encoded backslash in a call without a credential',
      'POST /connect/ada/a%5Cb/mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n',
      /^HTTP\/1\.1 401[^]*-32001/,
    ],
    [
      'a backslash in a connection that is to be written',
      'PUT /connect/ada/a\\b HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Length: 0\r\n\r\n',
      /^HTTP\/1\.1 404[^]*"not_found"/,
    ],
    [
      'a backslash, and dots that would lead away from it',
      'GET /connect/x\\y/../ada HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 404/,
    ],
    [
      'a server, and a Host that no URL can have',
      'GET /servers/northwind%2Fcalendar HTTP/1.1\r\nHost: a b\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 403[^]*\r\n\r\n\{"error":"[^"]*"\}$/,
    ],
    [
      'backslashes without a credential',
      'GET /connect/x\\..\\ada HTTP/1.1\r\nHost: localhost\r\n\r\n',
      /^HTTP\/1\.1 401/,
    ],
    [
      'a backslash, and a Host that no URL can have',
      'GET /connect/x\\y HTTP/1.1\r\nHost: a b\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 403[^]*"forbidden"/,
    ],
    [
      'parameters behind a hash',
      'GET /connect/ada?#limit=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 400/,
    ],
    // The runtime resolves dots as URLs do, before anything of ours sees the path: one path, for routing and deciding.
    [
      'dots in the target',
      'GET /connect/lumen/../ada HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /"connectionId":"weather-cabin"/,
    ],
    [
      'encoded dots in the target',
      'GET /connect/%2e%2e/lumen HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 404/,
    ],
    [
      'a fragment in the target',
      'GET /connect/ada#x HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\n\r\n',
      /^HTTP\/1\.1 4/,
    ],
    [
      'a body cut short',
      'POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{"policy":',
      /^(?:HTTP\/1\.1 4|$)/,
    ],
    [
      'a length and chunks',
      'POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      /^HTTP\/1\.1 4/,
    ],
    [
      'a chunked policy that is broken',
      'POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"pol\r\n0\r\n\r\n',
      /^HTTP\/1\.1 400/,
    ],
    [
      'a length beyond all bounds',
      'POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nContent-Type: application/json\r\nContent-Length: 999999999\r\n\r\n{',
      /^HTTP\/1\.1 4\d\d[^]*"invalid_request"/,
    ],
    [
      'a HEAD of a list',
      'HEAD /connect/ada HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer KEY\r\nConnection: close\r\n\r\n',
      /^HTTP\/1\.1 200[^]*\r\n\r\n$/,
    ],
  ]
  test('bad credentials count for their address, backslashes or not', async () => {
    using place = workplace()
    await using server = await startServer(place, ['--failure-rate', '0.05'])
    const guess = (path: string) =>
      exchange(server, `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer nope\r\n\r\n`)
    expect(await guess('/connect/x')).toStartWith('HTTP/1.1 401')
    expect(await guess('/connect/a\\b')).toStartWith('HTTP/1.1 429')
  })

  for (const [what, request, status] of raw) {
    test(what, async () => {
      using place = workplace()
      await using server = await startServer(place)
      const answer = await exchange(server, request.replaceAll('KEY', sampleKeys.ada))
      expect(answer).toMatch(status)
      expect((await fetch(`${server.url}/health`)).status).toBe(200)
    })
  }
})

/** Sends bytes and half-closes; resolves with all that comes back. */
function exchange(server: Server, request: string): Promise<string> {
  const { promise, resolve } = Promise.withResolvers<string>()
  let answer = ''
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1', () => socket.end(request))
  socket.on('data', (chunk) => {
    answer += chunk.toString('latin1')
  })
  socket.on('error', () => resolve(answer))
  socket.on('close', () => resolve(answer))
  return promise
}

/** A request whose body is not sent to its end before `finish()`. */
async function slowRequest(server: Server): Promise<{ finish: () => void; answer: Promise<string> }> {
  const { promise: answer, resolve } = Promise.withResolvers<string>()
  let received = ''
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  socket.on('data', (chunk) => {
    received += chunk.toString('latin1')
  })
  socket.on('error', () => resolve(received))
  socket.on('close', () => resolve(received))
  const head = `POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${sampleKeys.ada}\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\nExpect: 100-continue\r\n\r\n`
  socket.write(head)
  // The interim answer says that the request has been read and is in flight.
  await until(async () => received.startsWith('HTTP/1.1 100'))
  return { finish: () => socket.write('{}'), answer }
}

async function takesConnections(server: Server): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const socket = connect(Number(new URL(server.url).port), '127.0.0.1')
  socket.on('connect', () => {
    socket.destroy()
    resolve(true)
  })
  socket.on('error', () => resolve(false))
  return promise
}
