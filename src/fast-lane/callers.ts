/**
 * Callers by their `Authorization` header: valid for the version of the registry that they were authenticated under.
 */

import { LRUCache } from 'lru-cache'
import type { Caller } from '../auth/authenticate.ts'
import type { RequestContext } from '../auth/authorize.ts'
import type { RegistrySnapshot } from '../auth/registry.ts'
import { clockRefusal } from '../auth/service-token.ts'
import { callersCachedBytesMax, callersCachedMax } from '../limits.ts'

export interface Callers {
  /** Who sent it; undefined where only the ordinary way can tell, which also says why a credential is refused. */
  find(request: Request, registryVersion: string): KnownCaller | undefined
  remember(context: RequestContext): void
}

export interface KnownCaller {
  readonly caller: Caller
  readonly registry: RegistrySnapshot
}

/** The one spelling that is remembered: a credential has as many as spaces fit into a header. */
const plainHeader = /^Bearer [^ ]+$/

/** `now`: milliseconds since 1970. */
export function createCallers(now: () => number): Callers {
  const kept = new LRUCache<string, KnownCaller>({
    max: callersCachedMax,
    maxSize: callersCachedBytesMax,
    sizeCalculation: (_, header) => 1024 + 10 * header.length,
  })
  let version = ''

  /** What belongs to another version would keep all that was read under it in memory. */
  function keepOnly(current: string): void {
    if (current !== version) kept.clear()
    version = current
  }

  return {
    find(request, registryVersion) {
      keepOnly(registryVersion)
      const known = kept.get(request.headers.get('authorization') ?? '')
      if (known === undefined || version === '') return undefined
      const { token } = known.caller
      const isOver = token !== undefined && clockRefusal(token, Math.floor(now() / 1000)) !== undefined
      return isOver ? undefined : known
    },
    remember({ request, caller, registry }) {
      const header = request.headers.get('authorization') ?? ''
      if (registry.version === version && version !== '' && plainHeader.test(header))
        kept.set(header, { caller, registry })
    },
  }
}
