/**
 * Real clients that know nothing but a URL: they sign in to the executable and call a tool, offline. Where a client is
 * not installed (`test/clients`), its test is skipped.
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { signInAndConsent } from '../clients/browser.ts'
import { run, type Server, startServer, unlimited, type Workplace, workplace } from '../support/executable.ts'
import { freePort } from '../support/free-port.ts'
import { sampleKeys } from '../support/sample.ts'

const clients = resolve(import.meta.dir, '../clients')
const mcpRemote = join(clients, 'node_modules/.bin/mcp-remote')
const claude = join(clients, 'node_modules/@anthropic-ai/claude-code-linux-x64/claude')
const opencode = join(clients, 'node_modules/opencode-linux-x64/bin/opencode')

let place: Workplace
let server: Server
let endpoint = ''
/** One endpoint for all connections of the namespace. */
let whole = ''
beforeAll(async () => {
  place = workplace()
  // Without access to the internet the documents of clients cannot be fetched, so they register.
  server = await startServer(place, [...unlimited, '--no-public-upstream'])
  endpoint = `${server.url}/connect/northwind/inventory-us-west/mcp`
  whole = `${server.url}/connect/northwind/mcp`
})
afterAll(async () => {
  await server.kill('SIGTERM')
  place[Symbol.dispose]()
})

const grants = async () => (await run(place, ['grants', 'list', '--data', place.data])).stdout
const grantOf = async (client: string) =>
  /^(grant_\S+)/.exec((await grants()).split('\n').find((line) => line.includes(client)) ?? '')?.[1] ?? 'none'

describe.skipIf(!existsSync(mcpRemote))('mcp-remote', () => {
  test.concurrent('lists and calls the tools of all connections through one endpoint', async () => {
    const { ask, signIn, child } = await remote(whole, 'remote-whole')
    const greeted = ask(1, 'initialize', greeting)
    await signIn([])
    expect(await greeted).toMatchObject({ result: { serverInfo: { name: 'postern' } } })
    const listed = (await ask(2, 'tools/list', {})) as { result: { tools: { name: string }[] } }
    expect(listed.result.tools.map(({ name }) => name)).toContain('inventory-us-west__list_low_stock')
    const params = { name: 'inventory-us-west__list_low_stock', arguments: { warehouse: 'reno' } }
    expect(await ask(3, 'tools/call', params)).toMatchObject({ result: { content: expect.anything() } })
    child.kill()
    await child.exited
  })

  test.concurrent('gets from a URL to a call of the tools that were allowed, and no further once the grant is revoked', async () => {
    const { ask, signIn, child, told } = await remote(endpoint, 'remote')
    const greeted = ask(1, 'initialize', greeting)
    await signIn([
      ['access', 'some'],
      ['tool', 'list_low_stock'],
    ])
    expect(await greeted).toMatchObject({ result: { serverInfo: { name: 'northwind/inventory' } } })
    const call = (id: number, name: string) => ask(id, 'tools/call', { name, arguments: { warehouse: 'reno' } })
    expect(await call(2, 'list_low_stock')).toHaveProperty('result')
    expect(await call(3, 'reserve_stock')).toMatchObject({
      error: { message: expect.stringContaining('does not allow') },
    })
    expect(await run(place, ['grants', 'revoke', await grantOf('list_low_stock'), '--data', place.data])).toMatchObject(
      { code: 0 },
    )
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 4, method: 'ping' })}\n`)
    await child.stdin.flush()
    // It is sent to sign in again.
    await told((line) => /Unauthorized|Authentication required|invalid_token|invalid_grant/i.test(line))
    child.kill()
    await child.exited
    expect(await grants()).not.toContain('list_low_stock')
  })
})

describe.skipIf(!existsSync(claude) || !existsSync('/usr/bin/script'))('Claude Code', () => {
  test.concurrent('signs in by `claude mcp login`, is connected, and calls a tool of one connection among all', async () => {
    await using model = callingModel('mcp__all__inventory-us-west__get_stock_level', { sku: 'NW-TNT-0420' })
    const { run: claudeRun } = atHome('claude', {
      DISABLE_AUTOUPDATER: '1',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      ANTHROPIC_BASE_URL: model.url,
      ANTHROPIC_API_KEY: 'none',
    })
    const servers = { stock: endpoint, all: whole }
    for (const [name, url] of Object.entries(servers))
      await claudeRun(claude, 'mcp', 'add', '--transport', 'http', name, url)
    expect((await claudeRun(claude, 'mcp', 'list')).match(/Needs authentication/g)).toHaveLength(2)
    // It wants a terminal.
    for (const name of Object.keys(servers))
      expect(await claudeRun('script', '-qec', `"${claude}" mcp login ${name}`, '/dev/null')).toContain('Authenticated')
    expect((await claudeRun(claude, 'mcp', 'list')).match(/Connected/g)).toHaveLength(2)
    expect(await grants()).toContain('Claude Code')
    expect(await claudeRun(claude, '-p', 'low stock?', '--allowedTools', 'mcp__all')).toContain('Here it is: {')
    const calls = await run(place, ['calls', '--tool', 'get_stock_level', '--data', place.data])
    expect(calls.stdout).toMatch(/get_stock_level +ok /)
  })
})

describe.skipIf(!existsSync(opencode))('opencode', () => {
  test.concurrent('signs in by `opencode mcp auth`, and calls a tool of one connection among all', async () => {
    await using model = callingModel('all_inventory-us-west__list_low_stock', { warehouse: 'reno' })
    const quick = { OPENCODE_DISABLE_AUTOUPDATE: '1', OPENCODE_DISABLE_MODELS_FETCH: '1', BUN_JSC_useDFGJIT: '0' }
    const { home, run: opencodeRun } = atHome('opencode', quick)
    // Its own port is fixed: another run of this test may have it.
    const all = { type: 'remote', url: whole, enabled: true, oauth: { callbackPort: await freePort() } }
    const options = { baseURL: `${model.url}/v1`, apiKey: 'none' }
    const provider = { none: { npm: '@ai-sdk/anthropic', name: 'none', options, models: { none: { name: 'none' } } } }
    writeFileSync(join(home, 'opencode.json'), JSON.stringify({ mcp: { all }, provider }))
    await opencodeRun(opencode, 'mcp', 'auth', 'all')
    expect(await opencodeRun(opencode, 'run', '--model', 'none/none', 'low stock?')).toContain('Here it is: {')
    expect(await grants()).toContain('OpenCode')
  })
})

const packages = {
  '@modelcontextprotocol/sdk': async () => ({
    ...(await import('@modelcontextprotocol/sdk/client/index.js')),
    ...(await import('@modelcontextprotocol/sdk/client/streamableHttp.js')),
  }),
  '@modelcontextprotocol/client': () => import('@modelcontextprotocol/client'),
}
for (const [name, load] of Object.entries(packages)) {
  test.each([
    ['one connection', () => endpoint, 'list_low_stock'],
    ['all', () => whole, 'inventory-us-west__list_low_stock'],
  ] as const)(`${name} signs in to %s, lists and calls a tool, and refreshes its token`, async (_, at, tool) => {
    const { Client, StreamableHTTPClientTransport } = (await load()) as typeof import('@modelcontextprotocol/client')
    const kept: Record<string, unknown> = {}
    let away: URL | undefined
    const authProvider = {
      redirectUrl: 'http://localhost:1/callback',
      clientMetadata: {
        client_name: name,
        redirect_uris: ['http://localhost:1/callback'],
        grant_types: ['authorization_code', 'refresh_token'],
        token_endpoint_auth_method: 'none',
      },
      state: () => 'state',
      clientInformation: () => kept['client'],
      saveClientInformation: (client: unknown) => Object.assign(kept, { client }),
      tokens: () => kept['tokens'],
      saveTokens: (tokens: unknown) => Object.assign(kept, { tokens }),
      saveCodeVerifier: (verifier: string) => Object.assign(kept, { verifier }),
      codeVerifier: () => kept['verifier'],
      redirectToAuthorization(url: URL) {
        away = url
      },
    } as never
    const transport = () => new StreamableHTTPClientTransport(new URL(at()), { authProvider })
    const client = () => new Client({ name: 'test', version: '1' })
    const first = transport()
    await expect(client().connect(first)).rejects.toThrow()
    const callback = new URL(await signInAndConsent(away?.href ?? '', sampleKeys.ada))
    expect(callback.searchParams.get('state')).toBe('state')
    // The newer package checks the issuer too, and wants the whole query for it.
    const finish = first.finishAuth as (given: unknown) => Promise<void>
    const code = callback.searchParams.get('code')
    await finish.call(first, code).catch(() => finish.call(first, callback.searchParams))
    const call = async () => {
      const connected = client()
      await connected.connect(transport())
      expect((await connected.listTools()).tools.map((one) => one.name)).toContain(tool)
      const result = await connected.callTool({ name: tool, arguments: { warehouse: 'reno' } })
      await connected.close()
      return result
    }
    expect(await call()).toHaveProperty('content')
    // As if it had expired: the next call refreshes it.
    const before = kept['tokens'] as { access_token: string; refresh_token: string }
    kept['tokens'] = { ...before, access_token: 'expired' }
    expect(await call()).toHaveProperty('content')
    expect((kept['tokens'] as typeof before).refresh_token).not.toBe(before.refresh_token)
  })
}

test('the commands for grants say what there is not, and list none of a revoked key', async () => {
  const none = await run(place, ['grants', 'revoke', 'grant_none', '--data', place.data])
  expect([none.code, none.stderr]).toEqual([1, expect.stringContaining('see `postern grants list`')])
  const keys = (await run(place, ['keys', 'list', '--data', place.data])).stdout.split('\n')
  const ofAda = /^(key_\S+) +ada /.exec(keys.find((line) => line.includes(' ada ')) ?? '')?.[1] ?? ''
  expect(await grants()).toContain(' ada ')
  expect((await run(place, ['keys', 'revoke', ofAda, '--data', place.data])).code).toBe(0)
  expect(await grants()).not.toContain(' ada ')
  expect(readFileSync(join(place.data, 'audit.jsonl'), 'utf8')).toMatch(
    /"event":"grant\.ended"[^\n]*"reason":"its key was revoked"/,
  )
})

/** A request to a model. */
interface Asked {
  readonly messages?: { readonly content: unknown }[]
  readonly tools?: object[]
}

/** Stands in for a model: it calls this tool, and repeats the result. */
function callingModel(tool: string, input: object) {
  const resultIn = ({ messages = [] }: Asked) =>
    messages
      .flatMap(({ content }) => content)
      .find((part) => (part as { type?: string } | null)?.type === 'tool_result')
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      const asked = (await request.json().catch(() => ({}))) as Asked
      const result = resultIn(asked)
      // A title is asked for without tools.
      const isCalled = result === undefined && (asked.tools ?? []).length > 0
      const block = isCalled ? { type: 'tool_use', id: 'toolu_1', name: tool, input: {} } : { type: 'text', text: '' }
      const delta = isCalled
        ? { type: 'input_json_delta', partial_json: JSON.stringify(input) }
        : { type: 'text_delta', text: `Here it is: ${JSON.stringify(result)}` }
      const usage = { input_tokens: 1, output_tokens: 1 }
      const message = { id: 'msg_1', type: 'message', role: 'assistant', model: 'none', content: [], usage }
      const stop_reason = isCalled ? 'tool_use' : 'end_turn'
      const events = [
        { type: 'message_start', message },
        { type: 'content_block_start', index: 0, content_block: block },
        { type: 'content_block_delta', index: 0, delta },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason }, usage },
        { type: 'message_stop' },
      ]
      const text = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
      return new Response(text, { headers: { 'content-type': 'text/event-stream' } })
    },
  })
  return { url: `http://127.0.0.1:${server.port}`, [Symbol.asyncDispose]: () => server.stop(true) }
}

/** A home of a client's own, with a browser in which Ada signs in and allows everything. */
function atHome(name: string, more: Readonly<Record<string, string>>) {
  const home = join(place.folder, `${name}-home`)
  const bin = join(home, 'bin')
  mkdirSync(bin, { recursive: true })
  const browser = join(bin, 'xdg-open')
  const script = resolve(clients, 'browser.ts')
  writeFileSync(browser, `#!/bin/sh\nexec "${process.execPath}" "${script}" "${sampleKeys.ada}" access=all "$1"\n`)
  chmodSync(browser, 0o755)
  const env = { PATH: `${bin}:${process.env['PATH']}`, HOME: home, BROWSER: browser, TERM: 'xterm', ...more }
  return {
    home,
    /** Resolves with what the command prints. */
    async run(...command: string[]): Promise<string> {
      const child = Bun.spawn(command, { cwd: home, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
      const [text] = await Promise.all([new Response(child.stdout).text(), child.exited])
      return text
    },
  }
}

const greeting = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }

/** mcp-remote for this URL, and a person who signs in where it says. `choices`: fields of the consent page. */
async function remote(url: string, folder: string) {
  // The port that it would choose may be among those that the system gives to others before it listens.
  const child = Bun.spawn(['node', mcpRemote, url, String(await freePort())], {
    cwd: place.folder,
    env: {
      PATH: `${noBrowser()}:${process.env['PATH']}`,
      HOME: place.folder,
      MCP_REMOTE_CONFIG_DIR: join(place.folder, folder),
    },
    stdin: 'pipe',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  const told = linesOf(child.stderr)
  const answers = linesOf(child.stdout)
  const ask = async (id: number, method: string, params: object) => {
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`)
    await child.stdin.flush()
    return JSON.parse(await answers((line) => line.includes(`"id":${id}`))) as {
      result?: object
      error?: { message: string }
    }
  }
  const signIn = async (choices: [string, string][]) => {
    let authorize = ''
    let listens = ''
    // It says these in one order or the other.
    await told((line) => {
      authorize ||= /http\S+\/oauth\/authorize\S+/.exec(line)?.[0] ?? ''
      // It listens elsewhere than it said if another program of this machine has the port.
      if (line.includes('callback server running at')) listens = /http\S+$/.exec(line)?.[0] ?? ''
      return authorize !== '' && listens !== '' && line.includes('Waiting for authorization')
    })
    const callback = await (choices.length === 0
      ? signInAndConsent(authorize, sampleKeys.ada)
      : signInAndConsent(authorize, sampleKeys.ada, choices))
    const { pathname, search } = new URL(callback)
    await (await fetch(`${listens}${pathname}${search}`)).text()
  }
  return { ask, signIn, child, told }
}

/** A folder with a program in place of the browser of this machine. */
function noBrowser(): string {
  const folder = join(place.folder, 'no-browser')
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'xdg-open'), '#!/bin/sh\n', { mode: 0o755 })
  return folder
}

/** Lines of a stream: resolves with the next one that is wanted, however long it takes. */
function linesOf(stream: ReadableStream<Uint8Array>): (isWanted: (line: string) => boolean) => Promise<string> {
  const reader = stream.getReader()
  const decoder = new TextDecoder()
  let text = ''
  const seen: string[] = []
  return async (isWanted) => {
    for (;;) {
      const end = text.indexOf('\n')
      if (end >= 0) {
        const line = text.slice(0, end)
        text = text.slice(end + 1)
        seen.push(line)
        if (isWanted(line)) return line
        continue
      }
      const { done, value } = await reader.read()
      if (done) throw new Error(`the client ended, after: ${[...seen.slice(-20), text].join('\n')}`)
      text += decoder.decode(value, { stream: true })
    }
  }
}
