/** `GET /servers/{qualifiedName}`: the details of a registered server (specification 4.3). */

import type { Authorizer, RequestContext } from '../../auth/authorizer.ts'
import type { Denials } from '../../auth/denials.ts'
import { forbidden, notFound } from '../../errors.ts'
import type { Handlers } from '../../http/handler.ts'
import { refuseQuery } from '../../http/query.ts'
import { wholeResponse } from '../../http/respond.ts'
import { namespaceOf } from '../../model/names.ts'
import { type Access, decide } from '../../policy/decide.ts'
import { readQualifiedName } from './qualified-name.ts'

export interface ServerDeps {
  readonly authorizer: Pick<Authorizer, 'authenticate'>
  readonly denials: Denials
  /** Called with each response body, so that the fast lane can reuse it. */
  readonly onDetails: (context: RequestContext, json: Uint8Array) => void
}

export function serverHandlers({ authorizer, denials, onDetails }: ServerDeps): Pick<Handlers, 'getServer'> {
  return {
    async getServer(request) {
      const context = await authorizer.authenticate(request) // 401, 429
      const { caller, directory } = context
      const qualifiedName = readQualifiedName(request.url)
      if (qualifiedName === undefined) throw notFound()
      const namespace = namespaceOf(qualifiedName)
      const access: Access = { namespace, resource: 'servers', operation: 'read', metadata: 'none' }
      const decision = decide(caller.blocks, access)
      if (!decision.allowed) denials.recordPolicyDenial(request, caller, access, decision)
      if (!decision.allowed && !decision.visible) throw notFound()
      // Registered servers are visible to every caller whose policy does not hide them, so 404 precedes 403.
      const json = await directory.serverJson(qualifiedName)
      if (json === undefined) throw notFound()
      if (!decision.allowed) throw forbidden(decision) // 403
      refuseQuery(request.url) // 400
      onDetails(context, json)
      return wholeResponse(request, json)
    },
  }
}
