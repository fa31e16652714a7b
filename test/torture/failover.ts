/**
 * Two replicas on a PostgreSQL with two standbys, under load from outside, while its primary is killed, stopped and
 * comes back, and while replicas are killed. Every write that was acknowledged must be there, on either replica, at
 * once.
 */

import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mintToken } from '../api/cases.ts'
import { run, type Server, sampleFolder, sendTo, startServer, withoutRates, workplace } from '../support/executable.ts'
import { freePort } from '../support/free-port.ts'
import { isPostgresInstalled } from '../support/postgres.ts'
import { type Random, random } from '../support/random.ts'
import { type ReplicatedPostgres, startReplicatedPostgres } from '../support/replicated-postgres.ts'
import { sampleKeys } from '../support/sample.ts'
import { until } from '../support/until.ts'
import { collector, type Trial } from './trial.ts'

/** Writers, each with a connection of its own. */
const writers = 6
/** From the promotion to the first write that is acknowledged, in milliseconds (contract, 19.2). */
const writesAfterMs = 3000
/**
 * Until a read is answered, whatever happens to the database. Times count in `make torture` alone: it is not for a busy
 * machine.
 */
const readsWithinMs = 4000
/** Acknowledged before a primary is killed. */
const writesFirst = 30
/** Far more than the control without locks needs for something wrong. */
const writesWithoutLocks = 400

export const failover: Trial = {
  name: 'failover',
  promise: 'When the primary of PostgreSQL is killed, replicas lose no acknowledged write, and give no wrong answer',
  times: { full: 20, short: 1 },

  async run(times, seed) {
    if (!isPostgresInstalled) return { figure: '', broken: [], seen: {}, missing: 'PostgreSQL is not installed' }
    const { broken, expect } = collector()
    const isTimed = times > 1
    const drilled = drill({ cycles: times, seed, stopMs: isTimed ? 10_000 : 0, restMs: isTimed ? 500 : 250, isTimed })
    const held = await drilled
    for (const one of held.broken) expect(false, () => one)
    // The same for clients that know one address, and go on while all replicas are replaced one after the other.
    const hasProxy = isTimed && Bun.which('nginx') !== null
    const behind = hasProxy
      ? await drill({ cycles: Math.ceil(times / 4), seed, isBehindProxy: true, isTimed })
      : undefined
    for (const one of behind?.broken ?? []) expect(false, () => `behind nginx: ${one}`)
    // The drill must notice what it is there for. The short run takes the whole one's word for it.
    const controls = [{ cycles: 1, seed, isSynchronous: false } as const, { cycles: 0, seed, hasLocks: false } as const]
    const [losing, torn] = isTimed ? await Promise.all(controls.map(drill)) : []
    if (losing !== undefined && torn !== undefined) {
      expect(losing.lost > 0, () => 'with asynchronous standbys nothing was lost: the drill would not notice')
      expect(torn.broken.length > 0, () => 'without locks nothing was wrong: the drill would not notice')
    }
    const { writes, promotedMs, readMs, refused } = held
    const behindText =
      behind === undefined
        ? ''
        : `; with nginx in front: ${behind.writes} writes acknowledged, ${behind.lost} lost, ${behind.refused} refused`
    const figure = `${times} failovers, ${writes} writes acknowledged: ${held.lost} lost, ${held.broken.length} wrong; ${refused} refused; after a promotion, a write was acknowledged within ${promotedMs} ms; each read was answered within ${readMs} ms${behindText}${losing === undefined ? '' : `; in the control, with asynchronous standbys: ${losing.lost} lost`}`
    return { figure, broken, seen: { 'acknowledged writes': [writes, times * writesFirst] } }
  },
}

interface Drill {
  readonly cycles: number
  readonly seed: number
  readonly isSynchronous?: boolean
  readonly hasLocks?: boolean
  /** Three replicas, and nginx in front of them, as deploy/ has it. */
  readonly isBehindProxy?: boolean
  /** Whether it counts how long something took. */
  readonly isTimed?: boolean
  /** Between two things that happen, in milliseconds. */
  readonly restMs?: number
  /** How long the primary stands still in the last cycle. */
  readonly stopMs?: number
}

interface Drilled {
  readonly broken: readonly string[]
  readonly lost: number
  readonly writes: number
  readonly refused: number
  readonly promotedMs: number
  readonly readMs: number
}

/** What a connection may hold: what was acknowledged last, or what was sent since and whose outcome is not known. */
interface Written {
  readonly id: string
  acknowledged: number
  unknown: number[]
}

async function drill({
  cycles,
  seed,
  isSynchronous = true,
  hasLocks = true,
  isBehindProxy = false,
  stopMs = 0,
  restMs = 250,
  isTimed = false,
}: Drill): Promise<Drilled> {
  const { broken, expect } = collector()
  const chance = random(seed)
  await using database = await startReplicatedPostgres({ isSynchronous })
  using place = workplace()
  const secret = join(place.folder, 'secret')
  const ports = await Promise.all(Array.from({ length: isBehindProxy ? 3 : 2 }, freePort))
  const starting = (at: number) => {
    const flags = ['--data', join(place.folder, `r${at}`), '--store', database.url, '--port', String(ports[at])]
    const more = ['--base-url', 'http://127.0.0.1:1', '--instance-secret-file', secret, '--fixtures', sampleFolder]
    return startServer(place, [...flags, ...more, ...withoutRates])
  }
  const replicas: Server[] = [await starting(0)]
  replicas.push(...(await Promise.all(ports.slice(1).map((_, at) => starting(at + 1)))))
  await using proxy = isBehindProxy ? await startProxy(place.folder, ports) : undefined
  /** To one replica, or to wherever the proxy leads. */
  const sendAt = (at: number) => sendTo(proxy ?? (replicas[at] as Server))
  if (!hasLocks) await removeLocks(database)

  const state: Written[] = Array.from({ length: writers }, (_, at) => ({ id: `f-${at}`, acknowledged: 0, unknown: [] }))
  let isOver = false
  let [writes, refused, number, lost, readMs, promotedMs, promotedAt] = [0, 0, 0, 0, 0, 0, 0]
  const headers = { authorization: `Bearer ${sampleKeys.priya}`, 'content-type': 'application/json' }

  /** The number in a connection, or undefined while nobody may say. */
  async function read(at: number, { id }: Written): Promise<number | undefined> {
    const askedAt = performance.now()
    const response = await sendAt(at)(`/connect/priya?name=${id}`, { headers }).catch(() => undefined)
    readMs = Math.max(readMs, Math.round(performance.now() - askedAt))
    if (response?.status !== 200) return undefined
    const { connections = [] } = (await response.json()) as { connections?: { metadata: { number: number } }[] }
    return connections[0]?.metadata.number ?? 0
  }

  async function write(one: Written, by: Random): Promise<void> {
    number += 1
    const sent = number
    const at = by.int(2)
    // Of any length, so that each write changes what the namespace's usage counts.
    const metadata = { number: sent, pad: 'x'.repeat(by.int(60)) }
    const body = JSON.stringify({ server: 'lumen', mock: { enabled: true }, name: one.id, metadata })
    const init = { method: 'PUT', headers, body }
    const response = await sendAt(at)(`/connect/priya/${one.id}`, init).catch(() => undefined)
    const code =
      response === undefined ? 'lost' : response.ok ? 'ok' : ((await response.json()) as { error: string }).error
    if (code === 'ok') {
      writes += 1
      one.acknowledged = sent
      one.unknown = []
      if (promotedAt > 0) {
        promotedMs = Math.max(promotedMs, Math.round(performance.now() - promotedAt))
        promotedAt = 0
      }
    } else {
      refused += 1
      await Bun.sleep(10)
      // `unavailable`: surely not written. Anything else must not happen at all.
      if (code === 'lost' || code === 'outcome_unknown') one.unknown.push(sent)
      else expect(code === 'unavailable' || code === 'conflict', () => `a write got ${response?.status} ${code}`)
    }
    // Acknowledged by one, it is there for whoever asks the other.
    for (const reader of [1 - at, at]) await check(reader, one)
  }

  async function check(reader: number, one: Written): Promise<void> {
    const found = await read(reader, one)
    if (found === undefined || found === one.acknowledged || one.unknown.includes(found)) return
    if (found < one.acknowledged) lost += 1
    expect(false, () => `${one.id} is at ${found}; acknowledged ${one.acknowledged}, unknown ${one.unknown.join()}`)
    one.acknowledged = found
  }

  /** A token that a command revokes is refused by both replicas from then on. */
  async function revoke(): Promise<void> {
    const [one, other] = [sendAt(0), sendAt(1)]
    const token = await mintToken(one, sampleKeys.ada, { policy: [{ ttl: '1h' }] })
    const args = ['token', 'revoke', token, '--store', database.url, '--instance-secret-file', secret]
    const { code } = await run(place, [...args, '--data', join(place.folder, 'commands')])
    if (code !== 0) return
    for (const send of [one, other]) {
      const response = await send('/connect/ada?limit=1', { headers: { authorization: `Bearer ${token}` } })
      // 502: of a proxy that finds no replica.
      expect([401, 502, 503].includes(response.status), () => `a revoked token got ${response.status}`)
    }
  }

  /** Now and then: a command takes more of the processor than all writers. */
  async function revokeOn(): Promise<void> {
    await revoke()
    await Bun.sleep(300)
  }

  /** Reads for the time that they take: writers may all wait for their outcome. */
  async function readOn(at: number): Promise<void> {
    await read(at, state[0] as Written)
    await Bun.sleep(20)
  }

  const writing = (one: Written, at: number) => {
    const by = random(seed + at)
    return repeat(() => write(one, by))
  }

  const repeat = async (act: () => Promise<void>) => {
    // A replica that is being killed answers nobody; a moment later another try is due.
    while (!isOver) await act().catch(() => Bun.sleep(20))
  }
  const load = [...state.map(writing), repeat(revokeOn), ...[0, 1].map((at) => repeat(() => readOn(at)))]
  const more = (count: number) => {
    const before = writes
    return until(() => writes >= before + count || broken.length > 0)
  }
  if (!hasLocks) await more(writesWithoutLocks)
  for (let cycle = 0; cycle < cycles; cycle += 1) {
    await more(writesFirst)
    const old = database.primary()
    const standbys = database.standbys()
    for (const standby of standbys) await standby.signal('SIGSTOP')
    if (isSynchronous) await Bun.sleep(50 + chance.int(200))
    else {
      // Acknowledged, and no standby has them. Nobody writes over them afterwards.
      await more(writers)
      isOver = true
    }
    await old.signal('SIGKILL')
    // Killed too: what only waits in their sockets would reach them otherwise, after all.
    await Promise.all(standbys.map((standby) => standby.signal('SIGKILL')))
    await Promise.all(standbys.map((standby) => database.startAsItWas(standby)))
    await database.failOver()
    // The control has nothing more to show.
    if (!isSynchronous) break
    promotedAt = performance.now()
    await until(() => promotedAt === 0)
    await Bun.sleep(restMs)
    // It does not know that it was superseded, and takes what it is given, as far as it can.
    await database.startAsItWas(old)
    await Bun.sleep(2 * restMs)
    await database.rejoin(old)
    const at = chance.int(2)
    await replicas[at]?.kill('SIGKILL')
    replicas[at] = await starting(at)
    await Bun.sleep(restMs)
    // As for an upgrade: each is stopped, and another one takes its place.
    for (const next of isBehindProxy ? replicas.keys() : []) {
      await replicas[next]?.kill('SIGTERM')
      replicas[next] = await starting(next)
    }
  }
  if (stopMs > 0) {
    await database.primary().signal('SIGSTOP')
    await Bun.sleep(stopMs)
    await database.primary().signal('SIGCONT')
    await Bun.sleep(1000)
  }
  isOver = true
  await Promise.all(load)
  for (const one of state) for (const reader of [0, 1]) await check(reader, one)
  expect(
    !isTimed || promotedMs <= writesAfterMs,
    () => `the first write was acknowledged ${promotedMs} ms after a promotion`,
  )
  expect(!isTimed || readMs <= readsWithinMs, () => `a read took ${readMs} ms`)
  mkdirSync(join(place.folder, 'verify'), { mode: 0o700 })
  copyFileSync(secret, join(place.folder, 'verify', 'instance-secret'))
  const args = ['verify', '--store', database.url, '--data', join(place.folder, 'verify')]
  const { code, stderr } = await run(place, args)
  expect(code === 0, () => `verify: ${stderr}`)
  for (const replica of replicas) await replica.kill('SIGKILL')
  return { broken, lost, writes, refused, promotedMs, readMs }
}

/** nginx in front of replicas, as deploy/nginx.replicas.conf has it, without TLS. */
async function startProxy(folder: string, ports: readonly number[]): Promise<AsyncDisposable & Pick<Server, 'url'>> {
  const port = await freePort()
  const servers = ports.map((one) => `server 127.0.0.1:${one} max_fails=0;`).join(' ')
  const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => `${name}_temp_path ${folder}/${name};`,
  )
  const file = join(folder, 'nginx.conf')
  writeFileSync(
    file,
    `daemon off; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log; events {}
http { access_log off; ${temporary.join(' ')}
  upstream postern { ${servers} keepalive 32; }
  server { listen 127.0.0.1:${port};
    location / { proxy_pass http://postern; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_set_header Host 127.0.0.1; proxy_buffering off; proxy_connect_timeout 1s; } } }`,
  )
  const child = Bun.spawn(['nginx', '-c', file, '-p', folder], { stdout: 'ignore', stderr: 'ignore' })
  const url = `http://127.0.0.1:${port}`
  while ((await fetch(`${url}/health`).catch(() => undefined)) === undefined) await Bun.sleep(20)
  return {
    url,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM')
      await child.exited
    },
  }
}

/** Takes the locks out of the commit: what it reads may change before it writes. */
async function removeLocks(database: ReplicatedPostgres): Promise<void> {
  const primary = database.primary()
  const [row] = await primary.query<{ text: string }>(
    "SELECT pg_get_functiondef(oid) AS text FROM pg_proc WHERE proname = 'postern_commit'",
  )
  const without = row?.text.replace('PERFORM pg_advisory_xact_lock(lock_number)', 'PERFORM pg_sleep(0.001)') ?? ''
  await primary.query(without)
}
