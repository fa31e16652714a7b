/** Whose the files of a data folder are, and what is in what comes into it and goes out of it. */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { keyRing } from '../../src/auth/signing-keys.ts'
import { systemClock } from '../../src/clock.ts'
import { openAuditLog } from '../../src/ops/audit-log.ts'
import { mintToken } from '../api/cases.ts'
import { run, sendTo, startServer, type Workplace, workplace } from '../support/executable.ts'
import { isHere } from '../support/needs.ts'
import { sampleKeys } from '../support/sample.ts'

const somebody = 12_002

/** A data folder that was served once, to be copied for each test. */
let model: Workplace
beforeAll(async () => {
  model = workplace()
  const server = await startServer(model)
  await mintToken(sendTo(server), sampleKeys.ada)
  await server.kill('SIGTERM')
})
afterAll(() => model[Symbol.dispose]())

function copied(): Workplace {
  const place = workplace()
  cpSync(model.data, place.data, { recursive: true })
  return place
}

const serve = ['serve', '--port', '0']
/** Those that open the folder differently. One look at a file finds its kind, its owner and its mode. */
const commands = (place: Workplace) => [
  serve,
  ['keys', 'list'],
  ['keys', 'create', '--user', 'ada'],
  ['backup', join(place.folder, 'backup')],
  ['verify'],
]

async function expectRefused(place: Workplace, line: string): Promise<void> {
  for (const args of commands(place)) await expectRefusedBy(args, place, line)
}

async function expectRefusedBy(args: readonly string[], place: Workplace, line: string): Promise<void> {
  const ran = await run(place, [...args, '--data', place.data])
  expect({ args, ...ran }).toEqual({ args, code: 1, stdout: '', stderr: `${line}\n` })
}

describe('a data folder that somebody else can change is refused, by the superuser too', () => {
  const files = ['instance-secret', 'audit.jsonl', 'audit.lock', 'server.lock', 'store/data.mdb', 'store/lock.mdb']
  const foreign = 'belongs to another user: run postern as its owner, or change the owner'

  test.if(isHere('root'))('the folder belongs to another user (needs root)', async () => {
    using place = copied()
    chownSync(place.data, somebody, somebody)
    await expectRefused(place, `${place.data} ${foreign}`)
    const empty = join(place.folder, 'empty')
    mkdirSync(empty, { mode: 0o700 })
    const backup = join(place.folder, 'backup')
    chownSync(place.data, 0, 0)
    const before = new Date().toISOString()
    expect((await run(place, ['backup', backup, '--data', place.data])).code).toBe(0)
    // What is revoked after this time is not in the backup.
    const line = readFileSync(join(place.data, 'audit.jsonl'), 'utf8').trimEnd().split('\n').at(-1) ?? ''
    const { event, began, time } = JSON.parse(line)
    expect([event, [before, began, time].toSorted()]).toEqual(['backup.made', [before, began, time]])
    chownSync(empty, somebody, somebody)
    expect(await run(place, ['restore', backup, '--data', empty])).toMatchObject({
      code: 1,
      stderr: `${empty} ${foreign}\n`,
    })
    expect(readdirSync(empty)).toEqual([])
  })

  for (const name of [...files, 'store']) {
    const isFolder = name === 'store'
    test.if(isHere('root'))(`${name} belongs to another user (needs root)`, async () => {
      using place = copied()
      chownSync(join(place.data, name), somebody, somebody)
      await expectRefusedBy(serve, place, `${join(place.data, name)} ${foreign}`)
    })

    test(`${name} can be read by others`, async () => {
      using place = copied()
      const path = join(place.data, name)
      chmodSync(path, isFolder ? 0o755 : 0o640)
      await expectRefusedBy(
        serve,
        place,
        `${path} is accessible to other users: run \`chmod ${isFolder ? '700' : '600'} ${path}\``,
      )
    })

    test(`${name} is a symbolic link`, async () => {
      using place = copied()
      const path = join(place.data, name)
      const target = join(place.folder, 'elsewhere')
      renameSync(path, target)
      symlinkSync(target, path)
      const kind = isFolder ? 'folder' : 'file'
      const refused = isFolder ? expectRefused : expectRefusedBy.bind(undefined, serve)
      await refused(place, `${path} is a symbolic link, which is not followed: replace it with the ${kind} itself`)
    })

    test(`${name} is something else`, async () => {
      using place = copied()
      const path = join(place.data, name)
      rmSync(path, { recursive: true })
      // Opened, a pipe would wait for whoever writes to it.
      Bun.spawnSync(['mkfifo', '-m', '600', path])
      const ran = await run(place, [...serve, '--data', place.data])
      expect(ran).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(`${path} is not a `) })
    })
  }

  test('what was planted in a folder that is made into one: a link for the log, keys that would sign', async () => {
    using place = workplace()
    mkdirSync(place.data, { mode: 0o700 })
    const target = join(place.folder, 'of-root')
    writeFileSync(target, 'root only\n')
    const log = join(place.data, 'audit.jsonl')
    symlinkSync(target, log)
    if (isHere('root')) lchownSync(log, somebody, somebody)
    const ran = await run(place, [...serve, '--data', place.data])
    expect(ran).toMatchObject({ code: 1, stderr: expect.stringContaining('audit.jsonl is a symbolic link') })
    rmSync(log)
    const planted = join(place.data, 'signing-keys.json')
    const record = { seed: Buffer.alloc(32, 'x').toString('base64url'), state: 'active', since: 0 } as const
    writeFileSync(planted, JSON.stringify({ keys: [{ seed: record.seed }] }), { mode: 0o600 })
    await using server = await startServer(place)
    const { kid } = keyRing([record]).active
    expect(await (await fetch(`${server.url}/.well-known/jwks.json`)).text()).not.toContain(kid)
    expect(readFileSync(target, 'utf8')).toBe('root only\n')
  })

  test('the log is opened through no link, whenever the link came', () => {
    using place = workplace()
    const target = join(place.folder, 'target')
    writeFileSync(target, '')
    symlinkSync(target, join(place.folder, 'audit.jsonl'))
    const open = () => openAuditLog(place.folder, { clock: systemClock, onFailure() {} })
    expect(open).toThrow(/ELOOP/)
    expect(statSync(target).size).toBe(0)
  })
})

describe('an import', () => {
  const head = async (place: Workplace) =>
    (await run(place, ['export', '--data', place.data])).stdout.split('\n')[0] ?? ''
  async function importing(place: Workplace, data: string, ...records: object[]) {
    const file = join(place.folder, 'lines')
    const lines = [await head(place), ...records.map((record) => JSON.stringify(record))]
    writeFileSync(file, [...lines, JSON.stringify({ postern: 'end', records: records.length }), ''].join('\n'))
    return run(place, ['import', file, '--data', data])
  }

  test('makes no revocation shorter', async () => {
    using place = workplace()
    await using server = await startServer(place)
    const token = await mintToken(sendTo(server), sampleKeys.ada, { policy: [{ ttl: '24h' }] })
    const { jti } = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    const revoke = (named: string) => run(place, ['token', 'revoke', named, '--data', place.data])
    await revoke(token)
    const kept = async () =>
      /"jti":"[^"]+","until":\d+/g.exec((await run(place, ['export', '--data', place.data])).stdout)?.[0]
    const before = await kept()
    expect(before).toContain(jti)
    const shorter = await importing(place, place.data, { kind: 'revocation', jti, until: 0 })
    expect(shorter).toMatchObject({ code: 0, stdout: 'imported 1 record\n' })
    expect(await kept()).toBe(before)
    // A later revocation forgets those that are long over.
    await revoke(await mintToken(sendTo(server), sampleKeys.ada))
    const headers = { authorization: `Bearer ${token}` }
    expect((await sendTo(server)('/connect/ada', { headers })).status).toBe(401)
    const until = 4_000_000_000
    await importing(place, place.data, { kind: 'revocation', jti, until }, { kind: 'revocation', jti, until: 1 })
    expect((await run(place, ['export', '--data', place.data])).stdout).toContain(`"jti":"${jti}","until":${until}}`)
  })

  const connection = (mcpUrl: string) => ({
    kind: 'connection',
    namespace: 'ada',
    connection: {
      connectionId: 'bad',
      name: 'x',
      mcpUrl,
      metadata: null,
      transport: 'http',
      createdAt: '2026-01-01T00:00:00Z',
      status: { state: 'connected' },
    },
  })
  const server = (deploymentUrl: string | null, option: string) => ({
    kind: 'server',
    server: {
      qualifiedName: 'ada/x',
      displayName: 'x',
      description: 'x',
      iconUrl: null,
      remote: true,
      deploymentUrl,
      connections: [{ type: 'http', deploymentUrl: option, configSchema: {} }],
      security: null,
      tools: null,
      resources: null,
      prompts: null,
    },
  })
  const fine = 'https://example.com/mcp'
  for (const [what, record, line] of [
    ['a connection', connection('http://['), 'connection.mcpUrl: must be an http or https URL'],
    [
      'a password',
      connection('http://a:b@example.com/'),
      'connection.mcpUrl: must be an http or https URL without a user or password; ',
    ],
    ['a server', server('http://[', fine), 'server.deploymentUrl: must be an http or https URL'],
    ['an option', server(null, 'http://['), 'server.connections[0].deploymentUrl: must be an http or https URL'],
  ] as const) {
    test(`refuses a URL that no connection could be made to, by its line: ${what}`, async () => {
      using place = copied()
      const ran = await importing(place, place.data, record)
      expect(ran).toMatchObject({ code: 1, stdout: '' })
      expect(ran.stderr).toStartWith(`${join(place.folder, 'lines')}:2: ${line}`)
    })
  }

  test('check refuses the same in fixtures', async () => {
    using place = workplace()
    const { qualifiedName, displayName, description, remote, connections } = server(null, 'http://[').server
    const document = {
      namespaces: [{ namespace: 'ada', userId: 'ada' }],
      connections: [{ namespace: 'ada', connectionId: 'bad', mcpUrl: 'http://a:b@example.com/' }],
      servers: [{ qualifiedName, displayName, description, remote, connections }],
    }
    writeFileSync(join(place.folder, 'a.json'), JSON.stringify(document))
    const { code, stderr } = await run(place, ['check', place.folder])
    expect(code).toBe(1)
    expect(stderr).toContain(
      'a.json: servers[0].connections[0].deploymentUrl (ada/x): must be an http or https URL without',
    )
    expect(stderr).toContain(
      'a.json: connections[0].mcpUrl (ada/bad): must be an http or https URL without a user or password; ',
    )
  })

  test('that fails leaves nothing behind where it would have made a folder', async () => {
    using place = copied()
    const deep = join(place.folder, 'a', 'b', 'data')
    const missing = { ...connection(fine), namespace: 'nowhere' }
    expect(await importing(place, deep, missing)).toMatchObject({ code: 1, stdout: '' })
    expect(existsSync(join(place.folder, 'a'))).toBe(false)
    const empty = join(place.folder, 'empty')
    mkdirSync(empty, { mode: 0o700 })
    expect((await importing(place, empty, missing)).code).toBe(1)
    expect(readdirSync(empty)).toEqual([])
    // One that is there stays.
    expect((await importing(place, place.data, missing)).code).toBe(1)
    expect((await run(place, ['verify', '--data', place.data])).code).toBe(0)
  })
})

test('a restore that fails leaves nothing behind, also where the backup is whole but for a record', async () => {
  using place = copied()
  const file = join(place.folder, 'backup')
  const nowhere = join(place.folder, 'nowhere')
  expect((await run(place, ['backup', join(nowhere, 'backup'), '--data', place.data])).stderr).toBe(
    `cannot write ${join(nowhere, 'backup')}: there is no folder ${nowhere}\n`,
  )
  expect((await run(place, ['backup', file, '--data', place.data])).stdout).toMatch(/\(\d+ kB\)/)
  const bytes = readFileSync(file)
  for (let at = bytes.indexOf('"displayName"'); at >= 0; at = bytes.indexOf('"displayName"', at + 1))
    bytes[at + 1] = 0x21
  const damaged = join(place.folder, 'damaged')
  writeFileSync(damaged, bytes)
  const cut = join(place.folder, 'cut')
  writeFileSync(cut, bytes.subarray(0, 20_000))
  const data = join(place.folder, 'a', 'restored')
  for (const bad of [damaged, cut]) {
    expect(await run(place, ['restore', bad, '--data', data])).toMatchObject({ code: 1, stdout: '' })
    expect(existsSync(join(place.folder, 'a'))).toBe(false)
  }
  mkdirSync(data, { recursive: true })
  expect(await run(place, ['restore', damaged, '--data', data])).toMatchObject({
    code: 1,
    stdout: '',
    stderr: expect.stringMatching(
      /cannot be read(?:(?!restore a backup)[^])*\n\S+damaged is damaged, and nothing was restored: use another backup\n$/,
    ),
  })
  expect(readdirSync(data)).toEqual([])
  expect(await run(place, ['restore', file, '--data', data])).toMatchObject({ code: 0, stderr: '' })
})

describe('no terminal acts on what a command prints', () => {
  const title = '\u001b]0;PWNED\u0007'
  /** As a terminal and as a reader are deceived: an escape, its one-character form, text turned around. */
  const evil = `a${title}\u009b2J\u202e\u200f\u061cb`
  const acted = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/

  test('names of files, unknown commands and flags, ids, folders', async () => {
    using place = copied()
    const folder = join(place.folder, 'fixtures')
    mkdirSync(folder)
    writeFileSync(join(folder, `${evil}.json`), '{"organizations":1}')
    // A line of its own would be taken for another problem.
    writeFileSync(join(folder, 'b\nc.json: fine.json'), '{"namespaces":1}')
    const data = ['--data', place.data]
    for (const args of [
      ['check', folder],
      [evil],
      ['serve', `--${evil}`],
      ['help', evil],
      ['keys', 'revoke', evil, ...data],
      ['signing-key', 'revoke', evil, ...data],
      ['serve', '--port', '0', '--fixtures', evil, ...data],
      ['serve', '--port', evil, ...data],
      ['import', evil, ...data],
      ['audit', 'verify', evil, ...data],
      ['keys', 'list', '--data', evil],
    ]) {
      const { code, stdout, stderr } = await run(place, args)
      expect({ args, code: code > 0, stdout }).toEqual({ args, code: true, stdout: '' })
      expect(stderr).toContain('\\u009b2J\\u202e\\u200f\\u061cb')
      expect(stderr).not.toMatch(acted)
    }
    expect((await run(place, ['check', folder])).stderr).toContain('b\\u000ac.json: fine.json: namespaces: ')
  })

  test('names in an export, which is the same to whoever reads it', async () => {
    using place = workplace()
    const server = await startServer(place)
    const name = 'x\u009b2J\u202eevil'
    const body = JSON.stringify({ name, server: 'northwind/calendar', mock: { enabled: true } })
    const headers = { authorization: `Bearer ${sampleKeys.ada}`, 'content-type': 'application/json' }
    expect((await sendTo(server)('/connect/ada/m', { method: 'PUT', headers, body })).status).toBe(201)
    const file = join(place.folder, 'lines')
    await run(place, ['export', file, '--data', place.data])
    const { stdout } = await run(place, ['export', '--data', place.data])
    await server.kill('SIGTERM')
    expect(stdout).toContain('"name":"x\\u009b2J\\u202eevil"')
    expect(stdout).not.toMatch(acted)
    expect(readFileSync(file, 'utf8')).toBe(stdout)
    const other = { ...place, data: join(place.folder, 'other') }
    expect((await run(place, ['import', file, '--data', other.data])).code).toBe(0)
    const { stdout: key } = await run(place, ['keys', 'create', '--user', 'ada', '--data', other.data])
    await using second = await startServer(other, [])
    const made = await sendTo(second)('/connect/ada/m', { headers: { authorization: `Bearer ${key.trim()}` } })
    expect(await made.json()).toMatchObject({ name })
  })
})
