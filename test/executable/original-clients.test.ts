/**
 * The original's SDK 0.68 and command line 4.7.4, unchanged, against the executable: namespaces, servers, search,
 * publishing and keys (contract, **compat**).
 */

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { browser } from '../clients/browser.ts'
import { endOf, type Server, sampleFolder, startServer, type Workplace, workplace } from '../support/executable.ts'
import { fieldsOf } from '../support/pages.ts'
import { sampleKeys } from '../support/sample.ts'

const packages = resolve(import.meta.dir, '../clients/node_modules/@smithery')
const isInstalled = existsSync(join(packages, 'api')) && existsSync(join(packages, 'cli'))

let place: Workplace
let server: Server
let upstream: ReturnType<typeof Bun.serve>

describe.if(isInstalled)('the original’s clients (needs make clients)', () => {
  beforeAll(async () => {
    place = workplace()
    upstream = Bun.serve({
      port: 0,
      async fetch(request) {
        if (request.method !== 'POST') return new Response(null, { status: 405 })
        const { id, method } = (await request.json()) as { id?: number; method: string }
        if (id === undefined) return new Response(null, { status: 202 })
        const results: Record<string, object> = {
          initialize: {
            protocolVersion: '2025-06-18',
            capabilities: { tools: {} },
            serverInfo: { name: 'x', version: '1' },
          },
          'tools/list': { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] },
        }
        return Response.json({ jsonrpc: '2.0', id, result: results[method] ?? {} })
      },
    })
    const company = join(place.folder, 'company')
    mkdirSync(company)
    const servers = Array.from({ length: 2500 }, (_, i) => ({
      qualifiedName: `many/server-${i}`,
      displayName: `Server ${i}`,
      description: 'One of many',
      remote: false,
      connections: [],
    }))
    writeFileSync(
      join(company, 'many.json'),
      JSON.stringify({ namespaces: [{ namespace: 'many', userId: 'ada' }], servers }),
    )
    const flags = [
      '--fixtures',
      sampleFolder,
      '--fixtures',
      company,
      '--allow-upstream',
      '127.0.0.1',
      '--write-rate',
      '0',
    ]
    server = await startServer(place, flags)
  })
  afterAll(async () => {
    await server.kill('SIGTERM')
    upstream.stop(true)
    place[Symbol.dispose]()
  })

  /** Runs a script with the SDK's client as `client`. Resolves with what it returns. */
  async function sdk(script: string): Promise<unknown> {
    const file = join(place.folder, 'script.mjs')
    writeFileSync(
      file,
      `import Smithery from ${JSON.stringify(join(packages, 'api/index.mjs'))}
const client = new Smithery({ apiKey: ${JSON.stringify(sampleKeys.ada)}, baseURL: ${JSON.stringify(server.url)}, maxRetries: 0 })
const all = async (pages, of) => { const found = []; for await (const one of pages) found.push(of(one)); return found }
console.log(JSON.stringify(await (async () => { ${script} })()))`,
    )
    return JSON.parse(await output(['node', file]))
  }
  async function output(command: string[]): Promise<string> {
    const child = Bun.spawn(command, {
      cwd: place.folder,
      env: {
        PATH: process.env['PATH'],
        HOME: place.folder,
        SMITHERY_BASE_URL: server.url,
        SMITHERY_API_KEY: sampleKeys.ada,
        SMITHERY_CONFIG_PATH: join(place.folder, 'original'),
      },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
    })
    const { stdout, stderr, code } = await endOf(child)
    expect({ command, code, stderr: code === 0 ? '' : stderr + stdout }).toEqual({ command, code: 0, stderr: '' })
    return stdout
  }
  const cli = (line: string) => output(['node', join(packages, 'cli/dist/index.js'), ...line.split(' ')])

  test('the SDK walks all servers, each once', async () => {
    const names = (await sdk(
      'return all(client.servers.list({ pageSize: 100 }), (one) => one.qualifiedName)',
    )) as string[]
    expect([names.length, new Set(names).size]).toEqual([2509, 2509])
  })

  test('the SDK makes, finds, changes and deletes namespaces, servers and keys', async () => {
    const url = `http://127.0.0.1:${upstream.port}/mcp`
    expect(
      await sdk(`
      const made = await client.namespaces.set('ada-sdk')
      const server = await client.servers.create('ada-sdk/zeppelin', { displayName: 'Zeppelin' })
      await client.servers.update('ada-sdk/zeppelin', { description: 'Flies slowly' })
      const payload = JSON.stringify({ type: 'external', upstreamUrl: ${JSON.stringify(url)} })
      const release = await client.servers.releases.deploy('ada-sdk/zeppelin', { payload })
      const again = await client.servers.releases.get(release.deploymentId, { qualifiedName: 'ada-sdk/zeppelin' })
      const found = await all(client.servers.list({ q: 'zeppelin' }), (one) => one.qualifiedName)
      const byId = (await client.servers.list({ q: 'zeppelin' })).servers[0].id
      const ids = await all(client.servers.list({ ids: [byId] }), (one) => one.qualifiedName)
      const detail = await client.servers.get('ada-sdk/zeppelin')
      const key = await client.organizations.apiKeys.create('org_northwind', { name: 'ci' })
      const keys = (await client.organizations.apiKeys.list('org_northwind')).apiKeys.map(({ name }) => name)
      await client.organizations.apiKeys.delete(key.id, { orgId: 'org_northwind' })
      const names = await all(client.namespaces.list({ q: 'ada' }), (one) => one.name)
      const refused = await client.namespaces.delete('ada-sdk').catch((error) => error.status)
      await client.servers.delete('ada-sdk/zeppelin')
      const gone = await client.namespaces.delete('ada-sdk')
      return { made, server, status: again.status, found, ids, tools: detail.tools, keys, names, refused, gone }`),
    ).toMatchObject({
      made: { name: 'ada-sdk' },
      server: { namespace: 'ada-sdk', server: 'zeppelin', displayName: 'Zeppelin', description: '' },
      status: 'SUCCESS',
      found: ['ada-sdk/zeppelin'],
      ids: ['ada-sdk/zeppelin'],
      tools: [{ name: 'echo' }],
      keys: ['ci'],
      names: ['ada', 'ada-sdk'],
      refused: 409,
      gone: { success: true, name: 'ada-sdk' },
    })
  })

  test('the command line logs in through a browser, and works as the user', async () => {
    const env = {
      PATH: process.env['PATH'],
      HOME: join(place.folder, 'home'),
      SMITHERY_URL: server.url,
      SMITHERY_BASE_URL: server.url,
      SMITHERY_CONFIG_PATH: join(place.folder, 'logged-in'),
    }
    const start = (...args: string[]) =>
      Bun.spawn(['node', join(packages, 'cli/dist/index.js'), ...args], { env, stdin: 'ignore', stdout: 'pipe' })
    const login = start('auth', 'login')
    let printed = ''
    const reader = login.stdout.pipeThrough(new TextDecoderStream()).getReader()
    while (!printed.includes('session_id')) {
      const { done, value } = await reader.read()
      if (done) break
      printed += value
    }
    const { auth_url: url } = JSON.parse(/\{.*\}/.exec(printed)?.[0] ?? '{}') as { auth_url: string }
    const visit = browser()
    const signIn = await visit(url)
    const consent = await visit(`${server.url}/signin`, { ...fieldsOf(signIn.page), key: sampleKeys.ada })
    const done = await visit(`${server.url}/signin/cli`, { ...fieldsOf(consent.page), decision: 'allow' })
    expect(done.page).toContain('You are logged in on the command line')
    expect(await login.exited).toBe(0)
    const list = start('namespace', 'list', '--json')
    expect(JSON.parse(await new Response(list.stdout).text()).namespaces).toContain('northwind')
  })

  test('the command line searches, makes a namespace and publishes', async () => {
    expect(JSON.parse(await cli('mcp search weather --json')).servers[0]).toMatchObject({
      qualifiedName: 'northwind/weather',
    })
    await cli('namespace create ada-cli')
    expect(JSON.parse(await cli('namespace list --json')).namespaces).toContain('ada-cli')
    const published = await cli(`mcp publish http://127.0.0.1:${upstream.port}/mcp -n ada-cli/echo`)
    expect(published).toContain('rel_')
    expect(JSON.parse(await cli('mcp search echo --json')).servers[0]).toMatchObject({ qualifiedName: 'ada-cli/echo' })
  })
})
