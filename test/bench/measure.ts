/** How the benchmark measures: processor time of a server a request, and time of a call within this process. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Load, LoadResult } from './load.ts'

export interface Served {
  readonly requests: number
  readonly perSecond: number
  /** Processor time of the server, microseconds a request. */
  readonly cpu: number
  /** Milliseconds. */
  readonly p99: number
  readonly max: number
}

export type Generator = (load: Load) => Promise<LoadResult>

/** In a process of its own. */
async function apart(load: Load): Promise<LoadResult> {
  const client = Bun.spawn([process.execPath, join(import.meta.dir, 'load.ts')], { stdin: 'pipe', stdout: 'pipe' })
  client.stdin.write(JSON.stringify(load))
  await client.stdin.end()
  return JSON.parse(await new Response(client.stdout).text()) as LoadResult
}

/** In the process of the upstream at this port. */
export function privatePart(port: number): Generator {
  return async (load) => {
    const response = await fetch(`http://127.0.0.1:${port}/load`, { method: 'POST', body: JSON.stringify(load) })
    return (await response.json()) as LoadResult
  }
}

/** Loads a server for some seconds. Throws when any answer is of another status than expected. */
export async function serve(pid: number, load: Load, status = '200', generate: Generator = apart): Promise<Served> {
  const before = cpuSeconds(pid)
  const result = await generate(load)
  const cpu = cpuSeconds(pid) - before
  const others = Object.keys(result.statuses).filter((one) => one !== status)
  if (others.length > 0) throw new Error(`statuses ${JSON.stringify(result.statuses)} from ${load.requests[0]}`)
  return {
    requests: result.requests,
    perSecond: result.requests / result.seconds,
    cpu: (cpu * 1e6) / result.requests,
    p99: result.p99,
    max: result.max,
  }
}

/** A GET as bytes. */
export function get(port: number, path: string, headers: Readonly<Record<string, string>> = {}): string {
  const lines = Object.entries({ Host: `localhost:${port}`, ...headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`
}

/** A POST of JSON as bytes. */
export function post(port: number, path: string, headers: Readonly<Record<string, string>>, body: string): string {
  const lines = Object.entries({
    Host: `localhost:${port}`,
    'Content-Length': String(Buffer.byteLength(body)),
    ...headers,
  }).map(([name, value]) => `${name}: ${value}\r\n`)
  return `POST ${path} HTTP/1.1\r\n${lines.join('')}\r\n${body}`
}

export function micro(figure: number): string {
  return `${figure.toFixed(figure < 10 ? 2 : 1)} µs`
}

/** One of the servers of this folder, which prints its port. */
export async function startScript(name: string, ...args: readonly string[]) {
  const child = Bun.spawn([process.execPath, join(import.meta.dir, name), ...args], { stdout: 'pipe' })
  // It would outlive a measurement that fails, and keep its output open.
  process.once('exit', () => child.kill())
  const { value } = await child.stdout.getReader().read()
  return { pid: child.pid, port: Number(Buffer.from(value ?? '').toString()), stop: () => child.kill() }
}

/** Median microseconds of a call, over rounds; each round is long enough for the clock. */
export async function time(rounds: number, calls: number, run: (i: number) => unknown): Promise<number> {
  const figures: number[] = []
  for (let round = 0; round <= rounds; round += 1) {
    const started = performance.now()
    for (let i = 0; i < calls; i += 1) await run(i)
    // The first round warms up.
    if (round > 0) figures.push(((performance.now() - started) * 1000) / calls)
  }
  return median(figures)
}

export function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** The longest time in milliseconds that other work of this process had to wait while `run` ran. */
export async function longestHold(run: () => Promise<unknown>): Promise<number> {
  let longest = 0
  let last = performance.now()
  let ended = false
  const beat = () => {
    const now = performance.now()
    longest = Math.max(longest, now - last)
    last = now
    if (!ended) setImmediate(beat)
  }
  setImmediate(beat)
  await run()
  ended = true
  return Math.max(longest, performance.now() - last)
}

/** Anonymous resident memory, MB: without the mapped store. */
export function anonymousMemory(pid: number): number {
  return statusMegabytes(pid, 'RssAnon')
}

/** The most that was ever resident, MB: the program and the mapped store too. */
export function memoryMost(pid: number): number {
  return statusMegabytes(pid, 'VmHWM')
}

function statusMegabytes(pid: number, name: string): number {
  const [, kilobytes] =
    new RegExp(`^${name}:\\s+(\\d+) kB$`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8')) ?? []
  return Number(kilobytes) / 1024
}

/** User and system time of a process and its threads; the kernel counts in hundredths of a second. */
export function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

/**
 * Milliseconds that the first threads of these processes were ready to run and had no core: what a busy machine makes
 * them wait, and they do not themselves. Linux counts it (schedstat); 0 where it does not.
 */
export function waitedForCore(...pids: readonly number[]): number {
  const nanoseconds = pids.map((pid) => {
    try {
      return Number(readFileSync(`/proc/${pid}/schedstat`, 'latin1').split(' ')[1])
    } catch {
      // It has ended, or the system does not count.
      return 0
    }
  })
  return nanoseconds.reduce((sum, one) => sum + one, 0) / 1e6
}
