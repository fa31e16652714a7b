/** `GET /servers/{qualifiedName}` (spec 4.3). */

import { Elysia } from 'elysia'
import type { Refusals } from '../audit/refusals.ts'
import type { Authenticator } from '../auth/authenticate.ts'
import { forbidden, notFound } from '../errors.ts'
import { atOnce } from '../http/at-once.ts'
import type { Edge } from '../http/edge.ts'
import { nameAfter } from '../http/path.ts'
import { refuseQuery } from '../http/query.ts'
import { privateJson } from '../http/respond.ts'
import { isQualifiedName, namespaceOf } from '../model/names.ts'
import { then } from '../model/soon.ts'
import { type Access, decide } from '../policy/decide.ts'

export interface ServerDeps {
  readonly authenticator: Authenticator
  readonly refusals: Refusals
  readonly ready: Edge['ready']
}

/** Lent to every answer, which copies them. */
const headers = new Headers(privateJson)

export function serverRoutes({ authenticator, refusals, ready }: ServerDeps) {
  const answer = atOnce(({ request }) => {
    const authenticated = authenticator.authenticate(request) // 401
    return then(authenticated, ({ caller, registry }) => {
      const qualifiedName = readQualifiedName(request.url)
      if (qualifiedName === undefined) throw notFound()
      const namespace = namespaceOf(qualifiedName)
      const access: Access = { namespace, resource: 'servers', operation: 'read', metadata: 'none' }
      const decision = decide(caller.blocks, access)
      if (!decision.allowed) refusals.policy(request, caller, access, decision)
      if (!decision.allowed && !decision.visible) throw notFound()
      // Registered servers are visible to every caller, so absence is told before a missing permission.
      return then(registry.serverJson(qualifiedName), (json) => {
        if (json === undefined) throw notFound()
        if (!decision.allowed) throw forbidden(decision) // 403
        refuseQuery(request.url) // 400
        return ready(request, json as Uint8Array<ArrayBuffer>, headers)
      })
    })
  })
  // A wildcard: the slash of a qualifiedName may come encoded or plain.
  return new Elysia({ name: 'servers' }).get('/servers/*', answer)
}

/** `ns/server`, or `ns` for a namespace-only server, which may keep its slash: `/servers/ns%2F`. */
function readQualifiedName(url: string): string | undefined {
  const name = nameAfter('/servers/', url)
  const trimmed = name?.endsWith('/') === true ? name.slice(0, -1) : name
  if (trimmed === undefined || !isQualifiedName(trimmed)) return undefined
  // Only a namespace-only name may end in a slash.
  return trimmed !== name && trimmed.includes('/') ? undefined : trimmed
}
