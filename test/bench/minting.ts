/** What readers notice of minting: tokens are signed by threads of their own, at ordinary priority. */

import { startServer, type Workplace } from '../support/executable.ts'
import { benchKey } from './data.ts'
import { get, median, post, serve } from './measure.ts'

const readsPerSecond = 1000
const mintsPerSecond = 200
const sliceSeconds = 4

export async function minting(
  report: (what: string, figure: string, goal?: string, held?: boolean) => void,
  place: Workplace,
  rounds: number,
): Promise<void> {
  await using server = await startServer(place, ['--mint-rate', '0'])
  const port = Number(new URL(server.url).port)
  const authorization = { Authorization: `Bearer ${benchKey}` }
  const reading = {
    port,
    seconds: sliceSeconds,
    connections: 8,
    perSecond: readsPerSecond,
    requests: [get(port, '/servers/bench%2Freports', authorization)],
  }
  const body = JSON.stringify({ policy: [{ namespaces: 'bench', operations: 'read' }] })
  const mints = {
    port,
    seconds: sliceSeconds + 0.5,
    connections: 8,
    perSecond: mintsPerSecond,
    requests: [post(port, '/tokens', { ...authorization, 'Content-Type': 'application/json' }, body)],
  }
  const alone: number[] = []
  const beside: number[] = []
  let worst = 0
  for (let round = 0; round <= rounds; round += 1) {
    const without = await serve(server.pid, reading)
    const minted = serve(server.pid, mints)
    const during = await serve(server.pid, reading)
    await minted
    // The first round warms up.
    if (round === 0) continue
    alone.push(without.p99)
    beside.push(during.p99)
    worst = Math.max(worst, during.max)
  }
  const ratio = median(beside) / median(alone)
  report(
    `Server details at ${readsPerSecond} requests a second: p99 during ${mintsPerSecond} mints a second, compared with p99 without mints`,
    `${ratio.toFixed(2)} × (${median(beside).toFixed(2)} ms during mints, ${median(alone).toFixed(2)} ms without; the slowest request during mints took ${worst.toFixed(0)} ms)`,
    '1.5 ×',
    ratio <= 1.5,
  )
}
