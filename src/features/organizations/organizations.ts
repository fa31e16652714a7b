/**
 * Organizations and their members over HTTP, and what the roles of members let them do (contract, 10.5 and 10.6). API
 * keys only: organizations outlive tokens.
 */

import { auditedCaller } from '../../auth/authenticate.ts'
import { type RequestContext, requireApiKey, requireOperator } from '../../auth/authorizer.ts'
import { conflict, notFound, PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Slices } from '../../fairness/slices.ts'
import { readOptionalBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { namesInPath } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { doneResponse, privateJson, wholeResponse } from '../../http/respond.ts'
import { organizationMembersMax } from '../../limits.ts'
import type { AuditEvent } from '../../model/audit-event.ts'
import { OrganizationId, organizationUserId, UserId } from '../../model/names.ts'
import {
  type Member,
  MemberWrite,
  type OrganizationDetail,
  OrganizationWrite,
  type Role,
} from '../../model/organization.ts'
import { validatorOf } from '../../schema/check.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import {
  indexKeysOf,
  memberEntry,
  organizationEntry,
  readOrganization,
  readRole,
  withIndex,
} from '../../storage/directory-records.ts'
import type { DirectoryChange } from '../../storage/directory-write.ts'
import { everyEntry, everyKey } from '../../storage/every-entry.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { keyOf, ownedBy, prefixOf, prefixRange } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { recordRevoked, revocationsOfKeys } from './api-keys.ts'
import type { OrganizationDeps } from './organization-deps.ts'

const organizationShape = validatorOf(OrganizationWrite)

const memberShape = validatorOf(MemberWrite)
const everyRole: readonly Role[] = ['owner', 'admin', 'member']
const userShape = validatorOf(UserId)
const idShape = validatorOf(OrganizationId)

export const organizationHandlers = handlersOf({
  getOrganization,
  putOrganization,
  deleteOrganization,
  putMember,
  deleteMember,
})

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
  const was = await roleOf(store, organizationId, userId)
  if (was === undefined) await requireRoomForMember(store, request, organizationId) // 403
  const isChanged = await decideBeside(deps, request, allowed, (other) =>
    change(async (context): Promise<DirectoryChange<boolean | undefined>> => {
      const before = await roleOf(store, organizationId, userId)
      await requireRole(store, context, rolesThatMayChange(before, role)) // 404, 403
      if (before === role) return { result: false }
      // Of a fixture's organization, only a member that was made over HTTP is changed over HTTP.
      const record =
        before === undefined ? keyOf('organization', organizationId) : keyOf('member', organizationId, userId)
      await refuseFixture(store, record) // 409
      const puts = withIndex(memberEntry(organizationId, userId, role))
      const isLower = before !== undefined && everyRole.indexOf(role) > everyRole.indexOf(before)
      if (!isLower) return { write: { puts }, result: true }
      const checks = await recordsOf(store, organizationId, { userId, role: before }, other) // 409
      if (checks === undefined) return { result: undefined }
      return { write: { checks, puts, fromReserve: 'revocation' }, result: true }
    }),
  )
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
  await decideBeside(deps, request, { organizationId, userId }, (other) =>
    change(async (context): Promise<DirectoryChange<true | undefined>> => {
      const before = await roleOf(store, organizationId, userId)
      await authorize(context, before) // 404, 403
      if (before === undefined) throw notFound('Member not found')
      await refuseFixture(store, keyOf('member', organizationId, userId)) // 409
      const checks = await recordsOf(store, organizationId, { userId, role: before }, other) // 409
      if (checks === undefined) return { result: undefined }
      const entry = memberEntry(organizationId, userId, before)
      const deletes = [entry.key, ...indexKeysOf(entry)]
      return { write: { checks, deletes, fromReserve: 'revocation' }, result: true }
    }),
  )
  await audit.recordDone('member.removed', { ...auditedCaller(caller), organizationId, member: userId })
  return doneResponse()
}

/**
 * Decides a change of a member beside another owner. `decide` resolves with undefined if the other is none any more;
 * then there may be a third. Throws StoreError `unavailable` if that goes on, 429, and what `decide` throws.
 */
function decideBeside<T>(
  { store }: OrganizationDeps,
  request: Request,
  { organizationId, userId }: { readonly organizationId: string; readonly userId: string },
  decide: (other: OtherOwner) => Promise<T | undefined>,
): Promise<T> {
  return decideAgain(`the owners of ${organizationId}`, async () => {
    const other = await otherOwnerOf(store, request, organizationId, userId)
    return (await decide(other)) ?? 'again'
  })
}

/**
 * All that taking rights from a member depends on: what it is now, and the owner that remains beside an owner.
 * Undefined if that is none any more. Throws 409 if there was none.
 */
async function recordsOf(store: Store, organizationId: string, { userId, role }: Member, other: OtherOwner) {
  const entry = memberEntry(organizationId, userId, role)
  if (role !== 'owner') return [entry]
  if (other === null) throw conflict('An organization must have an owner: make another member an owner first')
  if (other === undefined || (await roleOf(store, organizationId, other)) !== 'owner') return undefined
  return [entry, memberEntry(organizationId, other, 'owner')]
}

function userIn(request: Request): string {
  const userId = namesInPath(request.url)[2]
  if (!userShape.isValid(userId)) throw notFound('Member not found')
  return userId
}

const organizationMissing = 'Organization not found'

async function roleOf(store: Store, organizationId: string, userId: string): Promise<Role | undefined> {
  const value = await store.get(keyOf('member', organizationId, userId))
  return value === undefined ? undefined : readRole(value)
}

/** A member takes as long as a kilobyte of a large record: the time is that of the garbage it leaves. */
const bytesOfMembers = (count: number) => count * 1000

/** In the order of their ids. */
async function* everyMember(store: Store, organizationId: string, slices?: Slices): AsyncGenerator<Member> {
  const prefix = prefixOf('member', organizationId)
  for await (const { key, value } of everyEntry(store, prefix, slices))
    yield { userId: Buffer.from(key).toString('utf8', prefix.length), role: readRole(value) }
}

/**
 * The organization in the path. Throws 403 as `requireApiKey`; 404 for an organization that is not there, or that the
 * caller is no member of; 403 for another role. Operators may all.
 */
async function requireRole(store: Store, context: RequestContext, roles: readonly Role[]): Promise<string> {
  requireApiKey(context)
  const { caller, request } = context
  const organizationId = organizationIn(request)
  if ((await store.get(keyOf('organization', organizationId))) === undefined) throw notFound(organizationMissing)
  if (caller.operator) return organizationId
  const role = await roleOf(store, organizationId, caller.userId)
  if (role === undefined) throw notFound(organizationMissing)
  if (!roles.includes(role))
    throw new PlatformError(
      'forbidden',
      `Only ${roles.join('s and ')}s of the organization may do this: ask one of them`,
    )
  return organizationId
}

/** The roles that may make a member of one role one of another: only owners make, change and remove owners. */
function rolesThatMayChange(...touched: readonly (Role | undefined)[]): Role[] {
  return touched.includes('owner') ? ['owner'] : ['owner', 'admin']
}

/** An owner beside a member who is one; null if there is none, and undefined beside any other member. */
type OtherOwner = string | null | undefined

/**
 * The owner is looked for before the change, for which everybody waits, and is looked at again there. Not in the
 * caller's time, which somebody with a token of the caller may use up, but for one member of an organization at a time.
 * Rejects with `rate_limited`.
 */
async function otherOwnerOf(
  store: Store,
  request: Request,
  organizationId: string,
  userId: string,
): Promise<OtherOwner> {
  if ((await roleOf(store, organizationId, userId)) !== 'owner') return undefined
  const allowance = allowanceOf(request)
  const find = async () => {
    for await (const one of everyMember(store, organizationId)) {
      allowance.spendRead(bytesOfMembers(1))
      if (one.role === 'owner' && one.userId !== userId) return one.userId
    }
    return null
  }
  return allowance.write(`the owners of ${organizationId}`, find, 'removal')
}

/**
 * Throws 403 if the organization is full. Members are counted in the caller's time, before the change, for which
 * everybody waits: requests at once may exceed the bound by their number. Rejects with `rate_limited`.
 */
async function requireRoomForMember(store: Store, request: Request, organizationId: string): Promise<void> {
  const allowance = allowanceOf(request)
  const prefix = prefixOf('member', organizationId)
  const countMembers = async () => {
    let counted = 0
    for await (const _ of everyKey(store, prefix, allowance.slices())) counted += 1
    return counted
  }
  const count = await allowance.readRecords(countMembers, bytesOfMembers)
  if (count >= organizationMembersMax)
    throw new PlatformError(
      'forbidden',
      `An organization has at most ${organizationMembersMax} members: remove one first`,
    )
}

/** Throws `not_found` for a path that names no organization. */
function organizationIn(request: Request): string {
  const [organizationId] = namesInPath(request.url)
  if (!idShape.isValid(organizationId)) throw notFound(organizationMissing)
  return organizationId
}
