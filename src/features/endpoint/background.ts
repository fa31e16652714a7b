/** Work that a request causes, and that is not the request's own. */

import type { RequestContext } from '../../auth/authorizer.ts'
import { Allowance, openAllowance } from '../../fairness/allowance.ts'
import type { Holder } from '../../fairness/owner.ts'
import { operations } from '../../operations.ts'
import type { GatewayDeps } from '../gateway/forward.ts'

/**
 * Runs `work` with a request and an allowance of its own, which end with it. `holder`: whose time and memory it takes.
 * `signal`: ends what it asks of servers. Throws what `work` throws, and 429.
 */
export async function inBackground<T>(
  { fairness, sockets }: Pick<GatewayDeps, 'fairness' | 'sockets'>,
  context: RequestContext,
  { holder, signal }: { readonly holder: Holder; readonly signal?: AbortSignal },
  work: (context: RequestContext, allowance: Allowance) => Promise<T>,
): Promise<T> {
  const request = new Request(context.request.url, { signal: signal ?? null })
  const allowance = new Allowance(fairness, request, sockets.addressOf, operations.callNamespace)
  openAllowance(request, allowance)
  try {
    await allowance.belongsTo(holder)
    return await work({ ...context, request }, allowance)
  } finally {
    allowance.end()
  }
}
