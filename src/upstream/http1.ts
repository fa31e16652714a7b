/**
 * HTTP/1.1 to one address: one exchange at a time on a socket, and sockets that are kept for the next one. Answers are
 * read by llhttp, strictly (RFC 9112): what two readers could understand differently is an error.
 */

import { HTTPParser } from 'node:_http_common'
import { isIP } from 'node:net'
import { connectsAtOnceMax, socketIdleMs, upstreamHeadBytesMax } from '../limits.ts'

export interface Origin {
  /** Without brackets. */
  readonly address: string
  readonly port: number
  /** With TLS: the name that the certificate must bear, or the address itself. Undefined for plain HTTP. */
  readonly certified: string | undefined
  /** Who may vouch for it, in PEM; those that the machine trusts where it is left out. */
  readonly authorities?: readonly string[] | undefined
}

export interface OutgoingRequest {
  readonly method: string
  /** With its query. */
  readonly path: string
  readonly host: string
  /** Names in small letters. What HTTP itself has to say is not among them. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: Uint8Array | string | undefined
}

/** Told of the answer, in this order; after `onEnd` or `onError` nothing more. */
export interface Receiver {
  /** Names in small letters; what came several times is joined by commas. */
  onHead(status: number, headers: Readonly<Record<string, string>>): void
  onData(chunk: Buffer<ArrayBuffer>): void
  onEnd(): void
  onError(error: Error): void
}

/** What breaks an exchange off; its receiver is told nothing more. */
export type BreakOff = () => void

export interface Sockets {
  /** Throws TypeError for a header that cannot be sent, Error where too many sockets are being connected. */
  send(request: OutgoingRequest, receiver: Receiver): BreakOff
  /** What is under way ends as it would; nothing is kept after it. */
  close(): void
}

/** The other side could not show that it is who it should be. */
export class CertificateError extends Error {
  constructor(problem: Error | null) {
    const { code = '' } = (problem ?? {}) as { code?: string }
    super(certificateProblems[code] ?? `its certificate was not accepted (${code || 'the TLS handshake failed'})`)
  }
}

const privateAuthority =
  'its certificate is not of an authority that this machine trusts: name that of a private one with --upstream-ca'
const certificateProblems: Readonly<Record<string, string>> = {
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another name',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  CERT_NOT_YET_VALID: 'its certificate is not valid yet',
  DEPTH_ZERO_SELF_SIGNED_CERT: privateAuthority,
  SELF_SIGNED_CERT_IN_CHAIN: privateAuthority,
  UNABLE_TO_GET_ISSUER_CERT: privateAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: privateAuthority,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: privateAuthority,
}

interface Wire {
  start(bytes: Buffer, receiver: Receiver): BreakOff
  close(): void
}

export function createSockets(origin: Origin): Sockets {
  /** By how long they were unused. */
  const idle: { readonly wire: Wire; readonly until: number }[] = []
  let connecting = 0
  let sweep: Timer | undefined
  let isClosed = false

  function keep(wire: Wire, milliseconds: number): boolean {
    if (isClosed) return false
    idle.push({ wire, until: performance.now() + milliseconds })
    // One timer for all: one for each of them would cost every exchange two.
    sweep ??= setTimeout(closeUnused, socketIdleMs).unref()
    return true
  }

  function closeUnused(): void {
    const now = performance.now()
    for (const { wire, until } of [...idle]) if (until <= now) wire.close()
    sweep = idle.length === 0 ? undefined : setTimeout(closeUnused, socketIdleMs).unref()
  }

  function leave(wire: Wire): void {
    const at = idle.findIndex((one) => one.wire === wire)
    if (at >= 0) idle.splice(at, 1)
  }

  function connected(): void {
    connecting -= 1
  }

  function taken(): Wire {
    // The last one: the other side is the least likely to be closing it at this moment.
    for (let last = idle.pop(); last !== undefined; last = idle.pop()) {
      if (last.until > performance.now()) return last.wire
      last.wire.close()
    }
    if (connecting >= connectsAtOnceMax) throw new Error('it takes too long to connect')
    connecting += 1
    return openWire(origin, { keep, leave, connected })
  }

  return {
    send(request, receiver) {
      const bytes = bytesOf(request)
      return taken().start(bytes, receiver)
    },
    close() {
      isClosed = true
      clearTimeout(sweep)
      for (const { wire } of [...idle]) wire.close()
    },
  }
}

interface Keeper {
  /** Told once of each, whether it succeeded or not. */
  connected(): void
  /** Keeps it for so many milliseconds; false where nothing is kept any more. */
  keep(wire: Wire, milliseconds: number): boolean
  /** It is closed, kept or not. */
  leave(wire: Wire): void
}

function openWire(origin: Origin, { connected, keep, leave }: Keeper): Wire {
  let socket: Bun.Socket | undefined
  /** Connected and, with TLS, certified. */
  let isReady = false
  /** Undefined between exchanges. */
  let receiver: Receiver | undefined
  /** What the socket has not taken yet. */
  let unsent: Buffer | undefined
  let rawHeaders: string[] = []
  /** What came before the head was there. */
  let headBytes = 0
  let hasHead = false
  let isWhole = false
  /** The other side lets the socket be used again, and said nothing past its answer. */
  let isReusable = false
  let isClosed = false
  let keepMs = socketIdleMs

  const parser = new HTTPParser()
  parser.initialize(HTTPParser.RESPONSE, {})
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
    // Informational answers come before the one that counts.
    if (isWhole || status < 200) return 0
    hasHead = true
    isReusable = keepsAlive
    keepMs = keepMsOf(headers['keep-alive'])
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
    // Now: until the runtime tells of it, somebody could take it.
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
      // Broken off meanwhile.
      if (isClosed) close()
      else if (certified === undefined) begin()
    },
    handshake(_: Bun.Socket, isDone: boolean, problem: Error | null) {
      if (isDone && problem === null) begin()
      else fail(new CertificateError(problem))
    },
    data(_: Bun.Socket, chunk: Buffer) {
      // Nobody asked for anything.
      if (receiver === undefined) return close()
      let read: number | Error
      try {
        read = parser.execute(chunk)
      } catch (thrown) {
        read = thrown as Error
      }
      // Whoever was told has broken it off.
      if (receiver === undefined) return
      if (!hasHead) headBytes += chunk.length
      if (headBytes > upstreamHeadBytesMax) fail(new Error('its head is too long'))
      else if (isWhole) end(read === chunk.length)
      else if (typeof read !== 'number') fail(read)
    },
    drain() {
      if (unsent !== undefined) write(unsent)
    },
    end() {
      // Where no length was given, this is the end of the answer.
      if (receiver !== undefined && parser.finish() === undefined && isWhole) end(false)
      else fail(new Error('it broke off'))
    },
    close() {
      if (!isReady) connected()
      handlers.end()
    },
    error: (_: Bun.Socket, error: Error) => fail(error),
  }

  const wire: Wire = {
    start(bytes, told) {
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
  // With TLS nothing is written before the certificate was found to be that of the name.
  const named = certified !== undefined && isIP(certified) === 0 && { serverName: certified }
  const ca = authorities !== undefined && { ca: [...authorities] }
  const tls = certified !== undefined && { tls: { rejectUnauthorized: true, ...ca, ...named } }
  Bun.connect({ hostname: address, port, socket: handlers, ...tls }).catch((error) => {
    connected()
    fail(error)
  })
  return wire
}

/** How long the socket may be kept; a second less than the other side says, which may be closing it while we write. */
function keepMsOf(hint: string | undefined): number {
  if (hint === undefined) return socketIdleMs
  const seconds = /\btimeout=(\d{1,4})\b/i.exec(hint)?.[1]
  return seconds === undefined ? socketIdleMs : Math.min(socketIdleMs, (Number(seconds) - 1) * 1000)
}

/** Of names and values in turn. Throws for a head that is too long. */
function headersOf(raw: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(null)
  let length = 0
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase()
    const value = raw[i + 1] as string
    const before = headers[name]
    headers[name] = before === undefined ? value : `${before}, ${value}`
    length += name.length + value.length
  }
  if (length > upstreamHeadBytesMax) throw new Error('its head is too long')
  return headers
}

const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/

function bytesOf({ method, path, host, headers, body }: OutgoingRequest): Buffer {
  // Nothing is unpacked here.
  let head = `${method} ${path} HTTP/1.1\r\nhost: ${host}\r\naccept-encoding: identity\r\n`
  for (const name in headers) {
    const value = headers[name] as string
    if (name === 'accept-encoding') continue
    if (!headerName.test(name) || !headerValue.test(value)) throw new TypeError(`${name} cannot be sent`)
    head += `${name}: ${value}\r\n`
  }
  const content = typeof body === 'string' ? Buffer.from(body) : body
  head += content === undefined ? '\r\n' : `content-length: ${content.length}\r\n\r\n`
  // In one piece: two small writes would wait for each other.
  const bytes = Buffer.allocUnsafe(head.length + (content?.length ?? 0))
  bytes.write(head, 'latin1')
  if (content !== undefined) bytes.set(content, head.length)
  return bytes
}
