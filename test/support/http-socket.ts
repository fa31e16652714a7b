/** HTTP/1.1 as bytes: what goes out is written as it is given, and what comes back is read off the socket. */

export interface Answer {
  /** 0 where the connection was closed without an answer. */
  readonly status: number
  readonly body: string
  readonly milliseconds: number
}

/** A connection that sends one request at a time, made anew when the other side closes it. */
export class HttpSocket {
  readonly #port: number
  #socket: Bun.Socket | undefined
  #received = Buffer.alloc(0)
  #settle: ((outcome: 'answered' | 'closed') => void) | undefined

  constructor(port: number) {
    this.#port = port
  }

  async #open(): Promise<Bun.Socket> {
    this.#received = Buffer.alloc(0)
    const closed = () => {
      this.#socket = undefined
      this.#settle?.('closed')
    }
    this.#socket = await Bun.connect({
      hostname: '127.0.0.1',
      port: this.#port,
      allowHalfOpen: true,
      socket: {
        data: (_, chunk) => {
          this.#received = Buffer.concat([this.#received, chunk])
          if (wholeLength(this.#received) !== undefined) this.#settle?.('answered')
        },
        end: (socket) => void socket.end(),
        close: closed,
        error: closed,
      },
    })
    return this.#socket
  }

  /**
   * Resolves with the first answer. `last`: nothing follows on this connection, so the other side need not wait for
   * more. Resolves with undefined after `timeoutMs` milliseconds.
   */
  async send(bytes: Uint8Array, { last = false, timeoutMs = 300_000 } = {}): Promise<Answer | undefined> {
    const socket = this.#socket ?? (await this.#open())
    const from = performance.now()
    const { promise, resolve } = Promise.withResolvers<'answered' | 'closed' | 'late'>()
    this.#settle = resolve
    const timer = setTimeout(() => resolve('late'), timeoutMs)
    socket.write(bytes)
    if (last) socket.shutdown()
    const outcome = await promise
    clearTimeout(timer)
    this.#settle = undefined
    const milliseconds = performance.now() - from
    const length = wholeLength(this.#received)
    const text = this.#received.toString('latin1')
    // A stream of events ends only when its reader leaves.
    if (last || outcome === 'late' || (length !== undefined && isStream(text))) this.close()
    if (outcome === 'late') return undefined
    if (length === undefined) return { status: 0, body: '', milliseconds }
    this.#received = this.#received.subarray(length)
    return {
      status: Number(text.slice(9, 12)),
      body: Buffer.from(text.slice(text.indexOf('\r\n\r\n') + 4, length), 'latin1').toString(),
      milliseconds,
    }
  }

  close(): void {
    this.#socket?.terminate()
    this.#socket = undefined
  }
}

const isStream = (text: string) => /\r\ncontent-type: text\/event-stream/i.test(text.slice(0, text.indexOf('\r\n\r\n')))

/** The bytes of the first answer, once all of them are here: of a stream of events, its head. */
function wholeLength(bytes: Buffer): number | undefined {
  const end = bytes.indexOf('\r\n\r\n')
  if (end < 0) return undefined
  const head = bytes.toString('latin1', 0, end).toLowerCase()
  if (isStream(`${head}\r\n\r\n`)) return end + 4
  const status = head.slice(9, 12)
  const stated = /\r\ncontent-length: (\d+)/.exec(head)?.[1]
  if (stated === undefined && head.includes('\r\ntransfer-encoding')) throw new Error('chunked answers are not read')
  const length = end + 4 + (status === '304' ? 0 : Number(stated ?? 0))
  return bytes.length >= length ? length : undefined
}
