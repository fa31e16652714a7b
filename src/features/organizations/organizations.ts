/** Organizations over HTTP (contract, 10.5). API keys only: organizations outlive tokens. */

import { auditedCaller } from '../../auth/authenticate.ts'
import { type RequestContext, requireOperator } from '../../auth/authorizer.ts'
import { conflict, notFound } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { readOptionalBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { refuseQuery } from '../../http/query.ts'
import { doneResponse, wholeResponse } from '../../http/respond.ts'
import type { AuditEvent } from '../../model/audit-event.ts'
import { organizationUserId } from '../../model/names.ts'
import { type OrganizationDetail, OrganizationWrite } from '../../model/organization.ts'
import { validatorOf } from '../../schema/check.ts'
import {
  indexKeysOf,
  memberEntry,
  organizationEntry,
  readOrganization,
  readRole,
  withIndex,
} from '../../storage/directory-records.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { keyOf, ownedBy, prefixRange } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { recordRevoked, revocationsOfKeys } from './api-keys.ts'
import {
  bytesOfMembers,
  everyMember,
  everyRole,
  organizationIn,
  organizationMissing,
  requireRole,
  requireRoomForMember,
} from './members.ts'
import type { OrganizationDeps } from './organization-deps.ts'

const organizationShape = validatorOf(OrganizationWrite)

export const organizationHandlers = handlersOf({ getOrganization, putOrganization, deleteOrganization })

async function getOrganization(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { authorizer, store } = deps
  const context = await authorizer.authenticate(request) // 401, 429
  await requireRole(store, context, everyRole) // 403, 404
  refuseQuery(request.url) // 400
  const detail = await readDetail(store, request) // 404, 429
  // It may have waited for its caller's time.
  await requireRole(store, await authorizer.authenticate(request, true), everyRole) // 401, 403, 404
  return detailResponse(request, detail)
}

async function putOrganization(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { store, audit, writes } = deps
  // 401, 429, 403, 404, 400
  const { caller, allowed: organizationId, change } = await writes.begin(request, organizationForOperator)
  const { name, owner } = await readOptionalBody(request, organizationShape) // 400
  if ((await store.get(keyOf('member', organizationId, owner))) === undefined)
    await requireRoomForMember(store, request, organizationId) // 403
  const event = await change(async () => {
    const key = keyOf('organization', organizationId)
    const stored = await store.get(key)
    const before = stored === undefined ? undefined : readOrganization(stored)
    const role = await store.get(keyOf('member', organizationId, owner))
    const after = { organizationId, name: name ?? before?.name ?? organizationId }
    const isOwner = role !== undefined && readRole(role) === 'owner'
    if (before !== undefined && before.name === after.name && isOwner) return { result: undefined }
    await refuseFixture(store, key) // 409
    const puts = [organizationEntry(after), ...withIndex(memberEntry(organizationId, owner, 'owner'))]
    const result: AuditEvent = before === undefined ? 'organization.created' : 'organization.changed'
    return { write: { puts }, result }
  })
  if (event !== undefined) await audit.recordDone(event, { ...auditedCaller(caller), organizationId, owner })
  return detailResponse(request, await readDetail(store, request), event === 'organization.created' ? 201 : 200)
}

async function deleteOrganization(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { store, audit, writes } = deps
  const authorize = (context: RequestContext) => requireRole(store, context, ['owner'])
  // 401, 429, 403, 404, 400
  const { caller, allowed: organizationId, change } = await writes.begin(request, authorize, 'removal')
  const revoked = await change(async () => {
    const key = keyOf('organization', organizationId)
    await refuseFixture(store, key) // 409
    const { keys } = await store.keys({ ...prefixRange(ownedBy({ organizationId })), limit: 1 })
    if (keys.length > 0) throw conflict('The organization owns namespaces: delete them first')
    const members = await Array.fromAsync(everyMember(store, organizationId), ({ userId, role }) =>
      memberEntry(organizationId, userId, role),
    )
    // An organization that is made later under the same id must not inherit the keys.
    const { puts, deletes, keyIds } = await revocationsOfKeys(store, organizationId, new Date(deps.clock.now()))
    const gone = [key, ...deletes, ...members.flatMap((entry) => [entry.key, ...indexKeysOf(entry)])]
    return { write: { deletes: gone, puts, fromReserve: 'revocation' }, result: keyIds }
  })
  await audit.recordDone('organization.deleted', { ...auditedCaller(caller), organizationId })
  const ofKeys = { userId: organizationUserId(organizationId), keyIds: revoked }
  await recordRevoked(deps, request, ofKeys, { ...auditedCaller(caller), organizationId })
  return doneResponse()
}

/** The organization in the path. Throws 403, 404. */
function organizationForOperator(context: RequestContext): string {
  requireOperator(context, 'Only operators may create and change organizations', 'Organizations')
  return organizationIn(context.request)
}

/** Of the organization in the path. */
async function readDetail(store: Store, request: Request): Promise<OrganizationDetail> {
  const organizationId = organizationIn(request)
  const stored = await store.get(keyOf('organization', organizationId))
  if (stored === undefined) throw notFound(organizationMissing)
  const allowance = allowanceOf(request)
  const read = () => Array.fromAsync(everyMember(store, organizationId, allowance.slices()))
  const members = await allowance.readRecords(read, ({ length }) => bytesOfMembers(length)) // 429
  return { organizationId, name: readOrganization(stored).name, members }
}

function detailResponse(request: Request, detail: OrganizationDetail, status = 200): Response {
  return wholeResponse(request, JSON.stringify(detail), { status })
}
