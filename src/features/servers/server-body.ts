/** The bodies of writes of servers: their bounds, and what their schema does not say. */

import { invalidRequest, PlatformError } from '../../errors.ts'
import { readOptionalBody } from '../../http/body.ts'
import { jsonDepthMax } from '../../limits.ts'
import { ServerWrite, sameNameProblem } from '../../model/server.ts'
import { problemText, validatorOf } from '../../schema/check.ts'

/** Ours: values in the objects and arrays of the body of such a write; a server is parsed again and again. Past it: 400. */
const serverValuesMax = 50_000

const writeShape = validatorOf(ServerWrite)

export const serverBody = {
  depthMax: jsonDepthMax,
  valuesMax: serverValuesMax,
  tooLarge: (bytesMax: number) => new PlatformError('too_large', `the body is too large: at most ${bytesMax} bytes`),
}

/** Throws 400 and 413. */
export async function readWrite(request: Request): Promise<ServerWrite> {
  const body = await readOptionalBody(request, writeShape, serverBody)
  const { mcpUrl, tools } = body
  for (const field of ['remote', 'deploymentUrl', 'connections', 'tools', 'resources', 'prompts'] as const) {
    if (mcpUrl !== undefined && body[field] !== undefined)
      throw invalidRequest(`${field}: cannot be combined with mcpUrl, which sets it`)
  }
  const sameName = sameNameProblem(tools ?? null)
  if (sameName !== undefined) throw invalidRequest(problemText(sameName))
  return body
}
