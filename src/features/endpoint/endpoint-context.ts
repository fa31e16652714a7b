/** The caller at the endpoint of a namespace or a view, narrowed by the view (contract, 20.1 and 20.10). */

import type { Caller } from '../../auth/authenticate.ts'
import type { RequestContext } from '../../auth/authorizer.ts'
import { isGrantedForAnother, madeAtOf } from '../../auth/grants.ts'
import { notFound, unauthorized } from '../../errors.ts'
import { namesInPath } from '../../http/path.ts'
import type { Namespace } from '../../model/organization.ts'
import type { View } from '../../model/view.ts'
import type { Block } from '../../policy/block.ts'
import { viewBlocks } from '../../policy/view-policy.ts'
import type { GatewayDeps } from '../gateway/forward.ts'

export interface EndpointContext {
  /** The caller, narrowed by the view. */
  readonly context: RequestContext
  readonly namespace: Namespace
  readonly view: View | undefined
}

/** By view: a directory snapshot has the same object for all requests. */
const blocksOf = new WeakMap<View, readonly Block[]>()
/**
 * Each caller as the view that it used last narrows it: the fast lane knows a decision by the object of its caller
 * (`fast-lane/admissions.ts`). One for each: thousands of callers may use hundreds of views.
 */
const narrowedOf = new WeakMap<Caller, { readonly view: View; readonly caller: Caller }>()

/** Authenticates and authorizes a request by its path. Throws 401, 429, 404, 403. */
export async function enterEndpoint(
  { authorizer }: Pick<GatewayDeps, 'authorizer'>,
  request: Request,
  isRepeated = false,
): Promise<EndpointContext> {
  const context = await authorizer.authenticate(request, isRepeated)
  const [first, , viewName] = namesInPath(request.url)
  const name = await authorizer.requireNamespace(context, first, 'execute')
  const namespace = await context.directory.namespace(name)
  const view = viewName === undefined ? undefined : await context.directory.view(name, viewName)
  if (namespace === undefined || (viewName !== undefined && view === undefined)) throw notFound()
  if (await isGrantedForAnother(context.directory, context.caller.token, madeAtOf(namespace, view)))
    throw unauthorized()
  if (view === undefined) return { context, namespace, view }
  const narrowed = narrowedBy(view, context)
  await authorizer.requireNamespace(narrowed, name, 'execute')
  return { context: narrowed, namespace, view }
}

/** The caller, as if it had minted a token with the view's policy. */
export function narrowedBy(view: View, context: RequestContext): RequestContext {
  const kept = narrowedOf.get(context.caller)
  if (kept?.view === view) return { ...context, caller: kept.caller }
  const own = blocksOf.getOrInsertComputed(view, () => viewBlocks(view.policy))
  const caller = { ...context.caller, blocks: [...context.caller.blocks, ...own] }
  narrowedOf.set(context.caller, { view, caller })
  return { ...context, caller }
}
