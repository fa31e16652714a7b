/** At a start: waits for a primary, and makes the schema or compares it with the one of this program. */

import type { Clock } from '../../clock.ts'
import { storeReadMs } from '../../limits.ts'
import { StoreError } from '../store.ts'
import type { Client, StatementError } from './database-client.ts'
import { choosePrimary, type Look, type StoreLog } from './primary.ts'
import { schema, schemaVersion } from './schema.ts'

/** Asks a host what it is: a `Look`, as one row. */
export const lookStatement = `
SELECT CASE WHEN pg_is_in_recovery() OR current_setting('transaction_read_only') = 'on' THEN NULL
    ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END AS timeline,
  (SELECT system_identifier::text FROM pg_control_system()) AS system, pg_postmaster_start_time()::text AS started`

/**
 * Waits for a primary `until` then, by `clock.monotonic()`, and makes or upgrades its schema if it `mayMigrate`.
 * Otherwise one that is missing or of another version is refused. Throws StoreError `fatal`.
 */
export async function prepareSchema(
  watches: readonly Client[],
  { mayMigrate, log }: { readonly mayMigrate: boolean; readonly log: StoreLog },
  until: number,
  clock: Clock,
): Promise<void> {
  for (let said = ''; ; ) {
    let reason: string
    try {
      const failures: StatementError[] = []
      const looks = await Promise.all(
        watches.map((watch) =>
          watch
            .query<Look>(lookStatement, [], clock.monotonic() + storeReadMs)
            .then(([look]) => look)
            .catch((error: StatementError) => void failures.push(error)),
        ),
      )
      const chosen = choosePrimary(looks, { system: undefined, timeline: 0 })
      if (typeof chosen === 'number') {
        const watch = watches[chosen] as Client
        if (mayMigrate && !(await isPrepared(watch, clock.monotonic() + storeReadMs))) {
          await watch.transaction('BEGIN', async (run) => {
            for (const statement of schema) await run(statement)
          })
        }
        return await requireSchema(watch, clock.monotonic() + storeReadMs)
      }
      const refusal = failures.find(({ isRefused }) => isRefused)
      if (refusal !== undefined) throw new StoreError('fatal', `the store cannot be opened: ${refusal.message}`)
      reason = [chosen, ...failures.map(({ message }) => message)].join('; ')
    } catch (error) {
      if (error instanceof StoreError) throw error
      // Waiting does not mend a refusal that has an SQL state of the server: a missing right, say.
      const { sqlState, message } = error as StatementError
      if (sqlState !== undefined)
        throw new StoreError('fatal', `the store cannot be opened: ${message}`, { cause: error })
      reason = message
    }
    if (clock.monotonic() >= until) throw new StoreError('fatal', `the store cannot be opened: ${reason}`)
    if (reason !== said) log.warn('waiting for the store', { reason })
    said = reason
    await Bun.sleep(500)
  }
}

/** The versions of the schema; undefined: there is none. */
async function findSchema(client: Client, until: number) {
  const isThere = "SELECT to_regclass('postern_instance') IS NOT NULL AS is"
  const [there] = await client.query<{ is: boolean }>(isThere, [], until)
  if (there?.is !== true) return undefined
  const versions = 'SELECT version, oldest FROM postern_instance'
  return (await client.query<{ version: number; oldest: number }>(versions, [], until))[0]
}

/** Whether the schema is ours or newer, and this role's statements are planned as ours are. */
async function isPrepared(client: Client, until: number): Promise<boolean> {
  const found = await findSchema(client, until)
  const plan = "SELECT current_setting('plan_cache_mode') AS mode"
  const [setting] = await client.query<{ mode: string }>(plan, [], until)
  return found !== undefined && found.version >= schemaVersion && setting?.mode === 'force_generic_plan'
}

async function requireSchema(client: Client, until: number): Promise<void> {
  const found = await findSchema(client, until)
  if (found === undefined) {
    const what = 'run `postern serve` or `postern store migrate` on it'
    throw new StoreError('fatal', `there is no store in this database yet: ${what}`)
  }
  if (found.oldest > schemaVersion) {
    throw new StoreError('fatal', 'the store was upgraded by a newer postern: use that version')
  }
  if (found.version < schemaVersion) {
    throw new StoreError('fatal', 'an older postern wrote the store: run `postern store migrate` first')
  }
}
