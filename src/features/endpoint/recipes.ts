/** `GET /connect/{namespace}/.clients` (contract, 20.14): the content of a file for each client. */

import { invalidRequest, notFound } from '../../errors.ts'
import type { Answer } from '../../http/handler.ts'
import { namesInPath } from '../../http/path.ts'
import { readQuery } from '../../http/query.ts'
import { privateJson } from '../../http/respond.ts'
import { clientNames, endpointName, type RecipeList, recipeOf } from '../../model/recipe.ts'
import type { EndpointDeps } from './endpoint-deps.ts'

/** For a caller that may read or call connections of the namespace. */
export const listRecipes: Answer<EndpointDeps> = async ({ authorizer, base }, request) => {
  const context = await authorizer.authenticate(request) // 401, 429
  const [first] = namesInPath(request.url)
  const query = readQuery(request.url, ['view', 'connection']) // 400
  const [view, connectionId] = [query.get('view'), query.get('connection')]
  const { namespace } = await authorizer.requireReadOrCall(context, first, connectionId) // 404, 403, 429
  if (connectionId !== undefined && view !== undefined)
    throw invalidRequest('view: cannot be combined with connection: only a namespace has views')
  if (view !== undefined && (await context.directory.view(namespace, view)) === undefined) throw notFound() // 404
  const place = connectionId === undefined ? ['mcp', ...(view === undefined ? [] : [view])] : [connectionId, 'mcp']
  const url = [base, 'connect', namespace, ...place].join('/')
  const endpoint = { base, namespace, url, name: connectionId ?? endpointName(namespace, view) }
  const list: RecipeList = { url, clients: clientNames.map((one) => recipeOf(one, endpoint)) }
  return new Response(JSON.stringify(list), { headers: privateJson })
}
