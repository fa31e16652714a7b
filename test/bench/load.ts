/**
 * A closed-loop HTTP/1.1 load generator: `connections` sockets, one request in flight on each, for a
 * fixed time or count. It runs in a process of its own so that its processor time is not the server's.
 *
 *   echo '{"port":8787,"seconds":2,"connections":32,"requests":["GET /…"]}' | bun load.ts
 *
 * Prints one JSON line: { requests, seconds, statuses: { "200": n }, bytes, p50, p99, max } (times in ms).
 */

export interface Load {
  readonly port: number
  readonly seconds?: number
  readonly count?: number
  readonly connections: number
  /** So many requests a second, evenly; as fast as they are answered without it. */
  readonly perSecond?: number
  /** Whole requests, sent in turn over all sockets. */
  readonly requests: readonly string[]
}

export interface LoadResult {
  readonly requests: number
  readonly seconds: number
  readonly bytes: number
  readonly statuses: Record<string, number>
  readonly p50: number
  readonly p99: number
  readonly max: number
}

interface Reader {
  pending: Buffer | undefined
  bodyLeft: number
  sentAt: number
  isChunked: boolean
}

const lastChunk = Buffer.from('0\r\n\r\n')
const headEnd = Buffer.from('\r\n\r\n')

export async function run(load: Load): Promise<LoadResult> {
  const requests = load.requests.map((text) => Buffer.from(text, 'latin1'))
  const statuses: Record<string, number> = {}
  const latencies: number[] = []
  let sent = 0
  let bytes = 0
  const started = performance.now()
  const until = load.seconds === undefined ? Number.POSITIVE_INFINITY : started + load.seconds * 1000
  const countMax = load.count ?? Number.POSITIVE_INFINITY
  let open = load.connections
  /** Sockets whose turn has not come. */
  let waiting: Bun.Socket<Reader>[] = []
  const { promise: finished, resolve: finish, reject: fail } = Promise.withResolvers<void>()

  function send(socket: Bun.Socket<Reader>): void {
    const now = performance.now()
    if (now >= until || sent >= countMax) {
      socket.end()
      open -= 1
      if (open === 0) finish()
      return
    }
    if (load.perSecond !== undefined && now < started + (sent * 1000) / load.perSecond) {
      waiting.push(socket)
      return
    }
    socket.data.sentAt = now
    const request = requests[sent % requests.length] as Buffer
    sent += 1
    if (socket.write(request) !== request.length) fail(new Error('a request did not fit the socket buffer'))
  }

  function receive(socket: Bun.Socket<Reader>, chunk: Buffer): void {
    const reader = socket.data
    bytes += chunk.length
    if (reader.isChunked) {
      receiveChunked(socket, chunk)
      return
    }
    if (reader.bodyLeft > 0) {
      reader.bodyLeft -= chunk.length
      if (reader.bodyLeft === 0) answered(socket)
      return
    }
    const data = reader.pending === undefined ? chunk : Buffer.concat([reader.pending, chunk])
    const end = data.indexOf(headEnd)
    if (end < 0) {
      // A copy: the chunk's memory belongs to the socket once this call returns.
      reader.pending = Buffer.from(data)
      return
    }
    reader.pending = undefined
    const head = data.toString('latin1', 0, end).toLowerCase()
    const status = head.slice(9, 12)
    statuses[status] = (statuses[status] ?? 0) + 1
    const lengthAt = head.indexOf('content-length: ')
    const length = lengthAt < 0 || status === '304' ? 0 : Number.parseInt(head.slice(lengthAt + 16), 10)
    if (lengthAt < 0 && head.includes('transfer-encoding: chunked')) {
      reader.isChunked = true
      receiveChunked(socket, data.subarray(end + 4))
      return
    }
    reader.bodyLeft = length - (data.length - end - 4)
    if (reader.bodyLeft === 0) answered(socket)
  }

  /** The empty chunk at the end is all that is looked for: answers of a benchmark do not hold one. */
  function receiveChunked(socket: Bun.Socket<Reader>, chunk: Buffer): void {
    const reader = socket.data
    const data = reader.pending === undefined ? chunk : Buffer.concat([reader.pending, chunk])
    if (
      data.length < lastChunk.length ||
      data.compare(lastChunk, 0, lastChunk.length, data.length - lastChunk.length) !== 0
    ) {
      reader.pending = Buffer.from(data.subarray(-lastChunk.length))
      return
    }
    reader.pending = undefined
    reader.isChunked = false
    answered(socket)
  }

  function answered(socket: Bun.Socket<Reader>): void {
    latencies.push(performance.now() - socket.data.sentAt)
    send(socket)
  }

  for (let i = 0; i < load.connections; i += 1) {
    await Bun.connect<Reader>({
      hostname: '127.0.0.1',
      port: load.port,
      data: { pending: undefined, bodyLeft: 0, sentAt: 0, isChunked: false },
      socket: { open: send, data: receive, error: (_, error) => fail(error) },
    })
  }
  // Never asleep, where it goes as fast as it can: a server that is slower than this would pay for waking it, some 10 µs an answer, and a faster one not.
  let ended = false
  const poll = () => {
    const due = waiting
    waiting = []
    for (const socket of due) send(socket)
    if (ended) return
    if (load.perSecond === undefined) setImmediate(poll)
    else setTimeout(poll, 1)
  }
  poll()
  await finished
  ended = true
  latencies.sort((a, b) => a - b)
  const at = (share: number) => latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? 0
  return {
    requests: latencies.length,
    seconds: (performance.now() - started) / 1000,
    bytes,
    statuses,
    p50: at(0.5),
    p99: at(0.99),
    max: at(1),
  }
}

if (import.meta.main) {
  const load = JSON.parse(await Bun.stdin.text()) as Load
  console.log(JSON.stringify(await run(load)))
}
