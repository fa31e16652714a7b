/** How requests write: authenticated at a rate for each API key, and once more where they change the directory. */

import { rateLimited } from '../errors.ts'
import { allowanceOf } from '../fairness/allowance.ts'
import type { HolderRateLimit, RateLimit } from '../fairness/rate-limit.ts'
import { refuseQuery } from '../http/query.ts'
import type { Audit } from '../ops/audit-log.ts'
import { removalAttemptsMax } from '../storage/decide-again.ts'
import { changeDirectory, type DirectoryChange } from '../storage/directory-write.ts'
import type { Store } from '../storage/store.ts'
import type { Caller } from './authenticate.ts'
import type { Authorizer, RequestContext } from './authorizer.ts'
import type { Denials } from './denials.ts'

export type Writes = ReturnType<typeof createWrites>

/** Throws the error for a caller who may not write. The result is for the write. */
type Authorize<A> = (context: RequestContext) => A | Promise<A>

export interface DirectoryWrite<A> {
  readonly request: Request
  readonly caller: Caller
  readonly allowed: A
  /**
   * Changes the directory, as `changeDirectory` does, when the writes before it are done. The caller is authenticated
   * and authorized again whenever the change is decided: the key, token or role that allowed it may have ended
   * meanwhile. Everybody who changes the directory waits for `decide`, so it must not wait for anything of its owner.
   * Throws what these throw, 429 if too many writes of the owner wait, and what `changeDirectory` throws.
   */
  change<T>(decide: (context: RequestContext, allowed: A) => Promise<DirectoryChange<T>>): Promise<T>
}

export interface WritesDeps {
  readonly authorizer: Authorizer
  readonly denials: Denials
  readonly audit: Audit
  readonly store: Store
  /** Limits writes and deletions per API key, and within a key per family of tokens. */
  readonly writeRate: HolderRateLimit
  /** By key: removals past the other rate, which the keys of an organization share. */
  readonly removalRate: RateLimit
}

export function createWrites({ authorizer, denials, audit, store, writeRate, removalRate }: WritesDeps) {
  /** Throws 401, 429 if the caller exceeds its write rate, and 503 while the audit log cannot be written. */
  async function authenticate(request: Request, kind?: 'removal'): Promise<RequestContext> {
    const context = await authorizer.authenticate(request)
    const { keyId, family } = context.caller
    const wait = writeRate.take(context.caller)
    // Nobody who writes for the same key or organization keeps the key itself from taking rights away.
    const isOwnRemoval = kind === 'removal' && family === keyId
    if (wait === 0 || (isOwnRemoval && removalRate.take(keyId) === 0)) {
      audit.requireWritable()
      return context
    }
    denials.recordWriteRefusal(request, context.caller, undefined, 'rate_limited')
    throw rateLimited('This API key is writing too fast', wait)
  }

  return {
    authenticate,
    /** Begins a change, before its body is read: authenticates, authorizes, refuses a query. Throws as these do. */
    async begin<A>(request: Request, authorize: Authorize<A>, kind?: 'removal'): Promise<DirectoryWrite<A>> {
      const first = await authenticate(request, kind)
      const allowed = await authorize(first)
      refuseQuery(request.url)
      return {
        request,
        caller: first.caller,
        allowed,
        change(decide) {
          const decideNow = async () => {
            const context = await authorizer.authenticate(request, true)
            const { write, ...rest } = await decide(context, await authorize(context))
            return write === undefined ? rest : { ...rest, write: { ...write, holder: context.caller } }
          }
          const attemptsMax = kind === 'removal' ? removalAttemptsMax : undefined
          return allowanceOf(request).changeDirectory(() => changeDirectory(store, decideNow, attemptsMax), kind)
        },
      }
    },
  }
}
