/**
 * Two versions side by side: an executable built from the last commit whose stores were of an older version, and ours
 * (docs/upgrade.md). Where that commit is not there, as in a shallow clone, this is skipped.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { mintToken } from '../api/cases.ts'
import {
  run,
  type Server,
  sampleFolder,
  sendTo,
  startServer,
  type Workplace,
  workplace,
} from '../support/executable.ts'
import { isHere, olderCommit } from '../support/needs.ts'
import { sampleKeys } from '../support/sample.ts'

const root = resolve(import.meta.dir, '../..')
const git = (...args: string[]) => Bun.spawnSync(['git', '-C', root, ...args], { stderr: 'ignore' })

const folder = mkdtempSync(join(tmpdir(), 'postern-older-'))
const older = join(folder, 'postern')
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** From that commit's source, with the packages that are installed now. */
function buildOlder(): void {
  const source = join(folder, 'source')
  mkdirSync(source)
  const archive = git('archive', olderCommit, 'src', 'fixtures', 'package.json').stdout
  Bun.spawnSync(['tar', '-x', '-C', source], { stdin: archive })
  symlinkSync(join(root, 'node_modules'), join(source, 'node_modules'))
  const built = Bun.spawnSync([process.execPath, 'src/build.ts', older], { cwd: source })
  if (built.exitCode !== 0) throw new Error(built.stderr.toString())
}

const status = async (server: Server, credential: string, path = '/connect/ada') =>
  (await sendTo(server)(path, { headers: { authorization: `Bearer ${credential}` } })).status
const storeOf = (place: Workplace) => readFileSync(join(place.data, 'store', 'data.mdb'))
const options = { program: older }

describe.if(isHere('the history of the source'))('an older store (needs the history of the source)', () => {
  beforeAll(buildOlder)

  test('commands of ours change nothing beneath an older server, and say what to do', async () => {
    using place = workplace()
    await using server = await startServer(place, ['--fixtures', sampleFolder], options)
    const token = await mintToken(sendTo(server), sampleKeys.ada)
    const before = storeOf(place)
    const file = join(place.folder, 'file')
    for (const args of [
      ['keys', 'list'],
      ['keys', 'create', '--user', 'ada'],
      ['keys', 'revoke', 'key_x'],
      ['signing-key', 'list'],
      ['token', 'revoke', 'tok_AAAAAAAAAAAAAAAAAAAAAA'],
      ['token', 'explain', token],
      ['export', file],
      ['verify'],
      ['verify', '--repair'],
    ]) {
      const ran = await run(place, [...args, '--data', place.data])
      const stderr = 'an older postern serves this folder: stop it first, then start the new one\n'
      expect({ args, ...ran }).toEqual({ args, code: 1, stdout: '', stderr })
    }
    const serve = await run(place, ['serve', '--data', place.data, '--port', '0'])
    expect(serve).toMatchObject({ code: 1, stderr: expect.stringMatching(/^another postern serves the data folder /) })
    expect(storeOf(place).equals(before)).toBe(true)
    expect([await status(server, sampleKeys.ada), await status(server, token)]).toEqual([200, 200])
    // What only copies and reads goes on.
    expect((await run(place, ['backup', file, '--data', place.data])).code).toBe(0)
    expect((await run(place, ['audit', 'verify', '--data', place.data])).code).toBe(0)
    const restored = await run(place, ['restore', file, '--data', join(place.folder, 'restored')])
    expect(restored).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/is upgraded from version 2 to version 5\n$/),
    })
    expect(await status(server, sampleKeys.ada)).toBe(200)
  })

  test('stop, replace, start: the log says so, and keys, tokens and connections are as they were', async () => {
    using place = workplace()
    const first = await startServer(place, ['--fixtures', sampleFolder], options)
    const token = await mintToken(sendTo(first), sampleKeys.ada)
    const list = async (server: Server) =>
      (await sendTo(server)('/connect/ada', { headers: { authorization: `Bearer ${token}` } })).text()
    const expected = await list(first)
    await first.kill('SIGTERM')
    const samePort = ['--port', new URL(first.url).port]
    const second = await startServer(place, samePort)
    expect(JSON.parse(second.stderr().split('\n')[0] ?? '')).toMatchObject({
      level: 'info',
      event: 'the store was upgraded',
      from: 2,
      to: 5,
    })
    expect([await list(second), await status(second, sampleKeys.ada)]).toEqual([expected, 200])
    await second.kill('SIGTERM')
    // Once.
    const third = await startServer(place, samePort)
    expect(third.stderr()).not.toContain('upgraded')
    await third.kill('SIGTERM')
    const back = Bun.spawnSync([older, 'keys', 'list', '--data', place.data], { env: {} })
    expect({ code: back.exitCode, text: back.stderr.toString() }).toEqual({
      code: 1,
      text: expect.stringContaining('newer version'),
    })
  })

  test('where nobody serves it, a command upgrades it, and says so once', async () => {
    using place = workplace()
    await (await startServer(place, ['--fixtures', sampleFolder], options)).kill('SIGTERM')
    for (const [args, line] of [
      [['verify'], `the store in ${place.data} is upgraded from version 2 to version 5\n`],
      [['keys', 'list'], ''],
    ] as const) {
      expect(await run(place, [...args, '--data', place.data])).toMatchObject({ code: 0, stderr: line })
    }
  })
})
