/** Whatever is wrong is said in one line, with an exit code. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, cpSync, existsSync, mkdirSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { executable, run, samePort, startServer, type Workplace, workplace } from '../support/executable.ts'

describe('one clear line and an exit code', () => {
  const cases: [
    what: string,
    code: number,
    line: RegExp,
    args: (place: Workplace) => string[],
    env?: Record<string, string>,
  ][] = [
    ['an unknown command', 2, /unknown command 'nope'/, () => ['nope']],
    [
      'a word of another program',
      2,
      /^unknown command 'delete' \(did you mean `postern connection rm`\?\); run `postern connection --help` for usage\n$/,
      () => ['connection', 'delete', 'x'],
    ],
    ['one of another program', 2, /^unknown command 'start' \(did you mean `postern serve`\?\)/, () => ['start']],
    [
      'the secret of a database without one',
      2,
      /^--instance-secret-file x: works only with --store\n$/,
      () => ['serve', '--instance-secret-file', 'x'],
    ],
    [
      'an unknown flag',
      2,
      /^unknown option '--nope'; run `postern serve --help` for usage\n$/,
      () => ['serve', '--nope'],
    ],
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
      /^POSTERN_PORT=http: must be a number/,
      () => ['serve'],
      { POSTERN_PORT: 'http' },
    ],
    [
      'a host that is none of this machine',
      1,
      /cannot listen on 192\.0\.2\.1:\d+: this machine has no such address; choose another with --host/,
      () => ['serve', '--host', '192.0.2.1'],
    ],
    [
      'a host that is no address',
      1,
      /cannot listen on nonsense\.invalid:\d+: this machine has no such address; choose another with --host/,
      () => ['serve', '--host', 'nonsense.invalid'],
    ],
    [
      'a folder for temporary files that is not there',
      1,
      /^cannot create a temporary folder: ENOENT: .*; name another place with TMPDIR\n$/,
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
    ['a missing flag', 2, /^--user: name the user that the key belongs to\n$/, () => ['keys', 'create']],
    ['a user that is none', 2, /--user: must be 1 to 128 characters/, () => ['keys', 'create', '--user', '']],
    [
      'no data folder, and none was named',
      1,
      /^there is no data folder at .*; or work over HTTP, after `postern login URL`\n$/,
      () => ['keys', 'list'],
    ],
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
    ['server for serve', 2, /did you mean `postern serve --port …`\?\n$/, () => ['server', '--port', '9000']],
    ['serve for server', 2, /did you mean `postern server add …`\?\n$/, () => ['serve', 'add', 'a/b', 'x']],
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

  /** It was served once; its data folder is copied for each test. */
  let served: Workplace
  beforeAll(async () => {
    served = workplace()
    await (await startServer(served)).kill('SIGTERM')
  })
  afterAll(() => served[Symbol.dispose]())
  const servedBefore = () => {
    const place = workplace()
    cpSync(served.data, place.data, { recursive: true })
    return place
  }

  test('a busy port, and a second server on the folder', async () => {
    using place = workplace()
    using other = workplace()
    await using server = await startServer(place)
    const busy = await run(other, ['serve', '--data', other.data, ...samePort(server)])
    expect(busy).toMatchObject({ code: 1, stdout: '' })
    expect(busy.stderr).toMatch(/^port \d+ on 127\.0\.0\.1 is taken: .*--port.*\n$/)
    const address = `127.0.0.1:${new URL(server.url).port}`
    const metrics = await run(other, ['serve', '--data', other.data, '--port', '0', '--metrics-listen', address])
    expect(metrics).toMatchObject({ code: 1, stdout: '' })
    expect(metrics.stderr).toMatch(/^port \d+ on 127\.0\.0\.1 is taken: .*--metrics-listen.*\n$/m)
    const second = await run(place, ['serve', '--data', place.data, '--port', '0'])
    expect(second).toMatchObject({ code: 1, stdout: '' })
    expect(second.stderr).toMatch(/^another postern serves the data folder .*--data\n$/)
  })

  test('a lost instance-secret: it is not made anew beside data that needs the old one', async () => {
    using place = servedBefore()
    const file = join(place.data, 'instance-secret')
    rmSync(file)
    const lost = await run(place, ['serve', '--data', place.data, '--port', '0'])
    expect(lost).toMatchObject({ code: 1, stdout: '' })
    expect(lost.stderr).toMatch(/is missing, and the store needs it: restore it from a backup\n$/)
    writeFileSync(file, Buffer.alloc(32, 'x').toString('base64url'), { mode: 0o600 })
    const other = await run(place, ['serve', '--data', place.data, '--port', '0'])
    expect(other).toMatchObject({ code: 1, stdout: '' })
    expect(other.stderr).toBe(
      'the signing keys do not belong to this instance secret: put back the secret that this folder had, or restore both from the same backup\n',
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
      using place = servedBefore()
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
    expect(ran.stderr).toMatch(
      /a\.json: apiKeys\[0\]: this API key already exists \(key_\S+, made with `keys create`\): use another key\n$/,
    )
  })

  test('a data folder of somebody else', async () => {
    using place = servedBefore()
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
    using place = servedBefore()
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

test('a folder of fixtures that is not there leaves no data folder behind', async () => {
  using place = workplace()
  const { code, stderr } = await run(place, ['serve', '--data', place.data, '--fixtures', join(place.folder, 'none')])
  expect([code, stderr]).toEqual([1, expect.stringContaining('it is not there')])
  expect(existsSync(place.data)).toBe(false)
})
