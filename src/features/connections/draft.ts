/**
 * What a write makes of a connection: checks what was sent beyond its shape, and puts the record together. Reads the
 * registry; writes nothing.
 */

import type { ConnectionRef, RequestContext } from '../../auth/authorize.ts'
import { openHeaders, sealHeaders } from '../../auth/sealed-headers.ts'
import { conflict, forbidden, invalidRequest } from '../../errors.ts'
import { connectionBytesMax } from '../../limits.ts'
import { type Connection, ConnectionWrite, urlProblem } from '../../model/connection.ts'
import { namespaceOf } from '../../model/names.ts'
import type { ServerDetail } from '../../model/server.ts'
import { decide } from '../../policy/decide.ts'
import { bodyProblemText, validatorOf } from '../../schema/check.ts'
import { type ConnectionPrivate, connectionBytes, type StoredConnection } from '../../storage/connections.ts'

const writeShape = validatorOf(ConnectionWrite)

/** A connection's own facts, that no metadata may claim. */
const reservedKeys = ['connectionId', 'namespace']

/** Set by whoever speaks HTTP for us: RFC 9110, 7.6.1, and what says where a request goes and how long it is. */
const refusedHeaders = new Set(
  'connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade via host content-length'.split(
    ' ',
  ),
)

/** Throws `invalid_request`. */
export function readWrite(body: unknown): ConnectionWrite {
  if (body === undefined) throw invalidRequest('the request body is missing; send at least "mcpUrl" or "server"')
  if (!writeShape.isValid(body)) {
    const [problem = { place: '', message: 'cannot be read' }] = writeShape.problems(body, 1)
    throw invalidRequest(bodyProblemText(problem))
  }
  const { mcpUrl, server, mock, metadata, headers } = body
  const wrongUrl = mcpUrl === undefined ? undefined : urlProblem(mcpUrl)
  if (wrongUrl !== undefined) throw invalidRequest(`mcpUrl: ${wrongUrl}`)
  if (mcpUrl !== undefined && server !== undefined)
    throw invalidRequest('server: cannot be combined with mcpUrl; send one of the two')
  if (mock?.enabled === true && mcpUrl !== undefined) throw invalidRequest('mock: requires server, not mcpUrl')
  for (const key of reservedKeys) {
    if (Object.hasOwn(metadata ?? {}, key))
      throw invalidRequest(`metadata.${key}: is the connection's own and cannot be set`)
  }
  const seen = new Set<string>()
  for (const name of Object.keys(headers ?? {})) {
    const lower = name.toLowerCase()
    if (refusedHeaders.has(lower)) throw invalidRequest(`headers[${JSON.stringify(name)}]: cannot be set here`)
    if (seen.has(lower)) throw invalidRequest(`headers[${JSON.stringify(name)}]: is given twice`)
    seen.add(lower)
  }
  return body
}

/**
 * What is known of the server that a connection is made for. Throws `invalid_request` where the caller's token does
 * not allow its namespace.
 */
export async function readServer({ caller, registry }: RequestContext, name: string): Promise<ServerDetail> {
  const namespace = namespaceOf(name)
  const isAllowed = caller.blocks.every(({ namespaces }) => namespaces === undefined || namespaces.includes(namespace))
  const json = isAllowed ? await registry.serverJson(name) : undefined
  if (json === undefined) throw invalidRequest(`server: there is no server ${JSON.stringify(name)}`)
  return JSON.parse(Buffer.from(json).toString()) as ServerDetail
}

/** A connection as it is to be, without what its upstream will tell. */
export interface Draft {
  readonly connection: Omit<Connection, 'status' | 'serverInfo'>
  readonly privatePart: ConnectionPrivate
  /** In the clear, for the first contact. */
  readonly headers: Readonly<Record<string, string>>
}

/** Which connection is written, and what seals its headers. */
export interface WriteTarget {
  readonly ref: ConnectionRef
  readonly headersKey: Buffer
}

/** Throws `invalid_request`. */
export async function draftNew(
  write: ConnectionWrite,
  { context, ref, headersKey }: WriteTarget & { readonly context: RequestContext },
  now: Date,
): Promise<Draft> {
  const { connectionId } = ref
  const { name = connectionId, metadata = null, mock, headers } = write
  const server = write.server === undefined ? undefined : await readServer(context, write.server)
  if (mock?.enabled === true && server === undefined) throw invalidRequest('mock: requires server')
  const mcpUrl = write.mcpUrl ?? urlOf(server, mock?.enabled === true)
  if (mcpUrl === undefined) throw invalidRequest('mcpUrl: is missing; send mcpUrl or server')
  return {
    connection: {
      connectionId,
      name,
      mcpUrl,
      metadata,
      transport: 'http',
      ...(mock !== undefined && { mock }),
      ...(typeof server?.iconUrl === 'string' && { iconUrl: server.iconUrl }),
      createdAt: now.toISOString(),
    },
    privatePart: {
      ...(write.server !== undefined && { server: write.server }),
      ...sealHeaders(headers ?? {}, ref, headersKey),
    },
    headers: headers ?? {},
  }
}

/** Undefined where nobody named a server; null for a mock of one that cannot be reached by http. */
function urlOf(server: ServerDetail | undefined, isMocked: boolean): string | null | undefined {
  if (server === undefined) return undefined
  const url = server.connections.find((option) => option.type === 'http')?.deploymentUrl
  if (url === undefined && !isMocked) throw invalidRequest('server: offers no HTTP connection')
  return url ?? null
}

/** Throws `conflict` where the URL is another. `server` and `mock` are of the beginning: they stay as they are. */
export function draftChange(write: ConnectionWrite, before: StoredConnection, { ref, headersKey }: WriteTarget): Draft {
  const { status, serverInfo: _, ...connection } = before.connection
  const { name = connection.name, metadata = connection.metadata } = write
  const mcpUrl = write.mcpUrl ?? connection.mcpUrl
  if (mcpUrl !== connection.mcpUrl && !(status.state === 'input_required' && samePlace(mcpUrl, connection.mcpUrl))) {
    throw conflict('mcpUrl: cannot be changed; delete the connection or create another')
  }
  const { headers: _sealed, ...privatePart } = before.privatePart
  return {
    connection: { ...connection, name, metadata, mcpUrl },
    privatePart:
      write.headers === undefined
        ? before.privatePart
        : { ...privatePart, ...sealHeaders(write.headers ?? {}, ref, headersKey) },
    headers: write.headers ?? openHeaders(before.privatePart, ref, headersKey),
  }
}

function samePlace(a: string | null, b: string | null): boolean {
  if (a === null || b === null) return false
  const [one, other] = [new URL(a), new URL(b)]
  return one.origin === other.origin && one.pathname === other.pathname
}

/**
 * Nobody makes a connection that they could not see: throws 403. Throws `invalid_request` for one that is too large.
 */
export function requireWritable(
  { caller }: RequestContext,
  { namespace, connectionId }: ConnectionRef,
  connection: Connection,
): void {
  const { metadata } = connection
  const decision = decide(caller.blocks, {
    namespace,
    resource: 'connections',
    operation: 'write',
    metadata: { connectionId, metadata },
  })
  if (!decision.allowed) throw forbidden(decision)
  if (connectionBytes(connection).length > connectionBytesMax) {
    throw invalidRequest(`the connection is too large: at most ${connectionBytesMax} bytes are kept`)
  }
}
