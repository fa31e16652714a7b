/** The platform's OpenAPI 3.1 document, generated from the schemas that validate requests and fixtures. */

import { type TSchema, Type } from '@sinclair/typebox'
import { pageItemsDefault, pageItemsMax } from '../../limits.ts'
import { Connection, ConnectionPage, ConnectionWrite, Deleted } from '../../model/connection.ts'
import { Constraint } from '../../model/constraint.ts'
import {
  CreateTokenRequest,
  CreateTokenResponse,
  TokenError,
  TokenRevocation,
  TokenRevoked,
} from '../../model/token.ts'
import { type Operation, type OperationId, operations } from '../../operations.ts'
import { closedObject, OptionalText, openObject } from '../../schema/shapes.ts'
import { version } from '../../version.ts'
import { commonErrors, integer, parametersIn, query, type Words } from './operation-words.ts'
import { organizationSchemas, organizationWords } from './organization-words.ts'
import { recordSchemas, recordWords } from './record-words.ts'
import { serverSchemas, serverWords } from './server-words.ts'

const setupWords =
  'The page where a person signs in to the connection’s server, or enters what the connection requires.'
const ErrorBody = closedObject({
  error: Type.String(),
  message: Type.String(),
  setupUrl: Type.Optional(Type.String({ description: setupWords })),
})
const ServerError = closedObject({ error: Type.String() })
const Health = closedObject({ status: Type.Literal('ok'), timestamp: Type.String({ format: 'date-time' }) })
const Jwks = closedObject({ keys: Type.Array(Type.Record(Type.String(), Type.String())) })

const jsonrpc = Type.Literal('2.0')
const RpcMessage = openObject({
  jsonrpc,
  id: Type.Optional(Type.Union([Type.String(), Type.Number()])),
  method: OptionalText,
  params: Type.Optional(openObject({})),
})
const answered = { jsonrpc, id: Type.Union([Type.String(), Type.Number(), Type.Null()]) }
const RpcAnswer = openObject(answered)
const rpcError = Type.Object({ code: Type.Integer(), message: Type.String(), data: Type.Optional(Type.Unknown()) })
const RpcFailure = openObject({ ...answered, error: rpcError })
const McpTool = openObject({ name: Type.String() })
const McpTools = closedObject({ tools: Type.Array(McpTool) })
const ToolResult = openObject({})
const ToolArguments = openObject({})

/** Schemas by their name in the document. One that occurs inside another becomes a reference. */
const schemas: Readonly<Record<string, TSchema>> = {
  CreateTokenRequest,
  Constraint,
  CreateTokenResponse,
  TokenError,
  TokenRevocation,
  TokenRevoked,
  ConnectionPage,
  Connection,
  ConnectionWrite,
  Deleted,
  RpcMessage,
  RpcAnswer,
  RpcFailure,
  McpTool,
  McpTools,
  ToolArguments,
  ToolResult,
  ...serverSchemas,
  ...organizationSchemas,
  ...recordSchemas,
  Error: ErrorBody,
  ServerError,
  Health,
  Jwks,
}
const nameOf = new Map<unknown, string>(Object.entries(schemas).map(([name, schema]) => [schema, name]))

const connectionErrors = {
  403: 'The token does not allow this, or its constraints would hide the resulting connection',
  404: 'There is no such namespace or connection, or it is hidden from the caller',
}

const writeErrors = {
  ...connectionErrors,
  429: 'This API key is writing too fast, or too many invalid credentials came from this address; `retry-after` says when to try again',
}
const makeErrors = {
  ...writeErrors,
  403: 'The token does not allow this, or its constraints would hide the resulting connection; or the namespace is full',
}

/** Of a call that goes upstream. */
const callErrors = {
  401: 'The API key or token is missing or invalid, or the MCP server requires a sign-in',
  409: 'The connection needs values before it can be used',
  504: 'The MCP server does not answer in time',
}
const endpointParameters = [
  {
    name: 'names',
    in: 'query',
    description: '`64`: names have up to 64 characters in place of 46',
    schema: { type: 'string', enum: ['64'] },
  },
  {
    name: 'status',
    in: 'query',
    description: '`tool`: lists the tool `connections_status`',
    schema: { type: 'string', enum: ['tool'] },
  },
  {
    name: 'tools',
    in: 'query',
    description: '`search`: lists four tools that find and call the others',
    schema: { type: 'string', enum: ['search'] },
  },
] as const satisfies Words['parameters']

const endpointErrors = {
  400: 'The body is not a JSON-RPC message, the headers contradict it, or the caller sees more than 100 connections',
  403: 'The token does not allow this; the message names the rule',
  404: 'There is no such namespace, or it is hidden from the caller',
  413: 'The message is too large',
  508: 'A connection leads back to this postern',
}

const toolErrors = {
  ...connectionErrors,
  ...callErrors,
  400: 'The request cannot be read, or the MCP server rejects it',
  502: 'The MCP server cannot be reached, does not speak MCP, or answered with an error',
}

/**
 * The operations of the API. Those that describe the API are not part of it, nor are pages for people, OAuth's own
 * operations, which RFCs describe, and those that only the original's command line knows.
 */
const words: Readonly<Partial<Record<OperationId, Words>>> = {
  createToken: {
    summary: 'Mint a service token',
    description:
      'Returns a signed token with a limited lifetime that acts for the caller. Every constraint of the policy must allow a request, and so must every field of a constraint. Without a body, or with `{}` or `null`, the token has no policy. A token may mint tokens: a child carries its parent’s constraints and never outlives it.',
    body: CreateTokenRequest,
    example: { policy: [{ namespaces: 'acme', operations: 'read', ttl: '30m' }] },
    answer: CreateTokenResponse,
    error: TokenError,
    errors: {
      400: 'The request or its policy cannot be read; the message says which part (`invalid_request`, `policy_too_large`)',
      403: 'The caller does not manage the organization',
    },
  },
  revokeToken: {
    summary: 'Revoke a service token',
    description:
      'Also revokes every token minted with this one, at once and at every replica. Anybody who has the token may revoke it; an operator may send its id instead of the token.',
    body: TokenRevocation,
    example: { token: 'eyJ…' },
    answer: TokenRevoked,
    error: TokenError,
    errors: { 403: 'An id was sent, and the caller is not an operator with an API key' },
  },
  listConnections: {
    summary: 'List the connections of a namespace',
    description:
      'Lists the connections that the caller’s policy lets it see, sorted by id. You may filter by any metadata key, with `metadata.{key}` or `metadata[key]`. A connection must match all filters.',
    parameters: [
      query('limit', 'Connections on a page', integer(1, pageItemsMax, pageItemsDefault)),
      query('cursor', '`nextCursor` of the page before'),
      query('name', 'Exactly this name'),
      query('mcpUrl', 'Exactly this URL'),
      {
        name: 'metadata',
        in: 'query',
        description: 'Metadata that the connections must have',
        style: 'deepObject',
        schema: { type: 'object', additionalProperties: { type: 'string' } },
      },
    ],
    answer: ConnectionPage,
    errors: {
      400: 'A parameter is unknown, given twice, or cannot be read',
      403: 'The token does not allow this',
      404: 'There is no such namespace, or the caller may not access it',
    },
  },
  createConnection: {
    summary: 'Create a connection',
    description:
      'postern generates the id. It contacts the MCP server once, for a few seconds at most; `status` and `serverInfo` show the outcome. postern sends `headers` to the server, and never shows them in an answer.',
    body: ConnectionWrite,
    example: { mcpUrl: 'https://mcp.example.com/mcp', metadata: { team: 'sales' } },
    made: Connection,
    errors: makeErrors,
  },
  getConnection: {
    summary: 'Read a connection',
    description: 'Returns the connection with the same fields as the list.',
    answer: Connection,
    errors: connectionErrors,
  },
  replaceConnection: {
    summary: 'Create a connection with this id, or change it',
    description:
      'A field that you leave out keeps its value. A new value of `metadata` or `headers` replaces the old one as a whole, and null clears it. `server` and `mock` stay as they are.',
    body: ConnectionWrite,
    example: { mcpUrl: 'https://mcp.example.com/mcp', name: 'Notes' },
    answer: Connection,
    made: Connection,
    errors: { ...makeErrors, 409: 'The connection has another `mcpUrl`' },
  },
  deleteConnection: {
    summary: 'Delete a connection',
    description: 'When postern answers, the connection no longer exists.',
    answer: Deleted,
    errors: writeErrors,
  },
  callNamespace: {
    summary: 'Speak MCP through all connections of a namespace',
    description:
      'One MCP server with the tools, prompts and resources of all connections that the caller sees, as `ID__NAME`. `names=64` allows longer names, and `status=tool` adds a tool that says which connections are missing. postern checks every message as if it had been sent to the connection itself.',
    parameters: endpointParameters,
    body: RpcMessage,
    example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    answer: RpcAnswer,
    accepted: { description: 'A notification or a response was accepted' },
    errors: endpointErrors,
  },
  callView: {
    summary: 'Speak MCP through a view of a namespace',
    description: 'As the endpoint of the namespace, for what the view selects.',
    parameters: endpointParameters,
    body: RpcMessage,
    example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    answer: RpcAnswer,
    accepted: { description: 'A notification or a response was accepted' },
    errors: { ...endpointErrors, 404: 'There is no such namespace or view, or it is hidden from the caller' },
  },
  callMcp: {
    summary: 'Speak MCP through a connection',
    description:
      'Send one JSON-RPC message over streamable HTTP, in an MCP revision that begins with `initialize`, or in 2026-07-28. The answer is JSON or `text/event-stream`. postern checks every message against the token’s policy, including `rpcReqMatch`; `tools/list` shows only the tools that the token could call.',
    body: RpcMessage,
    example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
    answer: RpcAnswer,
    accepted: { description: 'A notification or a response was accepted' },
    errors: {
      400: 'The body is not a JSON-RPC message, or the headers contradict it',
      ...callErrors,
      403: 'The token does not allow this; the message names the rule',
      404: 'There is no such connection, or it is hidden from the caller',
      413: 'The message is too large',
      502: 'The MCP server cannot be reached, or does not speak MCP',
      508: 'The connection leads back to this postern',
    },
  },
  listTools: {
    summary: 'List a connection’s tools',
    description: 'Lists the tools that the token could call: `tools/list` for callers that do not speak MCP.',
    answer: McpTools,
    errors: toolErrors,
  },
  getTool: {
    summary: 'Read one tool, or those below a prefix',
    description:
      'Returns the tool of this name. If there is none, returns `{tools}` with the tools whose names begin with this name and a dot. You may write dots in the name as slashes.',
    answer: Type.Union([McpTools, McpTool]),
    errors: toolErrors,
  },
  callTool: {
    summary: 'Call a tool',
    description:
      'The body is the tool’s arguments. The answer is the tool’s result, as in MCP: `content`, `structuredContent`, `isError`.',
    body: ToolArguments,
    example: { query: 'invoices' },
    answer: ToolResult,
    errors: { ...toolErrors, 413: 'The arguments are too large' },
  },
  ...serverWords,
  ...organizationWords,
  ...recordWords,
  health: {
    summary: 'Is the server alive?',
    description: 'Needs no credential.',
    open: true,
    answer: Health,
  },
  jwks: {
    summary: 'Read the public keys that verify tokens',
    description: 'For programs that verify service tokens (EdDSA, Ed25519). Needs no credential.',
    open: true,
    answer: Jwks,
  },
}

/** An operation, as the document has it. */
export type Described = ReturnType<typeof describeOperation>
/** The whole document. */
export type OpenApiDocument = ReturnType<typeof openApiDocument>

/** `baseUrl`: the URL under which clients reach the platform. */
export function openApiDocument(baseUrl: string) {
  const paths: Record<string, Record<string, Described>> = {}
  for (const [id, said] of Object.entries(words)) {
    const operation: Operation = operations[id as OperationId]
    // OpenAPI has one kind of parameter in paths, with slashes or without.
    const template = operation.path.replace('{+', '{')
    paths[template] = { ...paths[template], [operation.method.toLowerCase()]: describeOperation(id, operation, said) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'postern',
      version,
      description: 'An MCP gateway in one executable: servers, connections and scoped service tokens.',
    },
    servers: [{ url: baseUrl }],
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: { bearer: { type: 'http', scheme: 'bearer', description: 'An API key or a service token' } },
      schemas: Object.fromEntries(Object.entries(schemas).map(([name, schema]) => [name, plain(schema, schema)])),
    },
  }
}

/** A body of JSON, as OpenAPI has it. */
export interface Content {
  readonly 'application/json': { readonly schema: unknown; readonly example?: object }
}

function describeOperation(operationId: string, operation: Operation, words: Words) {
  const { summary, description, open, body, example, answer, made, accepted, error } = words
  const json = (schema: TSchema, example?: object): Content => ({
    'application/json': { schema: plain(schema, undefined), ...(example && { example }) },
  })
  const responses: Record<string, { readonly description: string; readonly content?: Content }> = {
    ...(answer && { 200: { description: 'OK', content: json(answer) } }),
    ...(made && { 201: { description: 'Created', content: json(made) } }),
    ...(accepted && {
      202: { description: accepted.description, ...(accepted.body && { content: json(accepted.body) }) },
    }),
  }
  const errors = open === true ? {} : { ...commonErrors, ...words.errors }
  for (const [status, text] of Object.entries(errors)) {
    responses[status] = { description: text, content: json(error ?? errorSchemaOf(operation)) }
  }
  const parameters = [...parametersIn(operation.path), ...(words.parameters ?? [])]
  return {
    operationId,
    summary,
    description,
    ...(open === true && { security: [] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: false, content: json(body, example) } }),
    responses,
  }
}

function errorSchemaOf({ errors }: Operation): TSchema {
  if (errors === 'rpc') return RpcFailure
  return errors === 'server' || errors === 'text' ? ServerError : ErrorBody
}

/** Keywords that only our validator knows; they are left out of the document. */
const ownKeywords = new Set(['errorMessage', 'keyMessage'])

/** The schema as JSON. Every named schema in it, except `itself`, becomes a reference. */
function plain(schema: unknown, itself: unknown): unknown {
  const name = nameOf.get(schema)
  if (name !== undefined && schema !== itself) return { $ref: `#/components/schemas/${name}` }
  if (Array.isArray(schema)) return schema.map((item) => plain(item, itself))
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(
    Object.entries(schema)
      .filter(([key]) => !ownKeywords.has(key))
      .map(([key, value]) => [key, plain(value, itself)]),
  )
}
