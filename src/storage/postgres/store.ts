/**
 * The engine on PostgreSQL (stores contract, 1). All replicas of postern share one database: there are no synchronous
 * reads, and each read asks the primary. Where none can be believed, reads and writes fail; nothing is remembered here.
 */

import { randomBytes } from 'node:crypto'
import {
  clockOffsetMaxMs,
  storeBeliefMs,
  storeOutcomeMs,
  storePoolDefault,
  storeReadMs,
  storeStartMs,
} from '../../limits.ts'
import type { Log } from '../../ops/log.ts'
import { version as program } from '../../version.ts'
import { asBuffer } from '../bytes.ts'
import { checksumOf } from '../checksum.ts'
import { concatenate } from '../concatenated.ts'
import { type Committed, type Health, type Key, type Range, type Store, StoreError, type Write } from '../store.ts'
import { type Address, nameOf } from './address.ts'
import { bytesArray } from './arrays.ts'
import { type ClientOptions, createClient, type Run, StatementError } from './client.ts'
import { lookStatement, prepareSchema } from './prepare.ts'
import { type Look, watchPrimary } from './primary.ts'
import { type Replica, requireNoOther, type SeenReplica } from './replicas.ts'
import { refusals, schemaVersion } from './schema.ts'
import { createSharedReads } from './shared-reads.ts'
import { type CommitRow, commitCall, loadWith, outcomeOf, Refused, signed } from './write.ts'

export interface PostgresOptions {
  readonly address: Address
  /** Connections for work at most; each host takes two more, to be watched. */
  readonly pool?: number
  /** What the database's own lists call us. */
  readonly label?: string
  /** Whether writes are refused where no synchronous standby is configured. */
  readonly isStandbyRequired?: boolean
  /** Makes the schema, or upgrades it. Otherwise one of another version is refused. */
  readonly mayMigrate?: boolean
  /** Milliseconds to wait for a primary. */
  readonly waitMs?: number
  readonly log?: Pick<Log, 'info' | 'warn'>
}

/** The store, with what only a database has: other replicas, and a secret that is kept elsewhere. */
export interface PostgresStore extends Store {
  /** A value that only the right instance secret makes; undefined in a new database. */
  secretCheck(): Promise<Uint8Array | undefined>
  /** Notes that value in a new database. False if another process was first. */
  noteSecretCheck(check: Uint8Array): Promise<boolean>
  /**
   * Sends heartbeats under this name from now on. Throws StoreError `fatal` if another replica lives under it, or under
   * another base URL.
   */
  join(replica: Replica): Promise<void>
  /** All that have sent a heartbeat within a day. */
  replicas(): Promise<readonly SeenReplica[]>
  /** Where the other replicas listen: `ADDRESS PORT`. At most a second old. */
  otherAddresses(): ReadonlySet<string>
  /** Runs `work` while no other process does; the others wait. For loads of fixtures. */
  exclusively<T>(work: () => Promise<T>): Promise<T>
  /** Runs statements in one transaction on the primary, which `begin` opens. For commands. */
  transaction<T>(begin: string, work: (run: Run) => Promise<T>): Promise<T>
}

/** A record as it is stored. */
export interface Row {
  readonly key: Buffer
  readonly value: Buffer
  /** A bigint as text; null where the database has counted. */
  readonly checksum: string | null
}

const now = () => performance.now()
const silent = { info() {}, warn() {} }

/** Opens the store, on a schema that it makes if it may. Throws StoreError `fatal` with a line for the operator. */
export async function openPostgresStore(options: PostgresOptions): Promise<PostgresStore> {
  const { address, pool = storePoolDefault, label = 'postern', isStandbyRequired = false, log = silent } = options
  const work: ClientOptions = { max: pool, label, now }
  const hosts = address.hosts.map((host) => ({
    name: nameOf(host),
    open: () => createClient(address, host, work),
    watch: createClient(address, host, { max: 2, label, now }),
  }))
  const waitUntil = now() + (options.waitMs ?? storeStartMs)
  try {
    await prepareSchema(hosts, { mayMigrate: options.mayMigrate ?? false, until: waitUntil, now, log })
  } catch (error) {
    for (const { watch } of hosts) watch.close()
    throw error
  }

  let joined: { readonly replica: Replica; readonly run: string } | undefined
  let others: ReadonlySet<string> = new Set()
  let durability: Health['durability'] = 'local'
  let isClosed = false
  const primary = watchPrimary({
    hosts: hosts.map(({ name, open, watch }) => ({
      name,
      open,
      async look(until) {
        const [found] = await watch.query<Look>(lookStatement, [], until)
        return found as Look
      },
      async beat(until) {
        const { name: replica = null, baseUrl = null, addresses } = joined?.replica ?? {}
        const [row] = await watch.query<{ is_replicated: boolean; others: string | null }>(
          'SELECT is_replicated, others FROM postern_beat($1, $2, $3, $4, $5, $6)',
          [schemaVersion, replica, joined?.run ?? null, baseUrl, addresses?.join(), program],
          until,
        )
        durability = row?.is_replicated === true ? 'replicated' : 'local'
        others = new Set(row?.others?.split(','))
      },
    })),
    now,
    every(milliseconds, act) {
      const timer = setInterval(act, milliseconds).unref()
      return () => clearInterval(timer)
    },
    log,
  })

  function requireOpen(): void {
    if (isClosed) throw new StoreError('fatal', 'the store is closed')
  }

  /** A statement that only reads, and is therefore sent again if its connection is lost. */
  async function read<T>(statement: string, values: readonly unknown[], since = now()): Promise<readonly T[]> {
    requireOpen()
    const until = since + storeReadMs
    for (;;) {
      const client = await primary.current(until)
      try {
        return await client.query<T>(statement, values, until)
      } catch (error) {
        requireOpen()
        const isLost = error instanceof StatementError && error.sqlState === undefined
        if (!isLost || now() >= until) throw unavailable(error)
        await primary.lookAgain()
      }
    }
  }

  const rowsAt = createSharedReads<Row>(async (keys, since) => {
    const statement = 'SELECT key, value, checksum::text FROM postern_records WHERE key = ANY ($1::bytea[])'
    const rows = await read<Row>(statement, [bytesArray(keys)], since)
    const found = new Map(rows.map((row) => [row.key.toString('latin1'), row]))
    return keys.map((key) => found.get(asBuffer(key).toString('latin1')))
  }, now)

  /** Verified for each caller by itself: a damaged record is no concern of those who share the statement. */
  async function getMany(keys: readonly Key[]): Promise<(Uint8Array | undefined)[]> {
    requireOpen()
    return (await rowsAt(keys)).map((row) => row && verified(row))
  }

  async function rowsOf({ gte, lt, limit }: Range): Promise<{ readonly rows: readonly Row[]; readonly more: boolean }> {
    const rows = await read<Row>(
      'SELECT key, value, checksum::text FROM postern_records WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3',
      [asBuffer(gte), asBuffer(lt), limit + 1],
    )
    return { rows: rows.slice(0, limit), more: rows.length > limit }
  }

  /**
   * Sends a write until its outcome is certain. What was sent once is never taken back: the database may do it at any
   * time. So it is sent again with the same id, which tells whether it was done.
   */
  async function commit(write: Write): Promise<Committed> {
    requireOpen()
    const sentAt = now()
    const until = sentAt + storeOutcomeMs
    const { statement, values } = commitCall({ id: randomBytes(16), wantsStandby: isStandbyRequired }, write)
    let mayBeDone = false
    for (;;) {
      try {
        const client = await primary.current(mayBeDone ? until : sentAt + storeReadMs)
        const rows = await client.query<CommitRow>(statement, values, until)
        // Done by an earlier sending, whose acknowledgement may have been cut short before the standbys had it.
        if (rows[0]?.kind === 'found') await primary.acknowledged(until)
        return outcomeOf(rows)
      } catch (error) {
        const isLost = error instanceof StatementError && error.sqlState === undefined
        mayBeDone ||= error instanceof StatementError && error.wasSent
        const hasMoved = error instanceof StatementError && error.sqlState === readOnly
        if (mayBeDone && (now() >= until || isClosed)) throw indeterminate(error)
        if (!mayBeDone && !((isLost || hasMoved) && now() < sentAt + storeReadMs)) throw unavailable(error)
        // What the server refuses now says nothing about what it did before.
        if (mayBeDone && !isLost && !hasMoved && !(error instanceof StoreError)) throw indeterminate(error)
        if (isLost || hasMoved) await primary.lookAgain()
      }
    }
  }

  async function transaction<T>(begin: string, inside: (run: Run) => Promise<T>): Promise<T> {
    requireOpen()
    const client = await primary.current(now() + storeReadMs)
    try {
      return await client.transaction(begin, inside)
    } catch (error) {
      if (!(error instanceof StatementError)) throw error
      throw error.wasSent ? indeterminate(error) : unavailable(error)
    }
  }

  async function replicas(): Promise<readonly SeenReplica[]> {
    const rows = await read<SeenReplica & { ageMs: string | number }>(
      `SELECT name, base_url AS "baseUrl", run, program,
         extract(epoch FROM clock_timestamp() - beat)::float8 * 1000 AS "ageMs" FROM postern_replicas ORDER BY name`,
      [],
    )
    return rows.map((row) => ({ ...row, ageMs: Number(row.ageMs) }))
  }

  async function health(): Promise<Health> {
    const askedAt = Date.now()
    const [row] = await read<{ bytes: number; clock: number }>(
      `SELECT pg_total_relation_size('postern_records')::float8 AS bytes,
         extract(epoch FROM clock_timestamp())::float8 * 1000 AS clock`,
      [],
    )
    const at = primary.believed()
    return {
      bytes: Number(row?.bytes),
      durability,
      clockOffsetMs: Math.round(Number(row?.clock) - (askedAt + Date.now()) / 2),
      ...(at !== undefined && { primary: at }),
    }
  }

  const opened: PostgresStore = {
    get: async (key) => (await getMany([key]))[0],
    getMany,
    async range(range) {
      const { rows, more } = await rowsOf(range)
      return { entries: rows.map((row) => ({ key: row.key, value: verified(row) })), more }
    },
    async keys({ gte, lt, limit }) {
      const rows = await read<Pick<Row, 'key'>>(
        'SELECT key FROM postern_records WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3',
        [asBuffer(gte), asBuffer(lt), limit + 1],
      )
      return { keys: rows.slice(0, limit).map(({ key }) => key), more: rows.length > limit }
    },
    async concatValues(range, beside) {
      if (beside === undefined) {
        const { rows, more } = await rowsOf(range)
        return { ...concatenate(rows.map(verified), more ? rows.at(-1)?.key : undefined), beside: undefined }
      }
      const { gte, lt, limit } = range
      const all = await read<Row & { is_beside: boolean }>(
        `SELECT key, value, checksum::text, true AS is_beside FROM postern_records WHERE key = $1 UNION ALL
         (SELECT key, value, checksum::text, false FROM postern_records WHERE key >= $2 AND key < $3 ORDER BY key LIMIT $4)`,
        [asBuffer(beside), asBuffer(gte), asBuffer(lt), limit + 1],
      )
      const [version] = all.filter((row) => row.is_beside)
      const rows = all.filter((row) => !row.is_beside)
      const lastIfMore = rows.length > limit ? rows[limit - 1]?.key : undefined
      const values = concatenate(rows.slice(0, limit).map(verified), lastIfMore)
      return { ...values, beside: version && verified(version) }
    },
    commit,
    async load(write) {
      const head = { id: randomBytes(16), wantsStandby: isStandbyRequired }
      try {
        return await transaction('BEGIN', (run) => loadWith(run, head, write))
      } catch (error) {
        if (error instanceof Refused) return error.outcome
        throw error
      }
    },
    health,
    async secretCheck() {
      const [row] = await read<{ secret_check: Buffer | null }>('SELECT secret_check FROM postern_instance', [])
      return row?.secret_check ?? undefined
    },
    noteSecretCheck: (check) =>
      transaction('BEGIN', async (run) => {
        const statement = 'UPDATE postern_instance SET secret_check = $1 WHERE secret_check IS NULL RETURNING version'
        return (await run(statement, [asBuffer(check)])).length === 1
      }),
    async join(replica) {
      await requireNoOther(replicas, replica)
      joined = { replica, run: randomBytes(12).toString('hex') }
      await primary.acknowledged(now() + storeBeliefMs)
    },
    replicas,
    otherAddresses: () => others,
    exclusively: (work) =>
      transaction('BEGIN', async (run) => {
        // Waiting for another's load is no failure, however long that takes.
        await run('SET LOCAL lock_timeout = 0')
        await run(`SELECT pg_advisory_xact_lock(${loadingLock})`)
        return work()
      }),
    transaction,
    async close() {
      if (isClosed) return
      const { name } = joined?.replica ?? {}
      joined = undefined
      // So that the next start need not wait for this name to be gone. Where it cannot be said, it will be seen.
      if (name !== undefined) await read('DELETE FROM postern_replicas WHERE name = $1', [name]).catch(() => {})
      isClosed = true
      primary.close()
      for (const { watch } of hosts) watch.close()
    },
  }
  try {
    const { clockOffsetMs } = await primary.current(waitUntil).then(health)
    if (Math.abs(clockOffsetMs) > clockOffsetMaxMs) {
      const seconds = Math.round(Math.abs(clockOffsetMs) / 1000)
      throw new StoreError('fatal', `this machine's clock and the database's differ by ${seconds} s: set them first`)
    }
    return opened
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** The number of the advisory lock under which fixtures are loaded. Any constant will do. */
const loadingLock = 7_075_831_902_418

/** SQLSTATE 25006: the host was primary a moment ago. */
const readOnly = '25006'

function unavailable(error: unknown): StoreError {
  if (error instanceof StoreError) return error
  const { sqlState, message } = error as StatementError
  const reason = sqlState === refusals.noStandby ? 'no synchronous standby is configured (--store-sync)' : message
  return new StoreError('unavailable', `the store is unavailable: ${reason}`, { cause: error })
}

function indeterminate(error: unknown): StoreError {
  const { message } = error as Error
  return new StoreError(
    'indeterminate',
    `it is not known whether this was written; read before you repeat it (${message})`,
    { cause: error },
  )
}

/** The value, whose checksum must match. Throws StoreError `damaged`. */
function verified({ key, value, checksum }: Row): Uint8Array {
  if (isIntact({ key, value, checksum })) return value
  throw new StoreError('damaged', 'a record is damaged: run `postern verify`')
}

/** Whether the checksum of a record matches. */
export function isIntact({ key, value, checksum }: Row): boolean {
  return checksum === null || BigInt(checksum) === signed(checksumOf(key, value))
}
