/** What 100,000 namespaces more in the store cost requests that have nothing to do with them: it should be nothing. */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startServer, workplace } from '../support/executable.ts'
import { benchKey, writeFixtures } from './data.ts'
import type { Report } from './gateway.ts'
import { get, median, type Served, serve } from './measure.ts'

const connections = 50_000
const namespaces = 100_000
const seconds = 1

export async function manyNamespaces(report: Report, rounds: number): Promise<void> {
  using few = workplace()
  using many = workplace()
  const fixturesOf = ({ folder }: { readonly folder: string }) => join(folder, 'fixtures')
  for (const place of [few, many]) writeFixtures(fixturesOf(place), connections)
  writeNamespaces(fixturesOf(many))
  await using without = await startServer(few, ['--fixtures', fixturesOf(few)])
  await using having = await startServer(many, ['--fixtures', fixturesOf(many)])
  const headers = { Authorization: `Bearer ${benchKey}` }
  const pages = async ({ url }: { readonly url: string }) => {
    const paths: string[] = []
    let path = '/connect/bench'
    for (let page = 0; page < 200; page += 1) {
      paths.push(path)
      const { nextCursor } = (await (await fetch(`${url}${path}`, { headers })).json()) as { nextCursor: string | null }
      if (nextCursor === null) break
      path = `/connect/bench?cursor=${nextCursor}`
    }
    return paths
  }
  const subjects: [what: string, paths: (at: { readonly url: string }) => Promise<string[]>][] = [
    ['A page', async () => ['/connect/bench']],
    ['All pages in order', pages],
    ['A list with a filter', async () => ['/connect/bench?metadata.userId=user-4711']],
    ['Server details', async () => ['/servers/bench%2Freports']],
    ['`/me`', async () => ['/me']],
  ]
  for (const [what, pathsOf] of subjects) {
    const requests = new Map<string, string[]>()
    for (const server of [without, having]) {
      const port = Number(new URL(server.url).port)
      requests.set(
        server.url,
        (await pathsOf(server)).map((path) => get(port, path, headers)),
      )
    }
    const load = async ({ url, pid }: { readonly url: string; readonly pid: number }): Promise<Served> =>
      serve(pid, { port: Number(new URL(url).port), seconds, connections: 16, requests: requests.get(url) ?? [] })
    const ratios: number[] = []
    for (let round = 0; round <= rounds; round += 1) {
      const [there, here] = [await load(having), await load(without)]
      // The first round warms up.
      if (round > 0) ratios.push(there.cpu / here.cpu)
    }
    const ratio = median(ratios)
    report(
      `${what} with ${namespaces.toLocaleString('en')} more namespaces in the store, compared with the store without them`,
      `${ratio.toFixed(2)} ×`,
      '1.1 ×',
      ratio <= 1.1,
    )
  }
}

function writeNamespaces(folder: string): void {
  mkdirSync(folder, { recursive: true })
  for (let at = 0; at < namespaces; at += 10_000) {
    const some = Array.from({ length: 10_000 }, (_, i) => ({ namespace: `many-${at + i}`, userId: `user-${i % 1000}` }))
    writeFileSync(join(folder, `namespaces-${at}.json`), JSON.stringify({ namespaces: some }))
  }
}
