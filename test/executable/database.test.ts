/** The executable on a database: three replicas, the commands beside them, and ways in and out. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mintToken } from '../api/cases.ts'
import { run, type Server, sampleFolder, sendTo, startServer, workplace } from '../support/executable.ts'
import { isHere } from '../support/needs.ts'
import { type PostgresCluster, startPostgres } from '../support/postgres.ts'
import { sampleKeys } from '../support/sample.ts'
import { until } from '../support/until.ts'

const baseUrl = 'https://mcp.example.com'
const host = { host: 'mcp.example.com' }
const as = (credential: string) => ({ headers: { ...host, authorization: `Bearer ${credential}` } })

describe.skipIf(!isHere('PostgreSQL'))('three replicas on a database (needs PostgreSQL)', () => {
  const place = workplace()
  const folder = (name: string) => join(place.folder, name)
  let cluster: PostgresCluster
  let url: string
  let replicas: Server[]
  const serving = (name: string, ...more: string[]) => [
    ...['--data', folder(name), '--store', url, '--base-url', baseUrl, '--replica', name],
    ...more,
  ]
  /** A command beside the replicas. */
  const command = (...args: string[]) => run(place, [...args, '--store', url, '--data', folder('one')])

  beforeAll(async () => {
    cluster = await startPostgres()
    url = await cluster.newDatabase()
    const first = await startServer(
      place,
      serving('one', '--fixtures', sampleFolder, '--metrics-listen', '127.0.0.1:0'),
    )
    for (const name of ['two', 'three']) {
      mkdirSync(folder(name), { mode: 0o700 })
      copyFileSync(join(folder('one'), 'instance-secret'), join(folder(name), 'instance-secret'))
    }
    const others = ['two', 'three'].map((name) => startServer(place, serving(name, '--fixtures', sampleFolder)))
    replicas = [first, ...(await Promise.all(others))]
  })
  afterAll(async () => {
    for (const replica of replicas) await replica.kill('SIGTERM')
    await cluster.stop()
    place[Symbol.dispose]()
  })

  test('one makes the secret, the operator key and the fixtures; the others find them', () => {
    const told = (what: string) => replicas.map(({ stdout, stderr }) => `${stdout()}${stderr()}`.includes(what))
    expect(told('made the instance secret')).toEqual([true, false, false])
    expect(told('Operator key, shown only once')).toEqual([true, false, false])
    expect(told('"fixtures loaded"')).toEqual([true, false, false])
  })

  test('a page is the same at each, with one ETag', async () => {
    const pages = await Promise.all(
      replicas.map(async (replica) => {
        const response = await sendTo(replica)('/connect/northwind?limit=3', as(sampleKeys.ada))
        return [response.status, response.headers.get('etag'), await response.text()]
      }),
    )
    expect(pages[0]?.[0]).toBe(200)
    expect(new Set(pages.map((page) => JSON.stringify(page))).size).toBe(1)
  })

  test('a key that a command makes is good at once everywhere, and not after it is revoked', async () => {
    const made = await command('keys', 'create', '--user', 'ada')
    const key = made.stdout.trim()
    const statuses = () =>
      Promise.all(replicas.map(async (one) => (await sendTo(one)('/connect/northwind?limit=1', as(key))).status))
    expect(await statuses()).toEqual([200, 200, 200])
    const token = await mintToken(
      (path, init) =>
        sendTo(replicas[1] as Server)(path, { ...init, headers: { ...(init.headers as object), ...host } }),
      key,
      { policy: [{ ttl: '1h' }] },
    )
    expect((await sendTo(replicas[2] as Server)('/connect/northwind?limit=1', as(token))).status).toBe(200)
    const [, id = ''] = /^(key_\S+)/m.exec(made.stderr) ?? []
    expect((await command('keys', 'revoke', id)).code).toBe(0)
    expect(await statuses()).toEqual([401, 401, 401])
    expect((await sendTo(replicas[2] as Server)('/connect/northwind?limit=1', as(token))).status).toBe(401)
  })

  test('each writes an audit log of its own, with its name', async () => {
    const response = await sendTo(replicas[1] as Server)('/tokens', {
      method: 'POST',
      headers: { ...as(sampleKeys.ada).headers, 'content-type': 'application/json' },
      body: JSON.stringify({ policy: [{ ttl: '1h' }] }),
    })
    expect(response.status).toBe(200)
    expect(readFileSync(join(folder('two'), 'audit.jsonl'), 'utf8')).toContain('"replica":"two"')
    expect(replicas[1]?.stderr()).toMatch(/"event":"started",.*"durability":"local","replica":"two"/)
    expect((await run(place, ['audit', 'verify', '--data', folder('two')])).code).toBe(0)
  })

  test('store status shows who is there', async () => {
    const { code, stdout } = await command('store', 'status')
    expect(code).toBe(0)
    expect(stdout).toMatch(/^primary +127\.0\.0\.1:\d+$/m)
    expect(stdout).toMatch(/^durability +local$/m)
    for (const name of ['one', 'two', 'three']) expect(stdout).toMatch(new RegExp(`^${name} +alive .*${baseUrl}$`, 'm'))
  })

  test('a connection to another replica is refused: calls would go in a circle', async () => {
    const [, port = ''] = /:(\d+)$/.exec((replicas[1] as Server).url) ?? []
    // Where the others listen is known a second after they began.
    await until(async () => {
      const response = await sendTo(replicas[0] as Server)('/connect/ada/circle', {
        method: 'PUT',
        headers: { ...as(sampleKeys.ada).headers, 'content-type': 'application/json' },
        body: JSON.stringify({ mcpUrl: `http://127.0.0.1:${port}/mcp`, name: 'circle' }),
      })
      return response.status === 400 && (await response.text()).includes('leads back to this postern')
    })
  })

  test('nothing secret lies in the database', async () => {
    const [, operatorKey = ''] = /^ +(pst_\S+)$/m.exec(replicas[0]?.stdout() ?? '') ?? []
    const headers = { ...as(sampleKeys.ada).headers, 'content-type': 'application/json' }
    const body = JSON.stringify({
      mcpUrl: 'https://a.example.com/mcp',
      name: 'a',
      headers: { 'x-api-key': 'hush-hush' },
    })
    await sendTo(replicas[0] as Server)('/connect/ada/hush', { method: 'PUT', headers, body })
    const rows = await cluster.query(url, 'SELECT key, value FROM postern_records')
    const all = Buffer.concat((rows as { key: Buffer; value: Buffer }[]).flatMap(({ key, value }) => [key, value]))
    expect(all.length).toBeGreaterThan(10_000)
    const secret = readFileSync(join(folder('one'), 'instance-secret'), 'utf8').trim()
    const secrets = [operatorKey, sampleKeys.ada, secret, Buffer.from(secret, 'base64url'), 'hush-hush']
    expect(secrets.map((one) => one.length > 8 && all.includes(one))).toEqual([false, false, false, false, false])
    const [instance] = (await cluster.query(url, 'SELECT secret_check FROM postern_instance')) as {
      secret_check: Buffer
    }[]
    expect(instance?.secret_check.includes(Buffer.from(secret, 'base64url'))).toBe(false)
  })

  test('verify, export and import work beside them', async () => {
    const file = folder('export.jsonl')
    expect((await command('verify')).stdout).toMatch(/^\d+ records and \d+ index entries, all correct$/m)
    expect((await command('export', file)).code).toBe(0)
    expect((await command('import', file)).stdout).toMatch(/^imported \d+ records$/m)
    expect((await command('verify')).code).toBe(0)
  })

  test('verify finds a damaged record and a missing index entry, and mends the index', async () => {
    const other = await cluster.newDatabase()
    const copied = await run(place, [
      'store',
      'copy',
      '--from',
      url,
      '--to',
      other,
      '--instance-secret-file',
      join(folder('one'), 'instance-secret'),
    ])
    expect([copied.code, copied.stderr]).toEqual([0, ''])
    const verify = (...more: string[]) => run(place, ['verify', ...more, '--store', other, '--data', folder('two')])
    await cluster.query(
      other,
      "DELETE FROM postern_records WHERE key IN (SELECT key FROM postern_records WHERE key >= 'x' AND key < 'y' LIMIT 1)",
    )
    expect((await verify()).stderr).toContain('run `postern store verify --repair`')
    expect((await verify('--repair')).code).toBe(0)
    expect((await verify()).code).toBe(0)
    await cluster.query(other, "UPDATE postern_records SET value = value || 'x' WHERE key >= 'n' AND key < 'o'")
    expect((await verify()).stderr).toContain('its checksum does not match')
  })

  test('a store is copied to a folder and back, and all that was in it works there', async () => {
    const secret = join(folder('one'), 'instance-secret')
    const copy = (from: string, to: string, ...more: string[]) =>
      run(place, ['store', 'copy', '--from', from, '--to', to, ...more], {})
    const out = await copy(url, folder('copy'), '--instance-secret-file', secret)
    const sum = /^\d+ records, sha256 [0-9a-f]{64}$/m.exec(out.stdout)?.[0]
    expect(sum).toBeDefined()
    await using server = await startServer(place, ['--data', folder('copy'), '--base-url', baseUrl])
    expect((await sendTo(server)('/connect/northwind?limit=1', as(sampleKeys.ada))).status).toBe(200)
    await server.kill('SIGTERM')
    const next = await cluster.newDatabase()
    // The folder has been served since: what the server wrote at its start is in the copy too.
    const [first, second] = [
      await copy(folder('copy'), next),
      await copy(next, folder('again'), '--instance-secret-file', secret),
    ]
    expect([first.code, second.code, second.stdout]).toEqual([0, 0, first.stdout])
    expect(readFileSync(join(folder('again'), 'instance-secret'), 'utf8')).toBe(readFileSync(secret, 'utf8'))
    // From the environment, as a server has it.
    const to = folder('from-environment')
    const env = { POSTERN_INSTANCE_SECRET_FILE: secret }
    const third = await run(place, ['store', 'copy', '--from', next, '--to', to], env)
    expect([third.stderr, third.stdout]).toEqual(['', second.stdout])
    // A folder brings its own secret: with another one nothing in it could be opened.
    const other = join(place.folder, 'other-secret')
    writeFileSync(other, 'A'.repeat(43), { mode: 0o600 })
    expect(await copy(folder('copy'), folder('never'), '--instance-secret-file', other)).toMatchObject({
      code: 1,
      stderr: `${other} is not the secret of ${folder('copy')}: leave --instance-secret-file (POSTERN_INSTANCE_SECRET_FILE) out\n`,
    })
  })

  test.each([
    [
      'a database that is not empty',
      () => ['--from', folder('two-copies'), '--to', url],
      'is not empty: name an empty one',
    ],
    [
      'a folder that has a store',
      () => ['--from', url, '--to', folder('two-copies')],
      'already exists: name a new folder with --to',
    ],
  ] as const)('nothing is copied over %s', async (_, args, problem) => {
    const secret = join(folder('one'), 'instance-secret')
    if (!existsSync(folder('two-copies'))) {
      await run(place, ['store', 'copy', '--from', url, '--to', folder('two-copies'), '--instance-secret-file', secret])
    }
    const { code, stderr } = await run(place, ['store', 'copy', ...args(), '--instance-secret-file', secret])
    expect([code, stderr.includes(problem)]).toEqual([1, true])
  })

  test.each([
    ['no secret', [], 'the store needs its instance secret'],
    ['another secret', ['--instance-secret-file', 'other'], 'is not the instance secret of this store'],
    [
      'a name that is taken',
      ['--instance-secret-file', 'one/instance-secret', '--replica', 'two'],
      'another replica is named two',
    ],
    [
      'another base URL',
      ['--instance-secret-file', 'one/instance-secret', '--base-url', 'https://b'],
      'all must have the same',
    ],
  ] as const)('a start is refused with %s', async (_, flags, problem) => {
    writeFileSync(folder('other'), `${'A'.repeat(43)}\n`, { mode: 0o600 })
    const given = serving('fourth').filter(
      (one, index, all) => !flags.some((flag) => flag === one || flag === all[index - 1]),
    )
    const { code, stderr } = await run(place, ['serve', '--port', '0', ...given, ...flags])
    expect([code, stderr.includes(problem) ? problem : stderr]).toEqual([1, problem])
    expect(stderr).not.toContain('postern failed')
  })

  test.each([
    [['serve', '--store', 'postgres://a:hush@db/b?x=1'], 2, '--store: has an unknown parameter x'],
    [['serve', '--store', 'postgres://a@db/b'], 2, '--base-url: must be given with --store'],
    [['serve', '--replica', 'x'], 2, '--replica x: works only with --store'],
    [['keys', 'list', '--store', 'postgres://a:hush@db:0/b'], 2, '--store its hosts must be like'],
    [['store', 'migrate'], 2, 'only a database is migrated: name it with --store'],
    [['backup', 'file', '--store', 'postgres://a:hush@db/b'], 1, 'back up a database with its own tools'],
    [
      ['restore', 'file', '--data', 'x', '--store', 'postgres://a:hush@db/b'],
      1,
      'back up a database with its own tools',
    ],
    [
      ['store', 'copy', '--from', 'postgres://a:hush@db/b', '--to', 'x'],
      2,
      'the instance secret is not stored in the database',
    ],
    [
      ['store', 'copy', '--from', 'postgres://a:hush@db/b', '--to', 'ftp://a:hush@b/c'],
      2,
      'the instance secret is not stored in the database',
    ],
    [['store', 'copy', '--from', 'own', '--to', 'MYSQL://a:hush@b/c'], 1, 'there is no data folder at own'],
    [
      ['store', 'copy', '--from', 'postgres://a:hush@db/b', '--to', 'ftp://a:hush@b/c'],
      2,
      'the instance secret is not stored in the database',
    ],
    [['store', 'copy', '--from', 'own', '--to', 'MYSQL://a:hush@b/c'], 1, 'there is no data folder at own'],
  ] as const)('%p ends with %i', async (args, expected, problem) => {
    const { code, stdout, stderr } = await run(place, [...args])
    expect([code, stderr.includes(problem) ? problem : stderr]).toEqual([expected, problem])
    expect(stdout + stderr).not.toContain('hush')
  })

  test('a copy that fails leaves the target for the next one', async () => {
    const [damaged, target] = [await cluster.newDatabase(), await cluster.newDatabase()]
    const secret = join(folder('one'), 'instance-secret')
    const copy = (from: string, to: string, file: string) =>
      run(place, ['store', 'copy', '--from', from, '--to', to, '--instance-secret-file', file, '--data', folder('two')])
    expect((await copy(url, damaged, secret)).code).toBe(0)
    await cluster.query(damaged, "UPDATE postern_records SET value = value || 'x' WHERE key >= 'n' AND key < 'o'")
    const failed = await copy(damaged, target, secret)
    expect([failed.code, failed.stderr]).toEqual([1, 'a record is damaged: run `postern store verify`\n'])
    // Made by an operator beforehand, it is as empty as before.
    expect((await run(place, ['store', 'migrate', '--store', target, '--data', folder('two')])).code).toBe(0)
    writeFileSync(folder('another'), `${'B'.repeat(43)}\n`, { mode: 0o600 })
    mkdirSync(folder('foreign'), { mode: 0o700 })
    copyFileSync(folder('another'), join(folder('foreign'), 'instance-secret'))
    await run(place, ['keys', 'create', '--user', 'ada', '--data', folder('foreign')])
    const next = await copy(folder('foreign'), target, folder('another'))
    expect([next.code, next.stderr]).toEqual([0, ''])
    const flags = ['--store', target, '--data', folder('two'), '--instance-secret-file', folder('another')]
    expect((await run(place, ['keys', 'list', ...flags])).stdout).toContain('ada')
  })

  test('an index is repaired while replicas write, and misses nothing that they acknowledged', async () => {
    const some = "SELECT key FROM postern_records WHERE key >= 'x' AND key < 'y' LIMIT 1"
    await cluster.query(url, `DELETE FROM postern_records WHERE key IN (${some})`)
    const headers = { ...as(sampleKeys.ada).headers, 'content-type': 'application/json' }
    let isOver = false
    let number = 0
    const writing = (async () => {
      while (!isOver) {
        number += 1
        const body = JSON.stringify({ server: 'lumen', mock: { enabled: true }, name: `w-${number}` })
        await sendTo(replicas[1] as Server)(`/connect/ada/w-${number}`, { method: 'PUT', headers, body })
      }
    })()
    await until(() => number > 5)
    const repaired = await command('verify', '--repair')
    isOver = true
    await writing
    expect([repaired.code, repaired.stderr]).toEqual([0, ''])
    const { code, stderr } = await command('verify')
    expect([code, stderr]).toEqual([0, ''])
  })

  test('a folder that has a store is not served beside a database: what is in it would be forgotten', async () => {
    await using own = await startServer(place, ['--data', folder('own')])
    await own.kill('SIGTERM')
    const { code, stderr } = await run(place, ['serve', '--port', '0', ...serving('own')])
    expect([code, stderr.includes('copy it with `postern store copy')]).toEqual([1, true])
  })

  test('what is stopped says so in its log, and leaves the list of replicas', async () => {
    const [, , third] = replicas as [Server, Server, Server]
    expect(await third.kill('SIGTERM')).toBe(0)
    expect((await command('store', 'status')).stdout).not.toMatch(/^three /m)
    replicas[2] = await startServer(place, serving('three'))
  })

  test('a replica that starts is not to be reached before it can answer', async () => {
    const [, , third] = replicas as [Server, Server, Server]
    const [, port = ''] = /:(\d+)$/.exec(third.url) ?? []
    // Its last heartbeat is young, so the next start waits to see whether it moves.
    await third.kill('SIGKILL')
    const starting = startServer(place, serving('three', '--port', port))
    let isUp = false
    const up = starting.then(() => {
      isUp = true
    })
    const statuses = new Set<number>()
    while (!isUp) {
      const answer = await fetch(`http://127.0.0.1:${port}/health`, { headers: host }).catch(() => undefined)
      if (answer !== undefined) statuses.add(answer.status)
      await Bun.sleep(5)
    }
    await up
    replicas[2] = await starting
    statuses.add((await fetch(`http://127.0.0.1:${port}/health`, { headers: host })).status)
    expect([...statuses]).toEqual([200])
  })

  test('while the database is away all that needs a credential is 503, and it comes back by itself', async () => {
    const [one] = replicas as [Server]
    const [, metrics = ''] = /"metrics listening","url":"([^"]+)"/.exec(one.stderr()) ?? []
    const ask = async (path: string, at = one.url) => {
      const response = await fetch(`${at}${path}`, as(sampleKeys.ada))
      return [response.status, response.headers.get('retry-after'), (await response.text()).slice(0, 100)] as const
    }
    await cluster.pause()
    const [status, after, body] = await ask('/connect/northwind?limit=1')
    expect([status, after, JSON.parse(body).error]).toEqual([503, '1', 'unavailable'])
    expect((await ask('/health'))[0]).toBe(200)
    expect((await ask('/ready', metrics))[0]).toBe(503)
    cluster.resume()
    await until(async () => (await ask('/connect/northwind?limit=1'))[0] === 200)
    expect((await ask('/ready', metrics))[0]).toBe(200)
  })
})
