/**
 * Connections to one host, through the runtime's own client, with the deadlines that it lacks: a statement that a
 * stopped server never answers would otherwise wait for ever. Each runs one statement at a time, because the runtime
 * would send small ones after a large one on the same connection, and closes a connection only with its whole pool.
 */

import { type ReservedSQL, SQL } from 'bun'
import type { Clock } from '../../clock.ts'
import { within } from '../../within.ts'
import { createSlots } from './slots.ts'
import { type Address, type Host, nameOf } from './store-url.ts'

/** Milliseconds for a statement of a transaction, such as a piece of a load. Past it: the transaction has failed. */
const storeTransactionMs = 30_000
/** Seconds to connect to a database. Past it: the statement that needs the connection fails. */
const storeConnectSeconds = 5
/** Milliseconds between closings of all idle connections after one was lost or late. Within it: only that one. */
export const storeRenewMs = 1000

/**
 * A statement failed. `sqlState`: what the server said, and then it did nothing of it. Without: the connection was
 * lost, or no answer came in time. `wasSent`: the server may have run it all the same, or may still do so.
 */
export class StatementError extends Error {
  override readonly name = 'StatementError'
  readonly sqlState: string | undefined
  readonly wasSent: boolean
  /** The server does not let us in, or is not who it should be: waiting does not help. */
  readonly isRefused: boolean

  constructor(
    message: string,
    sqlState: string | undefined,
    wasSent: boolean,
    { isRefused = false, ...options }: ErrorOptions & { readonly isRefused?: boolean } = {},
  ) {
    super(message, options)
    this.sqlState = sqlState
    this.wasSent = wasSent
    this.isRefused = isRefused
  }
}

/** Runs statements of one transaction, in order. */
export type Run = <Row>(statement: string, values?: readonly unknown[]) => Promise<readonly Row[]>

export type Client = ReturnType<typeof createClient>

/** `max`: connections at most, without those of transactions. `label`: what the database's own lists call us. */
export function createClient(
  address: Address,
  host: Host,
  { max, label, clock }: { readonly max: number; readonly label: string; readonly clock: Clock },
) {
  const name = nameOf(host)
  /** All that are open; those of transactions too, one each. */
  const open = new Set<SQL>()
  /** Those that run nothing. */
  const idle: SQL[] = []
  const places = createSlots(max, clock)
  let renewedAt = Number.NEGATIVE_INFINITY
  let isClosed = false

  function connect(): SQL {
    const sql = poolOfOne(address, host, label)
    open.add(sql)
    return sql
  }

  function close(sql: SQL): void {
    open.delete(sql)
    void sql.close({ timeout: 0 })
  }

  /** After a connection was lost, or late: those that run nothing may be dead without knowing it. */
  function renew(lost: SQL): void {
    close(lost)
    if (clock.monotonic() - renewedAt < storeRenewMs) return
    renewedAt = clock.monotonic()
    for (const one of idle.splice(0)) close(one)
  }

  function inTime<Row>(on: Pick<SQL, 'unsafe'>, statement: string, values: readonly unknown[], until: number) {
    const answer = on.unsafe(statement, values as unknown[]) as Promise<readonly Row[]>
    return within(until - clock.monotonic(), answer, () => {
      throw new StatementError(`${name} did not answer in time`, undefined, true)
    })
  }

  return {
    /** HOST:PORT. */
    name,
    /** `until`: the deadline, by the monotonic clock in milliseconds. Throws StatementError. */
    async query<Row>(statement: string, values: readonly unknown[], until: number): Promise<readonly Row[]> {
      if (!(await places.take(until))) throw new StatementError(`${name}: all connections are busy`, undefined, false)
      try {
        if (isClosed) throw new StatementError(`${name}: its connections are closed`, undefined, false)
        const used = idle.shift() ?? connect()
        try {
          const rows = await inTime<Row>(used, statement, values, until)
          idle.push(used)
          return rows
        } catch (thrown) {
          const error = statementError(thrown, host)
          if (error.sqlState !== undefined) idle.push(used)
          else renew(used)
          throw error
        }
      } finally {
        places.giveBack()
      }
    },
    /**
     * Runs `work` between `begin` and COMMIT, on a connection of its own; each statement has `storeTransactionMs`.
     * Throws what `work` throws after a ROLLBACK, and StatementError; `wasSent` only if the end of COMMIT is unknown.
     */
    async transaction<T>(begin: string, work: (run: Run) => Promise<T>): Promise<T> {
      const own = connect()
      /** Reserved: another connection, which the runtime would open after this one is lost, has no transaction. */
      let connection: ReservedSQL | undefined
      const run: Run = async <Row>(statement: string, values: readonly unknown[] = []) => {
        try {
          connection ??= await own.reserve()
          return await inTime<Row>(connection, statement, values, clock.monotonic() + storeTransactionMs)
        } catch (error) {
          const { message, sqlState, wasSent, isRefused } = statementError(error, host)
          // Without COMMIT nothing stays of what the server may have run.
          throw new StatementError(message, sqlState, wasSent && statement === 'COMMIT', { cause: error, isRefused })
        }
      }
      try {
        await run(begin)
        await run(ofTransaction)
        const result = await work(run).catch(async (error: unknown) => {
          // A connection that is lost, or does not answer, is closed below, and with it all ends too.
          const isLost = error instanceof StatementError && error.sqlState === undefined
          if (!isLost) await run('ROLLBACK').catch(() => {})
          throw error
        })
        await run('COMMIT')
        return result
      } finally {
        close(own)
      }
    },
    /** Gives up what is under way, and all connections. */
    close(): void {
      isClosed = true
      for (const one of open) close(one)
    },
  }
}

// Each setting is given: the runtime looks up missing ones in the environment, PGDATABASE even before a URL's.
function poolOfOne(address: Address, host: Host, label: string): SQL {
  return new SQL({
    adapter: 'postgres',
    hostname: host.host,
    port: host.port,
    username: address.user,
    // A function, because an empty text means to the runtime that it may look elsewhere, too.
    password: () => address.password,
    database: address.database,
    tls: tlsOf(address),
    max: 1,
    prepare: address.hasNamedStatements,
    connectionTimeout: storeConnectSeconds,
    connection: { application_name: label },
  })
}

/**
 * Of a transaction that may be long: the server does not end it because it is idle, as a read for a slow reader is, and
 * notices in seconds that our machine is gone, with the locks that it held.
 */
const ofTransaction = `SELECT ${[
  ['idle_in_transaction_session_timeout', '0'],
  ['tcp_keepalives_idle', '5'],
  ['tcp_keepalives_interval', '5'],
  ['tcp_keepalives_count', '3'],
  ['tcp_user_timeout', '15000'],
]
  .map(([name, value]) => `set_config('${name}', '${value}', true)`)
  .join(', ')}`

/** `require` asks for TLS and believes any certificate; so does `tls: true`. */
function tlsOf({ tls }: Address) {
  if (tls.mode === 'disable') return false
  if (tls.mode === 'require') return { rejectUnauthorized: false }
  const { authorities } = tls
  return { rejectUnauthorized: true, ...(authorities !== undefined && { ca: authorities }) }
}

/**
 * An error of severity FATAL ends the connection: nobody knows whether its statement was done, except where the server
 * never let us in (class 28, 3D000: no such user or database; 53300: too many connections; 57P03: starting up).
 */
function statementError(error: unknown, host: Host): StatementError {
  if (error instanceof StatementError) return error
  const { code, errno, severity, message } = error as Error & { code?: string; errno?: string; severity?: string }
  const isFromServer = code === 'ERR_POSTGRES_SERVER_ERROR' && errno !== undefined
  const said = `${nameOf(host)}: ${message}`
  if (isFromServer && severity === 'ERROR') return new StatementError(said, errno, false, { cause: error })
  // A certificate that is not taken has a code of OpenSSL's.
  const isRefused = isFromServer ? /^(?:28|3D)/.test(errno) : /CERT|TLS|UNABLE_TO|HOSTNAME/.test(code ?? '')
  const wasRefused = isRefused || (isFromServer ? /^(?:53300|57P03)/.test(errno) : neverConnected.has(code ?? ''))
  return new StatementError(said, undefined, !wasRefused, { cause: error, isRefused })
}

const neverConnected = new Set(['REFUSED', 'FAILED', 'TIMEOUT'].map((why) => `ERR_POSTGRES_CONNECTION_${why}`))
