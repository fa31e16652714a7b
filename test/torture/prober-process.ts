/**
 * Asks a server for a path every few milliseconds. For each line that it is sent it prints the longest wait since the
 * line before, in milliseconds, without the time in which the server's first thread or this one had no core.
 */

import { waitedForCore } from '../bench/measure.ts'

const [port, pid, path, credential] = process.argv.slice(2)
const request = `GET ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${credential}\r\n\r\n`
const everyMs = 10
const withoutCore = () => waitedForCore(Number(pid), process.pid)
let longest = 0
let sent: { at: number; withoutCore: number } | undefined

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
  return sent === undefined ? 0 : performance.now() - sent.at - (withoutCore() - sent.withoutCore)
}
