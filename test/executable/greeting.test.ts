/** What `serve` and `dev` print to be pasted, and what `dev` does while fixtures change. */

import { describe, expect, test } from 'bun:test'
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { get, run, type Server, sampleFolder, startServer, workplace } from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'
import { until } from '../support/until.ts'

describe('lines to paste, and dev', () => {
  /** The lines to paste that a server printed, each run. */
  async function expectToPaste(server: Server): Promise<void> {
    const docs = `The documentation: ${server.url}/docs\n`
    await until(async () => server.stdout().endsWith(docs))
    const curls = server
      .stdout()
      .split('\n\n')
      .filter((block) => block.trim().startsWith('curl'))
    expect(curls.length).toBe(3)
    const [, link = ''] =
      /^The console: (\S+) \(signs you in once, within ten minutes; later: \S+\/console\)$/m.exec(server.stdout()) ?? []
    expect(await (await fetch(link)).text()).toContain('Sign in as ada?')
    expect(server.stdout()).toMatch(/^ {2}echo \S+ \| postern login \S+\n {2}postern tool list -n \S+\n/m)
    for (const curl of curls) {
      const { stdout } = Bun.spawnSync(['bash', '-c', curl.trim()])
      expect(stdout.toString()).toMatch(/^\{"(?:connections|token|tools)":/)
    }
  }

  test('serve with the sample fixtures: the same lines to paste, also at later starts; of own fixtures no key is shown', async () => {
    using place = workplace()
    for (let start = 0; start < 2; start += 1) {
      await using server = await startServer(place)
      await expectToPaste(server)
      expect((await fetch(server.url)).url).toBe(`${server.url}/docs`)
    }
    using other = workplace()
    const fixtures = join(other.folder, 'fixtures')
    mkdirSync(fixtures)
    writeFileSync(join(fixtures, 'a.json'), '{"apiKeys":[{"userId":"u","key":"a-key-of-at-least-32-characters-0"}]}')
    await using server = await startServer(other, ['--fixtures', fixtures])
    expect(await server.kill('SIGTERM')).toBe(0)
    expect(server.stdout()).toEndWith(`postern listening on ${server.url}\n`)
  })

  test('dev: the sample fixtures, lines to paste that work, and nothing kept', async () => {
    using place = workplace()
    await using server = await startServer(place, [], { command: 'dev' })
    await expectToPaste(server)
    const [config = ''] = /^ +(\{"mcpServers":.*)$/m.exec(server.stdout())?.slice(1) ?? []
    const { url, headers } = JSON.parse(config).mcpServers.postern
    const client = new Client({ name: 'test', version: '1' })
    await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }))
    expect((await client.listTools()).tools.length).toBeGreaterThan(0)
    await client.close()
    expect(await server.kill('SIGINT')).toBe(0)
    expect(server.stdout()).toEndWith('\nStopped. The temporary store is deleted.\n')
    expect(readdirSync(place.folder)).toEqual([])
  })

  test.each(['serve', 'dev'] as const)(
    '%s --sample-traffic: calls of the sample, some refused, by a key that leaves with it',
    async (command) => {
      using place = workplace()
      const sample = command === 'serve' ? ['--fixtures', sampleFolder] : []
      await using server = await startServer(place, [...sample, '--sample-traffic'], { command })
      const { ada } = sampleKeys
      const outcomes = async () => {
        const { calls } = (await (await get(server, '/calls', ada)).json()) as { calls: { outcome: string }[] }
        return calls.map(({ outcome }) => outcome)
      }
      for (const outcome of ['refused', 'ok']) await until(async () => (await outcomes()).includes(outcome))
      expect(await (await get(server, '/overview', ada)).json()).toMatchObject({ sampleTraffic: true })
      expect(await (await get(server, '/me/api-keys', ada)).text()).toContain('sample traffic')
      expect(await server.kill('SIGTERM')).toBe(0)
      if (command === 'dev') return
      await using again = await startServer(place)
      expect(await (await get(again, '/me/api-keys', ada)).text()).not.toContain('sample traffic')
      expect(await (await get(again, '/overview', ada)).json()).not.toHaveProperty('sampleTraffic')
    },
  )

  test.each(['serve', 'dev'] as const)('%s --sample-traffic without the sample: says so, and ends', async (command) => {
    using place = workplace()
    const fixtures = join(place.folder, 'fixtures')
    mkdirSync(fixtures)
    writeFileSync(join(fixtures, 'a.json'), '{"apiKeys":[{"userId":"u","key":"a-key-of-at-least-32-characters-0"}]}')
    const { code, stderr } = await run(place, [command, '--port', '0', '--fixtures', fixtures, '--sample-traffic'])
    expect(code).toBe(1)
    expect(stderr).toContain('--sample-traffic needs the sample company')
  })

  test('dev: own fixtures are loaded again when a file changes, and not when it is broken', async () => {
    using place = workplace()
    const fixtures = join(place.folder, 'fixtures')
    const key = 'a-key-of-at-least-32-characters-0'
    const write = (namespace: string) =>
      writeFileSync(
        join(fixtures, 'a.json'),
        JSON.stringify({ namespaces: [{ namespace, userId: 'u' }], apiKeys: [{ userId: 'u', key }] }),
      )
    mkdirSync(fixtures)
    write('first')
    await using server = await startServer(place, ['--fixtures', fixtures], { command: 'dev' })
    expect((await get(server, '/connect/first', key)).status).toBe(200)
    write('second')
    await until(async () => (await get(server, '/connect/second', key)).status === 200)
    expect((await get(server, '/connect/first', key)).status).toBe(404)
    writeFileSync(join(fixtures, 'b.JSON'), '{}')
    write('third')
    await until(async () => server.stderr().includes('the fixtures have mistakes: run `postern fixtures check'))
    write('second')
    await until(async () => (await get(server, '/connect/second', key)).status === 200)
    writeFileSync(join(fixtures, 'a.json'), '{')
    await until(async () => server.stderr().includes('were not reloaded'))
    expect((await get(server, '/connect/second', key)).status).toBe(200)
    expect(await server.kill('SIGTERM')).toBe(0)
  })
})
