/**
 * A PostgreSQL of a test's own: a cluster in a temporary folder, by Debian's package, on a free port, and never as root.
 * What the environment says of other databases (`PG…`, `DATABASE_URL`) is not looked at.
 */

import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import { SQL } from 'bun'
import { type Address, readAddress } from '../../src/storage/postgres/store-url.ts'
import { freePort } from './free-port.ts'
import { signalAll } from './processes.ts'

const root = resolve(import.meta.dir, '../..')
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
  /** Stops it where it is: it takes connections and answers nothing. */
  pause(): void
  resume(): void
  stop(): Promise<void>
}

/** `tls`: a certificate and its key, in PEM. */
interface ClusterOptions {
  readonly tls?: { readonly cert: string; readonly key: string }
}

/** Bytes of memory that the clusters of a whole test run take, and some more. Below it: they are on the disk. */
const memoryMin = 2 ** 31

/** A folder for clusters. A new database is three hundred files: making them in memory takes a tenth of the time. */
export function clusterFolder(): string {
  const name = 'postern-postgres-'
  try {
    const { bavail, bsize } = statfsSync('/dev/shm')
    if (bavail * bsize >= memoryMin) return mkdtempSync(join('/dev/shm', name))
  } catch {
    // There is none, or it is not ours to write.
  }
  return mkdtempSync(join(tmpdir(), name))
}

export async function startPostgres({ tls }: ClusterOptions = {}): Promise<PostgresCluster> {
  const folder = clusterFolder()
  giveToPostgres(folder)
  const data = join(folder, 'data')
  await makeCluster(data)
  const port = await freePort()
  const settings = ['listen_addresses=127.0.0.1', `unix_socket_directories=${folder}`, 'fsync=off']
  // In its folder: a server that is killed leaves it in /dev/shm otherwise.
  settings.push('dynamic_shared_memory_type=mmap')
  if (tls !== undefined) {
    const files = { ssl_cert_file: join(folder, 'cert.pem'), ssl_key_file: join(folder, 'key.pem') }
    for (const [file, text] of [
      [files.ssl_cert_file, tls.cert],
      [files.ssl_key_file, tls.key],
    ] as const) {
      writeFileSync(file, text, { mode: 0o600 })
      giveToPostgres(file)
    }
    settings.push('ssl=on', ...Object.entries(files).map(([name, file]) => `${name}=${file}`))
  }
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
    pause: () => signalAll(server.pid, 'SIGSTOP'),
    resume: () => signalAll(server.pid, 'SIGCONT'),
    async stop() {
      // At once: nobody keeps what is in it.
      server.kill('SIGQUIT')
      await server.exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/**
 * Makes the data folder of a new cluster. The first is kept as it was made, and the others are copies of it: a copy
 * takes a tenth of the time.
 */
export async function makeCluster(data: string): Promise<void> {
  const first = join(root, `dist/test-postgres/${newest}-${process.getuid?.()}`)
  if (existsSync(first)) {
    await run('cp', '-r', first, data)
    if (user !== undefined) await run('chown', '-R', 'postgres', data)
    return
  }
  await runPostgresProgram('initdb', '-D', data, '-A', 'trust', '-U', 'postern', '-N', '--no-instructions')
  mkdirSync(dirname(first), { recursive: true })
  const copy = `${first}-${process.pid}`
  await run('cp', '-r', data, copy)
  try {
    renameSync(copy, first)
  } catch {
    // Another process was first.
    rmSync(copy, { recursive: true, force: true })
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
  return programOf([pathOf(program), ...args])
}

/** What a program of the package prints. */
export async function postgresOutput(program: string, ...args: readonly string[]): Promise<string> {
  const child = programOf([pathOf(program), ...args], 'pipe')
  return new Response(child.stdout as ReadableStream<Uint8Array>).text()
}

const pathOf = (program: string) => join(versions, newest ?? '', 'bin', program)

function programOf(command: readonly string[], stdout: 'ignore' | 'pipe' = 'ignore'): Bun.Subprocess {
  const asUser = ['setpriv', '--reuid=postgres', '--regid=postgres', '--clear-groups']
  const env = { PATH: process.env['PATH'] ?? '', LC_ALL: 'C' }
  const cwd = tmpdir()
  return Bun.spawn(isRoot ? [...asUser, ...command] : [...command], { cwd, env, stdout, stderr: 'ignore' })
}

/** Runs a program of the package to its end. */
export async function runPostgresProgram(program: string, ...args: readonly string[]): Promise<void> {
  const code = await postgresProgram(program, ...args).exited
  if (code !== 0) throw new Error(`${program} ended with ${code}`)
}

async function run(...command: readonly string[]): Promise<void> {
  const code = await Bun.spawn([...command]).exited
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}`)
}

/** A pooler in front of the database of a URL; the URL that leads through it. */
export async function startPooler(
  url: string,
  mode: 'session' | 'transaction',
): Promise<AsyncDisposable & { readonly url: string }> {
  const { hostname, port, pathname } = new URL(url)
  const folder = mkdtempSync(join(tmpdir(), 'postern-pooler-'))
  giveToPostgres(folder)
  const own = await freePort()
  const file = join(folder, 'pgbouncer.ini')
  const database = pathname.slice(1)
  const lines = [
    '[databases]',
    `${database} = host=${hostname} port=${port} user=postern`,
    '[pgbouncer]',
    ...['listen_addr = 127.0.0.1', `listen_port = ${own}`, 'unix_socket_dir =', 'auth_type = any'],
    ...[
      `pool_mode = ${mode}`,
      'max_client_conn = 200',
      `default_pool_size = ${mode === 'session' ? 40 : 8}`,
      'ignore_startup_parameters =',
    ],
  ]
  writeFileSync(file, lines.join('\n'))
  giveToPostgres(file)
  const child = programOf(['/usr/sbin/pgbouncer', '-q', file])
  const through = `postgres://postern@127.0.0.1:${own}/${database}`
  for (;;) {
    const sql = new SQL({ url: through, max: 1, prepare: false })
    const isThere = await sql.unsafe('SELECT 1').catch(() => undefined)
    await sql.close({ timeout: 0 })
    if (isThere !== undefined) break
    if (child.exitCode !== null) throw new Error(`pgbouncer ended with ${child.exitCode}`)
    await Bun.sleep(20)
  }
  return {
    url: through,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await child.exited
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Makes a folder that of the user who runs the programs. */
export function giveToPostgres(folder: string): void {
  if (user !== undefined) chownSync(folder, user, user)
}

function userId(name: string): number | undefined {
  const { stdout, exitCode } = Bun.spawnSync(['id', '-u', name])
  return exitCode === 0 ? Number(stdout.toString()) : undefined
}
