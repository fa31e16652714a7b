/** The compiled executable, started in an empty directory of its own. */

import { join, resolve } from 'node:path'
import type { Workplace } from './workplace.ts'

export { type Workplace, workplace } from './workplace.ts'

export const executable = resolve(import.meta.dir, '../../dist/postern')
export const sampleFolder = resolve(import.meta.dir, '../../fixtures')

/** No rate that a crowd of one would run into. */
export const withoutRates = ['failure', 'mint', 'write', 'call'].flatMap((rate) => [`--${rate}-rate`, '0'])
/** The sample fixtures, and no such rate. */
export const unlimited = ['--fixtures', sampleFolder, ...withoutRates]

const environment = {
  PATH: process.env['PATH'] ?? '',
  // The tester may be logged in somewhere.
  HOME: '/nonexistent',
  // The runtime's optimizing compiler takes a third of the processor time of a start, and most servers of tests end
  // soon. Trials and measurements, which `bun test` does not run, have it, as users do.
  ...(process.env['NODE_ENV'] === 'test' && { BUN_JSC_useDFGJIT: '0' }),
}

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Starts a program that cannot make files in memory. */
export const withoutMemoryFiles = [process.execPath, join(import.meta.dir, 'without-memory-files.ts')]

/** Runs a command to its end, by another program if one is given. */
export async function run(
  place: Workplace,
  args: readonly string[],
  env: Record<string, string> = {},
  by: readonly string[] = [],
  stdin?: string,
): Promise<Ran> {
  const child = Bun.spawn([...by, executable, ...args], {
    cwd: place.folder,
    env: { ...environment, ...env },
    stdin: stdin === undefined ? 'ignore' : new Blob([stdin]),
    stdout: 'pipe',
    stderr: 'pipe',
  })
  return endOf(child)
}

/** A command that takes longer than a second says how far it is, as any may on a busy machine. */
export const withoutProgress = (stderr: string) =>
  stderr.replace(/^\{"time":"[^"]*","level":"info","event":"progress".*\n/gm, '')

/** What a child process printed until its end, without its progress. */
export async function endOf(child: Bun.ReadableSubprocess): Promise<Ran> {
  const [stdout, stderr, code] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
    child.exited,
  ])
  return { code, stdout, stderr: withoutProgress(stderr) }
}

export interface Server extends AsyncDisposable {
  readonly url: string
  readonly pid: number
  readonly stdout: () => string
  readonly stderr: () => string
  /** Resolves with the exit code. */
  kill(signal: NodeJS.Signals): Promise<number>
  readonly exited: Promise<number>
}

export interface StartOptions {
  readonly command?: 'serve' | 'dev'
  readonly env?: Record<string, string>
  /** Another executable than ours. */
  readonly program?: string
}

/** Starts `serve` or `dev` on a free port; resolves when it says that it listens. */
export async function startServer(
  place: Workplace,
  args: readonly string[] = ['--fixtures', sampleFolder],
  { command = 'serve', env = {}, program = executable }: StartOptions = {},
): Promise<Server> {
  const data = command === 'serve' ? ['--data', place.data] : []
  const port = args.includes('--port') ? [] : ['--port', '0']
  const child = Bun.spawn([program, command, ...data, ...port, ...args], {
    cwd: place.folder,
    env: { ...environment, ...env },
    stdin: 'ignore',
    stdout: 'pipe',
    stderr: 'pipe',
  })
  let stdout = ''
  let stderr = ''
  const listening = Promise.withResolvers<string>()
  const collect = async (stream: ReadableStream<Uint8Array>, add: (text: string) => void) => {
    const decoder = new TextDecoder()
    for await (const chunk of stream) add(decoder.decode(chunk, { stream: true }))
  }
  const ended = Promise.all([
    collect(child.stdout, (text) => {
      stdout += text
      const url = /^postern listening on (\S+)$/m.exec(stdout)?.[1]
      if (url !== undefined) listening.resolve(url)
    }),
    collect(child.stderr, (text) => {
      stderr += text
    }),
  ])
  void child.exited.then((code) => ended.then(() => listening.reject(new Error(`exited with ${code}: ${stderr}`))))
  const url = await listening.promise
  const kill = async (signal: NodeJS.Signals) => {
    child.kill(signal)
    const code = await child.exited
    await ended
    return code
  }
  return {
    url,
    pid: child.pid,
    stdout: () => stdout,
    stderr: () => stderr,
    kill,
    exited: child.exited,
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) await kill('SIGKILL')
    },
  }
}

export const sendTo = (server: Pick<Server, 'url'>) => (path: string, init: RequestInit) =>
  fetch(`${server.url}${path}`, init)

/** With this credential. */
export const get = (server: Server, path: string, credential: string) =>
  fetch(`${server.url}${path}`, { headers: { authorization: `Bearer ${credential}` } })

/** The connections of a page, by their ids. */
export async function ids(response: Response): Promise<string[]> {
  const { connections } = (await response.json()) as { connections: { connectionId: string }[] }
  return connections.map(({ connectionId }) => connectionId)
}

/** The port of a server that starts again under the same name, which is the issuer of its tokens. */
export const samePort = (server: Server) => ['--port', new URL(server.url).port]
