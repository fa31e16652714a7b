/** MCP for a mocked server by the official package: all but the calls of tools that mocks.ts answers itself. */

import { createMcpHandler, isInitializeRequest, ProtocolError, Server } from '@modelcontextprotocol/server'
import { rpcErrorBody } from '../../http/error-response.ts'
import { jsonResponse, noStoreJson } from '../../http/respond.ts'
import { rpcCodes } from '../../model/mcp.ts'
import type { ServerDetail } from '../../model/server.ts'
import { shorten } from '../../schema/cut-text.ts'
import { type Arguments, type MockAnswer, type MockCall, serverIdentity } from './call.ts'

type CallTool = (name: string, given: Arguments) => Promise<MockAnswer>

/** A new server object for each request; mocks keep no state between requests. */
export async function serve(call: MockCall, detail: ServerDetail, callTool: CallTool): Promise<Response> {
  const { message } = call
  // A mock's lists never change. A subscription is refused at once instead of held open without events.
  if (message.method === 'subscriptions/listen') {
    return rpcError(message, rpcCodes.methodNotFound, `a mock does not answer ${message.method}`)
  }
  if (message.method === 'initialize' && !isInitializeRequest(message.body)) {
    // The package's own error would contain the full output of its validator.
    const needed = 'params needs protocolVersion, capabilities and clientInfo (name, version)'
    return rpcError(message, rpcCodes.invalidParams, needed)
  }
  const handler = createMcpHandler(() => serverOf(detail, call.scenario, callTool))
  const headers = new Headers({ 'content-type': 'application/json', accept: 'application/json, text/event-stream' })
  call.headers.forEach((value, name) => {
    if (name.startsWith('mcp-') && name !== 'mcp-session-id') headers.set(name, value)
  })
  // The URL is a placeholder: the handler uses only the headers and the parsed body. Without the signal of the client's
  // request, on which all that was made for the answer would hang until the client has read it.
  const asked = new Request('http://localhost/mcp', { method: 'POST', headers })
  const answer = await handler.fetch(asked, { parsedBody: message.body })
  // Without this, nginx buffers an event stream until it ends.
  if (answer.headers.get('content-type')?.startsWith('text/event-stream') === true)
    answer.headers.set('x-accel-buffering', 'no')
  return answer
}

function rpcError({ id }: MockCall['message'], code: number, message: string): Response {
  return jsonResponse(rpcErrorBody(code, message, id), noStoreJson)
}

/** `null` for tools, resources or prompts in the details means that the server does not have that capability. */
function serverOf(detail: ServerDetail, scenario: string, callTool: CallTool): Server {
  const { tools, resources, prompts, description } = detail
  const capabilities = {
    ...(tools !== null && { tools: {} }),
    ...(resources !== null && { resources: {} }),
    ...(prompts !== null && { prompts: {} }),
  }
  const server = new Server(serverIdentity(detail), { capabilities, instructions: description })
  const scenarioText = scenario === '' ? description : scenario

  if (tools !== null) {
    server.setRequestHandler('tools/list', async () => ({ tools: tools.map(withoutNulls) as never[] }))
    server.setRequestHandler('tools/call', async ({ params }) => {
      const answer = await callTool(params.name, params.arguments ?? {})
      if ('error' in answer) throw new ProtocolError(answer.error.code, answer.error.message, answer.error.data)
      return answer.result as never
    })
  }
  if (resources !== null) {
    server.setRequestHandler('resources/list', async () => ({ resources }))
    server.setRequestHandler('resources/templates/list', async () => ({ resourceTemplates: [] }))
    server.setRequestHandler('resources/read', async ({ params: { uri } }) => {
      const resource = resources.find((one) => one.uri === uri)
      if (resource === undefined)
        throw new ProtocolError(rpcCodes.invalidParams, `there is no resource ${shorten(uri)}`, { uri })
      const { name, mimeType } = resource
      const text =
        mimeType === 'application/json' ? JSON.stringify({ name, about: scenarioText }) : `${name}: ${scenarioText}`
      return { contents: [{ uri, text, ...(mimeType !== undefined && { mimeType }) }] }
    })
  }
  if (prompts !== null) {
    server.setRequestHandler('prompts/list', async () => ({ prompts }))
    server.setRequestHandler('prompts/get', async ({ params: { name, arguments: given = {} } }) => {
      const prompt = prompts.find((one) => one.name === name)
      if (prompt === undefined)
        throw new ProtocolError(rpcCodes.invalidParams, `there is no prompt ${JSON.stringify(shorten(name))}`)
      const missing = prompt.arguments?.find((one) => one.required === true && !Object.hasOwn(given, one.name))
      if (missing !== undefined) throw new ProtocolError(rpcCodes.invalidParams, `arguments.${missing.name} is missing`)
      const said = Object.entries(given).map(([key, value]) => `${key}: ${value}`)
      const text = [prompt.description ?? name, ...said, scenarioText].join('\n')
      return { description: prompt.description ?? name, messages: [{ role: 'user', content: { type: 'text', text } }] }
    })
  }
  return server
}

/** Registered tools have null for absent fields; MCP requires those fields to be left out. */
function withoutNulls(tool: object): object {
  return Object.fromEntries(Object.entries(tool).filter(([, value]) => value !== null))
}
