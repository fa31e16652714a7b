/**
 * A PostgreSQL of three servers: a primary, and two standbys of which one must have each commit before it is
 * acknowledged. What the tests do to them is done to processes, as a failing machine would.
 */

import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { SQL } from 'bun'
import { freePort } from './free-port.ts'
import { clusterFolder, giveToPostgres, makeCluster, postgresProgram, runPostgresProgram } from './postgres.ts'
import { signalAll } from './processes.ts'

export interface PostgresNode {
  readonly name: string
  readonly port: number
  /** Stops all of them where they are, or lets them go on. */
  signal(signal: 'SIGSTOP' | 'SIGCONT' | 'SIGKILL'): Promise<void>
  query<T>(statement: string): Promise<T[]>
}

export interface ReplicatedPostgres extends AsyncDisposable {
  readonly nodes: readonly PostgresNode[]
  /** All hosts, whichever is primary. */
  readonly url: string
  primary(): PostgresNode
  standbys(): readonly PostgresNode[]
  /** Kills the primary, and promotes the standby that has most of the log. Resolves once it takes writes. */
  failOver(): Promise<void>
  /** Starts a server that was killed, as it was: a primary that does not know of the other. */
  startAsItWas(node: PostgresNode): Promise<void>
  /** Makes a server a standby of the primary, from nothing. */
  rejoin(node: PostgresNode): Promise<void>
}

interface Settings {
  /** False: a commit is acknowledged before any standby has it. */
  readonly isSynchronous?: boolean
}

export async function startReplicatedPostgres({ isSynchronous = true }: Settings = {}): Promise<ReplicatedPostgres> {
  const folder = clusterFolder()
  giveToPostgres(folder)
  const names = ['n1', 'n2', 'n3']
  const ports: number[] = []
  for (const _ of names) ports.push(await freePort())
  const settings = [
    'listen_addresses=127.0.0.1',
    'dynamic_shared_memory_type=mmap',
    `unix_socket_directories=${folder}`,
    'fsync=off',
    'max_connections=200',
    'wal_keep_size=256MB',
    `synchronous_standby_names=${isSynchronous ? 'ANY 1 (n1, n2, n3)' : ''}`,
    'wal_receiver_status_interval=1s',
    // A standby that looks for its new primary only every five seconds keeps all writers waiting.
    'wal_retrieve_retry_interval=100ms',
  ]
  const children = new Map<string, Bun.Subprocess>()
  const dataOf = (name: string) => join(folder, name)
  const portOf = (name: string) => ports[names.indexOf(name)] as number
  let primaryName = 'n1'

  async function start(name: string): Promise<void> {
    const options = settings.flatMap((one) => ['-c', one])
    children.set(name, postgresProgram('postgres', '-D', dataOf(name), '-p', String(portOf(name)), ...options))
    await answers(nodeOf(name))
  }

  async function makeStandby(name: string): Promise<void> {
    rmSync(dataOf(name), { recursive: true, force: true })
    const from = `host=127.0.0.1 port=${portOf(primaryName)} user=postern application_name=${name}`
    await runPostgresProgram('pg_basebackup', '-D', dataOf(name), '-d', from, '-R', '-X', 'stream', '-c', 'fast')
    await start(name)
  }

  const nodes = names.map((name): PostgresNode => {
    const port = portOf(name)
    return {
      name,
      port,
      async signal(signal) {
        const pid = children.get(name)?.pid
        if (pid !== undefined) signalAll(pid, signal)
        if (signal !== 'SIGKILL') return
        await children.get(name)?.exited
        children.delete(name)
        rmSync(join(dataOf(name), 'postmaster.pid'), { force: true })
      },
      async query<T>(statement: string) {
        const sql = new SQL({ url: `postgres://postern@127.0.0.1:${port}/postern`, max: 1, connectionTimeout: 60 })
        try {
          return (await sql.unsafe(statement)) as T[]
        } finally {
          await sql.close({ timeout: 0 })
        }
      },
    }
  })
  const nodeOf = (name: string) => nodes[names.indexOf(name)] as PostgresNode

  await makeCluster(dataOf('n1'))
  // Without standbys nothing would be acknowledged yet.
  const single = postgresProgram(
    'postgres',
    ...['-D', dataOf('n1'), '-p', String(portOf('n1'))],
    ...settings.filter((one) => !one.startsWith('synchronous')).flatMap((one) => ['-c', one]),
  )
  await createDatabase(portOf('n1'))
  single.kill('SIGINT')
  await single.exited
  const asIs = start('n1')
  await asIs
  await makeStandby('n2')
  await makeStandby('n3')

  const running = {
    nodes,
    url: `postgres://postern@${ports.map((port) => `127.0.0.1:${port}`).join(',')}/postern`,
    primary: () => nodeOf(primaryName),
    standbys: () => nodes.filter(({ name }) => name !== primaryName && children.has(name)),
    async failOver() {
      await nodeOf(primaryName).signal('SIGKILL')
      const received = await Promise.all(running.standbys().map(async (node) => ({ node, at: await endOfLog(node) })))
      const [most] = received.sort((a, b) => (a.at < b.at ? 1 : -1))
      if (most === undefined) throw new Error('there is no standby')
      primaryName = most.node.name
      await most.node.query('SELECT pg_promote(true, 30)')
      for (const node of running.standbys()) {
        const to = `host=127.0.0.1 port=${most.node.port} user=postern application_name=${node.name}`
        await node.query(`ALTER SYSTEM SET primary_conninfo = '${to}'`)
        await node.query('SELECT pg_reload_conf()')
      }
    },
    startAsItWas: (node: PostgresNode) => start(node.name),
    async rejoin(node: PostgresNode) {
      await node.signal('SIGKILL')
      await makeStandby(node.name)
    },
    async [Symbol.asyncDispose]() {
      for (const node of nodes) await node.signal('SIGKILL')
      rmSync(folder, { recursive: true, force: true })
    },
  }
  return running
}

/**
 * How far a standby's log reaches. What it received before it was restarted shows only once it has read it, so this
 * waits until it reads no further.
 */
async function endOfLog(node: PostgresNode): Promise<bigint> {
  let before = -1n
  for (let still = 0; still < 3; ) {
    const [row] = await node.query<{ at: string }>(
      "SELECT pg_wal_lsn_diff(greatest(pg_last_wal_replay_lsn(), pg_last_wal_receive_lsn()), '0/0')::text AS at",
    )
    const at = BigInt(row?.at ?? 0)
    still = at === before ? still + 1 : 0
    before = at
    await Bun.sleep(30)
  }
  return before
}

/** It listens before it answers. */
async function answers(node: PostgresNode): Promise<void> {
  while ((await node.query('SELECT 1').catch(() => [])).length === 0) await Bun.sleep(20)
}

async function createDatabase(port: number): Promise<void> {
  for (;;) {
    const sql = new SQL({ url: `postgres://postern@127.0.0.1:${port}/postgres`, max: 1 })
    const isMade = await sql
      .unsafe('CREATE DATABASE postern')
      .then(() => true)
      .catch(() => false)
    await sql.close({ timeout: 0 })
    if (isMade) return
    await Bun.sleep(20)
  }
}
