/** The caller at the endpoint of a namespace or a view, narrowed by the view (contract, 20.1 and 20.10). */

import type { Caller } from '../../auth/authenticate.ts'
import { namespaceOf, type RequestContext } from '../../auth/authorizer.ts'
import type { DirectoryView } from '../../auth/directory.ts'
import { isGrantedForAnother, madeAtOf } from '../../auth/grants.ts'
import { notFound, unauthorized } from '../../errors.ts'
import { namesInPath } from '../../http/path.ts'
import type { Namespace } from '../../model/organization.ts'
import type { View } from '../../model/view.ts'
import type { GatewayDeps } from '../gateway/forward.ts'

export interface EndpointContext {
  /** The caller, narrowed by the view. */
  readonly context: RequestContext
  readonly namespace: Namespace
  readonly view: View | undefined
}

/** Authenticates and authorizes a request by its path. Throws 401, 429, 404, 403. */
export async function enterEndpoint(
  deps: Pick<GatewayDeps, 'authorizer'> & { readonly narrow: ReturnType<typeof createNarrowing> },
  request: Request,
  isRepeated = false,
): Promise<EndpointContext> {
  const context = await deps.authorizer.authenticate(request, isRepeated)
  const [first, , viewName] = namesInPath(request.url)
  // Before 403: whether there is a view comes before what the caller may do there.
  const found = viewName === undefined ? undefined : await namespaceOf(context, first)
  const view = found && (await context.directory.view(found.namespace, viewName ?? ''))
  if (viewName !== undefined && view === undefined) throw notFound()
  const namespace = await deps.authorizer.requireNamespace(context, first, 'execute')
  const name = namespace.namespace
  if (await isGrantedForAnother(context.directory, context.caller.token, madeAtOf(namespace, view)))
    throw unauthorized()
  if (view === undefined) return { context, namespace, view }
  const narrowed = deps.narrow(context, view)
  await deps.authorizer.requireNamespace(narrowed, name, 'execute')
  return { context: narrowed, namespace, view }
}

/**
 * Narrows a context as if its caller had minted a token with the view's policy. Each caller stays the same object while
 * it uses one view: the fast lane knows a decision by the object of its caller (`fast-lane/admissions.ts`). Only the
 * last one is kept: thousands of callers may use hundreds of views.
 */
export function createNarrowing() {
  const last = new WeakMap<Caller, { readonly view: DirectoryView; readonly caller: Caller }>()
  return (context: RequestContext, view: DirectoryView): RequestContext => {
    const kept = last.get(context.caller)
    if (kept?.view === view) return { ...context, caller: kept.caller }
    const caller = { ...context.caller, blocks: [...context.caller.blocks, ...view.blocks] }
    last.set(context.caller, { view, caller })
    return { ...context, caller }
  }
}
