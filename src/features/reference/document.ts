/** The platform's OpenAPI 3.1 document, generated from the schemas that validate requests and fixtures. */

import { type TSchema, Type } from '@sinclair/typebox'
import { pageItemsDefault, pageItemsMax } from '../../limits.ts'
import * as connectionModel from '../../model/connection.ts'
import * as consoleModel from '../../model/console.ts'
import { Constraint } from '../../model/constraint.ts'
import * as explainModel from '../../model/explain.ts'
import * as healthModel from '../../model/health.ts'
import * as organizationModel from '../../model/organization.ts'
import * as pinsModel from '../../model/pins.ts'
import * as recipeModel from '../../model/recipe.ts'
import * as recordedCallModel from '../../model/recorded-call.ts'
import * as registryModel from '../../model/registry.ts'
import * as serverModel from '../../model/server.ts'
import * as serverJsonModel from '../../model/server-json.ts'
import * as tokenModel from '../../model/token.ts'
import * as viewModel from '../../model/view.ts'
import { type Operation, type OperationId, operations } from '../../operations.ts'
import { closedObject } from '../../schema/shapes.ts'
import { version } from '../../version.ts'
import { connectionErrors, mcpSchemas, mcpWords, RpcFailure } from './mcp-words.ts'
import { commonErrors, integer, parametersIn, query, type Words } from './operation-words.ts'
import { organizationWords } from './organization-words.ts'
import { policyWords } from './policy-words.ts'
import { recordWords } from './record-words.ts'
import { serverWords } from './server-words.ts'

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

const writeErrors = {
  ...connectionErrors,
  429: 'This API key is writing too fast, or too many invalid credentials came from this address; `retry-after` says when to try again',
}
const makeErrors = {
  ...writeErrors,
  403: 'The token does not allow this, or its constraints would hide the resulting connection; or the namespace is full',
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
    body: tokenModel.CreateTokenRequest,
    example: { policy: [{ namespaces: 'acme', operations: 'read', ttl: '30m' }] },
    answer: tokenModel.CreateTokenResponse,
    errors: {
      400: 'The request or its policy cannot be read; the message says which part (`invalid_request`, `policy_too_large`)',
      403: 'The caller does not manage the organization',
    },
  },
  revokeToken: {
    summary: 'Revoke a service token',
    description:
      'Also revokes every token minted with this one, at once and at every replica. Anybody who has the token may revoke it. Its user and operators, with their API keys, may send its id (`jti`) instead.',
    body: tokenModel.TokenRevocation,
    example: { token: 'eyJ…' },
    answer: tokenModel.TokenRevoked,
    errors: { 403: 'An id was sent, and the caller is neither an operator nor the user of the token, with an API key' },
  },
  ...policyWords,
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
    answer: connectionModel.ConnectionPage,
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
    body: connectionModel.ConnectionWrite,
    example: { mcpUrl: 'https://mcp.example.com/mcp', metadata: { team: 'sales' } },
    made: connectionModel.Connection,
    errors: makeErrors,
  },
  getConnection: {
    summary: 'Read a connection',
    description: 'Returns the connection with the same fields as the list.',
    answer: connectionModel.Connection,
    errors: connectionErrors,
  },
  replaceConnection: {
    summary: 'Create a connection with this id, or change it',
    description:
      'A field that you leave out keeps its value. A new value of `metadata` or `headers` replaces the old one as a whole, and null clears it. `server` and `mock` stay as they are.',
    body: connectionModel.ConnectionWrite,
    example: { mcpUrl: 'https://mcp.example.com/mcp', name: 'Notes' },
    answer: connectionModel.Connection,
    made: connectionModel.Connection,
    errors: { ...makeErrors, 409: 'The connection has another `mcpUrl`' },
  },
  deleteConnection: {
    summary: 'Delete a connection',
    description: 'When postern answers, the connection no longer exists.',
    answer: connectionModel.Deleted,
    errors: writeErrors,
  },
  ...mcpWords,
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
export type OpenApiDocument = ReturnType<typeof openApiDocument>

/** The modules whose shapes have the names under which these export them. */
const models: Readonly<Record<string, unknown>> = {
  ...{ ...connectionModel, ...consoleModel, ...explainModel, ...healthModel, ...organizationModel, ...pinsModel },
  ...{ ...recipeModel, ...recordedCallModel, ...registryModel, ...serverJsonModel, ...serverModel, ...tokenModel },
  ...viewModel,
}
/** Shapes that occur inside others or in errors alone, or have another name here. */
const others: Readonly<Record<string, TSchema>> = {
  ...mcpSchemas,
  ...{ Constraint, LintRequest: explainModel.LintRequest, Pagination: organizationModel.Pagination },
  ...{ Recipe: recipeModel.Recipe, ServerJson: serverJsonModel.ServerJson, View: viewModel.ViewDetail },
  ...{ ConnectionHealth: healthModel.Health, ConsoleSession: consoleModel.ConsoleSessionBody },
  ...{ TokenError: tokenModel.TokenError, Error: ErrorBody, ServerError, Health, Jwks },
}
const used = new Set(
  Object.values(words).flatMap(({ body, answer, made, accepted }) => [body, answer, made, accepted?.body]),
)
const named = [...Object.entries(models).filter(([, shape]) => used.has(shape as TSchema)), ...Object.entries(others)]
/** A shape with a name becomes a reference wherever it occurs. */
const nameOf = new Map<unknown, string>(named.map(([name, shape]) => [shape, name]))

/** `baseUrl`: the URL under which clients reach the platform. */
export function openApiDocument(baseUrl: string) {
  const paths: Record<string, Record<string, Described>> = {}
  for (const [id, said] of Object.entries(words)) {
    const operation: Operation = operations[id as OperationId]
    // OpenAPI has one kind of parameter in paths, with slashes or without.
    const template = operation.path.replace('{+', '{')
    paths[template] = { ...paths[template], [operation.method.toLowerCase()]: describeOperation(id, operation, said) }
  }
  const inOrder = [...nameOf].sort(([, a], [, b]) => (a < b ? -1 : 1))
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
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key or a service token' },
        session: {
          ...{ type: 'apiKey', in: 'cookie', name: 'postern_console' },
          description: 'The session of a browser at the console; with https, the name begins with `__Host-`',
        },
      },
      schemas: Object.fromEntries(inOrder.map(([shape, name]) => [name, plain(shape, shape)])),
    },
  }
}

/** A body, as OpenAPI has it. */
export type Content = Readonly<
  Partial<Record<'application/json' | 'text/event-stream', { readonly schema: unknown; readonly example?: object }>>
>

function describeOperation(operationId: string, operation: Operation, words: Words) {
  const { summary, description, open, bySession, body, example, answer, stream, made, accepted } = words
  const json = (schema: TSchema, example?: object): Content => ({
    'application/json': { schema: plain(schema, undefined), ...(example && { example }) },
  })
  const responses: Record<string, { readonly description: string; readonly content?: Content }> = {
    ...(answer && { 200: { description: 'OK', content: json(answer) } }),
    ...(stream && { 200: { description: stream, content: { 'text/event-stream': { schema: { type: 'string' } } } } }),
    ...(made && { 201: { description: 'Created', content: json(made) } }),
    ...(accepted && {
      202: { description: accepted.description, ...(accepted.body && { content: json(accepted.body) }) },
    }),
  }
  const errors = open === true || bySession === true ? { ...words.errors } : { ...commonErrors, ...words.errors }
  for (const [status, text] of Object.entries(errors))
    responses[status] = { description: text, content: json(errorSchemaOf(operation)) }
  const parameters = [...parametersIn(operation.path), ...(words.parameters ?? [])]
  return {
    operationId,
    summary,
    description,
    ...(open === true && { security: [] }),
    ...(bySession === true && { security: [{ session: [] }] }),
    ...(parameters.length > 0 && { parameters }),
    ...(body && { requestBody: { required: false, content: json(body, example) } }),
    responses,
  }
}

function errorSchemaOf({ path, errors }: Operation): TSchema {
  if (path.startsWith('/tokens')) return tokenModel.TokenError
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
