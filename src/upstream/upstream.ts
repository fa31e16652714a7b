/**
 * Requests to MCP servers elsewhere: to an address that was looked at, without redirects, within a time, and never
 * unpacked. By undici, because the runtime's fetch lets 256 requests be under way in all, and one stream is one.
 */

import { LRUCache } from 'lru-cache'
import type Pool from 'undici/lib/dispatcher/pool.js'
import type { Controller } from 'undici/lib/dispatcher/pool.js'
import { originsKeptMax, upstreamAnswerBytesMax, upstreamAnswerMs, upstreamHeadBytesMax } from '../limits.ts'
import { AddressError, type Addresses } from './addresses.ts'

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
  /** Whoever asked has gone. */
  readonly signal?: AbortSignal
  /** Milliseconds to the head of the answer. */
  readonly patience: number
}

export interface Upstream {
  /**
   * The answer: an event stream as it comes, anything else once it is whole and within its bounds. A redirect is an
   * answer. What nobody can use (redirects, faults, what is compressed) comes without its body. Throws UpstreamError.
   */
  send(request: UpstreamRequest): Promise<Response>
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
        const response = await upstream.send(request)
        note(String(response.status))
        return response
      } catch (error) {
        note(error instanceof UpstreamError ? error.kind : 'down')
        throw error
      }
    },
  }
}

function reaching(addresses: Addresses): Upstream {
  const pools = new LRUCache<string, Pool>({
    max: originsKeptMax,
    dispose: (pool) => void pool.close().catch(() => {}),
  })

  /** Connections that are kept for a while and used again: to this address, under this name. */
  function poolOf(target: URL, address: string): Pool {
    const name = `${target.origin} ${address}`
    const known = pools.get(name)
    if (known !== undefined) return known
    const { protocol, port, hostname } = target
    const origin = `${protocol}//${address}${port === '' ? '' : `:${port}`}`
    // The certificate is that of the name, whatever address we connect to. Times are our own.
    const pool = new (PoolClass as typeof Pool)(origin, {
      connect: { servername: hostname },
      maxHeaderSize: upstreamHeadBytesMax,
      headersTimeout: 0,
      bodyTimeout: 0,
    })
    pools.set(name, pool)
    return pool
  }

  return {
    async send({ url, method = 'POST', headers, body = null, signal, patience }) {
      const target = new URL(url)
      const { host, hostname, pathname, search } = target
      let address: string
      try {
        address = (await addresses.destinationOf(target)).address
      } catch (error) {
        if (!(error instanceof AddressError)) throw error
        throw new UpstreamError(error.kind === 'refused' ? 'refused' : 'down', `${hostname} ${error.message}`)
      }
      // Read when the first call comes: nobody who only lists pays for it.
      PoolClass ??= (await import('undici/lib/dispatcher/pool.js')).default
      const receiver = createReceiver(patience, signal)
      const sent = { ...headers, host, 'accept-encoding': 'identity' }
      try {
        // In one step: a pool that makes room for another is closed.
        poolOf(target, address).dispatch({ path: pathname + search, method, headers: sent, body }, receiver.handler)
      } catch (error) {
        receiver.handler.onResponseError(undefined, error as Error)
      }
      return receiver.answer
    },
  }
}

let PoolClass: typeof Pool | undefined

/** Answers have no body by these statuses. */
const bodiless = new Set([204, 205, 304])

/** Makes a Response of what undici tells, within `patience` and the bounds of an answer. */
function createReceiver(patience: number, signal: AbortSignal | undefined) {
  const { promise: answer, resolve, reject } = Promise.withResolvers<Response>()
  const gone = () => stop(new UpstreamError('gone', 'whoever asked has gone'))
  let controller: Controller | undefined
  let failure: UpstreamError | undefined
  let timer = setTimeout(() => stop(new UpstreamError('late', `no answer within ${patience / 1000} s`)), patience)
  let head: ResponseInit = {}
  let stream: ReadableStreamDefaultController<Uint8Array> | undefined
  const chunks: Uint8Array<ArrayBuffer>[] = []
  let length = 0

  /** Ends the request, whatever stage it is at. */
  function stop(error: UpstreamError): void {
    failure ??= error
    controller?.abort(failure)
    end()
  }

  function end(): void {
    clearTimeout(timer)
    signal?.removeEventListener('abort', gone)
    if (failure === undefined) return
    // Of an answer that was given already, this changes nothing but its stream.
    reject(failure)
    stream?.error(failure)
  }

  if (signal?.aborted) gone()
  else signal?.addEventListener('abort', gone, { once: true })

  const handler = {
    onRequestStart(started: Controller) {
      controller = started
      if (failure !== undefined) started.abort(failure)
    },
    onResponseStart(_: Controller, status: number, given: Record<string, string | string[]>) {
      // Informational ones come before the answer.
      if (status < 200) return
      clearTimeout(timer)
      if (status > 599) return stop(new UpstreamError('down', `it answered ${status}`))
      const headers: Record<string, string> = {}
      for (const [name, value] of Object.entries(given))
        headers[name] = typeof value === 'string' ? value : value.join(', ')
      head = { status, headers }
      const { 'content-type': type = '', 'content-encoding': encoding = 'identity' } = headers
      const isUsable = (status < 300 || status >= 400) && status < 500 && status !== 401 && encoding === 'identity'
      if (!isUsable) {
        resolve(new Response(null, head))
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
        resolve(new Response(body, head))
        return
      }
      timer = setTimeout(
        () => stop(new UpstreamError('late', 'it did not finish its answer in time')),
        upstreamAnswerMs,
      )
    },
    onResponseData(_: Controller, chunk: Uint8Array<ArrayBuffer>) {
      if (failure !== undefined) return
      if (stream !== undefined) {
        stream.enqueue(chunk)
        // Not paused: undici takes up what it paused from its beginning each time, which many small pieces make endless.
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
    onResponseEnd() {
      end()
      if (failure !== undefined) return
      if (stream !== undefined) {
        stream.close()
        return
      }
      const body = chunks.length === 1 ? chunks[0] : Buffer.concat(chunks)
      resolve(new Response(bodiless.has(head.status ?? 0) ? null : (body ?? null), head))
    },
    onResponseError(_: Controller | undefined, error: Error) {
      failure ??= new UpstreamError('down', 'it takes no connection, or broke it off', { cause: error })
      end()
    },
  }
  return { answer, handler }
}
