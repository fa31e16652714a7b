/**
 * The client `node`: uses only documented modules of the runtime (`node:http`, `node:net`, `node:tls`). Slower per call
 * than the client `parser`, with the same guarantees: test/upstream runs with both.
 */

import { Agent, type ClientRequest, type IncomingMessage, request as startRequest } from 'node:http'
import { connect as connectPlain, isIP, type Socket } from 'node:net'
import { checkServerIdentity, connect as connectTls, type TLSSocket } from 'node:tls'
import { socketIdleMs, upstreamHeadBytesMax } from '../limits.ts'
import { CertificateError } from './certificate-error.ts'
import { headersOf, keepMsOf } from './head.ts'
import type {
  Endpoint,
  HttpConnection,
  HttpRequest,
  OpenHttpConnection,
  PoolEvents,
  ResponseHandler,
} from './http-connection.ts'
import { createResponseEnd } from './response-end.ts'

export const openByNode: OpenHttpConnection = (origin, pool) => new NodeConnection(origin, pool)

class NodeConnection implements HttpConnection {
  readonly #pool: PoolEvents
  readonly #socket: Socket
  readonly #agent: Agent
  readonly #responseEnd = createResponseEnd()
  /** Connected and, with TLS, the certificate verified. */
  #isReady = false
  #isClosed = false
  /** Undefined between exchanges. */
  #receiver: ResponseHandler | undefined
  /** The request to send once connected. */
  #unsent: HttpRequest | undefined
  #response: IncomingMessage | undefined
  /** The whole response was passed to the receiver. */
  #isWhole = false
  #keepMs = socketIdleMs

  constructor(origin: Endpoint, pool: PoolEvents) {
    this.#pool = pool
    const socket = openSocket(origin, {
      onReady: () => this.#begin(),
      onError: (error) => this.#fail(error),
    })
    this.#socket = socket
    // Registered before the parser of each exchange, so that it sees each chunk first.
    socket.on('data', (chunk: Buffer) => {
      // Bytes outside an exchange. The agent closes the socket too, but that is not documented.
      if (this.#receiver === undefined || this.#isWhole) this.#close()
      this.#responseEnd.add(chunk)
      // `maxHeaderSize` counts only names and values. Checked in the next tick, after the parser has read this chunk.
      if (this.#responseEnd.isTooLong()) process.nextTick(() => this.#endlessHead())
    })
    socket.on('close', () => this.#onClose())
    // The agent asks whether to keep the socket, and takes it back just after; the exchange ends only then.
    this.#agent = new OneSocket(socket, () => process.nextTick(() => this.#end(true)))
  }

  start(request: HttpRequest, receiver: ResponseHandler): () => void {
    this.#receiver = receiver
    this.#response = undefined
    this.#isWhole = false
    this.#responseEnd.begin()
    if (this.#isReady) this.#attempt(() => this.#send(request))
    else this.#unsent = request
    return () => {
      if (this.#receiver !== receiver) return
      this.#receiver = undefined
      this.#close()
    }
  }

  close(): void {
    this.#close()
  }

  #begin(): void {
    this.#isReady = true
    this.#pool.connected()
    const request = this.#unsent
    this.#unsent = undefined
    if (request !== undefined && !this.#isClosed) this.#attempt(() => this.#send(request))
  }

  #send({ method, path, fields, content }: HttpRequest): void {
    const request = startRequest({
      agent: this.#agent,
      method,
      path,
      headers: fields,
      // No header fields other than ours.
      setDefaultHeaders: false,
      maxHeaderSize: upstreamHeadBytesMax,
      insecureHTTPParser: false,
    })
    // By default headers beyond a limit are dropped silently. Here the head is limited in bytes instead.
    request.maxHeadersCount = 0
    request.on('information', () => this.#responseEnd.endHead(true))
    request.on('response', (response) => this.#attempt(() => this.#receive(request, response)))
    // Extra bytes after a complete response do not invalidate it.
    request.on('error', (error) => void (this.#response?.complete !== true && this.#fail(error)))
    request.end(content)
  }

  #receive(request: ClientRequest, response: IncomingMessage): void {
    const { statusCode: status = 0, httpVersionMajor, rawHeaders } = response
    this.#response = response
    response.on('error', (error) => void (!response.complete && this.#fail(error)))
    if (httpVersionMajor !== 1) throw new Error('it speaks another protocol')
    this.#responseEnd.endHead(false)
    const headers = headersOf(rawHeaders)
    this.#keepMs = keepMsOf(headers)
    this.#receiver?.onHead(status, headers)
    response.on('data', (chunk: Buffer<ArrayBuffer>) => this.#receiver?.onData(chunk))
    response.on('end', () => {
      this.#isWhole = true
      const mayServeAgain = request.writableFinished && this.#responseEnd.isLast(status, headers)
      // Otherwise the agent's `keepSocketAlive` or the socket's `close` ends the exchange.
      if (this.#isClosed || !mayServeAgain) this.#end(false)
    })
  }

  /** For callbacks of the runtime, in which an exception would end the process. */
  #attempt(act: () => void): void {
    try {
      act()
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  #endlessHead(): void {
    if (this.#responseEnd.isTooLong()) this.#fail(new Error('its head is too long'))
  }

  #onClose(): void {
    if (!this.#isReady) this.#pool.connected()
    this.#isClosed = true
    if (this.#isWhole) this.#end(false)
    // If the response is complete, its `end` event is still to come.
    else if (this.#response?.complete !== true) this.#fail(new Error('it broke off'))
    this.#pool.leave(this)
  }

  #close(): void {
    this.#isClosed = true
    // Removed from the pool at once: before the `close` event the pool could still hand it out.
    this.#pool.leave(this)
    this.#socket.destroy()
  }

  #fail(error: Error): void {
    const receiver = this.#receiver
    this.#receiver = undefined
    this.#close()
    receiver?.onError(error)
  }

  #end(mayKeep: boolean): void {
    const receiver = this.#receiver
    // Aborted, or ended already.
    if (receiver === undefined) return
    this.#receiver = undefined
    const isKept = mayKeep && !this.#isClosed && this.#pool.keep(this, this.#keepMs)
    if (!isKept) this.#close()
    receiver.onEnd()
  }
}

/** An agent with one fixed socket, for one request at a time. */
class OneSocket extends Agent {
  readonly #socket: Socket
  readonly #onFree: () => void

  constructor(socket: Socket, onFree: () => void) {
    super({ keepAlive: true, maxSockets: 1 })
    this.#socket = socket
    this.#onFree = onFree
  }

  override createConnection(): Socket {
    return this.#socket
  }

  override keepSocketAlive(): true {
    this.#onFree()
    return true
  }
}

interface SocketEvents {
  onReady(): void
  onError(error: Error): void
}

/** Connects to the resolved address, without another look-up. */
function openSocket(
  { address: host, port, certified, authorities }: Endpoint,
  { onReady, onError }: SocketEvents,
): Socket {
  if (certified === undefined) {
    return connectPlain({ host, port, noDelay: true }).on('connect', onReady).on('error', onError)
  }
  let isTold = false
  const socket: TLSSocket = connectTls({
    host,
    port,
    rejectUnauthorized: true,
    // By default the certificate would be checked for the address.
    checkServerIdentity: (_, certificate) => checkServerIdentity(certified, certificate),
    ...(authorities !== undefined && { ca: [...authorities] }),
    ...(isIP(certified) === 0 && { servername: certified }),
  })
  socket.setNoDelay(true)
  socket.on('secureConnect', () => {
    isTold = true
    // `rejectUnauthorized` ensures this already; checked again, because requests carry credentials.
    if (socket.authorized) onReady()
    else onError(new CertificateError(socket.authorizationError))
  })
  // System errors such as ECONNREFUSED are not about certificates.
  const isOfSystem = ({ code = '' }: NodeJS.ErrnoException) => isTold || /^E[A-Z]+$/.test(code)
  return socket.on('error', (error) => onError(isOfSystem(error) ? error : new CertificateError(error)))
}
