/** Callers as the views of a namespace narrow them. */

import type { Caller } from '../../auth/authenticate.ts'
import type { RequestContext } from '../../auth/authorizer.ts'
import type { DirectoryView } from '../../auth/directory.ts'

/**
 * Each caller as the view that it used last narrows it: the fast lane knows a decision by the object of its caller
 * (`fast-lane/admissions.ts`). One for each: thousands of callers may use hundreds of views.
 */
export class NarrowedCallers {
  readonly #last = new WeakMap<Caller, { readonly view: DirectoryView; readonly caller: Caller }>()

  /** The context with its caller as if that had minted a token with the view's policy. */
  narrow(context: RequestContext, view: DirectoryView): RequestContext {
    const kept = this.#last.get(context.caller)
    if (kept?.view === view) return { ...context, caller: kept.caller }
    const caller = { ...context.caller, blocks: [...context.caller.blocks, ...view.blocks] }
    this.#last.set(context.caller, { view, caller })
    return { ...context, caller }
  }
}
