/**
 * Every second, a process writes about itself on the primary, and reads there about the others (stores contract, 6.2):
 * a replica under its name; a command without one.
 */

import { version as program } from '../../version.ts'
import type { Health } from '../store.ts'
import type { Client } from './database-client.ts'
import type { Replica } from './replicas.ts'
import { schemaVersion } from './schema.ts'

export interface Heartbeats {
  /** Commits one. Throws StatementError if it is not acknowledged by `until`. */
  send(client: Client, until: number): Promise<void>
  /** Under which name they are sent from now on, and by which start; undefined: under none. */
  replica: (Replica & { readonly run: string }) | undefined
  /** As of the last one that was acknowledged. */
  durability(): Health['durability']
  /** Where the other replicas listen, as of the last one: `ADDRESS PORT`. */
  others(): ReadonlySet<string>
}

export function createHeartbeats(): Heartbeats {
  let durability: Health['durability'] = 'local'
  let others: ReadonlySet<string> = new Set()
  return {
    replica: undefined,
    async send(client, until) {
      const { name = null, run = null, baseUrl = null, addresses = [] } = this.replica ?? {}
      const [row] = await client.query<{ is_replicated: boolean; others: string | null }>(
        'SELECT is_replicated, others FROM postern_beat($1, $2, $3, $4, $5, $6)',
        [schemaVersion, name, run, baseUrl, addresses.join(), program],
        until,
      )
      durability = row?.is_replicated === true ? 'replicated' : 'local'
      others = new Set(row?.others?.split(','))
    },
    durability: () => durability,
    others: () => others,
  }
}
