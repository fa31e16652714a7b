/** `GET /connect/{namespace}/.clients` (contract, 20.14): the content of a file for each client. */

import { invalidRequest, notFound } from '../../errors.ts'
import type { Answer } from '../../http/handler.ts'
import { namesInPath } from '../../http/path.ts'
import { readQuery } from '../../http/query.ts'
import { privateJson } from '../../http/respond.ts'
import { clientNames, endpointName, type RecipeList, type RecipeOf, recipeOf } from '../../model/recipe.ts'
import type { EndpointDeps } from './endpoint-deps.ts'

/** For a caller that may read or call connections of the namespace. */
export const listRecipes: Answer<EndpointDeps> = async ({ authorizer, base }, request) => {
  const context = await authorizer.authenticate(request) // 401, 429
  const [first] = namesInPath(request.url)
  const query = readQuery(request.url, ['view', 'connection']) // 400
  const [view, connectionId] = [query.get('view'), query.get('connection')]
  const { namespace } = await authorizer.requireReadOrCall(context, first, connectionId) // 404, 403, 429
  if (connectionId !== undefined) {
    if (view !== undefined) throw invalidRequest('view: cannot be combined with connection: only a namespace has views')
    const url = [base, 'connect', namespace, connectionId, 'mcp'].join('/')
    return recipesFor({ base, namespace, url, name: connectionId })
  }
  if (view !== undefined && (await context.directory.view(namespace, view)) === undefined) throw notFound() // 404
  const url = [base, 'connect', namespace, 'mcp', ...(view === undefined ? [] : [view])].join('/')
  return recipesFor({ base, namespace, url, name: endpointName(namespace, view) })
}

function recipesFor(endpoint: RecipeOf): Response {
  const list: RecipeList = { url: endpoint.url, clients: clientNames.map((one) => recipeOf(one, endpoint)) }
  return new Response(JSON.stringify(list), { headers: privateJson })
}
