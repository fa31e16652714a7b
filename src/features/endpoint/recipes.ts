/** `GET /connect/{namespace}/.clients` (contract, 20.14): the content of a file for each client. */

import { notFound } from '../../errors.ts'
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
  const namespace = await authorizer.requireReadOrCall(context, first) // 404, 403
  const view = readQuery(request.url, ['view']).get('view') // 400
  if (view !== undefined && (await context.directory.view(namespace, view)) === undefined) throw notFound() // 404
  const url = [base, 'connect', namespace, 'mcp', ...(view === undefined ? [] : [view])].join('/')
  const name = endpointName(namespace, view)
  const list: RecipeList = { url, clients: clientNames.map((one) => recipeOf(one, { base, namespace, url, name })) }
  return new Response(JSON.stringify(list), { headers: privateJson })
}
