/**
 * The client `parser`: the runtime's sockets, and its llhttp for responses. The faster client, but the module that
 * exports llhttp is undocumented; on a runtime that changes it, the client `node` is used instead (clients.ts).
 */

import { isIP } from 'node:net'
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
import { findParser, type ParserClass } from './http-parser.ts'

let found: ParserClass | undefined

/** Throws Error if the runtime has no usable parser. */
export const openByParser: OpenHttpConnection = (origin, keeper) => {
  found ??= findParser()
  if (found === undefined) throw new Error('this runtime has no parser of HTTP that we know')
  return openHttpConnection(found, origin, keeper)
}

function openHttpConnection(
  HTTPParser: ParserClass,
  origin: Endpoint,
  { connected, keep, leave }: PoolEvents,
): HttpConnection {
  let socket: Bun.Socket | undefined
  /** Connected and, with TLS, the certificate verified. */
  let isReady = false
  /** Undefined between exchanges. */
  let receiver: ResponseHandler | undefined
  /** Bytes of the request that the socket has not accepted yet. */
  let unsent: Buffer | undefined
  let rawHeaders: string[] = []
  /** Bytes received before the head was complete. */
  let headBytes = 0
  let hasHead = false
  let isWhole = false
  /** The server allows keep-alive, and has sent nothing after the response. */
  let isReusable = false
  let isClosed = false
  let keepMs = socketIdleMs

  const parser = new HTTPParser()
  parser.initialize(HTTPParser.RESPONSE, {}, upstreamHeadBytesMax)
  // A second message begins after the response.
  parser[HTTPParser.kOnMessageBegin] = () => {
    if (isWhole) isReusable = false
  }
  parser[HTTPParser.kOnHeaders] = (more) => {
    if (!hasHead) rawHeaders.push(...more)
  }
  parser[HTTPParser.kOnHeadersComplete] = (version, _, last = [], __, ___, status, ____, isUpgrade, keepsAlive) => {
    const headers = headersOf(rawHeaders.length === 0 ? last : [...rawHeaders, ...last])
    rawHeaders = []
    if (isUpgrade || version !== 1) throw new Error('it speaks another protocol')
    // Informational responses (1xx) precede the final one.
    if (isWhole || status < 200) return 0
    hasHead = true
    isReusable = keepsAlive
    keepMs = keepMsOf(headers)
    receiver?.onHead(status, headers)
    return 0
  }
  parser[HTTPParser.kOnBody] = (chunk) => {
    if (!isWhole) receiver?.onData(chunk)
  }
  parser[HTTPParser.kOnMessageComplete] = () => {
    if (hasHead) isWhole = true
  }

  function close(): void {
    isClosed = true
    // Removed from the pool at once: before the `close` event the pool could still hand it out.
    leave(wire)
    socket?.terminate()
  }

  function fail(error: Error): void {
    const told = receiver
    receiver = undefined
    close()
    told?.onError(error)
  }

  function end(mayKeep: boolean): void {
    const told = receiver
    receiver = undefined
    const isKept = mayKeep && isReusable && unsent === undefined && keep(wire, keepMs)
    if (!isKept) close()
    told?.onEnd()
  }

  function write(bytes: Buffer): void {
    const written = socket?.write(bytes) ?? 0
    unsent = written < bytes.length ? bytes.subarray(Math.max(written, 0)) : undefined
  }

  function begin(): void {
    isReady = true
    connected()
    if (unsent !== undefined) write(unsent)
  }

  const { address, port, certified, authorities } = origin
  const handlers = {
    open(opened: Bun.Socket) {
      socket = opened
      // Aborted while connecting.
      if (isClosed) close()
      else if (certified === undefined) begin()
    },
    handshake(_: Bun.Socket, isDone: boolean, problem: Error | null) {
      if (isDone && problem === null) begin()
      else fail(new CertificateError(problem))
    },
    data(_: Bun.Socket, chunk: Buffer) {
      // Bytes outside an exchange.
      if (receiver === undefined) return close()
      let read: number | Error
      try {
        read = parser.execute(chunk)
      } catch (thrown) {
        read = thrown as Error
      }
      // The receiver has aborted the exchange.
      if (receiver === undefined) return
      if (!hasHead) headBytes += chunk.length
      if (headBytes > upstreamHeadBytesMax) fail(new Error('its head is too long'))
      else if (isWhole) end(read === chunk.length)
      else if (typeof read !== 'number') fail(read)
    },
    drain() {
      // With TLS it is called at the end of the handshake too, whatever the certificate was.
      if (isReady && unsent !== undefined) write(unsent)
    },
    end() {
      // For a response without a length, the end of the connection is its end.
      if (receiver !== undefined && parser.finish() === undefined && isWhole) end(false)
      else fail(new Error('it broke off'))
    },
    close() {
      if (!isReady) connected()
      handlers.end()
    },
    error: (_: Bun.Socket, error: Error) => fail(error),
  }

  const wire: HttpConnection = {
    start(request, told) {
      const bytes = bytesOf(request)
      receiver = told
      headBytes = 0
      hasHead = false
      isWhole = false
      isReusable = false
      if (isReady) write(bytes)
      else unsent = bytes
      return () => {
        if (receiver !== told) return
        receiver = undefined
        close()
      }
    },
    close,
  }
  // With TLS, `begin` is called only after the certificate was verified for the name. An address has no SNI.
  const named = certified !== undefined && isIP(certified) === 0 && { serverName: certified }
  const ca = authorities !== undefined && { ca: [...authorities] }
  const tls = certified !== undefined && { tls: { rejectUnauthorized: true, ...ca, ...named } }
  Bun.connect({ hostname: address, port, socket: handlers, ...tls }).catch((error) => {
    connected()
    fail(error)
  })
  return wire
}

function bytesOf({ method, path, fields, content }: HttpRequest): Buffer {
  let head = `${method} ${path} HTTP/1.1\r\n`
  for (let i = 0; i < fields.length; i += 2) head += `${fields[i]}: ${fields[i + 1]}\r\n`
  head += '\r\n'
  // In one write: the second of two small writes could wait for the acknowledgement of the first (Nagle).
  const bytes = Buffer.allocUnsafe(head.length + (content?.length ?? 0))
  bytes.write(head, 'latin1')
  if (content !== undefined) bytes.set(content, head.length)
  return bytes
}
