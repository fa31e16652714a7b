/**
 * A company without a file or a curl line: organization, namespaces, servers, members, keys, connections and tokens by
 * commands alone (contract, 1.6 and 1.7), found again, and who called what.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { mkdirSync, readFileSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { firstHash, formatLine } from '../../src/ops/audit-chain.ts'
import { executable, run, type Server, startServer, type Workplace, workplace } from '../support/executable.ts'

import { fixturesIn } from '../support/workplace.ts'

let place: Workplace
let server: Server
let upstream: ReturnType<typeof Bun.serve>
const operatorKey = 'operator-key-of-at-least-32-characters'

beforeAll(async () => {
  place = workplace()
  upstream = Bun.serve({
    port: 0,
    async fetch(request) {
      if (request.method !== 'POST') return new Response(null, { status: 405 })
      const { id, method, params } = (await request.json()) as {
        id?: number
        method: string
        params?: { name?: string }
      }
      if (id === undefined) return new Response(null, { status: 202 })
      const results: Record<string, object> = {
        initialize: {
          protocolVersion: '2025-06-18',
          capabilities: { tools: {} },
          serverInfo: { name: 'x', version: '1' },
        },
        'tools/list': {
          tools: ['get_forecast', 'send_alert'].map((name) => ({ name, inputSchema: { type: 'object' } })),
        },
        'tools/call': {
          content: [{ type: 'text', text: JSON.stringify(params) }],
          isError: params?.name === 'send_alert',
        },
      }
      return Response.json({ jsonrpc: '2.0', id, result: results[method] ?? {} })
    },
  })
  const allow = ['--allow-upstream', '127.0.0.1']
  server = await startServer(place, allow, { env: { POSTERN_API_KEY: operatorKey } })
})
afterAll(async () => {
  await server.kill('SIGTERM')
  upstream.stop(true)
  place[Symbol.dispose]()
})

/** Runs a command as somebody who keeps keys in a folder of their own. */
async function as(who: string, args: readonly string[], more: { stdin?: string; env?: Record<string, string> } = {}) {
  const home = join(place.folder, `home-${who}`)
  mkdirSync(home, { recursive: true })
  return run(place, args, { XDG_CONFIG_HOME: home, ...more.env }, [], more.stdin)
}
async function works(who: string, line: string, more: { stdin?: string; env?: Record<string, string> } = {}) {
  const ran = await as(who, line.split(' '), more)
  expect({ line, code: ran.code, stderr: ran.stderr }).toMatchObject({ line, code: 0 })
  return ran.stdout
}

/** Follows calls of get_forecast, calls it once the first are printed, and counts the lines of that call. */
async function followed(who: string, args: readonly string[]): Promise<number> {
  const child = Bun.spawn([executable, ...args], {
    env: { XDG_CONFIG_HOME: join(place.folder, `home-${who}`) },
    stdout: 'pipe',
  })
  let text = ''
  let before = 0
  for await (const chunk of child.stdout) {
    text += Buffer.from(chunk).toString()
    const lines = text.split('\n').length - 1
    if (before > 0 && lines > before) break
    if (before > 0) continue
    before = lines
    await works(who, 'tool call up.get_forecast -n others')
  }
  child.kill()
  await child.exited
  return text.split('\n').length - 1 - before
}

test('from an empty folder to who called what', async () => {
  expect(await works('op', `login ${server.url}`, { stdin: `${operatorKey}\n` })).toBe(
    `logged in to ${server.url} as operator\n`,
  )
  const hosts = join(place.folder, 'home-op/postern/hosts.json')
  expect([statSync(hosts).mode & 0o777, readFileSync(hosts, 'utf8').includes(operatorKey)]).toEqual([0o600, true])

  // People, and where they work.
  const adaKey = (await run(place, ['keys', 'create', '--user', 'ada', '--data', place.data])).stdout
  await works('ada', `login ${server.url}`, { stdin: adaKey })
  expect(await works('op', `login ${server.url}`, { stdin: adaKey })).toBe(
    `logged in to ${server.url} as ada, in place of another key\n`,
  )
  await works('op', `login ${server.url}`, { stdin: operatorKey })
  expect(await works('op', 'org add acme --owner ada --name Acme')).toBe('the organization acme belongs to ada\n')
  expect((await as('op', ['org', 'add', 'acme'])).stderr).toBe(
    'the organization acme already exists, and without --owner you would become its owner too: name the owner with --owner\n',
  )
  await works('ada', 'org member add acme grace --role admin')
  expect(await works('ada', 'org list')).toBe('acme\towner\n')
  await works('ada', 'namespace add acme-prod --organization acme')
  await works('ada', 'namespace add acme-test --organization acme')
  expect(await works('ada', 'namespace list')).toBe('acme-prod\nacme-test\n')

  // Servers, one by URL, found again.
  const url = `http://127.0.0.1:${upstream.port}/mcp`
  expect(await works('ada', `server add acme-prod/weather ${url}`)).toBe('acme-prod/weather is registered\n')
  const file = join(place.folder, 'server.json')
  for (const name of ['crm', 'mail', 'maps', 'files']) {
    writeFileSync(file, JSON.stringify({ displayName: name.toUpperCase(), description: `Our ${name}` }))
    await works('ada', `server add acme-prod/${name} ${file}`)
  }
  expect(await works('ada', 'server search forecast')).toBe('acme-prod/weather\tweather\thttp\t\n')
  expect((await works('ada', 'server search -n acme-prod')).split('\n')).toHaveLength(6)
  expect(JSON.parse(await works('ada', 'server search --json')).servers).toHaveLength(5)
  expect(JSON.parse(await works('ada', 'server get acme-prod/weather')).tools).toHaveLength(2)
  expect(await works('ada', 'server introspect acme-prod/weather')).toBe(
    'acme-prod/weather has 2 tools, 0 resources, 0 prompts\n',
  )

  // Connections and scoped tokens.
  const inProd = { env: { POSTERN_NAMESPACE: 'acme-prod' } }
  expect(await works('ada', 'connection add weather acme-prod/weather --metadata team=ops', inProd)).toBe(
    'weather is connected\n',
  )
  await works('ada', 'connection add mock acme-prod/weather --mock', inProd)
  expect(await works('ada', 'connection list -n acme-prod')).toBe(
    `mock\tok\tMocked\tmock\t${url}\nweather\tok\tConnected\tweather\t${url}\n`,
  )
  const status = await works('ada', `status ${server.url}`)
  expect(status).toMatch(/^connections +2: 2 ok$/m)
  expect(status).toMatch(/^calls in the last hour +0 ok, 0 failed, 0 refused$/m)
  expect(JSON.parse(await works('ada', 'connection get weather', inProd)).metadata).toEqual({ team: 'ops' })
  // What no command does is asked for by its path.
  const title = async (...flags: string[]) =>
    JSON.parse(await works('ada', ['api', ...flags, '/namespaces/acme-prod'].join(' '))).title
  expect(await title()).toBeNull()
  expect(await title('--method=PATCH', '--body={"title":"Prod"}')).toBe('Prod')
  expect(await title()).toBe('Prod')
  expect(JSON.parse(await works('ada', 'api --json --body={"policy":[{"ttl":"1h"}]} /tokens/lint'))).toHaveProperty(
    'findings',
  )
  for (const [args, code, why] of [
    [['overview'], 2, 'must begin with /'],
    [['--body={', '/tokens'], 2, '--body'],
    [['/nowhere'], 1, 'not found'],
  ] as const) {
    const failed = await as('ada', ['api', ...args])
    expect([failed.code, failed.stdout, failed.stderr]).toEqual([code, '', expect.stringMatching(new RegExp(why, 'i'))])
  }
  // A write would leave the server and the mock as they are.
  for (const [id, target, why] of [
    ['weather', ['acme-prod/weather', '--mock'], 'weather exists, and leads to'],
    ['mock', ['acme-prod/weather'], 'mock exists, and is a mock of'],
    ['weather', ['acme-prod/nosuch'], 'there is no server acme-prod/nosuch'],
  ] as const) {
    const refused = await as('ada', ['connection', 'add', id, ...target], inProd)
    expect([refused.code, refused.stdout, refused.stderr]).toEqual([1, '', expect.stringContaining(why)])
  }
  expect(await works('ada', 'connection add weather acme-prod/weather --metadata team=ops', inProd)).toBe(
    'weather is connected\n',
  )
  await works('ada', 'connection rm mock', inProd)
  const key = (await works('ada', 'org key create acme ci')).trim()
  expect(await works('ada', 'org key list acme')).toMatch(/^key_\S+\tci\t/)
  const { stdout: keys } = await run(place, ['keys', 'list', '--data', place.data])
  expect(keys).toMatch(/^key_\S+ +organization:acme +organization +/m)
  expect(keys).toMatch(/^key_\S+ +ada +user +/m)
  const token = (
    await works('ci', 'token mint --operation execute --rpc params.name=^get_ --ttl 10m', {
      env: { POSTERN_URL: server.url, POSTERN_TOKEN: key },
    })
  ).trim()
  const holder = { env: { POSTERN_URL: server.url, POSTERN_TOKEN: token, POSTERN_NAMESPACE: 'acme-prod' } }

  // Work.
  expect(await works('ada', 'tool list', inProd)).toBe('weather.get_forecast\t\nweather.send_alert\t\n')
  expect(await works('ada', 'tool search alerts send', inProd)).toBe('weather.send_alert\t\n')
  expect(JSON.parse(await works('x', 'tool call weather.get_forecast city=Paris days=3 at={"a":1}', holder))).toEqual({
    name: 'get_forecast',
    arguments: { city: 'Paris', days: 3, at: { a: 1 } },
  })
  const refused = await as('x', ['tool', 'call', 'weather.send_alert', '--json'], holder)
  expect(refused).toMatchObject({ code: 1, stdout: '' })
  expect(JSON.parse(refused.stderr)).toEqual({
    error: 'forbidden',
    message: 'The token does not allow this: policy[0].rpcReqMatch.params.name',
    status: 403,
  })
  expect(await as('ada', ['tool', 'call', 'weather.send_alert', '{"text":"x"}'], inProd)).toMatchObject({ code: 1 })

  // Who called what.
  const calls = async (...flags: string[]) => {
    const ran = await run(place, ['calls', '--data', place.data, '--json', ...flags])
    return ran.stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
      .map(({ userId, tool, outcome }) => `${userId} ${tool} ${outcome}`)
  }
  expect(await calls('--since', '1h')).toEqual([
    'organization:acme get_forecast ok',
    'organization:acme send_alert refused',
    'ada send_alert tool_error',
  ])
  expect(await calls('--user', 'ada')).toEqual(['ada send_alert tool_error'])
  expect(await calls('--outcome', 'ok', '--connection', 'acme-prod/weather')).toHaveLength(1)
  writeFileSync(file, '{"days":3,"at":{"a":1},"city":"Paris"}')
  expect(await calls('--args', file)).toEqual(['organization:acme get_forecast ok'])
  const shown = await run(place, ['calls', '--data', place.data, '--tool', 'get_forecast'])
  expect(shown.stdout).toMatch(/organization:acme +acme-prod\/weather +get_forecast +ok +[\d.]+ ms\n$/)
  const verified = await run(place, ['audit', 'verify', join(place.data, 'calls.jsonl')])
  expect(verified.stdout).toStartWith('3 entries, none changed')

  // And away with it.
  await works('ada', 'org member rm acme grace')
  const [id = ''] = (await works('ada', 'org key list acme')).split('\t')
  await works('ada', `org key revoke acme ${id}`)
  expect((await as('x', ['whoami'], holder)).stderr).toContain('set POSTERN_TOKEN')
  expect(await as('ada', ['namespace', 'rm', 'acme-test'])).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^Delete the [^?]*\? Nothing was deleted: confirm it with --yes\n$/),
  })
  await works('ada', 'namespace rm acme-test --yes')
  expect((await as('ada', ['namespace', 'rm', 'acme-prod', '--yes'])).stderr).toContain('has servers')
  for (const name of ['weather', 'crm', 'mail', 'maps', 'files']) await works('ada', `server rm acme-prod/${name}`)
  await works('ada', 'namespace rm acme-prod --yes')
  expect(await works('ada', 'org get acme')).toContain('ada\towner')
  await works('ada', 'org rm acme --yes')
  expect(await works('ada', 'logout')).toContain(`logged out of ${server.url}`)
  expect(await as('ada', ['whoami'])).toMatchObject({ code: 1, stderr: expect.stringContaining('postern login URL') })
})

test('views, pins and the registry, by commands', async () => {
  await works('op', `login ${server.url}`, { stdin: operatorKey })
  await works('op', 'namespace add shop')
  const inShop = { env: { POSTERN_NAMESPACE: 'shop' } }
  await works('op', `connection add one http://127.0.0.1:${upstream.port}/mcp`, inShop)

  const file = join(place.folder, 'view.json')
  writeFileSync(file, JSON.stringify({ policy: [{ rpcReqMatch: { 'params.name': '^get_' } }], title: 'Reading' }))
  const url = `${server.url}/connect/shop/mcp/reading`
  expect(await works('op', `view put reading ${file}`, inShop)).toBe(`${url}\n`)
  const mistaken = join(place.folder, 'mistaken.json')
  writeFileSync(mistaken, '{"policy":[{"rpcReqMatch":{"name":"^get"}}]}')
  expect((await as('op', ['view', 'put', 'wrong', mistaken], inShop)).stderr).toContain('handshake-refused')
  await works('op', 'view rm wrong --yes', inShop)
  expect(await works('op', 'view list', inShop)).toBe(`reading\tReading\t${url}\n`)
  expect(JSON.parse(await works('op', 'view get reading', inShop)).title).toBe('Reading')

  expect(await works('op', 'namespace set shop --pins block --registry public --title Shop')).toBe(
    'the namespace shop is changed\n',
  )
  const unchanged = await as('op', ['namespace', 'set', 'shop'], inShop)
  expect([unchanged.code, unchanged.stderr]).toEqual([2, expect.stringContaining('nothing to change: give --pins')])
  await works('op', 'tool list', inShop)
  const pins = await works('op', 'connection pins one', inShop)
  expect(pins).toMatch(/^get_forecast\taccepted\t[0-9a-f]{64}\t\nsend_alert\taccepted\t[0-9a-f]{64}\t\n$/)
  const [, , hash] = pins.split('\n')[0]?.split('\t') ?? []
  expect(await works('op', `connection accept one get_forecast=${hash}`, inShop)).toBe(
    'the definitions of one are accepted\n',
  )
  const wrong = await as('op', ['connection', 'accept', 'one', `send_alert=${hash}`], inShop)
  expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('read .pins again')])
  const none = await as('op', ['connection', 'accept', 'one'], inShop)
  expect([none.code, none.stderr]).toEqual([2, expect.stringContaining('nothing to accept: name TOOL=HASH')])
  for (const [more, why] of [
    [[], '`postern connection rm one -n shop`'],
    [['--mock'], '--mock: needs NAMESPACE/NAME of a registered server'],
  ] as const) {
    const other = await as('op', ['connection', 'add', 'one', 'http://127.0.0.1:1/mcp', ...more], inShop)
    expect(other.stderr).toContain(why)
  }
  const config = await works('op', 'client-config shop --connection one --for cursor')
  expect(JSON.parse(config)).toEqual({ mcpServers: { one: { url: `${server.url}/connect/shop/one/mcp` } } })

  const host = new URL(server.url).hostname === 'localhost' ? 'localhost' : 'local'
  expect(await works('op', 'registry check shop')).toBe(
    [
      'ok shop: the registry is open to anybody',
      `ok ${host}/shop: ${server.url}/connect/shop/mcp`,
      `ok ${host}/shop.reading: ${url}`,
      '',
    ].join('\n'),
  )
  await works('op', 'namespace set shop --registry members')
  const closed = await as('op', ['registry', 'check', 'shop'])
  expect([closed.code, closed.stdout.split(':')[0]]).toEqual([1, 'fail shop'])
  const link = (await works('op', 'registry link --name editor', inShop)).trim()
  expect((await fetch(`${link}/v0.1/servers`)).status).toBe(200)
  expect((await as('op', ['registry', 'check', 'shop'])).code).toBe(0)
  const [id] = (await works('op', 'registry links', inShop)).split('\t')
  await works('op', `registry unlink ${id}`, inShop)
  expect((await fetch(`${link}/v0.1/servers`)).status).toBe(404)
  await works('op', 'view rm reading --yes', inShop)
  expect(await works('op', 'view list', inShop)).toBe('')
  await works('op', 'namespace rm shop --yes')
})

test('testing a connection contacts its server, also where nobody has before', async () => {
  using own = workplace()
  const key = 'a-key-of-ada-who-tests-connections'
  const fixtures = fixturesIn(own, {
    namespaces: [{ namespace: 'lab', userId: 'ada' }],
    apiKeys: [{ userId: 'ada', key }],
    connections: [
      { namespace: 'lab', connectionId: 'up', mcpUrl: `http://127.0.0.1:${upstream.port}/mcp` },
      { namespace: 'lab', connectionId: 'gone', mcpUrl: 'http://127.0.0.1:1/mcp' },
    ],
  })
  await using lab = await startServer(own, ['--fixtures', fixtures, '--allow-upstream', '127.0.0.1'])
  const env = { POSTERN_URL: lab.url, POSTERN_TOKEN: key, POSTERN_NAMESPACE: 'lab' }
  const up = await run(own, ['connection', 'test', 'up'], env)
  expect([up.stdout, up.code]).toEqual(['up answers, with 2 tools\n', 0])
  // Adding one again that could not be reached contacts its server again.
  let isAway = true
  const late = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: (request) => (isAway ? new Response(null, { status: 500 }) : upstream.fetch(request)),
  })
  const url = `http://127.0.0.1:${late.port}/mcp`
  const first = await run(own, ['connection', 'add', 'late', url], env)
  expect(first.stdout).toContain('late is saved, but cannot be used yet: ')
  expect(first.stdout).toContain('; `postern connection test late -n lab` tries again')
  isAway = false
  expect((await run(own, ['connection', 'add', 'late', url], env)).stdout).toBe('late is connected\n')
  await late.stop(true)
  // A rule on calls that leaves the rest of a token's rights as they are is met with a warning.
  const mint = ['token', 'mint', '--rpc', 'params.name=^get_']
  expect((await run(own, mint, env)).stderr).toContain('without --operation execute')
  expect((await run(own, [...mint, '--operation', 'execute'], env)).stderr).toBe('')
  const gone = await run(own, ['connection', 'test', 'gone'], env)
  expect([gone.stderr, gone.code]).toEqual([expect.stringContaining('gone: '), 1])
})

test('what is done on the server’s machine is done over HTTP by who is logged in', async () => {
  await works('boss', `login ${server.url}`, { stdin: operatorKey })
  const bobKey = await works('boss', 'keys create --user bob --name first')
  expect(bobKey).toMatch(/^pst_\S+\n$/)
  await works('bob', `login ${server.url}`, { stdin: bobKey })
  // The keys that sign tokens are the operators'.
  expect(await works('boss', 'signing-key list')).toMatch(/^\S+\tactive\t\S+\t$/m)
  expect((await as('bob', ['signing-key', 'list'])).code).toBe(1)
  expect(await works('boss', 'signing-key rotate')).toMatch(/^\S+\tretired\t\S+\taccepted until \S+$/m)
  // An operator reaches everybody's keys, others their own.
  expect(await works('boss', 'keys list')).toMatch(/^key_\S+\tbob\tuser\t\S+\tactive\tfirst$/m)
  expect((await works('bob', 'keys list')).trim().split('\n')).toHaveLength(1)
  const own = JSON.parse(await works('bob', 'keys create --name laptop --json')) as { id: string; key: string }
  expect((await as('bob', ['keys', 'create', '--user', 'eve'])).stderr).toContain('Only operators')
  expect(await works('bob', `keys revoke ${own.id}`)).toBe(`${own.id} is revoked, and every token minted with it\n`)
  expect((await as('bob', ['keys', 'revoke', own.id])).stderr).toContain('see `postern keys list`')
  const itself = await as('bob', ['keys', 'revoke', 'pst_secret'])
  expect([itself.code, itself.stderr]).toEqual([2, 'that is a key: name its id, which `postern keys list` shows\n'])

  // Tokens and grants.
  const minted = (await works('bob', 'token mint')).trim()
  // A mistake is named as it was given.
  for (const [flags, words] of [
    [['--ttl', 'ten'], '--ttl: must'],
    [['--rpc', 'params.name=('], '--rpc ["params.name"]: '],
  ] as const)
    expect((await as('bob', ['token', 'mint', ...flags])).stderr).toStartWith(words)
  // An empty policy is no policy by mistake.
  const empty = join(place.folder, 'empty.json')
  writeFileSync(empty, '[]')
  const refused = await as('bob', ['token', 'mint', '--policy', empty])
  expect([refused.code, refused.stdout, refused.stderr]).toEqual([1, '', expect.stringContaining('is an empty list')])
  const { jti } = JSON.parse(Buffer.from(minted.split('.')[1] ?? '', 'base64url').toString())
  expect(await works('bob', 'token revoke -', { stdin: minted })).toContain(`${jti} is revoked`)
  expect((await as('x', ['whoami'], { env: { POSTERN_URL: server.url, POSTERN_TOKEN: minted } })).code).toBe(1)
  const idOf = (token: string) => JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()).jti
  const bosss = idOf((await works('boss', 'token mint')).trim())
  expect((await as('bob', ['token', 'revoke', bosss])).stderr).toContain('tokenId: this token is not yours')
  for (const id of [bosss, idOf((await works('bob', 'token mint')).trim())])
    expect(await works(id === bosss ? 'boss' : 'bob', `token revoke ${id}`)).toContain('is revoked')
  for (const who of ['bob', 'boss']) expect(await works(who, 'grants list')).toBe('')
  expect((await as('bob', ['grants', 'revoke', 'none'])).stderr).toContain('there is no grant none')

  // Servers of another registry, and a connection that is tried.
  const documents = ['a', 'b'].map((name) => ({ name: `com.example/${name}`, description: 'One', version: '1.0.0' }))
  const file = join(place.folder, 'registry.json')
  writeFileSync(file, JSON.stringify({ servers: [...documents.map((server) => ({ server })), { server: {} }] }))
  const taken = await as('boss', ['server', 'import', file, '-n', 'others'])
  expect(taken).toMatchObject({ code: 0, stderr: expect.stringContaining('left out: ') })
  expect(taken.stdout).toBe(
    'imported 2 servers: others/com.example.a, others/com.example.b\ncreated 1 namespace, owned by you: others\n',
  )
  expect((await as('bob', ['server', 'import', file])).stderr).toContain('Only operators')
  await works('boss', `connection add up http://127.0.0.1:${upstream.port}/mcp -n others`)
  expect(await works('boss', 'connection test up -n others')).toBe('up answers, with 2 tools\n')
  expect((await as('boss', ['connection', 'test', 'none', '-n', 'others'])).code).toBe(1)

  // What happened.
  await works('boss', 'tool call up.get_forecast -n others')
  expect(await works('boss', 'calls --tool get_forecast -n others')).toMatch(
    /^\S+\toperator\tothers\/up\tget_forecast\tok\t[\d.]+ ms\n$/,
  )
  expect(await works('bob', 'calls --since 1h')).toBe('')
  expect(JSON.parse(await works('boss', 'calls -n others --json')).connectionId).toBe('up')
  expect((await as('boss', ['calls', '--args', '{}'])).stderr).toContain('on the server’s machine')
  // It would wait for a log that nobody writes.
  expect((await as('boss', ['calls', '--follow', '--data', join(place.folder, 'nowhere')])).code).toBe(1)
  expect(await followed('boss', ['calls', '--follow', '--tool', 'get_forecast', '--json'])).toBe(1)
  expect(await works('boss', 'audit list --event token.revoked')).toMatch(new RegExp(`"revoked":"${jti}"`))
  expect(await works('boss', 'audit verify')).toContain('none changed')
  expect((await as('bob', ['audit', 'verify'])).stderr).toContain('Only operators')

  for (const name of ['a', 'b']) await works('boss', `server rm others/com.example.${name}`)
  const log = join(place.data, 'audit.jsonl')
  renameSync(log, `${log}.1`)
  await works('boss', 'namespace rm others --yes')
  expect((await as('boss', ['audit', 'verify'])).stderr).toMatch(
    /^audit\.jsonl begins with entry \d+: check the entries/,
  )

  // A login comes before a default folder that is there, and a refusal says how to work on that folder.
  symlinkSync(place.data, join(place.folder, 'postern-data'))
  expect((await as('nobody', ['keys', 'list'])).stdout).toContain('operator')
  expect((await as('bob', ['keys', 'list'])).stdout).not.toContain('operator')
  expect((await as('bob', ['server', 'import', file])).stderr).toEndWith(
    'Only operators may import servers; to work on the data folder of this machine, add --data ./postern-data\n',
  )
  const away = { env: { POSTERN_URL: 'http://127.0.0.1:1', POSTERN_TOKEN: 'x' } }
  expect((await as('bob', ['calls'], away)).stderr).toContain(
    '; to work on the data folder of this machine, add --data',
  )
  rmSync(join(place.folder, 'postern-data'))
  expect(await works('bob', `keys list --data ${place.data}`)).toContain('operator')
  expect((await as('bob', ['keys', 'list', '--data', place.data, '--json'])).stderr).toContain(
    '--json: works only over HTTP',
  )
  expect((await as('nobody', ['keys', 'create', '--data', place.data])).stderr).toContain('--user: name the user')
})

test('a proxy of the environment gets no request to this machine, and no key', async () => {
  const asked: string[] = []
  const proxy = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch(request) {
      asked.push(request.url)
      return new Response(null, { status: 502 })
    },
  })
  const env = { POSTERN_URL: server.url, POSTERN_TOKEN: operatorKey, http_proxy: `http://127.0.0.1:${proxy.port}` }
  expect((await as('nobody', ['whoami'], { env })).code).toBe(0)
  expect((await as('nobody', ['whoami'], { env: { ...env, NO_PROXY: 'example.com' } })).code).toBe(0)
  expect(asked).toEqual([])
  // Others it gets.
  await as('nobody', ['whoami'], { env: { ...env, POSTERN_URL: 'http://postern.example.com' } })
  expect(asked).toEqual(['http://postern.example.com/me'])
  await proxy.stop(true)
})

describe('says what to do', () => {
  test('where nobody has logged in, the key is wrong, or the platform is not there', async () => {
    expect((await as('nobody', ['namespace', 'list'])).stderr).toBe(
      'no base URL is set: name one with --url, run `postern login URL`, or set POSTERN_URL and POSTERN_TOKEN\n',
    )
    const wrong = await as('nobody', ['login', server.url], { stdin: 'nonsense' })
    expect(wrong).toMatchObject({ code: 1, stderr: expect.stringContaining('with a valid key') })
    const token = { POSTERN_URL: server.url, POSTERN_TOKEN: 'nonsense' }
    expect((await as('nobody', ['whoami'], { env: token })).stderr).toContain('set POSTERN_TOKEN to a valid one')
    const env = { POSTERN_URL: 'http://127.0.0.1:1', POSTERN_TOKEN: 'x' }
    expect((await as('nobody', ['whoami'], { env })).stderr).toStartWith('cannot reach http://127.0.0.1:1')
    expect(await as('nobody', ['login', 'nothing'])).toMatchObject({ code: 2 })
  })

  test('in JSON where JSON was asked for, whoever found the error', async () => {
    const env = { POSTERN_URL: server.url, POSTERN_TOKEN: operatorKey }
    for (const [line, error, given] of [
      ['whoami --json', { error: 'error', status: 0 }, {}],
      ['namespace rm x --json', { error: 'usage', status: 0 }, env],
      [
        'server add a/b nofile.json --json',
        { error: 'error', message: 'nofile.json: is neither a URL (http:// or https://) nor a file', status: 0 },
        env,
      ],
      ['server get a/b --json', { status: 404 }, env],
      ['connection add a http://x --header-file none --json -n x', { message: 'none: no such file' }, env],
    ] as const) {
      const { stderr } = await as('nobody', line.split(' '), { env: given })
      expect({ line, ...JSON.parse(stderr) }).toMatchObject({ line, message: expect.any(String), ...error })
    }
    expect((await as('op', ['calls', '--outcome', 'bogus', '--data', place.data])).code).toBe(2)
    expect((await as('op', ['org', 'member', 'add', 'a', 'b', '--role', 'boss'])).code).toBe(2)
  })

  test('where several namespaces are there', async () => {
    const env = { POSTERN_URL: server.url, POSTERN_TOKEN: operatorKey }
    for (const name of ['one-of', 'two-of']) await works('op2', `namespace add ${name}`, { env })
    expect((await as('op2', ['connection', 'list'], { env })).stderr).toBe(
      'you have access to several namespaces (one-of, two-of): choose one with -n\n',
    )
    expect((await as('op2', ['tool', 'call', 'nodot', '-n', 'one-of'], { env })).code).toBe(2)
  })
})

test('a connection may have dots in its id, and arguments reach the server as they were typed', async () => {
  const env = { POSTERN_URL: server.url, POSTERN_TOKEN: operatorKey, POSTERN_NAMESPACE: 'dotted' }
  await works('op3', 'namespace add dotted', { env })
  const headers = '\nX-One: 1\n\nX-Two 2\n'
  const add = ['connection', 'add', 'eu', `http://127.0.0.1:${upstream.port}/mcp`, '--header-file', '-']
  expect((await as('op3', add, { env, stdin: headers })).stderr).toBe('stdin:4: must be "Name: value"\n')
  for (const id of ['eu', 'eu.prod'])
    await works('op3', `connection add ${id} http://127.0.0.1:${upstream.port}/mcp`, { env })
  expect(await works('op3', 'tool list eu.prod', { env })).toContain('eu.prod.get_forecast\t')
  const called = await works('op3', 'tool call eu.prod.get_forecast id=12345678901234567890 n=1.5 on=true', { env })
  expect(JSON.parse(called)).toEqual({
    name: 'get_forecast',
    arguments: { id: '12345678901234567890', n: 1.5, on: true },
  })
})

test('a token that may call tools of one namespace needs no more to call them', async () => {
  const env = { POSTERN_URL: server.url, POSTERN_TOKEN: operatorKey }
  await works('op4', 'namespace add narrow', { env })
  await works('op4', `connection add one http://127.0.0.1:${upstream.port}/mcp -n narrow --metadata team=a`, { env })
  await works('op4', `connection add two http://127.0.0.1:${upstream.port}/mcp -n narrow`, { env })
  expect(await works('op4', 'connection list -n narrow --metadata team=a', { env })).toMatch(/^one\tok\t[^\n]*\n$/)
  const token = (await works('op4', 'token mint --namespace narrow --operation execute', { env })).trim()
  const holder = { env: { POSTERN_URL: server.url, POSTERN_TOKEN: token } }
  expect(await works('x', 'tool call one.get_forecast', holder)).toContain('get_forecast')
  expect(await works('x', 'tool list one', holder)).toContain('one.get_forecast')
  expect((await as('x', ['tool', 'list'], holder)).stderr).toBe(
    'The token does not allow this: policy[0].operations; this credential may not list connections: name one, as in `postern tool list CONNECTION`\n',
  )
  const reader = (await works('op4', 'token mint --namespace narrow --operation read', { env })).trim()
  expect(await as('x', ['tool', 'list'], { env: { ...holder.env, POSTERN_TOKEN: reader } })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^one: The token[^\n]*\ntwo: The token[^\n]*\ncould not list tools: all 2 connections failed\n$/,
    ),
  })
  expect((await as('x', ['token', 'mint', '--operation', 'exec'], { env })).code).toBe(2)
  // A token that nobody can use is minted, and the mistake is named beside it.
  const misspelt = await as('op4', ['token', 'mint', '-n', 'narow'], { env })
  expect([misspelt.code, misspelt.stderr]).toEqual([0, expect.stringMatching(/^warning empty-scope at policy\[0\]/)])

  // The same, explained: by the holder, by the key that minted it, and before it is minted.
  const list = await as('x', ['token', 'explain', '--namespace', 'narrow'], holder)
  expect([list.code, list.stderr]).toEqual([1, ''])
  expect(list.stdout).toMatch(/^Token tok_\S+ acts for operator /)
  expect(list.stdout).toMatch(/^ {2}refuse {3}policy\[0\]\.operations {2}operations: execute; [^\n]*read$/m)
  expect(list.stdout).toEndWith('\nRefused by policy[0].operations: 403.\n')
  const call = 'token explain - --namespace narrow --connection one --tool get_forecast'
  expect(await works('op4', call, { env, stdin: token })).toEndWith('\nAllowed: nothing refuses it.\n')
  const short = { env: { ...env, POSTERN_NAMESPACE: 'narrow' }, stdin: token }
  expect(await works('op4', 'token explain - --tool one.get_forecast', short)).toEndWith(
    '\nAllowed: nothing refuses it.\n',
  )
  expect((await as('op4', ['token', 'explain', 'bogus'], { env })).stderr).toStartWith('this is not a service token')
  const file = join(place.folder, 'policy.json')
  writeFileSync(file, JSON.stringify([{ rpcReqMatch: { 'params.arguments.city': '^P' } }]))
  const policy = ['token', 'explain', '--policy', file, '--namespace', 'narrow', '--tool', 'get_forecast']
  expect((await as('op4', policy, { env })).stdout).toContain('It depends on params.arguments.city: ')
  const args = [...policy, '--args', '{"city":"Oslo"}', '--json']
  const oslo = await as('op4', args, { env })
  expect([oslo.code, JSON.parse(oslo.stdout).status]).toEqual([1, 403])
  expect((await as('op4', ['token', 'explain', '--data', place.data], { env })).code).toBe(2)

  // Its mistakes, compared, and made of the calls above.
  const lint = await as('op4', ['token', 'lint', file], { env })
  const unused =
    'info    wider-than-used at policy: allows 1 tool that you did not call in the last 30 days: send_alert\n'
  expect([lint.code, lint.stderr, lint.stdout]).toEqual([0, '', unused])
  const wide = join(place.folder, 'wide.json')
  writeFileSync(wide, '[{"rpcReqMatch":{"params.name":"get"}}]')
  expect((await as('op4', ['token', 'lint', wide], { env })).stdout).toMatch(
    /^warning unanchored-pattern at policy\[0\]/,
  )
  expect((await as('op4', ['token', 'lint', wide, '--strict'], { env })).code).toBe(1)
  const contrary = await as('op4', ['token', 'lint', '-', '--json'], {
    ...{ env, stdin: '[{"operations":"read"},{"operations":"write"}]' },
  })
  expect([contrary.code, JSON.parse(contrary.stdout).findings[0].code]).toEqual([1, 'contradiction'])
  const wider = await as('op4', ['token', 'diff', '-', wide], { env, stdin: token })
  expect([wider.code, wider.stdout]).toEqual([
    1,
    expect.stringMatching(/^The new policy also allows .* refuses it by /),
  ])
  expect((await as('op4', ['token', 'diff', wide, '-'], { env, stdin: token })).stdout).toMatch(/^The new|^No request /)
  expect((await as('op4', ['token', 'diff', '-', '-'], { env })).code).toBe(2)
  const suggested = await as('op4', ['token', 'suggest', '-n', 'narrow'], { env })
  expect(JSON.parse(suggested.stdout)[0].rpcReqMatch).toEqual({ 'params.name': '^(?:get_forecast)$' })
  expect(suggested.stderr).toBe('The record has no arguments, so the policy allows any.\n')
  expect(await works('op4', 'token mint --policy -', { env, stdin: suggested.stdout })).toMatch(/^ey/)
  expect((await as('op4', ['token', 'suggest', '-n', 'nowhere'], { env })).code).toBe(1)

  // What is not good any more, and what nobody here has signed.
  const forged = await as('op4', ['token', 'explain', '-'], { env, stdin: `${token.slice(0, -86)}${'A'.repeat(86)}` })
  expect([forged.code, forged.stderr]).toEqual([
    1,
    expect.stringMatching(/^the server does not explain this token to /),
  ])
  await works('op4', 'token revoke -', { env, stdin: token })
  const revoked = await as('op4', ['token', 'explain', '-'], { env, stdin: token })
  expect([revoked.code, revoked.stdout]).toEqual([1, expect.stringContaining('; it is revoked\n')])
})

test('what is not there is named, with the command that lists what is', async () => {
  const env = { POSTERN_URL: server.url, POSTERN_TOKEN: operatorKey, POSTERN_NAMESPACE: 'narrow' }
  for (const [line, text] of [
    [
      'connection get nope',
      'there is no connection nope in narrow, or you have no access to it: see `postern connection list -n narrow`',
    ],
    [
      'tool call nope.x',
      'there is no connection nope in narrow, or you have no access to it: see `postern connection list -n narrow`',
    ],
    ['server get a/b', 'there is no server a/b, or you have no access to it: see `postern server search`'],
    [
      'server add nope/x http://127.0.0.1:1',
      'there is no namespace nope, or you have no access to it: see `postern namespace list`',
    ],
    [
      'org member add nope bob',
      'there is no organization nope, or it does not have what you named, or you have no access: see `postern org list`',
    ],
    [
      'namespace rm nope --yes',
      'there is no namespace nope, or you have no access to it: see `postern namespace list`',
    ],
  ] as const)
    expect({ line, ...(await as('op4', line.split(' '), { env })) }).toMatchObject({
      line,
      code: 1,
      stderr: `${text}\n`,
    })
  expect((await as('op4', ['connection', 'add', 'b d', 'http://127.0.0.1:1'], { env })).stderr).toStartWith(
    'b d: must be',
  )
  const claims = Buffer.from(JSON.stringify({ exp: 1 })).toString('base64url')
  const expired = { env: { POSTERN_URL: server.url, POSTERN_TOKEN: `e30.${claims}.x` } }
  expect((await as('x', ['whoami'], expired)).stderr).toBe(
    'the token expired at 1970-01-01T00:00:01.000Z: mint another with `postern token mint`\n',
  )
  expect(JSON.parse((await as('x', ['tool', 'call', '--json'], { env })).stderr)).toMatchObject({ error: 'usage' })
})

test('a reader who has enough ends a command without a word', async () => {
  let end = { seq: 0, hash: firstHash }
  const lines = Array.from({ length: 5000 }, () => {
    const { text, hash } = formatLine({ seq: end.seq + 1, prev: end.hash }, '2026-03-02T09:00:00.000Z', {
      event: 'call',
      fields: { userId: 'ada', tool: 'x' },
    })
    end = { seq: end.seq + 1, hash }
    return text
  })
  const data = join(place.folder, 'many-calls')
  mkdirSync(data)
  writeFileSync(join(data, 'calls.jsonl'), `${lines.join('\n')}\n`)
  // A line that was put in without its hash is not shown.
  writeFileSync(join(data, 'calls.jsonl'), '{"event":"call","tool":"forged"}\n', { flag: 'a' })
  expect((await run(place, ['calls', '--data', data, '--tool', 'forged'])).stdout).toBe('')
  for (const flags of ['--json', '', '--follow --json']) {
    const piped = Bun.spawnSync(['bash', '-c', `"$0" calls --data "$1" ${flags} | head -1`, executable, data])
    expect({ flags, lines: piped.stdout.toString().split('\n').length, stderr: piped.stderr.toString() }).toEqual({
      flags,
      lines: 2,
      stderr: '',
    })
  }
})

test('a mistake in a document to import is shown where it is', async () => {
  const file = join(place.folder, 'mistake.json')
  const importing = async (text: string) => {
    writeFileSync(file, text)
    return (await run(place, ['server', 'import', file, '--data', place.data])).stderr
  }
  expect(await importing('{\n  "name": "a/b",\n  "version": 1,,\n}\n')).toMatch(/mistake\.json: .*line 3/)
  expect(await importing('{"name": "a/b"}\n{"name": \n')).toContain('mistake.json:2: ')
})

test('servers are imported from a dump of a registry, and read by an editor', async () => {
  const file = join(place.folder, 'dump.json')
  const entry = { name: 'io.github.someone/tool', description: 'A tool', version: '1.2.3' }
  writeFileSync(file, JSON.stringify({ servers: [{ server: entry }], metadata: { count: 1 } }))
  const imported = await run(place, ['server', 'import', file, '--data', place.data])
  expect(imported).toMatchObject({
    code: 0,
    stdout: 'imported 1 server: io.github.someone/tool\ncreated 1 namespace, owned by operator: io.github.someone\n',
  })
  const headers = { authorization: `Bearer ${operatorKey}` }
  const path = '/v0.1/servers/io.github.someone%2Ftool/versions/latest'
  const answer = await (await fetch(`${server.url}${path}`, { headers })).json()
  expect(answer).toMatchObject({ server: entry })
  expect(await run(place, ['verify', '--data', place.data])).toMatchObject({ code: 0 })
})
