/**
 * Requests to MCP servers elsewhere: to an address that was looked at, without redirects, within a time, and never
 * unpacked. Not by the runtime's fetch, which lets 256 requests be under way in all, and one stream is one.
 */

import { LRUCache } from 'lru-cache'
import { originsKeptMax, upstreamAnswerBytesMax, upstreamAnswerMs } from '../limits.ts'
import { AddressError, type Addresses, type Destination } from './addresses.ts'
import { createClock } from './clock.ts'
import { type BreakOff, createSockets, type Receiver, type Sockets } from './http1.ts'

/** `refused`: we may not go there. `down`: there was no answer that can be used. `late`: none in time. `gone`: whoever asked has left. */
export class UpstreamError extends Error {
  override readonly name = 'UpstreamError'
  readonly kind: 'refused' | 'down' | 'late' | 'gone'
  constructor(kind: UpstreamError['kind'], message: string, options?: ErrorOptions) {
    super(message, options)
    this.kind = kind
  }
}

export interface UpstreamRequest {
  readonly url: string
  readonly method?: 'POST' | 'GET' | 'DELETE'
  /** Names in small letters. */
  readonly headers: Readonly<Record<string, string>>
  readonly body?: Uint8Array | string
  /** Tells that whoever asked has gone. Asked for where the answer takes its time: a request's own is costly to make. */
  readonly signal?: () => AbortSignal
  /** Milliseconds to the head of the answer. */
  readonly patience: number
}

export interface UpstreamAnswer {
  readonly status: number
  /** Names in small letters. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** An event stream as it comes, anything else whole and within its bounds; undefined for none, and for what nobody can use. */
  readonly body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | undefined
}

export interface Upstream {
  /** The answer. A redirect is one; of redirects, faults and what is compressed the body is not read. Throws UpstreamError. */
  send(request: UpstreamRequest): Promise<UpstreamAnswer>
}

/** For whoever reads as the platform's own fetch would give it. */
export function asResponse({ status, headers, body }: UpstreamAnswer): Response {
  return new Response(body ?? null, { status, headers: headers as Record<string, string> })
}

/** Told of each request how it ended, in seconds to the head of the answer: the status, or the kind of the error. */
export type ObserveUpstream = (outcome: string, seconds: number) => void

export function createUpstream(addresses: Addresses, observe?: ObserveUpstream): Upstream {
  const upstream = reaching(addresses)
  if (observe === undefined) return upstream
  return {
    async send(request) {
      const from = performance.now()
      const note = (outcome: string) => observe(outcome, (performance.now() - from) / 1000)
      try {
        const answer = await upstream.send(request)
        note(String(answer.status))
        return answer
      } catch (error) {
        note(error instanceof UpstreamError ? error.kind : 'down')
        throw error
      }
    },
  }
}

function reaching(addresses: Addresses): Upstream {
  const kept = new LRUCache<string, Sockets>({ max: originsKeptMax, dispose: (sockets) => sockets.close() })
  const ways = new LRUCache<string, Way>({ max: originsKeptMax })

  /** To this address, under this name. */
  function socketsTo({ protocol, origin, port }: URL, { host, address }: Destination): Sockets {
    const name = `${origin} ${address}`
    const known = kept.get(name)
    if (known !== undefined) return known
    const isTls = protocol === 'https:'
    const sockets = createSockets({
      address,
      port: Number(port || (isTls ? 443 : 80)),
      certified: isTls ? host : undefined,
    })
    kept.set(name, sockets)
    return sockets
  }

  async function find(url: string): Promise<Way> {
    const target = new URL(url)
    const { host, hostname, pathname, search } = target
    try {
      const destination = await addresses.destinationOf(target)
      const { until } = destination
      const way = { sockets: socketsTo(target, destination), host, path: pathname + search, until }
      ways.set(url, way)
      return way
    } catch (error) {
      if (!(error instanceof AddressError)) throw error
      throw new UpstreamError(error.kind === 'refused' ? 'refused' : 'down', `${hostname} ${error.message}`)
    }
  }

  return {
    send(request) {
      const known = ways.get(request.url)
      if (known !== undefined && known.until > performance.now()) return sendBy(known, request)
      return find(request.url).then((way) => sendBy(way, request))
    },
  }
}

function sendBy(
  { sockets, host, path }: Way,
  { method = 'POST', headers, body, signal, patience }: UpstreamRequest,
): Promise<UpstreamAnswer> {
  const outgoing = { method, path, host, headers, body }
  return answerTo((receiver) => sockets.send(outgoing, receiver), patience, signal)
}

/** How a URL is reached, as long as its address holds. */
interface Way {
  readonly sockets: Sockets
  readonly host: string
  readonly path: string
  readonly until: number
}

const clock = createClock()

/** Makes an answer of what a receiver is told, within `patience` and the bounds of an answer. */
function answerTo(
  begin: (receiver: Receiver) => BreakOff,
  patience: number,
  signalOf: (() => AbortSignal) | undefined,
): Promise<UpstreamAnswer> {
  const { promise: answer, resolve, reject } = Promise.withResolvers<UpstreamAnswer>()
  let breakOff: BreakOff | undefined
  let signal: AbortSignal | undefined
  let lateAt = performance.now() + patience
  let lateText = `no answer within ${patience / 1000} s`
  const watch = clock.watch((now) => {
    if (now >= lateAt) stop(new UpstreamError('late', lateText))
    else if (signal === undefined && signalOf !== undefined) listen(signalOf())
    else if (stream !== undefined) watch.end()
  })
  let status = 0
  let headers: UpstreamAnswer['headers'] = {}
  let stream: ReadableStreamDefaultController<Uint8Array> | undefined
  const chunks: Uint8Array<ArrayBuffer>[] = []
  let length = 0

  const gone = () => stop(new UpstreamError('gone', 'whoever asked has gone'))
  function listen(given: AbortSignal): void {
    signal = given
    if (signal.aborted) gone()
    else signal.addEventListener('abort', gone, { once: true })
  }

  function over(): void {
    watch.end()
    signal?.removeEventListener('abort', gone)
  }

  /** Ends the exchange, whatever stage it is at. */
  function stop(error: UpstreamError): void {
    over()
    breakOff?.()
    // Of an answer that was given already, this changes nothing but its stream.
    reject(error)
    stream?.error(error)
  }

  const receiver: Receiver = {
    onHead(given, names) {
      lateAt = Number.POSITIVE_INFINITY
      if (given > 599) return stop(new UpstreamError('down', `it answered ${given}`))
      status = given
      headers = names
      const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers
      const isUsable = (status < 300 || status >= 400) && status < 500 && status !== 401 && encoding === 'identity'
      if (!isUsable) {
        resolve({ status, headers, body: undefined })
        return stop(new UpstreamError('down', 'nobody reads on'))
      }
      // Only an answer that is one goes on for long; what is refused is read whole, within its bounds.
      if (status < 300 && /^text\/event-stream\b/i.test(type)) {
        const body = new ReadableStream<Uint8Array>(
          {
            start(opened) {
              stream = opened
            },
            cancel: () => stop(new UpstreamError('down', 'nobody reads on')),
          },
          new ByteLengthQueuingStrategy({ highWaterMark: 0 }),
        )
        return resolve({ status, headers, body })
      }
      lateAt = performance.now() + upstreamAnswerMs
      lateText = 'it did not finish its answer in time'
    },
    onData(chunk) {
      if (stream !== undefined) {
        stream.enqueue(chunk)
        if (-(stream.desiredSize ?? 0) > upstreamAnswerBytesMax) {
          stop(new UpstreamError('down', 'its stream is too far ahead of whoever reads it'))
        }
        return
      }
      length += chunk.length
      if (length > upstreamAnswerBytesMax) {
        return stop(new UpstreamError('down', `its answer is larger than ${upstreamAnswerBytesMax} bytes`))
      }
      chunks.push(chunk)
    },
    onEnd() {
      over()
      if (stream !== undefined) return stream.close()
      resolve({ status, headers, body: chunks.length > 1 ? Buffer.concat(chunks) : chunks[0] })
    },
    onError: (cause) => stop(new UpstreamError('down', 'it takes no connection, or broke it off', { cause })),
  }

  try {
    breakOff = begin(receiver)
  } catch (error) {
    receiver.onError(error as Error)
  }
  return answer
}
