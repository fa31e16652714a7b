/** The executable on machines that are not as they should be: full disks, wrong clocks, files of other people, no network. */

import { describe, expect, test } from 'bun:test'
import { chownSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { freeBytesMin } from '../../src/limits.ts'
import { freeBytes } from '../../src/storage/free-space.ts'
import { mintToken } from '../api/cases.ts'
import {
  executable,
  run,
  type Server,
  sampleFolder,
  sendTo,
  startServer,
  type Workplace,
  withoutMemoryFiles,
  workplace,
} from '../support/executable.ts'
import { faketime, isHere } from '../support/needs.ts'
import { sampleKeys } from '../support/sample.ts'
import { until } from '../support/until.ts'

const status = async (server: Server, path: string, credential: string) =>
  (await fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${credential}` } })).status
const withMetrics = ['--fixtures', sampleFolder, '--metrics-listen', '127.0.0.1:0']
const metricsOf = (server: Server) => /"metrics listening","url":"([^"]+)"/.exec(server.stderr())?.[1] ?? ''

/** A disk of its own for the data folder, as large as is asked for. */
function smallDisk(place: Workplace, megabytes: number): Disposable {
  mkdirSync(place.data, { mode: 0o700 })
  const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', `size=${megabytes}m,mode=700`, 'tmpfs', place.data])
  if (mounted.exitCode !== 0) throw new Error(mounted.stderr.toString())
  return { [Symbol.dispose]: () => void Bun.spawnSync(['umount', '-l', place.data]) }
}

describe.if(isHere('root that may mount'))('a disk that is nearly full (needs root that may mount)', () => {
  test('writes are refused with a line that says so, reads go on, and it is well again when there is room', async () => {
    using place = workplace()
    using _disk = smallDisk(place, 64)
    await using server = await startServer(place, withMetrics)
    const token = await mintToken(sendTo(server), sampleKeys.ada)
    const filler = join(place.data, 'filler')
    writeFileSync(filler, Buffer.alloc(freeBytes(place.data) - freeBytesMin + 1024 * 1024))
    const create = () => run(place, ['keys', 'create', '--user', 'ada', '--data', place.data])
    const refused = await create()
    expect(refused.code).toBe(1)
    expect(refused.stderr).toMatch(/^the disk of .* has 1[56] MB left, and this write needs 17: free some space\n$/)
    const file = join(place.folder, 'export.jsonl')
    await run(place, ['export', file, '--data', place.data])
    const imported = await run(place, ['import', file, '--data', place.data])
    expect({ code: imported.code, text: imported.stderr.includes('free some space') }).toEqual({ code: 1, text: true })
    expect(await status(server, '/connect/ada', sampleKeys.ada)).toBe(200)
    expect((await fetch(`${metricsOf(server)}/ready`)).status).toBe(503)
    // What takes access away is written all the same, with its line of the audit log; what gives some is not.
    const write = (method: string, path: string, body?: object) =>
      fetch(`${server.url}${path}`, {
        method,
        headers: { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      })
    const mocked = { server: 'northwind/calendar', mock: { enabled: true } }
    expect((await write('PUT', '/connect/ada/new', mocked)).status).toBe(503)
    expect((await write('DELETE', '/connect/ada/calendar-home')).status).toBe(200)
    const command = (...args: string[]) => run(place, [...args, '--data', place.data])
    expect((await command('token', 'revoke', token)).code).toBe(0)
    expect(await status(server, '/connect/ada', token)).toBe(401)
    const { stdout: keys } = await command('keys', 'list')
    const jonas = /^(\S+) +jonas /m.exec(keys)?.[1] ?? ''
    expect((await command('keys', 'revoke', jonas)).code).toBe(0)
    expect(await status(server, '/connect/jonas', sampleKeys.jonas)).toBe(401)
    const { stdout: signing } = await command('signing-key', 'list')
    const retiring = /^(\S+) +next /m.exec(signing)?.[1] ?? ''
    expect((await command('signing-key', 'revoke', retiring)).code).toBe(0)
    const log = readFileSync(join(place.data, 'audit.jsonl'), 'utf8')
    for (const event of ['connection.deleted', 'token.revoked', 'key.revoked', 'signing-key.revoked'])
      expect(log).toContain(`"event":"${event}"`)

    rmSync(filler)
    const { code, stdout } = await create()
    expect(code).toBe(0)
    expect(await status(server, '/connect/ada', stdout.trim())).toBe(200)
    expect((await fetch(`${metricsOf(server)}/ready`)).status).toBe(200)
  })

  test('full to the last byte: what cannot be written down is not done, and the process lives', async () => {
    using place = workplace()
    using _disk = smallDisk(place, 48)
    await using server = await startServer(place, withMetrics)
    const filler = join(place.data, 'filler')
    const fill = Bun.spawnSync(['dd', 'if=/dev/zero', `of=${filler}`, 'bs=4096'])
    expect(fill.exitCode).not.toBe(0)
    const mint = () =>
      sendTo(server)('/tokens', { method: 'POST', headers: { authorization: `Bearer ${sampleKeys.ada}` } })
    let refusals = 0
    for (let i = 0; i < 60; i += 1) {
      const response = await mint()
      if (response.status === 503) {
        expect(await response.json()).toEqual({ error: 'unavailable', message: expect.any(String) })
        refusals += 1
      }
    }
    // The last page of the audit log may take a few lines still.
    expect(refusals).toBeGreaterThan(30)
    expect(
      server
        .stderr()
        .split('\n')
        .filter((line) => line.includes('request failed')).length,
    ).toBe(1)
    expect(await status(server, '/connect/ada', sampleKeys.ada)).toBe(200)
    rmSync(filler)
    expect((await mint()).status).toBe(200)
    const { code, stderr } = await run(place, ['audit', 'verify', '--data', place.data])
    expect({ code, stderr: stderr.includes('was changed') }).toEqual({ code: 0, stderr: false })
  })
})

describe.if(isHere('libfaketime'))('a clock that jumps (needs libfaketime)', () => {
  test('ahead: tokens are over; back: they are not yet, and a revocation is not noop', async () => {
    using place = workplace()
    const clock = join(place.folder, 'clock')
    const setClock = (offset: string) => writeFileSync(clock, `${offset}\n`)
    setClock('+0')
    await using server = await startServer(place, undefined, {
      env: {
        LD_PRELOAD: faketime,
        FAKETIME_TIMESTAMP_FILE: clock,
        FAKETIME_NO_CACHE: '1',
        FAKETIME_DONT_FAKE_MONOTONIC: '1',
      },
    })
    const token = await mintToken(sendTo(server), sampleKeys.ada, { policy: [{ ttl: '24h' }] })
    const revoked = await mintToken(sendTo(server), sampleKeys.ada, { policy: [{ ttl: '24h' }] })
    expect((await run(place, ['token', 'revoke', revoked, '--data', place.data])).code).toBe(0)
    const seen = async (offset: string) => {
      setClock(offset)
      return [await status(server, '/connect/ada', token), await status(server, '/connect/ada', revoked)]
    }
    expect(await seen('+0')).toEqual([200, 401])
    expect(await seen('+2d')).toEqual([401, 401])
    expect(await seen('-1h')).toEqual([401, 401])
    expect(await seen('+23h')).toEqual([200, 401])
    expect(await status(server, '/connect/ada', sampleKeys.ada)).toBe(200)
  })
})

describe('files of other people', () => {
  test.if(isHere('root'))('a secret that belongs to another user is refused (needs root)', async () => {
    using place = workplace()
    await (await startServer(place)).kill('SIGTERM')
    chownSync(join(place.data, 'instance-secret'), 65_534, 65_534)
    const { code, stderr } = await run(place, ['serve', '--data', place.data, '--port', '0'])
    expect(code).toBe(1)
    expect(stderr).toBe(
      `${join(place.data, 'instance-secret')} belongs to another user: run postern as its owner, or change the owner\n`,
    )
  })

  test('a log that cannot be written: not ready, until it can be', async () => {
    using place = workplace()
    await using server = await startServer(place, withMetrics)
    const ready = async () => (await fetch(`${metricsOf(server)}/ready`)).json()
    const path = join(place.data, 'audit.jsonl')
    renameSync(path, `${path}.moved`)
    mkdirSync(path)
    const headers = { authorization: `Bearer ${sampleKeys.ada}` }
    const mint = () => fetch(`${server.url}/tokens`, { method: 'POST', headers })
    await until(async () => (await mint()).status === 503)
    expect(await ready()).toMatchObject({
      status: 'unavailable',
      message: expect.stringContaining('cannot be written'),
    })
    rmSync(path, { recursive: true })
    expect(await ready()).toMatchObject({ status: 'ready' })
    expect((await mint()).ok).toBe(true)
  })

  test('a data folder that was moved away: not ready, no call, and it says so', async () => {
    using place = workplace()
    await using server = await startServer(place, withMetrics)
    renameSync(place.data, `${place.data}-moved`)
    const message = 'the data folder was moved away while postern was running: move it back, and restart postern'
    const ready = await fetch(`${metricsOf(server)}/ready`)
    expect({ status: ready.status, body: await ready.json() }).toEqual({
      status: 503,
      body: { status: 'unavailable', message },
    })
    const call = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'get_forecast', arguments: {} } }
    const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
    const body = JSON.stringify(call)
    const called = await sendTo(server)('/connect/northwind/weather-ada/mcp', { method: 'POST', headers, body })
    expect(called.status).toBe(503)
    const { stdout } = await run(place, ['status', server.url], { POSTERN_TOKEN: sampleKeys.operator })
    expect(stdout).toMatch(new RegExp(`^store +cannot be used: ${message}$`, 'm'))
    expect(stdout).not.toContain('calls in the last hour')
  })
})

describe('the native addon', () => {
  const addonsOf = (place: Workplace) =>
    readdirSync(join(place.data, 'store')).filter((name) => name.startsWith('lmdb-'))
  const createKey = (place: Workplace) => ['keys', 'create', '--user', 'ada', '--data', place.data]

  test('is loaded from memory: nothing is written for it, and no folder for temporary files is needed', async () => {
    using place = workplace()
    const TMPDIR = join(place.folder, 'tmp')
    mkdirSync(TMPDIR)
    expect((await run(place, createKey(place), { TMPDIR })).code).toBe(0)
    expect((await run(place, ['verify', '--data', place.data], { TMPDIR: '/nowhere' })).code).toBe(0)
    expect(readdirSync(TMPDIR)).toBeEmpty()
    expect(addonsOf(place)).toBeEmpty()
  })

  test('is unpacked into the store where files in memory are refused; what lies there in its place is never run', async () => {
    using place = workplace()
    expect(await run(place, createKey(place), {}, withoutMemoryFiles)).toMatchObject({ code: 0 })
    const [name = ''] = addonsOf(place)
    const file = join(place.data, 'store', name)
    const { size, ino } = statSync(file)
    expect((await run(place, ['verify', '--data', place.data], {}, withoutMemoryFiles)).code).toBe(0)
    expect(statSync(file).ino).toBe(ino)
    rmSync(file)
    writeFileSync(file, Buffer.alloc(size), { mode: 0o500 })
    expect((await run(place, createKey(place), {}, withoutMemoryFiles)).code).toBe(0)
    expect(addonsOf(place)).toEqual([name])
    expect(statSync(file).mode & 0o777).toBe(0o500)
  })

  test.if(isHere('root that may mount'))(
    'on a disk that runs nothing, or is full: one line that says so (needs root that may mount)',
    async () => {
      using place = workplace()
      using _disk = smallDisk(place, 2)
      const full = await run(place, createKey(place), {}, withoutMemoryFiles)
      expect(full).toMatchObject({ code: 1, stdout: '' })
      expect(full.stderr).toMatch(/^cannot open the store in .*: LMDB's library cannot be unpacked to .*ENOSPC.*\n$/)
      Bun.spawnSync(['mount', '-o', 'remount,noexec,size=64m', place.data])
      const noexec = await run(place, createKey(place), {}, withoutMemoryFiles)
      expect(noexec).toMatchObject({ code: 1, stdout: '' })
      expect(noexec.stderr).toMatch(/ its file system is mounted noexec: choose another folder with --data\n$/)
      // From memory it can.
      expect((await run(place, createKey(place))).code).toBe(0)
    },
  )
})

describe('secrets', () => {
  test('of nobody are in the log, the audit log, or on the disk', async () => {
    using place = workplace()
    const operator = 'CANARY-operator-key-of-this-test-0123456789'
    await using server = await startServer(place, undefined, { env: { POSTERN_API_KEY: operator } })
    const { stdout } = await run(place, ['keys', 'create', '--user', 'ada', '--data', place.data])
    const token = await mintToken(sendTo(server), operator, { policy: [{ metadata: { note: 'CANARY-policy' } }] })
    const child = await mintToken(sendTo(server), token)
    for (const credential of [token, child, 'CANARY-wrong', `${token}x`]) {
      await status(server, '/connect/ada?name=CANARY-name', credential)
      await sendTo(server)(`/tokens?access_token=${credential}`, { method: 'POST', body: `{"policy":"${credential}"}` })
    }
    await run(place, ['token', 'revoke', token, '--data', place.data])
    const written = readdirSync(place.data, { recursive: true, withFileTypes: true })
      .filter((file) => file.isFile())
      .map((file) => readFileSync(join(file.parentPath, file.name), 'latin1'))
    expect(written.length).toBeGreaterThan(4)
    // The lines to try hold a key of the sample, which everybody has.
    const all = [server.stdout().replaceAll(sampleKeys.ada, ''), server.stderr(), ...written].join('\n')
    const signature = (text: string) => text.split('.')[2] ?? text
    const plainHash = new Bun.CryptoHasher('sha256').update(operator)
    for (const secret of [
      'CANARY',
      stdout.trim(),
      signature(token),
      signature(child),
      sampleKeys.ada,
      plainHash.copy().digest('hex'),
      plainHash.digest().toString('latin1'),
    ]) {
      expect({ secret, found: all.includes(secret) }).toEqual({ secret, found: false })
    }
  })
})

test.if(isHere('root that may leave the network'))(
  'with no network but loopback, the main job works (needs root that may leave the network)',
  async () => {
    using place = workplace()
    const script = `
    ip link set lo up
    ${executable} serve --data ${place.data} --fixtures ${sampleFolder} --port 8787 >out 2>err &
    while ! grep -q listening out; do read -t 0.05 <> <(:) || :; done
    curl -s http://127.0.0.1:8787/connect/ada?limit=1 -H 'Authorization: Bearer ${sampleKeys.ada}'
    curl -s http://127.0.0.1:8787/docs | head -c 15
    kill %1; wait`
    const child = Bun.spawn(['unshare', '-n', 'bash', '-c', script], {
      cwd: place.folder,
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const text = await new Response(child.stdout).text()
    expect(text).toMatch(/^\{"connections":\[\{.*\}<!doctype html>/i)
  },
)
