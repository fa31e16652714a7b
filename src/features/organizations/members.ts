/** Members of organizations over HTTP (door contract, 3.6). */

import { auditedCaller } from '../../auth/authenticate.ts'
import type { RequestContext } from '../../auth/authorizer.ts'
import { notFound } from '../../errors.ts'
import { readOptionalBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { namesInPath } from '../../http/path.ts'
import { doneResponse, privateJson } from '../../http/respond.ts'
import { UserId } from '../../model/names.ts'
import { type Member, MemberWrite, type Role } from '../../model/organization.ts'
import { validatorOf } from '../../schema/check.ts'
import { indexKeysOf, memberEntry, withIndex } from '../../storage/directory-records.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { keyOf } from '../../storage/keys.ts'
import type { OrganizationDeps } from './organization-deps.ts'
import { requireAnotherOwner, requireRole, requireRoomForMember, roleOf, rolesThatMayChange } from './roles.ts'

const memberShape = validatorOf(MemberWrite)
const everyRole: readonly Role[] = ['owner', 'admin', 'member']
const userShape = validatorOf(UserId)

export const memberHandlers = handlersOf({ putMember, deleteMember })

async function putMember(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { store, audit, writes } = deps
  const authorize = async (context: RequestContext) => ({
    organizationId: await requireRole(store, context, ['owner', 'admin']),
    userId: userIn(request),
  })
  // 401, 429, 404, 403, 400. A removal, because a lower role takes access away.
  const { caller, allowed, change } = await writes.begin(request, authorize, 'removal')
  const { organizationId, userId } = allowed
  const { role } = await readOptionalBody(request, memberShape) // 400
  const isChanged = await change(async (context) => {
    const before = await roleOf(store, organizationId, userId)
    await requireRole(store, context, rolesThatMayChange(before, role)) // 404, 403
    if (before === role) return { result: false }
    // Of a fixture's organization, only a member that was made over HTTP is changed over HTTP.
    const record =
      before === undefined ? keyOf('organization', organizationId) : keyOf('member', organizationId, userId)
    await refuseFixture(store, record) // 409
    if (before === 'owner') await requireAnotherOwner(store, organizationId, userId) // 409
    if (before === undefined) await requireRoomForMember(store, organizationId) // 403
    return { write: { puts: withIndex(memberEntry(organizationId, userId, role)) }, result: true }
  })
  if (isChanged)
    await audit.recordDone('member.changed', { ...auditedCaller(caller), organizationId, member: userId, role })
  const member: Member = { userId, role }
  return new Response(JSON.stringify(member), { headers: privateJson })
}

async function deleteMember(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { store, audit, writes } = deps
  const authorize = (context: RequestContext, touched?: Role) => {
    // Members are added without being asked, so each may leave.
    const isOwn = context.caller.userId === userIn(request)
    return requireRole(store, context, isOwn ? everyRole : rolesThatMayChange(touched))
  }
  // 401, 429, 404, 403, 400
  const { caller, allowed: organizationId, change } = await writes.begin(request, (one) => authorize(one), 'removal')
  const userId = userIn(request)
  await change(async (context) => {
    const before = await roleOf(store, organizationId, userId)
    await authorize(context, before) // 404, 403
    if (before === undefined) throw notFound('Member not found')
    await refuseFixture(store, keyOf('member', organizationId, userId)) // 409
    if (before === 'owner') await requireAnotherOwner(store, organizationId, userId) // 409
    const entry = memberEntry(organizationId, userId, before)
    return { write: { deletes: [entry.key, ...indexKeysOf(entry)], fromReserve: 'revocation' }, result: undefined }
  })
  await audit.recordDone('member.removed', { ...auditedCaller(caller), organizationId, member: userId })
  return doneResponse()
}

function userIn(request: Request): string {
  const userId = namesInPath(request.url)[2]
  if (!userShape.isValid(userId)) throw notFound('Member not found')
  return userId
}
