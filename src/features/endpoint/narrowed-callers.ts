/** Callers as the views of a namespace narrow them. */

import type { Caller } from '../../auth/authenticate.ts'
import type { RequestContext } from '../../auth/authorizer.ts'
import type { DirectoryView } from '../../auth/directory.ts'

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
