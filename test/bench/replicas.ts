/** The engine on PostgreSQL, against the database itself in the same run, and a replica against a server on LMDB. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { keyOf, prefixOf, prefixRange } from '../../src/storage/keys.ts'
import { schemaVersion } from '../../src/storage/postgres/schema.ts'
import { openPostgresStore, type PostgresStore } from '../../src/storage/postgres/store.ts'
import { startServer, type Workplace } from '../support/executable.ts'
import { addressOf, giveToPostgres, isPostgresInstalled, postgresOutput, startPostgres } from '../support/postgres.ts'
import { benchKey, writeFixtures } from './data.ts'
import type { Report } from './gateway.ts'
import { get, median, micro, serve } from './measure.ts'

const loaded = 50_000
const clients = 64
const commitsInFlight = 16
const commitSeconds = 3
const calls = 1000

export async function replicas(report: Report, rounds: number): Promise<void> {
  if (!isPostgresInstalled) return console.log('PostgreSQL is not installed: its rows are missing')
  const folder = mkdtempSync(join(tmpdir(), 'postern-bench-replicas-'))
  const cluster = await startPostgres()
  const url = await cluster.newDatabase()
  const at = (name: string): Workplace => ({ folder, data: join(folder, name), [Symbol.dispose]: () => {} })
  const flags = ['--base-url', 'http://localhost:1', '--fixtures', join(folder, 'fixtures')]
  try {
    writeFixtures(join(folder, 'fixtures'), loaded)
    const started = performance.now()
    const replica = await startServer(at('replica'), [...flags, '--store', url])
    const rate = (loaded + 1000) / ((performance.now() - started) / 1000)
    const figure = `${Math.round(rate).toLocaleString('en')} a second`
    report(`Load ${loaded.toLocaleString('en')} connections into PostgreSQL`, figure, '5,000 a second', rate >= 5000)
    await using own = await startServer(at('own'), flags)
    await unchangedPage(report, rounds, { replica, own, transactions: () => transactionsOf(url, cluster) })
    await replica.kill('SIGTERM')

    const store = await openPostgresStore({ address: addressOf(url), pool: commitsInFlight + 6 })
    const { hostname, port, pathname } = new URL(url)
    const options = {
      hostname,
      port,
      username: 'postern',
      password: '',
      database: pathname.slice(1),
      tls: false,
    } as const
    const bare = new SQL({ adapter: 'postgres', ...options, max: 10 })
    await reading(report, rounds, store, bare)
    await writing(report, store, { port, database: pathname.slice(1) })
    await store.close()
    await bare.close({ timeout: 0 })
  } finally {
    await cluster.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}

interface Served {
  readonly url: string
  readonly pid: number
}

async function unchangedPage(
  report: Report,
  rounds: number,
  { replica, own, transactions }: { readonly replica: Served; readonly own: Served; transactions(): Promise<number> },
): Promise<void> {
  const headers = { Authorization: `Bearer ${benchKey}`, Host: 'localhost:1' }
  const load = async ({ url, pid }: Served, seconds: number) => {
    const { headers: found } = await fetch(`${url}/connect/bench`, { headers })
    const etag = found.get('etag') ?? ''
    const requests = [get(Number(new URL(url).port), '/connect/bench', { ...headers, 'If-None-Match': etag })]
    return serve(pid, { port: Number(new URL(url).port), seconds, connections: clients, requests }, '304')
  }
  for (const one of [replica, own]) await load(one, 2)
  const ratios: number[] = []
  const cpus: number[] = []
  const reads: number[] = []
  for (let round = 0; round < rounds; round += 1) {
    const before = await transactions()
    const there = await load(replica, 2)
    reads.push(((await transactions()) - before) / there.requests)
    const here = await load(own, 2)
    cpus.push(there.cpu)
    ratios.push(there.cpu / here.cpu)
  }
  const [ratio, perRequest] = [median(ratios), median(reads)]
  const what = `Processor time for an unchanged page (304) with ${clients} clients: a replica on PostgreSQL, compared with a server on LMDB`
  report(what, `${ratio.toFixed(2)} × (${micro(median(cpus))})`, '2 ×', ratio <= 2)
  report('Database transactions for each of these requests', perRequest.toFixed(3), '0.1', perRequest <= 0.1)
}

/** All that were committed. The database counts with a delay of a second. */
async function transactionsOf(url: string, { query }: { query(url: string, statement: string): Promise<unknown> }) {
  await Bun.sleep(1500)
  const statement = 'SELECT xact_commit::float8 AS count FROM pg_stat_database WHERE datname = current_database()'
  const [row] = (await query(url, statement)) as { count: number }[]
  return row?.count ?? Number.NaN
}

async function reading(report: Report, rounds: number, store: PostgresStore, bare: SQL): Promise<void> {
  const prefix = prefixOf('connection', 'bench')
  const { gte, lt } = prefixRange(prefix)
  const beside = keyOf('connectionsVersion', 'bench')
  const { keys } = await store.keys({ gte, lt, limit: 2 })
  const page = 'SELECT key, value FROM postern_records WHERE key >= $1 AND key < $2 ORDER BY key LIMIT 101'
  const bounds = [Buffer.from(gte), Buffer.from(lt)]
  const pairs = [
    [
      'Reading two keys at once from PostgreSQL, compared with `SELECT 1`',
      2,
      () => store.getMany(keys),
      () => bare.unsafe('SELECT 1'),
    ],
    [
      'A page of 100 with its version from PostgreSQL, compared with the bare query',
      1.3,
      () => store.concatValues({ gte, lt, limit: 100 }, beside),
      () => bare.unsafe(page, bounds),
    ],
  ] as const
  for (const [what, goal, ours, theirs] of pairs) {
    const ratios: number[] = []
    const times: number[] = []
    for (let round = 0; round <= rounds; round += 1) {
      const own = await timed(ours)
      const yardstick = await timed(theirs)
      // The first round warms up.
      if (round === 0) continue
      times.push(own)
      ratios.push(own / yardstick)
    }
    const ratio = median(ratios)
    report(what, `${ratio.toFixed(2)} × (${micro(median(times))})`, `${goal} ×`, ratio <= goal)
  }
}

/** Microseconds a call, one after the other. */
async function timed(call: () => Promise<unknown>): Promise<number> {
  const started = performance.now()
  for (let i = 0; i < calls; i += 1) await call()
  return ((performance.now() - started) * 1000) / calls
}

async function writing(
  report: Report,
  store: PostgresStore,
  { port, database }: { readonly port: string; readonly database: string },
): Promise<void> {
  const value = Buffer.alloc(1000, 'x')
  let commits = 0
  const until = performance.now() + commitSeconds * 1000
  await Promise.all(
    Array.from({ length: commitsInFlight }, async () => {
      while (performance.now() < until) {
        commits += 1
        await store.commit({ puts: [{ key: Buffer.from(`z${Math.floor(Math.random() * 1e5)}`), value }] })
      }
    }),
  )
  const own = mkdtempSync(join(tmpdir(), 'postern-pgbench-'))
  const script = join(own, 'commit.sql')
  const none = `'{}'::bytea[]`
  writeFileSync(
    script,
    `\\set k random(1, 100000)
SELECT kind FROM postern_commit(decode(md5(random()::text || :k), 'hex'), ${schemaVersion}, false, ${none}, ${none}, ${none},
  '{}'::text[], '{}'::text[], ${none}, ARRAY[('z' || :k)::bytea], ARRAY[repeat('x', 1000)::bytea], ARRAY[1::bigint]);
`,
  )
  // It is not run as root.
  giveToPostgres(own)
  giveToPostgres(script)
  const text = await postgresOutput(
    ...['pgbench', '-n', '-M', 'prepared', '-c', String(commitsInFlight), '-j', '2', '-T', String(commitSeconds)],
    ...['-f', script, '-h', '127.0.0.1', '-p', port, '-U', 'postern', database],
  )
  rmSync(own, { recursive: true, force: true })
  const yardstick = Number(/^tps = ([\d.]+)/m.exec(text)?.[1])
  const rate = commits / commitSeconds
  const share = rate / yardstick
  const what = `Commits a second, of 1 kB each and ${commitsInFlight} at once, compared with \`pgbench\`, which calls the same SQL function`
  report(what, `${share.toFixed(2)} × (${Math.round(rate).toLocaleString('en')} a second)`, '0.6 ×', share >= 0.6)
}
