/** Answers that wait, for time or a server, while somebody takes the rights of their caller away. */

import type { Answer } from '../http/handler.ts'
import { wholeResponse } from '../http/respond.ts'
import { type Authorizer, isFresh, namespaceOf, type RequestContext } from './authorizer.ts'
import { managesNamespace } from './namespace-access.ts'
import type { SharedParts } from './shared-parts.ts'

/**
 * The answer that `make` gives. It is made again if its caller's access to the namespaces that it may tell of has
 * changed meanwhile. Throws 401 if the credential has ended, and what `make` throws.
 */
export async function whileAllowed<T>(
  deps: { readonly authorizer: Pick<Authorizer, 'authenticate'> } & Pick<SharedParts, 'clock'>,
  context: RequestContext,
  make: (context: RequestContext) => Promise<T>,
): Promise<T> {
  for (let current = context; ; ) {
    const [made] = await Promise.allSettled([make(current)])
    const now = isFresh(deps, current) ? current : await deps.authorizer.authenticate(current.request, true) // 401
    if (await mayDoTheSame(current, now)) {
      if (made.status === 'rejected') throw made.reason
      return made.value
    }
    current = now
  }
}

/** Makes a handler that answers with the JSON of what `make` gives, as `whileAllowed`. */
export function answerWhileAllowed<D extends Pick<SharedParts, 'authorizer' | 'clock'>>(
  make: (deps: D, context: RequestContext) => Promise<object>,
): Answer<D> {
  return async (deps, request) => {
    const context = await deps.authorizer.authenticate(request) // 401, 429
    return wholeResponse(request, JSON.stringify(await whileAllowed(deps, context, (now) => make(deps, now))))
  }
}

async function mayDoTheSame(before: RequestContext, now: RequestContext): Promise<boolean> {
  if (before.directory === now.directory) return true
  if (before.caller.operator !== now.caller.operator) return false
  for (const [name, { createdAt, isManaged }] of before.namespaces) {
    const namespace = await namespaceOf(now, name)
    if (namespace === undefined || namespace.createdAt !== (createdAt ?? namespace.createdAt)) return false
    if (isManaged === true && !(await managesNamespace(now.caller, namespace, now.directory))) return false
  }
  return true
}
