/** How requests write: authenticated at a rate for each API key, and once more where they change the directory. */

import { rateLimited } from '../errors.ts'
import { allowanceOf, type WriteKind } from '../fairness/allowance.ts'
import { ownerOf } from '../fairness/owner.ts'
import type { HolderRateLimit } from '../fairness/rate-limit.ts'
import type { Audit } from '../ops/audit-log.ts'
import { changeDirectory, type DirectoryChange } from '../storage/directory-write.ts'
import type { Store } from '../storage/store.ts'
import type { Authorizer, RequestContext } from './authorizer.ts'
import type { Denials } from './denials.ts'

export interface Writes {
  /** Throws 401, 429 if the caller exceeds its write rate, and 503 while the audit log cannot be written. */
  authenticate(request: Request): Promise<RequestContext>
  /**
   * Changes the directory for the caller of a request, as `changeDirectory` does, when the writes before it are done.
   * The caller is authenticated again whenever the change is decided, and `decide` must authorize it: the key, token or
   * role that allowed the change may have ended meanwhile. Throws 401, 429 if too many writes of the owner wait, and
   * what `changeDirectory` throws.
   */
  change<T>(
    request: Request,
    decide: (context: RequestContext) => Promise<DirectoryChange<T>>,
    kind?: WriteKind,
  ): Promise<T>
}

export interface WritesDeps {
  readonly authorizer: Authorizer
  readonly denials: Denials
  readonly audit: Audit
  readonly store: Store
  /** Limits writes and deletions per API key, and within a key per family of tokens. */
  readonly writeRate: HolderRateLimit
}

export function createWrites({ authorizer, denials, audit, store, writeRate }: WritesDeps): Writes {
  return {
    async authenticate(request) {
      const context = await authorizer.authenticate(request)
      const wait = writeRate.take(context.caller)
      if (wait === 0) {
        audit.requireWritable()
        return context
      }
      denials.recordWriteRefusal(request, context.caller, undefined, 'rate_limited')
      throw rateLimited('This API key is writing too fast', wait)
    },
    change(request, decide, kind) {
      const change = () =>
        changeDirectory(store, async () => {
          const context = await authorizer.authenticate(request, true)
          const { write, ...rest } = await decide(context)
          return write === undefined ? rest : { ...rest, write: { ...write, owner: ownerOf(context.caller) } }
        })
      return allowanceOf(request).write('directory', change, kind)
    },
  }
}
