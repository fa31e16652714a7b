/** What a day brings in some minutes: requests of all kinds in a row, and whether the process grows. */

import { join } from 'node:path'
import { mintToken } from '../api/cases.ts'
import type { LoadResult } from '../bench/load.ts'
import { anonymousMemory } from '../bench/measure.ts'
import { sendTo, startServer, unlimited, workplace } from '../support/executable.ts'
import { sampleKeys } from '../support/sample.ts'
import { collector, type Trial } from './trial.ts'

const slopeMaxMB = 2
/** The runtime's own caches fill in the beginning. */
const warmUp = 0.3
const windows = 5

export const soak: Trial = {
  name: 'soak',
  promise: 'During a long run of requests, postern makes no error, and its memory does not grow with their number',
  times: { full: 2_200_000, short: 20_000 },
  isTimed: true,

  async run(times) {
    const { broken, expect } = collector()
    using place = workplace()
    await using server = await startServer(place, unlimited)
    const port = Number(new URL(server.url).port)
    const send = sendTo(server)
    const requests: string[] = []
    const expected: Record<string, number> = {}
    const add = (count: number, status: number, request: (i: number) => string) => {
      for (let i = 0; i < count; i += 1) requests.push(request(i))
      expected[status] = (expected[status] ?? 0) + count
    }
    const tokens = await Promise.all(
      Array.from({ length: 40 }, (_, i) =>
        mintToken(send, sampleKeys.ada, {
          policy: [{ ttl: '24h', operations: 'read', metadata: { env: `e${i}` } }, { ttl: '23h' }].slice(i % 2),
        }),
      ),
    )
    const get = (path: string, credential: string) =>
      `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${credential}\r\n\r\n`
    const body = '{"policy":[{"operations":"read","ttl":"5m"}]}'
    add(
      1,
      200,
      () =>
        `POST /tokens HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${sampleKeys.grace}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    add(300, 200, (i) => get('/connect/northwind?limit=20', tokens[i % tokens.length] as string))
    add(200, 200, (i) =>
      get(
        `/connect/northwind?metadata.team=${['wholesale', 'x', 'store-ops'][i % 3]}&limit=${1 + (i % 9)}`,
        sampleKeys.ada,
      ),
    )
    add(150, 200, (i) => get(`/servers/${['northwind%2Fcalendar', 'lumen', 'northwind%2Fcrm'][i % 3]}`, sampleKeys.ada))
    add(50, 400, (i) => get(`/connect/northwind?cursor=${'x'.repeat(40 + i)}`, sampleKeys.ada))
    add(50, 401, (i) => get('/connect/northwind', `pst_${String(i).padStart(40, '0')}`))
    add(50, 404, (i) => get(`/connect/unknown-${i}`, sampleKeys.ada))
    add(50, 200, () => get('/health', sampleKeys.ada))
    // In an order that mixes them, always the same.
    const mixed = requests.map((_, i) => requests[(i * 397) % requests.length] as string)

    const rounds = Math.ceil(times / requests.length)
    const client = Bun.spawn([process.execPath, join(import.meta.dir, '../bench/load.ts')], {
      stdin: 'pipe',
      stdout: 'pipe',
    })
    client.stdin.write(JSON.stringify({ port, count: rounds * requests.length, connections: 24, requests: mixed }))
    await client.stdin.end()
    const samples: [seconds: number, megabytes: number][] = []
    const started = performance.now()
    let isOver = false
    const sampler = (async () => {
      while (!isOver) {
        samples.push([(performance.now() - started) / 1000, anonymousMemory(server.pid)])
        await Bun.sleep(250)
      }
    })()
    const result = JSON.parse(await new Response(client.stdout).text()) as LoadResult
    isOver = true
    await sampler

    for (const [status, count] of Object.entries(expected)) {
      const seen = result.statuses[status] ?? 0
      expect(seen === count * rounds, () => `${status}: ${seen} instead of ${count * rounds}`)
    }
    // What is left after a collection; between them the heap breathes by tens of megabytes.
    const steady = lowest(
      samples.filter(([seconds]) => seconds > result.seconds * warmUp),
      windows,
    )
    const perMillion = (slope(steady) / (result.requests / result.seconds)) * 1e6
    // Of fewer it says nothing.
    const isMeasured = times >= 1_000_000
    if (isMeasured) expect(perMillion < slopeMaxMB, () => `memory: ${perMillion.toFixed(2)} MB a million requests`)
    const figure = `${result.requests} requests, no other status than expected, p99 ${result.p99.toFixed(1)} ms, ${isMeasured ? `memory changed by ${perMillion.toFixed(2)} MB for each million requests` : 'memory measured in the long run alone'}`
    return { figure, broken, seen: { requests: [result.requests, times] } }
  },
}

/** The lowest point of each of so many windows of equal length. */
function lowest(points: readonly (readonly [number, number])[], count: number): (readonly [number, number])[] {
  const length = Math.ceil(points.length / count)
  return Array.from({ length: count }, (_, i) => points.slice(i * length, (i + 1) * length))
    .filter((window) => window.length > 0)
    .map((window) => window.reduce((least, point) => (point[1] < least[1] ? point : least)))
}

/** Of the line with the least squares. */
function slope(points: readonly (readonly [number, number])[]): number {
  const mean = (at: 0 | 1) => points.reduce((sum, point) => sum + point[at], 0) / points.length
  const [x, y] = [mean(0), mean(1)]
  const top = points.reduce((sum, point) => sum + (point[0] - x) * (point[1] - y), 0)
  return top / points.reduce((sum, point) => sum + (point[0] - x) ** 2, 0)
}
