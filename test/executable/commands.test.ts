/** What each command does when all is well. */

import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { writeHosts } from '../../src/cli/client/hosts.ts'
import { mintToken } from '../api/cases.ts'
import { get, run, sampleFolder, sendTo, startServer, workplace } from '../support/executable.ts'
import { freePort } from '../support/free-port.ts'
import { sampleKeys } from '../support/sample.ts'
import { sharedServer } from '../support/shared-server.ts'

describe('commands', () => {
  const shared = sharedServer()

  test('--version and --help', async () => {
    using place = workplace()
    expect(await run(place, ['--version'])).toEqual({ code: 0, stdout: '0.1.0\n', stderr: '' })
    for (const args of [
      [],
      ['keys'],
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

  test('health: of this machine by its port, of a URL, and of nothing that answers', async () => {
    const { place, server } = shared
    const { port } = new URL(server.url)
    const answers = { code: 0, stdout: `http://127.0.0.1:${port} answers\n`, stderr: '' }
    expect(await run(place, ['health'], { POSTERN_PORT: port, POSTERN_HOST: '0.0.0.0' })).toEqual(answers)
    expect(await run(place, ['health', `${server.url}/`])).toEqual(answers)
    expect(await run(place, ['health', `${server.url}/docs`])).toEqual({
      code: 1,
      stdout: '',
      stderr: `${server.url}/docs answers with status 404: check the URL, and the log of postern\n`,
    })
    using other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => new Response('<html>') })
    expect(await run(place, ['health', `http://127.0.0.1:${other.port}`])).toMatchObject({
      code: 1,
      stderr: `http://127.0.0.1:${other.port} does not answer as postern does: check the URL\n`,
    })
    const closed = `http://127.0.0.1:${await freePort()}`
    const { code, stderr } = await run(place, ['health', closed])
    expect({ code, stderr }).toEqual({
      code: 1,
      stderr: `cannot reach ${closed} (ECONNREFUSED): does \`postern serve\` run there?\n`,
    })
    expect((await run(place, ['health', 'here'])).code).toBe(2)
  })

  test('status: of a platform here with its store, and of none', async () => {
    const { place, server } = shared
    const { port } = new URL(server.url)
    const { code, stdout } = await run(place, ['status', '--data', place.data], { POSTERN_PORT: port })
    expect(code).toBe(0)
    expect(stdout).toMatch(
      /^address +http:\/\/127\.0\.0\.1:\d+\nanswers +yes\nbase URL +http:\/\/127\.0\.0\.1:\d+\nversion +0\.1\.0\nsign-in of clients +on\n/,
    )
    expect(stdout).toContain('durability')
    // The store in the folder may be another server's.
    using other = workplace()
    await run(other, ['keys', 'create', '--user', 'ada', '--data', other.data])
    const foreign = await run(other, ['status', '--data', other.data], { POSTERN_PORT: port })
    expect(foreign.stdout).not.toContain('durability')
    expect(foreign.stderr).toContain(
      `postern does not serve the store in ${other.data} here, which postern has not served yet`,
    )
    using empty = workplace()
    const asked = ['status', '--port', String(await freePort()), '--data', join(empty.folder, 'none')]
    // An empty setting is none.
    expect((await run(empty, asked, { POSTERN_STORE: '' })).stderr).toBe('')
    const none = await run(empty, asked)
    expect({ code: none.code, stderr: none.stderr }).toEqual({ code: 1, stderr: '' })
    expect(none.stdout).toMatch(
      /^address .*\nanswers +no: cannot reach .* \(ECONNREFUSED\): does `postern serve` run there\?\n$/,
    )
    // Somebody who is logged in elsewhere may have meant that platform.
    const environment = { XDG_CONFIG_HOME: join(empty.folder, 'config') }
    writeHosts(environment, { current: server.url, keys: {} })
    const elsewhere = await run(empty, asked, environment)
    expect(elsewhere.stdout).toEndWith(`logged in to  ${server.url}: see \`postern status ${server.url}\`\n`)
  })

  test('docs: the list of pages, a page, and none', async () => {
    const { place } = shared
    expect((await run(place, ['docs'])).stdout).toMatch(/^start +Install and first minute\nconcepts +Concepts\n/)
    for (const page of ['policy', 'policy.md'])
      expect((await run(place, ['docs', page])).stdout).toStartWith('# Policy\n')
    expect(await run(place, ['docs', 'polcy'])).toMatchObject({
      code: 1,
      stderr: 'there is no page polcy; did you mean "policy"?\n',
    })
  })

  test('serve --check: the settings and the fixtures, and nothing is served or made', async () => {
    using place = workplace()
    const checked = (...more: string[]) => run(place, ['serve', '--check', '--data', place.data, ...more])
    expect(await checked('--fixtures', sampleFolder)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/the settings can be read; the data folder and the addresses were not tried\n$/),
    })
    expect(await checked('--port', '99999')).toMatchObject({ code: 2, stdout: '' })
    const open = await checked('--fixtures', sampleFolder, '--host', '0.0.0.0')
    expect(open).toMatchObject({ code: 1, stderr: expect.stringContaining('publicly known keys') })
    expect(await run(place, ['serve', '--check'], { POSTERN_BASEURL: 'https://mcp.example.com' })).toMatchObject({
      code: 2,
      stderr: 'the environment variable POSTERN_BASEURL is not a setting; did you mean "POSTERN_BASE_URL"?\n',
    })
    const wrong = join(place.folder, 'wrong')
    mkdirSync(wrong)
    writeFileSync(join(wrong, 'a.json'), '{"namespaces":[{"namespace":1}]}')
    expect((await checked('--fixtures', wrong)).code).toBe(1)
    expect(existsSync(place.data)).toBe(false)
  })

  test('keys: created and revoked while the server runs, in force at once', async () => {
    const { place, server } = shared
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

  test.each([
    ['check', 'fixtures check'],
    ['verify', 'store verify'],
    ['login-link', 'signin-link'],
  ])('%s is another name of %s, in help too', async (name, words) => {
    using place = workplace()
    const help = (await run(place, [...words.split(' '), '--help'])).stdout
    expect(help).toStartWith(`Usage: postern ${words} `)
    expect((await run(place, ['help', name])).stdout).toBe(help)
    expect((await run(place, [name, '--help'])).stdout).toBe(help)
    const { code, stderr } = await run(place, [name, '--wrong'])
    expect({ code, stderr }).toMatchObject({ code: 2, stderr: expect.stringContaining(`postern ${words} --help`) })
    expect((await run(place, ['--help'])).stdout).not.toMatch(new RegExp(`^ +${name}\\b`, 'm'))
  })

  test('check', async () => {
    using place = workplace()
    const ran = await run(place, ['check', sampleFolder])
    expect(ran).toMatchObject({ code: 0, stderr: '' })
    expect(ran.stdout).toContain('48 connections')
  })

  test('token explain', async () => {
    const { place, server } = shared
    const policy = [
      { namespaces: 'northwind', rpcReqMatch: { 'params.name': '^issues\\.' } },
      { operations: 'execute', rpcReqMatch: { method: 'call' } },
    ]
    const token = await mintToken(sendTo(server), sampleKeys.ada, { policy })
    const explain = (...args: string[]) => run(place, ['token', 'explain', token, '--data', place.data, ...args])
    const [head = '', claims = '', signature = ''] = token.split('.')
    const { policy: _, ...rest } = JSON.parse(Buffer.from(claims, 'base64url').toString()) as { policy: unknown }
    const forged = `${head}.${Buffer.from(JSON.stringify({ ...rest, policy: [] })).toString('base64url')}.${signature}`
    const about = await run(place, ['token', 'explain', forged, '--data', place.data, '--namespace', 'northwind'])
    expect(about).toMatchObject({ code: 1, stdout: expect.stringContaining('was not signed here, 401.') })
    const plain = await explain()
    expect(plain.stdout).toContain('acts for ada')
    expect(plain.stdout).toContain('signed by a key in')
    expect(plain.stdout).toContain('params.name contains a match of ^issues\\.\n')
    expect(plain.stdout).toContain('method contains a match of call (anywhere in the value: ')
    expect((await explain('--namespace', 'northwind')).stdout).toContain('Refused by policy[1].operations: 403.')
    expect((await explain('--namespace', 'lumen')).stdout).toContain('Refused by policy[0].namespaces: 404')
    writeFileSync(
      join(place.folder, 'call.json'),
      '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"weather"}}',
    )
    for (const rpc of ['call.json', readFileSync(join(place.folder, 'call.json'), 'utf8')]) {
      const call = await explain('--namespace', 'northwind', '--message', rpc)
      expect(call.stdout).toContain('Refused by policy[0].rpcReqMatch.params.name: 403.')
    }
    const without = await explain('--namespace', 'northwind', '--operation', 'execute')
    expect(without.stdout).toContain('depends  policy[0].rpcReqMatch.params.name')
    expect((await explain('--resource', 'tools', '--namespace', 'x')).code).toBe(2)
    const call = [
      '--namespace',
      'northwind',
      '--rpc',
      '{"jsonrpc":"2.0","id":1,"method":"call","params":{"name":"issues.list"}}',
    ]
    expect((await explain(...call)).stdout).toContain('Allowed: nothing refuses it.')
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
      jti: 'tok\n  signed by a key in ./postern-data\u001b]0;x\u0007',
      iat: 0,
      exp: 1,
      policy: [{ metadata: { a: '\u202e' } }],
    }
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const ran = await run(place, ['token', 'explain', `${part({})}.${part(claims)}.x`])
    // It has expired.
    expect(ran.code).toBe(1)
    expect(ran.stdout).toContain('\\u001b')
    expect(ran.stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202e]/)
    expect(ran.stdout).not.toMatch(/^ {2}signature is of/m)
  })
})
