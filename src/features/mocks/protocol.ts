/** The protocol around a mocked server, spoken by the official package: handshake, lists, resources and prompts. */

import { createMcpHandler, isInitializeRequest, ProtocolError, Server } from '@modelcontextprotocol/server'
import { rpcCodes } from '../../model/mcp.ts'
import type { ServerDetail } from '../../model/server.ts'
import type { Arguments, MockAnswer } from './answer.ts'
import { type MockCall, serverIdentity } from './call.ts'

type CallTool = (name: string, given: Arguments) => Promise<MockAnswer>

export async function serve(call: MockCall, detail: ServerDetail, callTool: CallTool): Promise<Response> {
  const { message, request } = call
  // A mock's lists never change: whoever subscribes to changes is told so, instead of being held.
  if (message.method === 'subscriptions/listen') return unsupported(message)
  if (message.method === 'initialize' && !isInitializeRequest(message.body)) return incomplete(message)
  const handler = createMcpHandler(() => serverOf(detail, call.scenario, callTool))
  const headers = new Headers({ 'content-type': 'application/json', accept: 'application/json, text/event-stream' })
  call.headers.forEach((value, name) => {
    if (name.startsWith('mcp-') && name !== 'mcp-session-id') headers.set(name, value)
  })
  // The address is nobody's; the handler looks at the headers and at the body that was read.
  const asked = new Request('http://localhost/mcp', { method: 'POST', headers, signal: request.signal })
  const answer = await handler.fetch(asked, { parsedBody: message.body })
  // nginx would keep events until their stream ends.
  if (answer.headers.get('content-type')?.startsWith('text/event-stream') === true)
    answer.headers.set('x-accel-buffering', 'no')
  return answer
}

function unsupported(message: MockCall['message']): Response {
  return rpcError(message, rpcCodes.methodNotFound, `a mock does not answer ${message.method}`)
}

/** The package would answer with all that its checker has to say. */
function incomplete(message: MockCall['message']): Response {
  const needed = 'params needs protocolVersion, capabilities and clientInfo (name, version)'
  return rpcError(message, rpcCodes.invalidParams, needed)
}

function rpcError({ id }: MockCall['message'], code: number, message: string): Response {
  const error = { code, message }
  return Response.json({ jsonrpc: '2.0', id, error }, { headers: { 'cache-control': 'no-store' } })
}

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
        throw new ProtocolError(rpcCodes.invalidParams, `there is no resource ${uri}`, { uri })
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
        throw new ProtocolError(rpcCodes.invalidParams, `there is no prompt ${JSON.stringify(name)}`)
      const missing = prompt.arguments?.find((one) => one.required === true && !Object.hasOwn(given, one.name))
      if (missing !== undefined) throw new ProtocolError(rpcCodes.invalidParams, `arguments.${missing.name} is missing`)
      const said = Object.entries(given).map(([key, value]) => `${key}: ${value}`)
      const text = [prompt.description ?? name, ...said, scenarioText].join('\n')
      return { description: prompt.description ?? name, messages: [{ role: 'user', content: { type: 'text', text } }] }
    })
  }
  return server
}

/** A registered tool says null where MCP leaves out. */
function withoutNulls(tool: object): object {
  return Object.fromEntries(Object.entries(tool).filter(([, value]) => value !== null))
}
