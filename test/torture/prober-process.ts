/**
 * Asks a server for a path every few milliseconds. For each line that it is sent it prints the longest wait since the
 * line before, in milliseconds, without the time in which this process or the server had no core: its first thread, or
 * another of its threads, which that may wait for while garbage is collected.
 */

import { readdirSync } from 'node:fs'
import { waitedForCore } from '../bench/measure.ts'

const [port, pid, path, credential] = process.argv.slice(2)
const request = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${credential}\r\n\r\n`
const everyMs = 10
let longest = 0
let sent: { readonly at: number; readonly withoutCore: ReadonlyMap<string, number> } | undefined

const socket = await Bun.connect({
  hostname: '127.0.0.1',
  port: Number(port),
  socket: {
    data() {
      longest = Math.max(longest, waited())
      sent = undefined
    },
  },
})

setInterval(() => {
  if (sent !== undefined) return
  sent = { at: performance.now(), withoutCore: withoutCore() }
  socket.write(request)
}, everyMs)

for await (const _ of console) {
  // One that waits still has waited so long at least.
  console.log(Math.max(longest, waited()))
  longest = 0
}

function waited(): number {
  if (sent === undefined) return 0
  const { at, withoutCore: before } = sent
  const milliseconds = performance.now() - at
  const since = [...withoutCore()].map(([thread, waited]) => [thread, waited - (before.get(thread) ?? waited)] as const)
  const of = (thread: unknown) => since.find(([one]) => one === String(thread))?.[1] ?? 0
  const others = since.filter(([thread]) => thread !== pid && thread !== String(process.pid))
  return milliseconds - of(pid) - of(process.pid) - Math.max(0, ...others.map(([, waited]) => waited))
}

/** Milliseconds that each thread was ready to run and had no core so far; Linux counts it. */
function withoutCore(): Map<string, number> {
  const threads = [...threadsOf(pid ?? ''), String(process.pid)]
  return new Map(threads.map((thread) => [thread, waitedForCore(Number(thread))]))
}

function threadsOf(process: string): string[] {
  try {
    return readdirSync(`/proc/${process}/task`)
  } catch {
    return []
  }
}
