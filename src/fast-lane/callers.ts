/** Authenticated callers by `Authorization` header, each valid for the directory version of its authentication. */

import { LRUCache } from 'lru-cache'
import type { Authenticated } from '../auth/authenticate.ts'
import type { RequestContext } from '../auth/authorizer.ts'
import { clockRefusal, isGoodAt } from '../auth/service-token.ts'
import { type Clock, secondsOf } from '../clock.ts'
import { pathOf } from '../http/path.ts'
import { callersCachedMax } from '../limits.ts'
import { policyBytes } from '../policy/block.ts'

/** Bytes of memory of the callers that are kept. Past it: looked up again. */
const callersCachedBytesMax = 32 * 2 ** 20
/** Only this spelling is cached: with extra spaces, one credential could fill the cache with many entries. */
const plainHeader = /^Bearer [^ ]+$/

/** Knows the callers of one version of the directory. */
export function createCallers(clock: Clock) {
  const kept = new LRUCache<string, Authenticated>({
    max: callersCachedMax,
    maxSize: callersCachedBytesMax,
    sizeCalculation: ({ caller }, header) => 1024 + 4 * header.length + policyBytes(caller.token?.policy),
  })
  let version = ''

  /** Forgets callers of other versions: each holds its directory snapshot, with all records read under it. */
  function keepOnly(current: string): void {
    if (current !== version) kept.clear()
    version = current
  }

  return {
    keepOnly,
    /** The known caller of a request. Undefined if it must be authenticated in full, as expired tokens must. */
    find(request: Request, directoryVersion: string): Authenticated | undefined {
      keepOnly(directoryVersion)
      const known = kept.get(request.headers.get('authorization') ?? '')
      if (known === undefined || version === '') return undefined
      const { token } = known.caller
      if (token === undefined) return known
      const isValid = clockRefusal(token, secondsOf(clock)) === undefined && isGoodAt(token, pathOf(request.url))
      return isValid ? known : undefined
    },
    /** The caller that `find` would return if the directory has not changed. Decides nothing. */
    likely: (request: Request) => kept.peek(request.headers.get('authorization') ?? ''),
    remember({ request, caller, directory }: RequestContext): void {
      const header = request.headers.get('authorization') ?? ''
      if (directory.version === version && version !== '' && plainHeader.test(header))
        kept.set(header, { caller, directory })
    },
  }
}
