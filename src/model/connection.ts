/** Connections as lists return them (spec 2.5, 2.6; contract, 5.1). */

import { FormatRegistry, type Static, Type } from '@sinclair/typebox'
import { oauthTextCharsMax, urlCharsMax } from '../limits.ts'
import { closedObject, nullable, OptionalText, oneOf } from '../schema/shapes.ts'
import { isUrl } from '../schema/url-host.ts'
import { ConnectionId, QualifiedName } from './names.ts'
import { PinsSetting } from './pins.ts'

/** Contract 6.2: characters in a connection's name. Past it: a problem of the fixtures. */
const connectionNameCharsMax = 255
/** Ours: characters in the value of a connection's header, enough for any kind of credential. Past it: 400. */
const headerValueCharsMax = 4096
/** Ours: headers stored with a connection. Past it: 400. */
const connectionHeadersMax = 32
/** Ours: pairs of a connection's metadata; for each pair, postern writes and stores an index entry. Past it: a problem of the fixtures. */
const connectionMetadataPairsMax = 64

/** Whether a URL can be parsed, and names no user: credentials belong in headers. */
export function isPlainUrl(url: string): boolean {
  if (!isUrl(url)) return false
  const { username, password } = new URL(url)
  return username + password === ''
}
FormatRegistry.Set('uri', isPlainUrl)

export const Url = Type.String({
  pattern: '^https?://[^\\s\\u0000-\\u001f]+$',
  format: 'uri',
  maxLength: urlCharsMax,
  errorMessage: 'must be an http or https URL without a user or password; put credentials in "headers"',
})

export const Icon = closedObject({
  src: Type.String(),
  mimeType: OptionalText,
  sizes: Type.Optional(Type.Array(Type.String())),
  theme: Type.Optional(oneOf(['light', 'dark'])),
})

export const ServerInfo = closedObject({
  name: Type.String(),
  version: Type.String(),
  title: OptionalText,
  icons: Type.Optional(Type.Array(Icon)),
  websiteUrl: OptionalText,
  description: OptionalText,
})

const InputField = closedObject({
  label: Type.String(),
  description: OptionalText,
  required: Type.Optional(Type.Boolean()),
})
const InputFields = Type.Record(Type.String({ pattern: '^[^]+$' }), InputField, { additionalProperties: false })

export type ServerInfo = Static<typeof ServerInfo>

const SignedInUntil = Type.String({
  format: 'date-time',
  description: 'When the sign-in ends, if there is no refresh token to renew it. Somebody must then sign in again.',
})

/** Contract 5.1: five states, each with what a person needs to resolve it. */
export const ConnectionStatus = Type.Union([
  closedObject({ state: Type.Literal('connected'), signedInUntil: Type.Optional(SignedInUntil) }),
  closedObject({ state: Type.Literal('disconnected') }),
  closedObject({ state: Type.Literal('auth_required'), setupUrl: OptionalText, authorizationUrl: OptionalText }),
  closedObject({
    state: Type.Literal('input_required'),
    http: closedObject({ headers: Type.Optional(InputFields), query: Type.Optional(InputFields) }),
    missing: closedObject({ headers: Type.Array(Type.String()), query: Type.Array(Type.String()) }),
    setupUrl: OptionalText,
  }),
  closedObject({ state: Type.Literal('error'), message: Type.String() }),
])
export type ConnectionStatus = Static<typeof ConnectionStatus>

/** Values of any JSON type. `policy/metadata.ts` defines how they are compared. */
export const ConnectionMetadata = Type.Record(Type.String({ pattern: '^[^]+$' }), Type.Unknown(), {
  additionalProperties: false,
  maxProperties: connectionMetadataPairsMax,
  keyMessage: 'is not a metadata key: it is empty',
})

export const Transport = oneOf(['http', 'uplink'])

export const Mock = closedObject({ enabled: Type.Boolean(), scenario: OptionalText })

const connectionName = Type.String({ minLength: 1, maxLength: connectionNameCharsMax })

/** As in spec 2.5: `mcpUrl` is null for an uplink, `metadata` if there is none. The first four are always there. */
export const Connection = closedObject({
  connectionId: ConnectionId,
  name: connectionName,
  mcpUrl: nullable(Url),
  metadata: nullable(ConnectionMetadata),
  transport: Transport,
  mock: Type.Optional(Mock),
  /** Left out: as the namespace says. */
  pins: Type.Optional(PinsSetting),
  iconUrl: OptionalText,
  createdAt: Type.String({ format: 'date-time' }),
  status: ConnectionStatus,
  serverInfo: Type.Optional(ServerInfo),
})
export type Connection = Static<typeof Connection>

export interface ConnectionRef {
  readonly namespace: string
  readonly connectionId: string
}

export const HeaderValue = Type.String({
  pattern: '^[\\t\\x20-\\x7e\\x80-\\xff]*$',
  maxLength: headerValueCharsMax,
  errorMessage: `must be a header value: at most ${headerValueCharsMax} characters of Latin-1, no line breaks`,
})

/** Header names and values in HTTP's syntax; `isRefusedHeader` says which names are refused besides. */
const HttpHeaders = Type.Record(Type.String({ pattern: "^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$" }), HeaderValue, {
  additionalProperties: false,
  maxProperties: connectionHeadersMax,
  keyMessage: 'is not a header name',
})

/** A client that was registered by hand at the authorization server of an MCP server. Never returned. */
const GivenClient = closedObject({
  clientId: Type.String({ minLength: 1, maxLength: oauthTextCharsMax }),
  clientSecret: Type.Optional(Type.String({ minLength: 1, maxLength: oauthTextCharsMax })),
  issuer: Type.Optional(Url),
  scope: Type.Optional(Type.String({ minLength: 1, maxLength: oauthTextCharsMax })),
})
export type GivenClient = Static<typeof GivenClient>

/** Body of `POST /connect/{namespace}` and `PUT /connect/{namespace}/{connectionId}`. Fields left out stay. */
export const ConnectionWrite = closedObject({
  name: Type.Optional(connectionName),
  mcpUrl: Type.Optional(Url),
  server: Type.Optional(QualifiedName),
  metadata: Type.Optional(nullable(ConnectionMetadata)),
  headers: Type.Optional(nullable(HttpHeaders)),
  transport: Type.Optional(Type.Literal('http')),
  mock: Type.Optional(Mock),
  pins: Type.Optional(nullable(PinsSetting)),
  oauth: Type.Optional(nullable(GivenClient)),
})
export type ConnectionWrite = Static<typeof ConnectionWrite>

/** Headers that the HTTP client sets: those of one connection (RFC 9110, 7.6.1), `Via`, `Host`, `Content-Length`. */
const refusedHeaders = new Set(
  'connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding upgrade via host content-length'.split(
    ' ',
  ),
)

/** Whether no connection may set this header, whatever its case. */
export function isRefusedHeader(name: string): boolean {
  return refusedHeaders.has(name.toLowerCase())
}

export const Deleted = closedObject({ success: Type.Literal(true) })

/** A page of a list (spec 4.2). `nextCursor` is null on the last page (contract, 5.2). */
export const ConnectionPage = closedObject({ connections: Type.Array(Connection), nextCursor: nullable(Type.String()) })
export type ConnectionPage = Static<typeof ConnectionPage>

/** The text by which a filter compares a metadata value. */
export function filterText(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value)
}
