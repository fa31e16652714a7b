/** The OpenAPI words for MCP: the endpoints of connections, namespaces and views, and tools over plain HTTP. */

import { Type } from '@sinclair/typebox'
import { PinAcceptance, PinList } from '../../model/pins.ts'
import { RecipeList } from '../../model/recipe.ts'
import type { OperationId } from '../../operations.ts'
import { closedObject, OptionalText, openObject } from '../../schema/shapes.ts'
import { query, type Words } from './operation-words.ts'

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
export const RpcFailure = openObject({ ...answered, error: rpcError })
const McpTool = openObject({ name: Type.String() })
const McpTools = closedObject({ tools: Type.Array(McpTool) })
/** By connection: its tools, or why they are not listed. */
const unlisted = Type.Object({ error: Type.String(), message: Type.String(), setupUrl: OptionalText })
const NamespaceTools = Type.Record(Type.String(), Type.Union([McpTools, unlisted]))
const ToolResult = openObject({})
const ToolArguments = openObject({})

/** Shapes of MCP, which the platform passes on, by their name in the document. */
export const mcpSchemas = {
  RpcMessage,
  RpcAnswer,
  RpcFailure,
  NamespaceTools,
  McpTool,
  McpTools,
  ToolResult,
  ToolArguments,
}

export const connectionErrors = {
  403: 'The token does not allow this, or its constraints would hide the resulting connection',
  404: 'There is no such namespace or connection, or it is hidden from the caller',
}

/** Of a call that goes upstream. */
const callErrors = {
  401: 'The API key or token is missing or invalid, or the MCP server requires a sign-in',
  409: 'The connection needs values before it can be used',
  504: 'The MCP server does not answer in time',
}
const endpointParameters = [
  query('names', '`64`: names have up to 64 characters in place of 46', { type: 'string', enum: ['64'] }),
  query('status', '`tool`: lists the tool `connections_status`', { type: 'string', enum: ['tool'] }),
  query('tools', '`search`: lists four tools that find and call the others', { type: 'string', enum: ['search'] }),
]

/** One message to an endpoint. */
const message = {
  body: RpcMessage,
  example: { jsonrpc: '2.0', id: 1, method: 'tools/list' },
  answer: RpcAnswer,
  accepted: { description: 'A notification or a response was accepted' },
}

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

export const mcpWords: Readonly<Partial<Record<OperationId, Words>>> = {
  listNamespaceTools: {
    summary: 'List the tools of all connections of a namespace',
    description:
      'Shows the tools of each connection that the caller sees, by their own names, as the token allows them to be called; or why they cannot be listed.',
    answer: NamespaceTools,
    errors: {
      400: 'The request has parameters, or the caller sees more than 100 connections',
      403: 'The token does not allow this',
      404: 'There is no such namespace, or it is hidden from the caller',
    },
  },
  listRecipes: {
    summary: 'Read how clients are set up for a namespace',
    description: 'Shows the content of a file for each client. None has a credential: the client signs in by itself.',
    parameters: [query('view', 'A view of the namespace'), query('connection', 'One connection of it, instead')],
    answer: RecipeList,
    errors: {
      403: 'The token does not allow this',
      404: 'There is no such namespace, view or connection, or it is hidden from the caller',
    },
  },
  callNamespace: {
    summary: 'Speak MCP through all connections of a namespace',
    description:
      'One MCP server with the tools, prompts and resources of all connections that the caller sees, as `ID__NAME`. `names=64` allows longer names, and `status=tool` adds a tool that says which connections are missing. postern checks every message as if it had been sent to the connection itself.',
    parameters: endpointParameters,
    ...message,
    errors: endpointErrors,
  },
  callView: {
    summary: 'Speak MCP through a view of a namespace',
    description: 'As the endpoint of the namespace, for what the view selects.',
    parameters: endpointParameters,
    ...message,
    errors: { ...endpointErrors, 404: 'There is no such namespace or view, or it is hidden from the caller' },
  },
  callMcp: {
    summary: 'Speak MCP through a connection',
    description:
      'Send one JSON-RPC message over streamable HTTP, in an MCP revision that begins with `initialize`, or in 2026-07-28. The answer is JSON or `text/event-stream`. postern checks every message against the token’s policy, including `rpcReqMatch`; `tools/list` shows only the tools that the token could call.',
    ...message,
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
  listPins: {
    summary: 'Read which definitions of a connection are accepted',
    description:
      'Shows each tool that the server has listed, and its instructions, with the hash of the definition. `findings` are signs that a person should read with care. `diff` shows how a changed definition differs from the accepted one. Invisible characters are shown as `\\u{200b}`.',
    answer: PinList,
    errors: connectionErrors,
  },
  acceptPins: {
    summary: 'Accept definitions of a connection',
    description: 'Accepts the definitions with these hashes, if the server lists all of them now, and otherwise none.',
    body: PinAcceptance,
    example: { accept: { search: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855' } },
    answer: PinList,
    errors: {
      ...connectionErrors,
      409: 'A hash is not the present one',
    },
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
}
