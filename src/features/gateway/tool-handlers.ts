/**
 * `.tools` (contract, 7.9): a connection's tools over plain HTTP, for callers that do not speak MCP. Each request is
 * translated into `tools/list` or `tools/call`, and the policy is evaluated on that. Errors are `{error, message}`.
 */

import { isFresh } from '../../auth/authorizer.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import type { Work } from '../../fairness/turns.ts'
import { bodyTooLarge, readJsonBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { namesInPath } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { noStoreJson, wholeResponse } from '../../http/respond.ts'
import { rpcDepthMax } from '../../limits.ts'
import type { AuthorizedCall } from './authorized-call.ts'
import { authorizeCall, type GatewayDeps } from './forward.ts'
import { ask, type Definition, listDefinitions } from './tool-requests.ts'

export const toolHandlers = handlersOf({ listTools, getTool, callTool })

async function listTools(deps: GatewayDeps, request: Request): Promise<Response> {
  const call = await authorizeCall(deps, request) // 401, 429, 404, 403
  refuseQuery(request.url) // 400
  const { definitions } = await rightfully(deps, call, listDefinitions(deps, call, 'tools', writingTools))
  return listResponse(request, definitions) // 429
}

/** Answers with the tool of this name, or else the group of tools below it as `{tools}`, or else 404. */
async function getTool(deps: GatewayDeps, request: Request): Promise<Response> {
  const call = await authorizeCall(deps, request) // 401, 429, 404, 403
  refuseQuery(request.url) // 400
  const name = toolNameOf(request)
  const isWanted = ({ name: own }: Definition) => own === name || String(own).startsWith(`${name}.`)
  const wanted = (page: readonly Definition[]) => writingTools(page.filter(isWanted))
  const { definitions: found } = await rightfully(deps, call, listDefinitions(deps, call, 'tools', wanted))
  const tool = found.find(({ name: own }) => own === name)
  if (tool !== undefined) return wholeResponse(request, tool.json, { headers: noStoreJson })
  if (found.length === 0) throw notFound() // 404
  return listResponse(request, found) // 429
}

/** A tool as it is answered. */
interface WrittenTool {
  readonly name: unknown
  readonly json: string
}

/** Tools as they are answered, as work in steps: one may have a page of the server's for itself. */
export function* writingTools(page: readonly Definition[]): Work<WrittenTool[]> {
  const tools: WrittenTool[] = []
  for (const tool of page) {
    const json = JSON.stringify(tool)
    tools.push({ name: tool['name'], json })
    yield json.length
  }
  return tools
}

async function callTool(deps: GatewayDeps, request: Request): Promise<Response> {
  const call = await authorizeCall(deps, request) // 401, 429, 404, 403
  refuseQuery(request.url) // 400
  const body = await readJsonBody(request, { depthMax: rpcDepthMax, tooLarge: bodyTooLarge }) // 400, 413, 429
  const given = body ?? {}
  if (typeof given !== 'object' || Array.isArray(given))
    throw invalidRequest('the body must be an object: the tool’s arguments')
  const params = { name: toolNameOf(request), arguments: given }
  const now = isFresh(deps, call.context) ? call : await call.renew()
  const { result } = await rightfully(deps, now, ask(deps, now, 'tools/call', params))
  return wholeResponse(request, JSON.stringify(result), { headers: noStoreJson })
}

/** The result of work that waited for a server, or its error. Throws 401, 404, 403 if the caller has lost the right. */
async function rightfully<T>(deps: GatewayDeps, call: AuthorizedCall, work: Promise<T>): Promise<T> {
  const [ended] = await Promise.allSettled([work])
  if (!isFresh(deps, call.context)) await call.renew()
  if (ended.status === 'rejected') throw ended.reason
  return ended.value
}

/** The tool's name: the path after `.tools`, with `/` (also `%2F`) read as a dot. Throws 404 if it is empty. */
function toolNameOf(request: Request): string {
  const name = namesInPath(request.url).slice(3).join('.').replaceAll('/', '.')
  if (name === '') throw notFound()
  return name
}

function listResponse(request: Request, tools: readonly WrittenTool[]): Response {
  return wholeResponse(request, `{"tools":[${tools.map(({ json }) => json).join()}]}`, { headers: noStoreJson })
}
