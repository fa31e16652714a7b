/** The replicas that share a database, by their heartbeats. */

import { replicaGoneMs, replicaSeenMs } from '../../limits.ts'
import { StoreError } from '../store.ts'
import type { Statements } from './statements.ts'

/** A replica, as its heartbeats describe it. */
export interface Replica {
  readonly name: string
  /** The issuer of its tokens. */
  readonly baseUrl: string
  /** Where it listens: `ADDRESS PORT`. */
  readonly addresses: readonly string[]
}

/** A replica that has sent a heartbeat. `run`: of which start. `ageMs`: since when, by the database's clock. */
export interface SeenReplica extends Omit<Replica, 'addresses'> {
  readonly run: string
  readonly program: string
  readonly ageMs: number
}

/** All that have sent a heartbeat within a day. */
export function listReplicas(read: Statements['read']): Promise<readonly SeenReplica[]> {
  return read<SeenReplica>(
    `SELECT name, base_url AS "baseUrl", run, program,
       extract(epoch FROM clock_timestamp() - beat)::float8 * 1000 AS "ageMs" FROM postern_replicas ORDER BY name`,
    [],
  )
}

/**
 * A name is taken while its heartbeats move; one that was killed a moment ago is seen to stand still. Two base URLs are
 * two issuers: tokens of one replica would be refused by the other.
 */
export async function requireNoOther(
  replicas: () => Promise<readonly SeenReplica[]>,
  { name, baseUrl }: Replica,
  now: () => number,
): Promise<void> {
  const inTheWay = (one: SeenReplica) => one.ageMs < replicaGoneMs && (one.name === name || one.baseUrl !== baseUrl)
  const runOf = ({ run, ageMs }: SeenReplica, at: number) => ({ run, beatAt: at - ageMs })
  const first = new Map((await replicas()).filter(inTheWay).map((one) => [one.name, runOf(one, now())]))
  const until = now() + replicaSeenMs
  while (first.size > 0 && now() < until) {
    await Bun.sleep(500)
    for (const one of await replicas()) {
      const before = first.get(one.name)
      // By half a second: two readings of two clocks never agree exactly.
      if (before === undefined || (before.run === one.run && runOf(one, now()).beatAt - before.beatAt < 500)) continue
      throw new StoreError(
        'fatal',
        one.name === name
          ? `another replica is named ${name}: give each its own --replica`
          : `the replica ${one.name} has the base URL ${one.baseUrl}, and this one ${baseUrl}: all must have the same`,
      )
    }
  }
}
