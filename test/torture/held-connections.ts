/** Connections that say half a request or nothing, thousands of them, held open as long as the server lets them, while others work. */

import { anonymousMemory, waitedForCore } from '../bench/measure.ts'
import { startServer, workplace } from '../support/executable.ts'
import { HttpSocket } from '../support/http-socket.ts'
import { sampleKeys } from '../support/sample.ts'
import { collector, type Trial } from './trial.ts'

/** Half-open to idle, as 5 to 2. */
const halfOpenShare = 5 / 7
const p99MaxMs = 20
const memoryMaxMB = 64
/** Requests of others that are looked at. */
const requestsMin = 100
/** What the server promises, and what the runtime takes to look. */
const reapedAfterSeconds = 30 + 8

export const heldConnections: Trial = {
  name: 'held-connections',
  promise: 'Network connections that are idle, or have only half a request, delay nobody, and postern closes them',
  times: { full: 7000, short: 1400 },
  isTimed: true,

  async run(times, _seed, goOn) {
    const { broken, expect } = collector()
    using place = workplace()
    await using server = await startServer(place)
    const port = Number(new URL(server.url).port)
    const get = `GET /connect/ada HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${sampleKeys.ada}\r\n\r\n`
    const other = new HttpSocket(port)
    const request = Buffer.from(get)
    for (let i = 0; i < 2000; i += 1) await other.send(request)
    const memoryBefore = anonymousMemory(server.pid)

    const seconds = times >= 7000 ? 60 : 3
    const until = performance.now() + seconds * 1000
    let open = 0
    let opened = 0
    let lastClosed = 0
    let answered = 0
    const hold = async (isHalf: boolean): Promise<void> => {
      const { promise, resolve } = Promise.withResolvers<void>()
      let hasAnswer = false
      const socket = await Bun.connect({
        hostname: '127.0.0.1',
        port,
        socket: {
          open: (socket) => void socket.write(isHalf ? get.slice(0, 40) : get),
          data() {
            if (!hasAnswer) answered += 1
            hasAnswer = true
          },
          close: () => resolve(),
          error: () => resolve(),
        },
      })
      opened += 1
      open += 1
      // A half-open one says a little more now and then, as an attacker would, to be kept.
      const drip = isHalf ? setInterval(() => void socket.write('x'), 5000) : undefined
      await promise
      clearInterval(drip)
      open -= 1
      lastClosed = performance.now()
      // Closed by the server: as long as the trial lasts, another takes its place.
      if (performance.now() < until) await hold(isHalf)
    }
    const halfOpen = Math.ceil(times * halfOpenShare)
    const held = Array.from({ length: times }, (_, i) => hold(i < halfOpen))
    // All of them ask at once, from the network of the other one, which on a busy machine gets 429 until all are answered.
    while ((await other.send(request))?.status === 429 || answered < times - halfOpen) await Bun.sleep(1)
    const latencies: number[] = []
    let most = 0
    let memory = 0
    // A busy machine answers few in that time.
    while (performance.now() < until || latencies.length < requestsMin) {
      const before = waitedForCore(server.pid, process.pid)
      const answer = await other.send(request)
      // What a busy machine adds is no fault of the server.
      const added = waitedForCore(server.pid, process.pid) - before
      expect(answer?.status === 200, () => `another request got ${answer?.status ?? 'no answer'}`)
      latencies.push((answer?.milliseconds ?? Number.POSITIVE_INFINITY) - added)
      most = Math.max(most, open)
      if (latencies.length % 100 === 0) memory = Math.max(memory, anonymousMemory(server.pid) - memoryBefore)
      await Bun.sleep(4)
    }
    const ended = performance.now()
    goOn()
    await Promise.race([Promise.all(held), Bun.sleep((reapedAfterSeconds + 2) * 1000)])
    const reaped = (lastClosed - ended) / 1000
    expect(open === 0, () => `${open} are still open ${reapedAfterSeconds} s later`)
    latencies.sort((a, b) => a - b)
    const p99 = latencies[Math.floor(latencies.length * 0.99)] ?? 0
    expect(p99 <= p99MaxMs, () => `p99 of other requests: ${p99.toFixed(1)} ms`)
    expect(memory <= memoryMaxMB, () => `memory: +${memory.toFixed(0)} MB`)
    const figure = `${most} connections held for ${seconds} s (${opened} opened in all); other requests: p99 ${p99.toFixed(1)} ms; memory: +${memory.toFixed(0)} MB; postern closed the last connection ${Math.max(0, reaped).toFixed(0)} s after the ${seconds} s`
    return {
      figure,
      broken,
      seen: { 'other requests': [latencies.length, requestsMin], 'held at a time': [most, times * 0.95] },
    }
  },
}
