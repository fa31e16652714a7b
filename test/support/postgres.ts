/**
 * A PostgreSQL of a test's own: a cluster in a temporary folder, by Debian's package, on a free port, and never as root.
 * What the environment says of other databases (`PG…`, `DATABASE_URL`) is not looked at.
 */

import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SQL } from 'bun'
import { type Address, readAddress } from '../../src/storage/postgres/address.ts'
import { freePort } from './free-port.ts'

const versions = '/usr/lib/postgresql'
const newest = existsSync(versions)
  ? readdirSync(versions)
      .sort((a, b) => Number(a) - Number(b))
      .at(-1)
  : undefined
const isRoot = process.getuid?.() === 0
/** The user that Debian's package makes. */
const user = isRoot ? userId('postgres') : undefined

export const isPostgresInstalled =
  newest !== undefined && existsSync(join(versions, newest, 'bin/initdb')) && (!isRoot || user !== undefined)

export interface PostgresCluster {
  /** The URL of an empty database. */
  newDatabase(): Promise<string>
  query(url: string, statement: string): Promise<unknown>
  stop(): Promise<void>
}

export async function startPostgres(): Promise<PostgresCluster> {
  const folder = mkdtempSync(join(tmpdir(), 'postern-postgres-'))
  giveToPostgres(folder)
  const data = join(folder, 'data')
  await runPostgresProgram('initdb', '-D', data, '-A', 'trust', '-U', 'postern', '-N', '--no-instructions')
  const port = await freePort()
  const settings = ['listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`, 'fsync=off']
  const server = postgresProgram('postgres', '-D', data, '-p', String(port), ...settings.flatMap((one) => ['-c', one]))
  const urlOf = (database: string) => `postgres://postern@127.0.0.1:${port}/${database}`
  const query = async (url: string, statement: string) => {
    const sql = new SQL({ url, max: 1 })
    try {
      return await sql.unsafe(statement)
    } finally {
      await sql.close({ timeout: 0 })
    }
  }
  // It listens before it answers.
  while ((await query(urlOf('postgres'), 'SELECT 1').catch(() => undefined)) === undefined) {
    if (server.exitCode !== null) throw new Error(`postgres ended with ${server.exitCode}`)
    await Bun.sleep(20)
  }
  let databases = 0
  return {
    async newDatabase() {
      databases += 1
      const name = `postern_${databases}`
      await query(urlOf('postgres'), `CREATE DATABASE ${name} TEMPLATE template0`)
      return urlOf(name)
    },
    query,
    async stop() {
      // At once: nobody keeps what is in it.
      server.kill('SIGQUIT')
      await server.exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** What a URL means. Throws if it means nothing. */
export function addressOf(url: string): Address {
  const address = readAddress(url)
  if (typeof address === 'string') throw new Error(address)
  return address
}

/** Starts a program of the package, never as root. */
export function postgresProgram(program: string, ...args: readonly string[]): Bun.Subprocess {
  const command = [join(versions, newest ?? '', 'bin', program), ...args]
  const asUser = ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups']
  const env = { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' }
  const cwd = tmpdir()
  return Bun.spawn(isRoot ? [...asUser, ...command] : command, { cwd, env, stdout: 'ignore', stderr: 'ignore' })
}

/** Runs a program of the package to its end. */
export async function runPostgresProgram(program: string, ...args: readonly string[]): Promise<void> {
  const code = await postgresProgram(program, ...args).exited
  if (code !== 0) throw new Error(`${program} ended with ${code}`)
}

/** Makes a folder that of the user who runs the programs. */
export function giveToPostgres(folder: string): void {
  if (user !== undefined) chownSync(folder, user, user)
}

function userId(name: string): number | undefined {
  const { stdout, exitCode } = Bun.spawnSync(['id', '-u', name])
  return exitCode === 0 ? Number(stdout.toString()) : undefined
}
