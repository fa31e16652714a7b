/**
 * The client `node`: documented modules of the runtime alone (`node:http`, `node:net`, `node:tls`). A call costs it
 * more than the client `parser`. It keeps the same promises: test/upstream runs for both.
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

export const openByNode: OpenHttpConnection = (origin, keeper) => new NodeWire(origin, keeper)

class NodeWire implements HttpConnection {
  readonly #keeper: PoolEvents
  readonly #socket: Socket
  readonly #agent: Agent
  readonly #responseEnd = createResponseEnd()
  /** Connected and, with TLS, certified. */
  #isReady = false
  #isClosed = false
  /** Undefined between exchanges. */
  #receiver: ResponseHandler | undefined
  /** What waits for the connection. */
  #unsent: HttpRequest | undefined
  #response: IncomingMessage | undefined
  /** The whole response was handed over. */
  #isWhole = false
  #keepMs = socketIdleMs

  constructor(origin: Endpoint, keeper: PoolEvents) {
    this.#keeper = keeper
    const socket = openSocket(origin, {
      onReady: () => this.#begin(),
      onError: (error) => this.#fail(error),
    })
    this.#socket = socket
    // Before the parser of each exchange, which comes later.
    socket.on('data', (chunk: Buffer) => {
      // Nobody asked for anything. The agent would close it too, which its documentation does not say.
      if (this.#receiver === undefined || this.#isWhole) this.#close()
      this.#responseEnd.add(chunk)
      // `maxHeaderSize` counts names and values alone. What the parser makes of this chunk is known after it.
      if (this.#responseEnd.isTooLong()) process.nextTick(() => this.#endlessHead())
    })
    socket.on('close', () => this.#onClose())
    // Between exchanges it is the agent that has the socket, and it takes it back a moment after it asked.
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
    this.#keeper.connected()
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
      // No fields but ours.
      setDefaultHeaders: false,
      maxHeaderSize: upstreamHeadBytesMax,
      insecureHTTPParser: false,
    })
    // Of more than a thousand it would drop the rest without a word. The head is bounded in bytes.
    request.maxHeadersCount = 0
    request.on('information', () => this.#responseEnd.endHead(true))
    request.on('response', (response) => this.#attempt(() => this.#receive(request, response)))
    // With what comes past a whole response, that response is all the same.
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
      // The agent gives the socket back, or closes it.
      if (this.#isClosed || !mayServeAgain) this.#end(false)
    })
  }

  /** The runtime calls us, so what is thrown would end the process. */
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
    if (!this.#isReady) this.#keeper.connected()
    this.#isClosed = true
    if (this.#isWhole) this.#end(false)
    // Otherwise its end is on the way.
    else if (this.#response?.complete !== true) this.#fail(new Error('it broke off'))
    this.#keeper.leave(this)
  }

  #close(): void {
    this.#isClosed = true
    // Now: until the runtime tells of it, somebody could take it.
    this.#keeper.leave(this)
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
    // Broken off, or told already.
    if (receiver === undefined) return
    this.#receiver = undefined
    const isKept = mayKeep && !this.#isClosed && this.#keeper.keep(this, this.#keepMs)
    if (!isKept) this.#close()
    receiver.onEnd()
  }
}

/** Gives every request the same socket, one after the other. */
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

/** To the very address: there is no name to look up. */
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
    // Of the address it would ask for the address.
    checkServerIdentity: (_, certificate) => checkServerIdentity(certified, certificate),
    ...(authorities !== undefined && { ca: [...authorities] }),
    ...(isIP(certified) === 0 && { servername: certified }),
  })
  socket.setNoDelay(true)
  socket.on('secureConnect', () => {
    isTold = true
    // The runtime has refused what is not; requests carry credentials, so it is asked once more.
    if (socket.authorized) onReady()
    else onError(new CertificateError(socket.authorizationError))
  })
  // The system's own (ECONNREFUSED) have nothing to do with certificates.
  const isOfSystem = ({ code = '' }: NodeJS.ErrnoException) => isTold || /^E[A-Z]+$/.test(code)
  return socket.on('error', (error) => onError(isOfSystem(error) ? error : new CertificateError(error)))
}
