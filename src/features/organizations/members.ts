/** Members of organizations over HTTP (door contract, 3.6). */

import { auditedCaller } from '../../auth/authenticate.ts'
import { notFound } from '../../errors.ts'
import { readOptionalBody } from '../../http/body.ts'
import type { Handlers } from '../../http/handler.ts'
import { namesInPath } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { doneResponse, privateJson } from '../../http/respond.ts'
import { UserId } from '../../model/names.ts'
import { type Member, MemberWrite, type Role } from '../../model/organization.ts'
import { validatorOf } from '../../schema/check.ts'
import { indexKeysOf, memberEntry, withIndex } from '../../storage/directory-records.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { keyOf } from '../../storage/keys.ts'
import type { OrganizationDeps } from './organization-deps.ts'
import {
  organizationIn,
  requireAnotherOwner,
  requireApiKey,
  requireRole,
  requireRoomForMember,
  roleOf,
  rolesThatMayChange,
} from './roles.ts'

const memberShape = validatorOf(MemberWrite)
const everyRole: readonly Role[] = ['owner', 'admin', 'member']
const userShape = validatorOf(UserId)

export function memberHandlers(deps: OrganizationDeps): Pick<Handlers, 'putMember' | 'deleteMember'> {
  return {
    putMember: (request) => putMember(deps, request),
    deleteMember: (request) => deleteMember(deps, request),
  }
}

async function putMember(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { store, audit, writes } = deps
  const first = await writes.authenticate(request) // 401, 429
  requireApiKey(first) // 403
  const [organizationId, userId] = [organizationIn(request), userIn(request)] // 404
  await requireRole(store, first, organizationId, ['owner', 'admin']) // 404, 403
  refuseQuery(request.url) // 400
  const { role } = await readOptionalBody(request, memberShape) // 400
  // A removal, because a lower role takes access away.
  const isChanged = await writes.change(
    request,
    async (context) => {
      const before = await roleOf(store, organizationId, userId)
      await requireRole(store, context, organizationId, rolesThatMayChange(before, role)) // 404, 403
      if (before === role) return { result: false }
      // Of a fixture's organization, only a member that was made over HTTP is changed over HTTP.
      const record =
        before === undefined ? keyOf('organization', organizationId) : keyOf('member', organizationId, userId)
      await refuseFixture(store, record) // 409
      if (before === 'owner') await requireAnotherOwner(store, organizationId, userId) // 409
      if (before === undefined) await requireRoomForMember(store, organizationId) // 403
      return { write: { puts: withIndex(memberEntry(organizationId, userId, role)) }, result: true }
    },
    'removal',
  )
  if (isChanged)
    await audit.recordDone('member.changed', {
      ...auditedCaller(first.caller),
      organizationId,
      member: userId,
      role,
    })
  const member: Member = { userId, role }
  return new Response(JSON.stringify(member), { headers: privateJson })
}

async function deleteMember(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { store, audit, writes } = deps
  const first = await writes.authenticate(request) // 401, 429
  requireApiKey(first) // 403
  const [organizationId, userId] = [organizationIn(request), userIn(request)] // 404
  // Members are added without being asked, so each may leave.
  const rolesFor = (touched?: Role) => (first.caller.userId === userId ? everyRole : rolesThatMayChange(touched))
  await requireRole(store, first, organizationId, rolesFor()) // 404, 403
  refuseQuery(request.url) // 400
  await writes.change(
    request,
    async (context) => {
      const before = await roleOf(store, organizationId, userId)
      await requireRole(store, context, organizationId, rolesFor(before)) // 404, 403
      if (before === undefined) throw notFound('Member not found')
      await refuseFixture(store, keyOf('member', organizationId, userId)) // 409
      if (before === 'owner') await requireAnotherOwner(store, organizationId, userId) // 409
      const entry = memberEntry(organizationId, userId, before)
      return {
        write: { deletes: [entry.key, ...indexKeysOf(entry)], fromReserve: 'revocation' },
        result: undefined,
      }
    },
    'removal',
  )
  await audit.recordDone('member.removed', { ...auditedCaller(first.caller), organizationId, member: userId })
  return doneResponse()
}

function userIn(request: Request): string {
  const userId = namesInPath(request.url)[2]
  if (!userShape.isValid(userId)) throw notFound('Member not found')
  return userId
}
