/** Checks a write beyond its JSON Schema, and assembles the record. Reads the directory; writes nothing. */

import { accessTo, type RequestContext } from '../../auth/authorizer.ts'
import {
  hasAuthorization,
  openHeaders,
  openInput,
  openPart,
  sealHeaders,
  sealInput,
  sealPart,
} from '../../auth/sealed-parts.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { serverJsonOf } from '../../auth/stored-servers.ts'
import { conflict, forbidden, invalidRequest } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { connectionBytesMax } from '../../limits.ts'
import { type Connection, type ConnectionRef, ConnectionWrite, isRefusedHeader } from '../../model/connection.ts'
import {
  defaultsFor,
  type InputField,
  type InputRequired,
  inputRequired,
  type UpstreamTarget,
  withInput,
} from '../../model/input-fields.ts'
import { namespaceOf } from '../../model/names.ts'
import type { ServerDetail } from '../../model/server.ts'
import { decide } from '../../policy/decide.ts'
import { bodyProblemText, validatorOf } from '../../schema/check.ts'
import { type ConnectionPrivate, connectionBytes, type StoredConnection } from '../../storage/connections.ts'
import { readingServer } from '../../storage/directory-records.ts'
import { readConfig } from '../upstream-sign-in/input.ts'
import type { StoredClient } from '../upstream-sign-in/oauth-client.ts'
import { withoutTokens } from '../upstream-sign-in/tokens.ts'

const writeShape = validatorOf(ConnectionWrite)

/** Facts of the connection itself that policies can test; metadata must not imitate them. */
const reservedKeys = ['connectionId', 'namespace']

/** Checks everything that needs no directory. Throws `invalid_request`. */
export function readWrite(body: unknown): ConnectionWrite {
  if (body === undefined) throw invalidRequest('the request body is missing; send at least "mcpUrl" or "server"')
  if (!writeShape.isValid(body)) throw invalidRequest(bodyProblemText(writeShape.firstProblem(body)))
  const { mcpUrl, server, mock, metadata, headers } = body
  if (mcpUrl !== undefined && server !== undefined)
    throw invalidRequest('server: cannot be combined with mcpUrl; send one of the two')
  if (mock?.enabled === true && mcpUrl !== undefined) throw invalidRequest('mock: requires server, not mcpUrl')
  for (const key of reservedKeys) {
    if (Object.hasOwn(metadata ?? {}, key))
      throw invalidRequest(`metadata.${key}: is the connection's own and cannot be set: use another key`)
  }
  const seen = new Set<string>()
  for (const name of Object.keys(headers ?? {})) {
    const lower = name.toLowerCase()
    if (isRefusedHeader(name))
      throw invalidRequest(
        `headers[${JSON.stringify(name)}]: cannot be set here, because postern's HTTP client manages it: leave it out`,
      )
    if (seen.has(lower)) throw invalidRequest(`headers[${JSON.stringify(name)}]: is given twice`)
    seen.add(lower)
  }
  return body
}

/** Throws the same `invalid_request` if there is no such server, and if the token does not allow its namespace. */
export async function readServer({ caller, directory, request }: RequestContext, name: string): Promise<ServerDetail> {
  const namespace = namespaceOf(name)
  const isAllowed = caller.blocks.every(({ namespaces }) => namespaces === undefined || namespaces.includes(namespace))
  const json = isAllowed ? await serverJsonOf(directory, request, name) : undefined // 429
  if (json === undefined) throw invalidRequest(`server: there is no server ${JSON.stringify(name)}`)
  return allowanceOf(request).parse(json.length, readingServer(json)) // 429
}

/** A connection before its server was probed, and so without status and server info. */
export interface Draft {
  readonly connection: Omit<Connection, 'status' | 'serverInfo'>
  readonly privatePart: ConnectionPrivate
  /** For the probe: with the connection's own headers and what was entered, in the clear. */
  readonly target: UpstreamTarget
  /** Set if the server cannot be probed yet: values are missing. */
  readonly inputRequired: InputRequired | undefined
}

/** A write that a request asks for. */
export interface AskedWrite {
  readonly write: ConnectionWrite
  readonly ref: ConnectionRef
  readonly context: RequestContext
}

/** The keys that seal a connection's private part: its headers, and its OAuth client. */
type SealingKeys = Pick<SharedParts, 'headersKey' | 'signInKey'>

/** A new connection. Its URL is `mcpUrl`, or the registered server's. Throws `invalid_request`. */
export async function draftNew(
  { headersKey, signInKey }: SealingKeys,
  { write, ref, context }: AskedWrite,
  now: Date,
): Promise<Draft> {
  const { connectionId } = ref
  const { name = connectionId, metadata = null, mock, pins, headers } = write
  const server = write.server === undefined ? undefined : await readServer(context, write.server)
  const isMocked = mock?.enabled === true
  if (isMocked && server === undefined) throw invalidRequest('mock: requires server')
  const mcpUrl = write.mcpUrl ?? urlOf(server, isMocked)
  if (mcpUrl === undefined) throw invalidRequest('mcpUrl: is missing; send mcpUrl or server')
  const read = server === undefined || isMocked ? { fields: [] } : readConfig(server)
  if ('problem' in read) throw invalidRequest(`server: ${read.problem}`)
  const { fields } = read
  const defaults = defaultsFor(fields, { url: mcpUrl ?? '', headers: headers ?? {} })
  const target = withInput(mcpUrl, headers ?? {}, defaults)
  return {
    connection: {
      connectionId,
      name,
      mcpUrl,
      metadata,
      transport: 'http',
      ...(mock !== undefined && { mock }),
      ...(pins && { pins }),
      ...(typeof server?.iconUrl === 'string' && { iconUrl: server.iconUrl }),
      createdAt: now.toISOString(),
    },
    privatePart: {
      ...(write.server !== undefined && { server: write.server }),
      ...sealHeaders(headers ?? {}, ref, headersKey),
      ...sealInput(defaults, ref, headersKey),
      ...(write.oauth && { oauth: sealPart('oauth', write.oauth, ref, signInKey) }),
    },
    target,
    inputRequired: inputRequired(fields, target),
  }
}

/** Undefined without a server; null for a mock of a server that offers no HTTP connection. */
function urlOf(server: ServerDetail | undefined, isMocked: boolean): string | null | undefined {
  if (server === undefined) return undefined
  const url = server.connections.find((option) => option.type === 'http')?.deploymentUrl
  if (url === undefined && !isMocked)
    throw invalidRequest('server: has no HTTP URL: add a URL to the server, or connect to a URL instead')
  return url ?? null
}

/**
 * The existing connection with the fields of the write; `server` and `mock` cannot be changed and are ignored. Throws
 * `conflict` if the URL differs, or if secrets come for another server: another member may have taken the name first,
 * for a server that would receive them. One exception: while the connection requires input, the URL's query may change.
 *
 * `fields`: what the connection's server must be told, of which headers or a query may be a part.
 */
export function draftChange(
  { headersKey, signInKey }: SealingKeys,
  { write, ref }: Omit<AskedWrite, 'context'>,
  before: StoredConnection,
  fields: readonly InputField[],
): Draft {
  const { status, serverInfo: _, pins: formerPins, ...connection } = before.connection
  const pins = write.pins === undefined ? formerPins : write.pins
  const { name = connection.name, metadata = connection.metadata } = write
  const mcpUrl = write.mcpUrl ?? connection.mcpUrl
  if (mcpUrl !== connection.mcpUrl && !(status.state === 'input_required' && samePlace(mcpUrl, connection.mcpUrl))) {
    throw conflict(
      'mcpUrl: the URL of a connection cannot be changed: leave it out, or create a connection with another id',
    )
  }
  const hasSecrets = Boolean(write.headers ?? write.oauth)
  if (hasSecrets && write.server !== undefined && write.server !== before.privatePart.server)
    throw conflict(
      'server: the server of a connection cannot be changed: leave it out, or create a connection with another id',
    )
  const { headers: _sealed, ...privatePart } = before.privatePart
  const withHeaders =
    write.headers === undefined
      ? before.privatePart
      : { ...privatePart, ...sealHeaders(write.headers ?? {}, ref, headersKey) }
  const formerHeaders = openHeaders(before.privatePart, ref, headersKey)
  const input = openInput(before.privatePart, ref, headersKey)
  const target = withInput(mcpUrl, write.headers === undefined ? formerHeaders : (write.headers ?? {}), input)
  // Writing the same client again changes nothing, so repeated writes sign nobody out.
  const client = openPart<StoredClient>('oauth', before.privatePart, ref, signInKey)
  const oauth = isSameClient(write.oauth, client) ? undefined : write.oauth
  const former = withInput(before.connection.mcpUrl, formerHeaders, input)
  const had = hasAuthorization(former.headers) && before.privatePart.tokens === undefined
  const isSignedOut = oauth !== undefined || (hasAuthorization(target.headers) && !had)
  const withClient = oauth ? { oauth: sealPart('oauth', oauth, ref, signInKey) } : {}
  return {
    connection: { ...connection, name, metadata, mcpUrl, ...(pins && { pins }) },
    privatePart: isSignedOut ? { ...signedOut(withHeaders, oauth === undefined), ...withClient } : withHeaders,
    target,
    inputRequired: inputRequired(fields, target),
  }
}

/** Without tokens, which were another client's or contradict a header. Links and sign-ins of before are void. */
function signedOut(privatePart: ConnectionPrivate, keepsClient: boolean): ConnectionPrivate {
  const { oauth, ...rest } = withoutTokens(privatePart)
  return keepsClient && oauth !== undefined ? { ...rest, oauth } : rest
}

/** Whether a client is written that is there already. An issuer that was only met is none that was given. */
function isSameClient(write: ConnectionWrite['oauth'], stored: StoredClient | undefined): boolean {
  if (write === undefined || write === null || stored === undefined || stored.isTyped === true) return false
  const parts = ({ clientId, clientSecret, scope, issuer, isIssuerMet }: StoredClient) =>
    JSON.stringify([clientId, clientSecret, scope, isIssuerMet === true ? undefined : issuer])
  return parts(write) === parts(stored)
}

/** Equal but for query and fragment. */
function samePlace(a: string | null, b: string | null): boolean {
  if (a === null || b === null) return false
  const [one, other] = [new URL(a), new URL(b)]
  return one.origin === other.origin && one.pathname === other.pathname
}

/**
 * Throws 403 unless the caller's policy allows writing the connection as it will be; so a caller cannot create one that
 * it could not see. Throws `invalid_request` if the record exceeds `connectionBytesMax`.
 */
export function requireWritable(
  { denials }: Pick<SharedParts, 'denials'>,
  { caller, request }: RequestContext,
  ref: ConnectionRef,
  connection: Connection,
): void {
  const access = accessTo(ref, { connection }, 'write')
  const decision = decide(caller.blocks, access)
  if (!decision.allowed) {
    denials.recordPolicyDenial(request, caller, access, decision)
    throw forbidden(decision)
  }
  if (connectionBytes(connection).length > connectionBytesMax) {
    throw invalidRequest(`the connection is too large: at most ${connectionBytesMax} bytes are kept`)
  }
}
