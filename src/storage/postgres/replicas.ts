/**
 * The replicas that share a database, by their heartbeats: every second, a process writes about itself on the primary,
 * and reads there about the others (contract, 16.10): a replica under its name; a command without one.
 */

import type { Clock } from '../../clock.ts'
import { replicaGoneMs } from '../../limits.ts'
import { version as program } from '../../version.ts'
import { type Health, StoreError } from '../store.ts'
import type { Client, Run } from './database-client.ts'
import { schemaVersion } from './schema.ts'
import type { Statements } from './statements.ts'

/** Milliseconds in which a replica of the same name is seen to be alive; three heartbeats. Past it: it is gone. */
const replicaSeenMs = 3000

export interface Replica {
  readonly name: string
  /** The issuer of its tokens. */
  readonly baseUrl: string
  /** Where it listens: `ADDRESS PORT`. */
  readonly addresses: readonly string[]
}

export function createHeartbeats() {
  let durability: Health['durability'] = 'local'
  let others: ReadonlySet<string> = new Set()
  return {
    /** Under which name they are sent from now on, and by which start; undefined: under none. */
    replica: undefined as (Replica & { readonly run: string }) | undefined,
    /** Commits one. Throws StatementError if it is not acknowledged by `until`. */
    async send(client: Client, until: number): Promise<void> {
      const { name = null, run = null, baseUrl = null, addresses = [] } = this.replica ?? {}
      const [row] = await client.query<{ is_replicated: boolean; others: string | null }>(
        'SELECT is_replicated, others FROM postern_beat($1, $2, $3, $4, $5, $6)',
        [schemaVersion, name, run, baseUrl, addresses.join(), program],
        until,
      )
      durability = row?.is_replicated === true ? 'replicated' : 'local'
      others = new Set(row?.others?.split(','))
    },
    /** As of the last one that was acknowledged. */
    durability: () => durability,
    /** Where the other replicas listen, as of the last one: `ADDRESS PORT`. */
    others: () => others,
  }
}

/** A replica that has sent a heartbeat. `run`: of which start. `ageMs`: since when, by the database's clock. */
export interface SeenReplica extends Omit<Replica, 'addresses'> {
  readonly run: string
  readonly program: string
  readonly ageMs: number
}

/** All that have sent a heartbeat within a day. */
export function listReplicas(read: Run): Promise<readonly SeenReplica[]> {
  return read<SeenReplica>(
    `SELECT name, base_url AS "baseUrl", run, program,
       extract(epoch FROM clock_timestamp() - beat)::float8 * 1000 AS "ageMs" FROM postern_replicas ORDER BY name`,
  )
}

/**
 * Enters a replica into the list. A name is taken while its heartbeats move; one that was killed a moment ago is seen
 * to stand still. Two base URLs are two issuers: tokens of one replica would be refused by the other. Of several that
 * join at once, one is in the list before the next one looks. Throws StoreError `fatal`.
 */
export async function joinReplicas(
  { read, transaction }: Pick<Statements, 'read' | 'transaction'>,
  replica: Replica & { readonly run: string },
  clock: Clock,
): Promise<void> {
  const inTheWay = (one: SeenReplica) =>
    one.ageMs < replicaGoneMs && (one.name === replica.name || one.baseUrl !== replica.baseUrl)
  const heartbeatOf = ({ run, ageMs }: SeenReplica) => ({ run, at: clock.monotonic() - ageMs })
  const still = new Map((await listReplicas(read)).filter(inTheWay).map((one) => [one.name, heartbeatOf(one)]))
  /** Half a second is allowed for: two readings of two clocks never agree exactly. */
  const requireStill = (all: readonly SeenReplica[]) => {
    for (const one of all.filter(inTheWay)) {
      const before = still.get(one.name)
      if (before?.run !== one.run || heartbeatOf(one).at - before.at > 500) throw refused(one, replica)
    }
  }
  const until = clock.monotonic() + replicaSeenMs
  while (still.size > 0 && clock.monotonic() < until) {
    await Bun.sleep(500)
    requireStill(await listReplicas(read))
  }
  await transaction('BEGIN', async (run) => {
    await run(`SELECT pg_advisory_xact_lock(${joiningLock})`)
    requireStill(await listReplicas(run))
    await run(
      `INSERT INTO postern_replicas VALUES ($1, $2, $3, $4, '', clock_timestamp())
       ON CONFLICT (name) DO UPDATE SET run = excluded.run, base_url = excluded.base_url, beat = excluded.beat`,
      [replica.name, replica.run, replica.baseUrl, replica.addresses.join()],
    )
  })
}

/** The number of the advisory lock under which a replica joins. Any constant will do. */
const joiningLock = 7_075_831_902_419

function refused(one: SeenReplica, { name, baseUrl }: Replica): StoreError {
  const text =
    one.name === name
      ? `another replica is named ${name}: give each its own --replica`
      : `the replica ${one.name} has the base URL ${one.baseUrl}, and this one ${baseUrl}: all must have the same`
  return new StoreError('fatal', text)
}
