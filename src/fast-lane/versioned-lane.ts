/**
 * The fast lane of a store that runs elsewhere. It repeats pages and details that were answered before, if one read of
 * versions, which waiting requests share, says that nothing has changed since (contract, 16.5). A request that was not
 * answered before costs no read here.
 */

import type { Clock } from '../clock.ts'
import { directoryVersionKey, keyOf } from '../storage/keys.ts'
import type { Store } from '../storage/store.ts'
import { versionText } from '../storage/versions.ts'
import { createRemembered, type FastLane } from './fast-lane.ts'

export function createVersionedLane(store: Pick<Store, 'getMany'>, clock: Clock): FastLane {
  const { callers, pages, lists, details, shared, detailsResponse } = createRemembered(clock)
  return {
    ...shared,
    respond(request, requestId) {
      if (request.method !== 'GET') return undefined
      const likely = callers.likely(request)
      if (likely === undefined) return undefined
      const list = lists.find(likely.caller, request.url)
      const json = list === undefined ? details.find(likely.caller, request.url) : undefined
      if (list === undefined && json === undefined) return undefined
      return answer()

      async function answer(): Promise<Response | undefined> {
        const keys = list === undefined ? [] : [keyOf('connectionsVersion', list.scope.namespace)]
        const [directoryVersion, version] = (await store.getMany([directoryVersionKey, ...keys])).map(versionText)
        if (callers.find(request, directoryVersion ?? '')?.caller !== likely?.caller) return undefined
        if (list !== undefined) return pages.respond(list, version ?? '', request, requestId)
        return json === undefined ? undefined : detailsResponse(json, requestId)
      }
    },
    authorizer: (ordinary) => ({
      ...ordinary,
      async authenticate(request, isRepeated) {
        const context = await ordinary.authenticate(request, isRepeated)
        callers.keepOnly(context.directory.version)
        callers.remember(context)
        return context
      },
    }),
  }
}
