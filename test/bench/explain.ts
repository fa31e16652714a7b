/**
 * What questions about policies cost, on the executable: one explanation under 16 constraints, and a question about
 * 2,000 tools, meanwhile somebody else is answered.
 *
 *   bun test/bench/explain.ts       alone
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { startServer, type Workplace, withoutRates, workplace } from '../support/executable.ts'
import type { Report } from './gateway.ts'
import { median } from './measure.ts'

const key = 'a-key-of-ada-who-asks-about-policies'
const other = 'a-key-of-eve-who-asks-for-nothing-at-all'
const tools = Array.from({ length: 2000 }, (_, index) => ({
  name: `tool_${index}_${['find', 'get', 'delete', 'list'][index % 4]}`,
  inputSchema: { type: 'object' },
}))
const server = (name: string, own: readonly object[]) => ({
  ...{ qualifiedName: `${name}/tools`, displayName: '', description: '', remote: true, connections: [], tools: own },
})
const connection = (namespace: string, connectionId: string) => ({
  ...{ namespace, connectionId, mcpUrl: 'https://x.example.com', metadata: { team: connectionId.slice(-1) } },
  ...{ mock: { enabled: true }, server: `${namespace}/tools` },
})
const company = {
  namespaces: ['deep', 'wide'].map((namespace) => ({ namespace, userId: 'ada' })),
  apiKeys: [
    { userId: 'ada', key },
    { userId: 'eve', key: other },
  ],
  servers: [server('deep', tools), server('wide', tools.slice(0, 2))],
  connections: [
    connection('deep', 'c'),
    ...Array.from({ length: 1000 }, (_, index) => connection('wide', `c${index}`)),
  ],
}
const policy = Array.from({ length: 16 }, (_, index) => ({
  namespaces: ['deep', 'wide'],
  rpcReqMatch: { 'params.name': `^tool_.*(?:find|get|delete|list|x${index})$` },
}))

export async function explain(report: Report, rounds: number): Promise<void> {
  using place: Workplace = workplace()
  const folder = join(place.folder, 'company')
  mkdirSync(folder)
  writeFileSync(join(folder, 'company.json'), JSON.stringify(company))
  await using running = await startServer(place, ['--fixtures', folder, ...withoutRates])
  const send = async (credential: string, path: string, body?: object) => {
    const response = await fetch(`${running.url}${path}`, {
      method: body === undefined ? 'GET' : 'POST',
      headers: { authorization: `Bearer ${credential}`, 'content-type': 'application/json' },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const text = await response.text()
    if (response.status !== 200) throw new Error(`${path}: ${response.status} ${text}`)
    return text
  }
  const timed = async (act: () => Promise<unknown>) => {
    const started = performance.now()
    await act()
    return performance.now() - started
  }
  const request = { namespace: 'wide', connection: 'c1', tool: 'tool_1_get' }
  const one = () => send(key, '/tokens/explain', { policy, request })
  const bare = () => send(key, '/me')
  for (let index = 0; index < 300; index += 1) await Promise.all([one(), bare()])
  const [explained, beside]: [number[], number[]] = [[], []]
  for (let index = 0; index < 100 * rounds; index += 1) {
    explained.push(await timed(one))
    beside.push(await timed(bare))
  }
  const ms = median(explained) - median(beside)
  report('explain, 16 constraints, beyond GET /me', `${ms.toFixed(2)} ms`, 'under 1 ms', ms < 1)
  const alone = Math.max(...beside)
  for (const namespace of ['deep', 'wide']) {
    const times: number[] = []
    const waits: number[] = []
    for (let round = 0; round < 3 * rounds; round += 1) {
      let isOver = false
      const cover = timed(() => send(key, '/tokens/coverage', { policy, namespace })).then((took) => {
        isOver = true
        times.push(took)
      })
      while (!isOver) waits.push(await timed(() => send(other, '/me')))
      await cover
    }
    const what = namespace === 'deep' ? '2,000 tools of one connection' : '2 tools of 1,000 connections'
    const worst = Math.max(...times)
    report(
      `coverage of ${what}`,
      `${median(times).toFixed(0)} ms, at most ${worst.toFixed(0)}`,
      'under 1 s',
      worst < 1000,
    )
    const most = Math.max(...waits)
    const figure = `at most ${most.toFixed(1)} ms, ${alone.toFixed(1)} without`
    report(`others meanwhile (${what})`, figure, 'at most 10 ms more', most - alone <= 10)
  }
}

if (import.meta.main)
  await explain(
    (...row) => console.log(row.filter((part) => part !== undefined).join('  ')),
    Number(process.argv[2] ?? 5),
  )
