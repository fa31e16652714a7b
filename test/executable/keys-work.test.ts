/** A key works where it was made, and a key that everybody has works nowhere else; the executable says why one does not. */

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mintToken } from '../api/cases.ts'
import {
  endOf,
  executable,
  run,
  sampleFolder,
  sendTo,
  startServer,
  type Workplace,
  workplace,
} from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'

/** Beyond that it started. */
const logOf = (stderr: string) =>
  stderr
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Record<string, unknown>)
    .filter(({ event }) => event !== 'started')

describe('a command makes a data folder only where one was named', () => {
  test('keys create, import and restore refuse to make the default one', async () => {
    using place = workplace()
    using elsewhere = workplace()
    const named = await run(place, ['keys', 'create', '--user', 'eva', '--data', place.data])
    expect(named.code).toBe(0)
    expect(named.stderr).toMatch(new RegExp(`^made a new data folder at ${place.data}\nkey_\\S+ belongs to eva`))
    const again = await run(place, ['keys', 'create', '--user', 'eva', '--data', place.data])
    expect(again.stderr).not.toContain('made a new')
    const [lines, backup] = [join(place.folder, 'lines'), join(place.folder, 'backup')]
    await run(place, ['export', lines, '--data', place.data])
    await run(place, ['backup', backup, '--data', place.data])
    for (const [args, code, line] of [
      [['keys', 'create', '--user', 'eva'], 1, /^there is no data folder at \.\/postern-data: name it with --data/],
      [['import', lines], 1, /^there is no data folder at \.\/postern-data: name it with --data/],
      [['restore', backup], 2, /^required option '--data <dir>' not specified/],
    ] as const) {
      const ran = await run(elsewhere, args)
      expect(ran).toMatchObject({ code, stdout: '', stderr: expect.stringMatching(line) })
    }
    expect(readdirSync(elsewhere.folder)).toEqual([])
    const imported = await run(elsewhere, ['import', lines], { POSTERN_DATA: elsewhere.data })
    expect(imported).toMatchObject({ code: 0, stderr: expect.stringContaining('made a new data folder at ') })
  })

  test('the default one that a server made is found', async () => {
    using place = workplace()
    const here = { ...place, data: './postern-data' }
    await using server = await startServer(here)
    const { stdout } = await run(here, ['keys', 'create', '--user', 'ada'])
    const headers = { authorization: `Bearer ${stdout.trim()}` }
    expect((await sendTo(server)('/connect/ada', { headers })).status).toBe(200)
  })
})

/** An exit that is expected; a server that runs all the same is ended. */
async function refusedStart(place: Workplace, args: string[], env = {}) {
  const child = Bun.spawn(['timeout', '300', executable, ...args, '--port', '0'], {
    cwd: place.folder,
    env: { PATH: process.env['PATH'] ?? '', ...env },
    stdout: 'pipe',
    stderr: 'pipe',
  })
  return endOf(child)
}

describe('the sample keys, on an address that is not loopback', () => {
  const refused = {
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(/^anyone who can reach .*--allow-sample-keys\n$/m),
  }
  const open = ['--host', '0.0.0.0']

  test('serve refuses the operator key of an example in the documentation', async () => {
    using place = workplace()
    const env = { POSTERN_API_KEY: 'an-operator-key-of-at-least-32-characters' }
    await (await startServer(place, [], { env })).kill('SIGTERM')
    expect(await refusedStart(place, ['serve', '--data', place.data, ...open])).toMatchObject(refused)
  })

  test('serve refuses them, from the fixtures or from an earlier load', async () => {
    using place = workplace()
    const serve = ['serve', '--data', place.data, ...open]
    expect(await refusedStart(place, [...serve, '--fixtures', sampleFolder])).toMatchObject(refused)
    // Nothing was loaded either.
    await (await startServer(place, open)).kill('SIGTERM')
    await (await startServer(place)).kill('SIGTERM')
    expect(await refusedStart(place, serve)).toMatchObject(refused)
    const allowed = await startServer(place, [...open, '--allow-sample-keys'])
    expect(allowed.stderr()).toContain('the publicly known keys of the sample fixtures are accepted')
    const headers = { authorization: `Bearer ${sampleKeys.ada}`, host: 'localhost' }
    const { port } = new URL(allowed.url)
    expect((await fetch(`http://127.0.0.1:${port}/connect/ada`, { headers })).status).toBe(200)
    await allowed.kill('SIGTERM')
    for (const text of ['0', 'false', 'no', 'OFF', ''])
      expect(await refusedStart(place, serve, { POSTERN_ALLOW_SAMPLE_KEYS: text })).toMatchObject(refused)
    const unclear = await refusedStart(place, serve, { POSTERN_ALLOW_SAMPLE_KEYS: 'maybe' })
    expect(unclear).toMatchObject({
      code: 2,
      stderr: 'POSTERN_ALLOW_SAMPLE_KEYS=maybe: must be 1 for on, or 0 for off\n',
    })
    const byVariable = await startServer(place, open, { env: { POSTERN_ALLOW_SAMPLE_KEYS: '1' } })
    await byVariable.kill('SIGTERM')

    const own = join(place.folder, 'own')
    mkdirSync(own)
    writeFileSync(join(own, 'a.json'), JSON.stringify({ namespaces: [{ namespace: 'me', userId: 'me' }] }))
    await (await startServer(place, [...open, '--fixtures', own])).kill('SIGTERM')
  })

  test('dev does as serve', async () => {
    using place = workplace()
    expect(await refusedStart(place, ['dev', ...open])).toMatchObject(refused)
    await using _allowed = await startServer(place, [...open, '--allow-sample-keys'], { command: 'dev' })
  })
})

describe('the log and token explain say why a credential is not accepted', () => {
  test('another base URL than at the last start', async () => {
    using place = workplace()
    const first = await startServer(place, ['--fixtures', sampleFolder, '--base-url', 'http://localhost:9000'])
    const token = await mintToken(sendTo(first), sampleKeys.ada, { policy: [{ namespaces: 'ada' }] })
    const explain = (...args: string[]) => run(place, ['token', 'explain', token, '--data', place.data, ...args])
    expect(await explain('--namespace', 'ada')).toMatchObject({ code: 0, stdout: expect.stringContaining('Allowed') })
    expect((await explain()).stdout).not.toContain('another base URL')
    await first.kill('SIGTERM')

    await using second = await startServer(place, ['--base-url', 'http://localhost:9001'])
    const headers = { authorization: `Bearer ${token}` }
    for (let i = 0; i < 3; i += 1) expect((await sendTo(second)('/connect/ada', { headers })).status).toBe(401)
    expect(logOf(second.stderr())).toMatchObject([
      { level: 'warn', before: 'http://localhost:9000', now: 'http://localhost:9001' },
      {
        level: 'warn',
        event: 'credential refused',
        reason: 'issuer',
        expected: 'http://localhost:9001',
        got: 'http://localhost:9000',
      },
    ])
    expect(second.stderr()).not.toContain(token.split('.')[2] ?? '')
    const plain = await explain()
    expect(plain).toMatchObject({ code: 1, stdout: expect.stringContaining('is served under http://localhost:9001\n') })
    expect(await explain('--namespace', 'ada')).toMatchObject({
      code: 1,
      stdout: expect.stringContaining('Refused: the token was issued under another base URL, 401.\n'),
      stderr: '',
    })
    // The new kind of record is known to who looks at all of them.
    expect((await run(place, ['verify', '--data', place.data])).code).toBe(0)
  })

  test('token explain exits 1 where the described request is refused', async () => {
    using place = workplace()
    await using server = await startServer(place)
    const token = await mintToken(sendTo(server), sampleKeys.ada, { policy: [{ namespaces: 'ada' }] })
    const code = async (...args: string[]) =>
      (await run(place, ['token', 'explain', token, '--data', place.data, ...args])).code
    expect(await code('--namespace', 'ada')).toBe(0)
    expect(await code('--namespace', 'northwind')).toBe(1)
    expect(await code()).toBe(0)
  })

  test('a token is read from stdin, where no other user of the machine sees it', async () => {
    using place = workplace()
    await using server = await startServer(place)
    const token = await mintToken(sendTo(server), sampleKeys.ada)
    const piped = async (...args: string[]) => {
      const child = Bun.spawn([executable, 'token', ...args, '--data', place.data], {
        env: {},
        stdin: Buffer.from(`${token}\n`),
        stdout: 'pipe',
        stderr: 'pipe',
      })
      return endOf(child)
    }
    expect(await piped('explain', '-')).toMatchObject({ code: 0, stdout: expect.stringContaining('acts for ada') })
    expect(await piped('explain', '-', '--rpc', '-')).toMatchObject({ code: 2, stdout: '' })
    expect(await piped('revoke', '-')).toMatchObject({ code: 0, stderr: '' })
    expect((await sendTo(server)('/connect/ada', { headers: { authorization: `Bearer ${token}` } })).status).toBe(401)
  })

  test('all addresses, and no base URL: tokens would name an issuer that clients cannot reach', async () => {
    using place = workplace()
    await using server = await startServer(place, ['--host', '0.0.0.0'])
    expect(logOf(server.stderr())).toMatchObject([{ level: 'warn', issuer: server.url }])
    expect(existsSync(place.data)).toBe(true)
  })
})
