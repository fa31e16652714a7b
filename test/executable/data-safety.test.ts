/** Backup and restore, export and import, verify and repair: nothing is lost, and nothing is half there. */

import { describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { keyOf, prefixRange } from '../../src/storage/keys.ts'
import { openLmdbStore } from '../../src/storage/lmdb/store.ts'
import { mintToken } from '../api/cases.ts'
import { get, ids, run, samePort, sendTo, startServer, unlimited, workplace } from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'

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
    expect(exported).toMatchObject({ code: 0, stderr: '', stdout: expect.stringMatching(/^wrote \d+ records to /) })
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
      stdout: expect.stringMatching(/^imported \d+ records\n$/),
    })
    expect((await run(place, ['verify', '--data', place.data])).code).toBe(0)
    const again = await startServer(place, samePort(server))
    expect(await (await get(again, '/connect/northwind', sampleKeys.ada)).text()).toBe(expected)
    await again.kill('SIGTERM')

    // Into another: its keys are its own.
    const other = { ...place, data: join(place.folder, 'other') }
    const imported = await into(other.data)
    expect(imported.stderr).toMatch(/^made a new data folder at \S+\nleft out \d+ API keys: .*\n$/)
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
      [
        'a connection twice',
        twice.join('\n'),
        /^\S+bad\.jsonl: has the connection northwind\/crm-ada twice: export again\n$/,
      ],
      ['a cut line', text.slice(0, -20), /^\S+bad\.jsonl:\d+: /],
      [
        'a namespace',
        change('"namespace":"northwind"', '"namespace":"nowhere"'),
        /names the namespace nowhere, which is neither/,
      ],
      ['cut at a line end', lines.slice(0, -1).join('\n'), /is cut off: its last line is missing/],
      ['a line too few', lines.toSpliced(at, 1).join('\n'), /says that the export has \d+ records, and it has \d+/],
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
    const miscounted = { key: keyOf('usage', 'lumen'), add: [1, -5, 0] }
    await store.commit({ deletes: keys, counts: [miscounted], puts: [{ key: stray, value: Buffer.alloc(0) }] })
    await store.close()
    const found = await verify()
    expect(found).toMatchObject({ code: 1, stdout: '' })
    expect(found.stderr).toMatch(
      /^index entry of connection northwind\/\S+: is missing\nindex entry of connection northwind\/nobody: belongs to no record\nusage of namespace lumen: the stored count is \d+ \d+ \d+, and the records give \d+ \d+ \d+\nrun `postern store verify --repair`\n$/,
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
    expect(damaged.stderr).toMatch(
      /^(?:(?:listing of )?server \S+: cannot be read: its checksum does not match\n)+restore a backup\n$/,
    )
  })
})
