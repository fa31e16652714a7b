/** The audit log as operators keep it: moved away by logrotate, with and without a signal, while the executable runs. */

import { describe, expect, test } from 'bun:test'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { mintToken } from '../api/cases.ts'
import { executable, run, type Server, sendTo, startServer, type Workplace, workplace } from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'
import { until } from '../support/until.ts'

const logOf = (place: Workplace) => join(place.data, 'audit.jsonl')
const mint = (server: Server) => mintToken(sendTo(server), sampleKeys.ada)
const createKey = async (place: Workplace) =>
  expect((await run(place, ['keys', 'create', '--user', 'eve', '--data', place.data])).code).toBe(0)
const verify = (place: Workplace, ...files: string[]) => run(place, ['audit', 'verify', ...files, '--data', place.data])
const whole = (entries: number) => ({
  code: 0,
  stderr: '',
  stdout: expect.stringMatching(new RegExp(`^${entries} entr(?:y|ies), none changed`)),
})

describe('the audit log is rotated', () => {
  test('by a move alone: whoever writes next, the server or a command, goes on in a new file', async () => {
    using place = workplace()
    await using server = await startServer(place)
    const log = logOf(place)
    await mint(server)
    renameSync(log, `${log}.3`)
    await createKey(place)
    await mint(server)
    renameSync(log, `${log}.2`)
    await mint(server)
    // As logrotate makes it with `create`.
    renameSync(log, `${log}.1`)
    writeFileSync(log, '', { mode: 0o600 })
    await createKey(place)
    const files = [`${log}.3`, `${log}.2`, `${log}.1`, log]
    expect(files.map((file) => readFileSync(file, 'utf8').trim().split('\n').length)).toEqual([1, 3, 2, 2])
    expect(await verify(place, ...files)).toMatchObject(whole(8))

    // A part of it is checked for itself, and says what it follows.
    const { hash } = JSON.parse(readFileSync(`${log}.1`, 'utf8').trim().split('\n').at(-1) ?? '')
    const last = await verify(place)
    expect(last).toMatchObject({ code: 0, stdout: expect.stringMatching(/^2 entries, none changed/) })
    expect(last.stderr).toContain('begins with entry 7. The entries before it are not checked')
    expect(last.stderr).toEndWith(`\n${hash}\n`)
    expect((await verify(place, ...files, '--hash', hash)).code).toBe(0)
    expect(await verify(place, `${log}.3`, `${log}.1`, log)).toMatchObject({
      code: 1,
      stdout: '',
      stderr: `${log}.1:1: does not follow the entry before it: entries 2 to 4 are missing\n`,
    })
    expect((await verify(place, log, `${log}.1`)).stderr).toContain('(give the oldest file first)')
    const piped = Bun.spawnSync([executable, 'audit', 'verify', '-'], {
      stdin: Buffer.concat(files.map((file) => readFileSync(file))),
    })
    expect(piped.stdout.toString()).toStartWith('8 entries, none changed')
  })

  test('with SIGHUP: the old file is let go of at once', async () => {
    using place = workplace()
    await using server = await startServer(place)
    const log = logOf(place)
    await mint(server)
    renameSync(log, `${log}.1`)
    process.kill(server.pid, 'SIGHUP')
    await until(() => existsSync(log))
    if (process.platform === 'linux') {
      const held = () =>
        readdirSync(`/proc/${server.pid}/fd`).map((fd) => {
          try {
            return readlinkSync(`/proc/${server.pid}/fd/${fd}`)
          } catch {
            return ''
          }
        })
      // The new one is there a moment before the old one is closed.
      await until(() => !held().includes(`${log}.1`))
      expect(held()).toContain(log)
    }
    await mint(server)
    expect(await verify(place, `${log}.1`, log)).toMatchObject(whole(3))
  })

  test('by copytruncate: what was written between the copy and the cut is missing, and told', async () => {
    using place = workplace()
    await using server = await startServer(place)
    const log = logOf(place)
    await mint(server)
    copyFileSync(log, `${log}.1`)
    await mint(server)
    truncateSync(log)
    await createKey(place)
    await mint(server)
    expect(await verify(place, `${log}.1`, log)).toMatchObject({
      code: 1,
      stderr: `${log}:1: does not follow the entry before it: entry 2 is missing\n`,
    })
  })
})

describe('SIGHUP ends nothing', () => {
  const key = 'a-key-of-at-least-32-characters-0'
  const status = async (server: Server, namespace: string) =>
    (await sendTo(server)(`/connect/${namespace}`, { headers: { authorization: `Bearer ${key}` } })).status

  test('the fixtures are loaded again; with problems what was loaded stays; start and stop are in the log', async () => {
    using place = workplace()
    const fixtures = join(place.folder, 'fixtures')
    const write = (text: string) => writeFileSync(join(fixtures, 'a.json'), text)
    const set = (namespace: string) =>
      JSON.stringify({ namespaces: [{ namespace, userId: 'u' }], apiKeys: [{ userId: 'u', key }] })
    mkdirSync(fixtures)
    write(set('first'))
    await using server = await startServer(place, ['--fixtures', fixtures])
    const hangUp = () => process.kill(server.pid, 'SIGHUP')
    write(set('second'))
    expect([await status(server, 'first'), await status(server, 'second')]).toEqual([200, 404])
    hangUp()
    await until(async () => (await status(server, 'second')) === 200)
    expect(await status(server, 'first')).toBe(404)
    write('{')
    hangUp()
    await until(async () => server.stderr().includes('"level":"warn","event":"the fixtures were not reloaded"'))
    expect(server.stderr()).toContain('a.json: is not JSON')
    expect(await status(server, 'second')).toBe(200)
    write(set('second'))
    hangUp()
    await until(async () => server.stderr().includes('the fixtures have not changed'))
    expect(await server.kill('SIGTERM')).toBe(0)
    const events = server
      .stderr()
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(events.find(({ event }) => event === 'started')).toMatchObject({ level: 'info', url: server.url })
    expect(events.at(-1)).toMatchObject({ level: 'info', event: 'stopped', signal: 'SIGTERM' })
    // Of the load that changed rights; the first start changes none.
    const audited = readFileSync(join(place.data, 'audit.jsonl'), 'utf8').trim().split('\n')
    expect(audited.map((line) => JSON.parse(line))).toMatchObject([
      { event: 'fixtures.loaded', connections: 0, servers: 0, removed: 1, digest: expect.any(String) },
    ])
  })

  test('without fixtures, it says that it opened the logs', async () => {
    using place = workplace()
    await using server = await startServer(place, [])
    process.kill(server.pid, 'SIGHUP')
    await until(async () =>
      server.stderr().includes('"event":"the logs were opened again; there are no fixtures to load"'),
    )
    expect(await server.kill('SIGTERM')).toBe(0)
  })

  test('but where its terminal was closed, which nobody could stop it from any more', async () => {
    using place = workplace()
    let shown = ''
    const child = Bun.spawn([executable, 'serve', '--data', place.data, '--port', '0'], {
      cwd: place.folder,
      terminal: {
        data(_terminal, bytes) {
          shown += Buffer.from(bytes).toString()
        },
      },
    })
    await until(async () => shown.includes('postern listening on'))
    child.terminal?.close()
    expect(await child.exited).toBe(0)
  })
})
