/**
 * The engine on PostgreSQL (contract, 15). All replicas of postern share one database: there are no synchronous reads,
 * and each read asks the primary. Where none can be confirmed, reads and writes fail; nothing is remembered here.
 */

import { randomBytes } from 'node:crypto'
import { systemClock as clock } from '../../clock.ts'
import { clockOffsetMaxMs, storeBeliefMs, storeLookAgainMs, storePoolDefault, storePoolReserved } from '../../limits.ts'
import { asBuffer } from '../bytes.ts'
import { type Health, StoreError, type Write } from '../store.ts'
import { createClient, type Run } from './database-client.ts'
import { lookStatement, prepareSchema } from './prepare.ts'
import { type Look, type StoreLog, watchPrimary } from './primary.ts'
import { createRecords } from './records.ts'
import { createHeartbeats, joinReplicas, listReplicas, type Replica } from './replicas.ts'
import { createStatements, type Statements } from './statements.ts'
import { type Address, nameOf } from './store-url.ts'
import { loadWith } from './write.ts'

/** Contract 16.11: milliseconds that postern waits for the database when it starts. Past it: postern ends. */
const storeStartMs = 30_000

/** Keys that a commit locks one by one; servers have 6,400 locks. Past it: it locks all records, as a load does. */
export const postgresCommitKeysMax = 500

export interface PostgresOptions {
  readonly address: Address
  /** Connections to the primary at most, two of them to watch it; at least 2. Another host takes two at most. */
  readonly pool?: number
  /** Our name in the database's own lists. */
  readonly label?: string
  /** Whether writes are refused where no synchronous standby is configured. */
  readonly isStandbyRequired?: boolean
  /** Makes the schema, or upgrades it. Otherwise one of another version is refused. */
  readonly mayMigrate?: boolean
  /** Milliseconds to wait for a primary. */
  readonly waitMs?: number
  readonly log?: StoreLog
}

/** The store, with what only a database has: other replicas, and a secret that is kept elsewhere. */
export type PostgresStore = Awaited<ReturnType<typeof openPostgresStore>>

const silent = { info() {}, warn() {} }

/** Opens the store, on a schema that it makes if it may. Throws StoreError `fatal` with a line for the operator. */
export async function openPostgresStore(options: PostgresOptions) {
  const { address, pool = storePoolDefault, label = 'postern', isStandbyRequired = false } = options
  const { mayMigrate = false, log = silent } = options
  const heartbeats = createHeartbeats()
  const hosts = openHosts(address, pool, label, heartbeats)
  if (address.tls.mode === 'require') log.warn('the certificate of the database is not verified: sslmode=require')
  const waitUntil = clock.monotonic() + (options.waitMs ?? storeStartMs)
  try {
    const watches = hosts.map(({ watch }) => watch)
    await prepareSchema(watches, { mayMigrate, log }, waitUntil, clock)
  } catch (error) {
    for (const { watch } of hosts) watch.close()
    throw error
  }

  const primary = watchPrimary(hosts, clock, every, log)
  const statements = createStatements(primary, isStandbyRequired, connectionsOf(pool).work, clock)
  const { read, transaction } = statements

  const load = (write: Write) => transaction('BEGIN', (run) => loadWith(run, isStandbyRequired, write))

  async function health(): Promise<Health> {
    const measured = await measure(read)
    const at = primary.confirmed()
    return { ...measured, durability: heartbeats.durability(), ...(at !== undefined && { primary: at }) }
  }

  const opened = {
    ...createRecords(statements, clock),
    load,
    // One lock for all keys: the server may have no room for as many locks as there are keys.
    commit(given: Write) {
      const write = { ...given, puts: [...(given.puts ?? [])], deletes: [...(given.deletes ?? [])] }
      return write.puts.length + write.deletes.length > postgresCommitKeysMax ? load(write) : statements.commit(write)
    },
    health,
    /** `secretCheck`: a value that only the database's instance secret makes; null in a new one. */
    async instance() {
      const statement = 'SELECT version AS "schemaVersion", secret_check AS "secretCheck" FROM postern_instance'
      type Instance = { readonly schemaVersion: number; readonly secretCheck: Uint8Array | null }
      return (await read<Instance>(statement))[0] as Instance
    },
    /** Notes that value in a new database. False if another process was first. */
    noteSecretCheck: (check: Uint8Array): Promise<boolean> =>
      transaction('BEGIN', async (run) => {
        const statement = 'UPDATE postern_instance SET secret_check = $1 WHERE secret_check IS NULL RETURNING version'
        return (await run(statement, [asBuffer(check)])).length === 1
      }),
    /** Sends heartbeats. Throws StoreError `fatal` if a replica has this name already, or one has another base URL. */
    async join(replica: Replica): Promise<void> {
      const run = randomBytes(12).toString('hex')
      await joinReplicas(statements, { ...replica, run }, clock)
      heartbeats.replica = { ...replica, run }
      await primary.acknowledged(clock.monotonic() + storeBeliefMs)
    },
    /** All that have sent a heartbeat within a day. */
    replicas: () => listReplicas(read),
    /** Where the other replicas listen: `ADDRESS PORT`. At most a second old. */
    otherAddresses: heartbeats.others,
    /** Runs `work` while no other process does; the others wait. For loads of fixtures. */
    exclusively: <T>(work: () => Promise<T>): Promise<T> =>
      transaction('BEGIN', async (run) => {
        await waitForLoads(run, log)
        return work()
      }),
    /** Runs statements in one transaction on the primary, which `begin` opens. For commands. */
    transaction,
    async close(): Promise<void> {
      const { name } = heartbeats.replica ?? {}
      heartbeats.replica = undefined
      // So that the next start need not wait for this name to be gone. Where it cannot be said, it will be seen.
      if (name !== undefined) await read('DELETE FROM postern_replicas WHERE name = $1', [name]).catch(() => {})
      statements.close()
      primary.close()
      for (const { watch } of hosts) watch.close()
    },
  }
  try {
    await primary.current(waitUntil)
    const { clockOffsetMs } = await health()
    if (Math.abs(clockOffsetMs) <= clockOffsetMaxMs) return opened
    const seconds = Math.round(Math.abs(clockOffsetMs) / 1000)
    throw new StoreError(
      'fatal',
      `this machine's clock and the database's differ by ${seconds} s: synchronize both, and start again`,
    )
  } catch (error) {
    await opened.close()
    throw error
  }
}

function every(milliseconds: number, act: () => void): () => void {
  const timer = setInterval(act, milliseconds).unref()
  return () => clearInterval(timer)
}

/** The hosts, each with connections that watch it, and a way to open those for work, within `pool` in all. */
function openHosts(address: Address, pool: number, label: string, heartbeats: ReturnType<typeof createHeartbeats>) {
  const connections = connectionsOf(pool)
  return address.hosts.map((host) => {
    const watch = createClient(address, host, { max: connections.watch, label, clock })
    return {
      name: nameOf(host),
      watch,
      look: async (until: number) => (await watch.query<Look>(lookStatement, [], until))[0] as Look,
      beat: (until: number) => heartbeats.send(watch, until),
      open: () => createClient(address, host, { max: connections.work, label, clock }),
    }
  })
}

/**
 * How a pool is divided. Of one connection alone, a look would wait behind a heartbeat that no standby acknowledges. A
 * load takes one for itself, and one for the lock that keeps other loads away.
 */
function connectionsOf(pool: number): { readonly work: number; readonly watch: number } {
  const watch = pool > 2 ? 2 : 1
  return { watch, work: Math.max(1, pool - watch - (pool > 5 ? storePoolReserved : 0)) }
}

/** The size of the records, and how far the database's clock is ahead of this machine's. */
async function measure(read: Statements['read']): Promise<Pick<Health, 'bytes' | 'clockOffsetMs'>> {
  const askedAt = Date.now()
  const [row] = await read<{ bytes: number; clock: number }>(
    `SELECT pg_total_relation_size('postern_records')::float8 AS bytes,
       extract(epoch FROM clock_timestamp())::float8 * 1000 AS clock`,
    [],
  )
  const clockOffsetMs = Math.round((row?.clock ?? 0) - (askedAt + Date.now()) / 2)
  return { bytes: row?.bytes ?? 0, clockOffsetMs }
}

/** Takes the lock of loads. Waiting for another's load is no failure, however long that takes. */
async function waitForLoads(run: Run, log: StoreLog): Promise<void> {
  const statement = `SELECT pg_try_advisory_xact_lock(${loadingLock}) AS is`
  for (let isSaid = false; (await run<{ is: boolean }>(statement))[0]?.is !== true; isSaid = true) {
    if (!isSaid) log.info('waiting while another replica loads fixtures')
    await Bun.sleep(storeLookAgainMs)
  }
}

/** The number of the advisory lock under which fixtures are loaded. Any constant will do. */
const loadingLock = 7_075_831_902_418
