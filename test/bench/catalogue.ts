/** The catalogue of 10,000 servers of ten tools: a page of it, searches, and what the record of calls costs. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Turns } from '../../src/fairness/turns.ts'
import { Catalogue } from '../../src/features/servers/catalogue.ts'
import { listingOf, noExtras, type ServerDetail } from '../../src/model/server.ts'
import { wordsOf } from '../../src/search/words.ts'
import { listingEntry, newListingVersions } from '../../src/storage/directory-records.ts'
import { startServer, unlimited, type Workplace, workplace } from '../support/executable.ts'
import { openMemoryStore } from '../support/memory-store.ts'
import { random } from '../support/random.ts'
import { sampleKeys } from '../support/sample.ts'
import { benchKey } from './data.ts'
import type { Report } from './gateway.ts'
import { get, longestHold, median, micro, post, serve, startScript } from './measure.ts'

const serverCount = 10_000
const toolCount = 10
const namespaceCount = 500
const seconds = 2
const queries = ['mcp', 'get', 'mcp get', 'con', 'weather', 'mcp con', 'issue', 'data list mcp', 'serv', 'map file']

/** Words as names and descriptions have them; one of each, "mcp", is in every server. */
function madeServers() {
  const chance = random(3)
  const beginnings = ['con', 'pro', 'get', 'list', 'data', 'weather', 'issue', 'map', 'file', 'cloud', 'net', 'sync']
  const vocabulary = Array.from({ length: 4000 }, (_, i) => {
    const middle = chance.pick(['a', 'e', 'i', 'o', 'u', 'er', 'ion', 'ing', ''])
    return `${chance.pick(beginnings)}${middle}${chance.pick(['x', 'tor', 'form', 'ly', 's', ''])}${i % 7 === 0 ? i : ''}`
  })
  const text = (words: number) => Array.from({ length: words }, () => chance.pick(vocabulary)).join(' ')
  return Array.from({ length: serverCount }, (_, i) => ({
    qualifiedName: `ns${i % namespaceCount}/server-${i}`,
    displayName: `MCP ${text(2)}`,
    description: `An MCP server that ${text(30)}`,
    remote: true,
    connections: [{ type: 'http', deploymentUrl: `https://s${i}.example.com/mcp`, configSchema: {} }],
    tools: Array.from({ length: toolCount }, (_, tool) => ({
      name: `get_${chance.pick(vocabulary)}_${tool}`,
      description: text(8),
      inputSchema: { type: 'object', properties: { query: { type: 'string' } } },
    })),
  }))
}

function writeCatalogue(folder: string): void {
  const servers = madeServers()
  const namespaces = Array.from({ length: namespaceCount }, (_, i) => ({ namespace: `ns${i}`, userId: 'bench' }))
  mkdirSync(folder, { recursive: true })
  writeFileSync(
    join(folder, 'namespaces.json'),
    JSON.stringify({ namespaces, apiKeys: [{ userId: 'bench', key: benchKey }] }),
  )
  for (let at = 0; at < serverCount; at += 1000) {
    writeFileSync(join(folder, `servers-${at}.json`), JSON.stringify({ servers: servers.slice(at, at + 1000) }))
  }
}

export async function catalogue(report: Report, rounds: number): Promise<void> {
  await eventLoop(report)
  await servers(report, rounds)
  await callRecord(report, rounds)
}

/** How long other requests wait for a search, and for taking a changed server into the index. */
async function eventLoop(report: Report): Promise<void> {
  const store = openMemoryStore()
  const put = async (some: readonly ServerDetail[]) => {
    const listings = some.map((detail) => listingEntry(listingOf(detail, noExtras)))
    await store.commit({ puts: [...listings, ...newListingVersions(some.map(({ qualifiedName }) => qualifiedName))] })
  }
  const whole = (server: object) =>
    ({ iconUrl: null, deploymentUrl: null, security: null, resources: null, prompts: null, ...server }) as ServerDetail
  const made = madeServers().map(whole)
  for (let at = 0; at < made.length; at += 500) await put(made.slice(at, at + 500))
  const catalogue = new Catalogue(store)
  const held = (what: string, hold: number) =>
    report(`Longest time in which the event loop is blocked by ${what}`, `${hold.toFixed(1)} ms`, '10 ms', hold < 10)
  held('making the index of 10,000 servers', await longestHold(() => catalogue.refresh()))
  const turns = new Turns()
  const search = async (text: string) =>
    turns.run({ keyId: 'bench', family: 'bench' }, catalogue.search(wordsOf(text), { most: 500, isWanted: () => true }))
  for (let i = 0; i < 50; i += 1) for (const text of queries) await search(text)
  const holds: number[] = []
  for (let i = 0; i < 1000; i += 1) {
    holds.push(await longestHold(() => search(queries[i % queries.length] as string)))
  }
  holds.sort((a, b) => a - b)
  held('a search by common words, p99', holds[Math.floor(holds.length * 0.99)] as number)
  const name = (tool: number, version: number) => `w${tool}x${version}_a${tool * 7919}_b${tool * 31}_${'c'.repeat(60)}`
  const large: number[] = []
  for (let version = 0; version < 7; version += 1) {
    const tools = Array.from({ length: 5000 }, (_, tool) => ({ name: name(tool, version) }))
    await put([whole({ ...made[0], qualifiedName: 'ns0/large', tools })])
    large.push(await longestHold(() => catalogue.refresh()))
  }
  held('indexing a server again whose 5,000 tools have changed', median(large))
}

async function servers(report: Report, rounds: number): Promise<void> {
  using place = workplace()
  const fixtures = join(place.folder, 'fixtures')
  writeCatalogue(fixtures)
  await using ours = await startServer(place, ['--fixtures', fixtures])
  const port = Number(new URL(ours.url).port)
  const headers = { Authorization: `Bearer ${benchKey}` }
  const started = performance.now()
  const page = await (await fetch(`${ours.url}/servers?pageSize=100`, { headers })).bytes()
  report('First list of 10,000 servers, with the index made', `${(performance.now() - started).toFixed(0)} ms`)
  const file = join(place.folder, 'page.json')
  writeFileSync(file, page)
  const bare = await startScript('yardstick.ts', file)
  const load = (pid: number, at: number, path: string) =>
    serve(pid, { port: at, seconds, connections: 32, requests: [get(at, path, headers)] })
  const ratios: number[] = []
  const cpus: number[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const here = await load(ours.pid, port, '/servers?pageSize=100')
    const there = await load(bare.pid, bare.port, '/')
    if (round === 0) continue
    cpus.push(here.cpu)
    ratios.push(here.cpu / there.cpu)
  }
  bare.stop()
  const ratio = median(ratios)
  report(
    'A page of 100 of 10,000 servers, compared with a bare Bun.serve',
    `${ratio.toFixed(2)} × (${micro(median(cpus))})`,
    '3 ×',
    ratio <= 3,
  )

  const times: number[] = []
  for (let i = 0; i < 1000; i += 1) {
    // A page that differs each time is not remembered.
    const query = `q=${encodeURIComponent(queries[i % queries.length] as string)}&seed=${i}`
    const asked = performance.now()
    await (await fetch(`${ours.url}/servers?${query}`, { headers })).bytes()
    times.push(performance.now() - asked)
  }
  times.sort((a, b) => a - b)
  const p99 = times[Math.floor(times.length * 0.99)] as number
  report(
    'A search of 10,000 servers by common words, p99',
    `${p99.toFixed(1)} ms (median ${median(times).toFixed(1)} ms)`,
    '20 ms',
    p99 < 20,
  )
}

/** A mocked call of a server that records calls, and of one that does not. */
async function callRecord(report: Report, rounds: number): Promise<void> {
  using place = workplace()
  const at = (name: string): Workplace => ({ ...place, data: join(place.folder, name) })
  await using recording = await startServer(at('recording'), unlimited)
  await using silent = await startServer(at('silent'), [...unlimited, '--no-call-record'])
  const body = JSON.stringify({
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/call',
    params: { name: 'get_current_conditions', arguments: { latitude: 45.1, longitude: -122 } },
  })
  const load = async ({ url, pid }: { readonly url: string; readonly pid: number }) => {
    const port = Number(new URL(url).port)
    const headers = {
      'Content-Type': 'application/json',
      Accept: 'application/json, text/event-stream',
      Authorization: `Bearer ${sampleKeys.ada}`,
    }
    const requests = [post(port, '/connect/northwind/weather-ada/mcp', headers, body)]
    return (await serve(pid, { port, seconds, connections: 32, requests })).cpu
  }
  const costs: number[] = []
  const cpus: number[] = []
  // Two figures of nearly the same size: it takes more rounds to tell them apart.
  for (let round = 0; round <= 4 * rounds; round += 1) {
    const [withRecord, without] = [await load(recording), await load(silent)]
    if (round === 0) continue
    cpus.push(withRecord)
    costs.push(withRecord - without)
  }
  const cost = median(costs)
  report(
    'Extra processor time of a mocked call because postern records it',
    `${micro(cost)} (${micro(median(cpus))} with it)`,
    '4 µs',
    cost < 4,
  )
}
