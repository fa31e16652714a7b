/** The members of an organization over HTTP, and what their roles let them do (contract, 10.5 and 10.6). */

import { auditedCaller } from '../../auth/authenticate.ts'
import { type RequestContext, requireApiKey } from '../../auth/authorizer.ts'
import { conflict, notFound, PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Slices } from '../../fairness/slices.ts'
import { readOptionalBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { namesInPath } from '../../http/path.ts'
import { doneResponse, privateJson } from '../../http/respond.ts'
import { membersPerRead, organizationMembersMax } from '../../limits.ts'
import { OrganizationId, UserId } from '../../model/names.ts'
import { type Member, MemberWrite, type Role } from '../../model/organization.ts'
import { validatorOf } from '../../schema/check.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import { indexKeysOf, memberEntry, readRole, withIndex } from '../../storage/directory-records.ts'
import type { DirectoryChange } from '../../storage/directory-write.ts'
import { everyEntry, everyKey } from '../../storage/every-entry.ts'
import { refuseFixture } from '../../storage/fixture-places.ts'
import { keyOf, prefixOf } from '../../storage/keys.ts'
import type { Entry, Store } from '../../storage/store.ts'
import type { OrganizationDeps } from './organization-deps.ts'

const memberShape = validatorOf(MemberWrite)
export const everyRole: readonly Role[] = ['owner', 'admin', 'member']
const userShape = validatorOf(UserId)
const idShape = validatorOf(OrganizationId)

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
      if (before === 'owner' && !(await isStillOwner(store, organizationId, other))) return { result: undefined }
      const isLower = before !== undefined && everyRole.indexOf(role) > everyRole.indexOf(before)
      const puts = withIndex(memberEntry(organizationId, userId, role))
      if (!isLower) return { write: { puts }, result: true }
      const checks = recordsOf(organizationId, { userId, role: before }, other)
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
      if (before === 'owner' && !(await isStillOwner(store, organizationId, other))) return { result: undefined }
      const entry = memberEntry(organizationId, userId, before)
      const deletes = [entry.key, ...indexKeysOf(entry)]
      const checks = recordsOf(organizationId, { userId, role: before }, other)
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

/** All that taking rights from a member depends on: what it is now, and the owner that remains beside an owner. */
function recordsOf(organizationId: string, { userId, role }: Member, other: OtherOwner): Entry[] {
  const entry = memberEntry(organizationId, userId, role)
  return role === 'owner' && other ? [entry, memberEntry(organizationId, other, 'owner')] : [entry]
}

function userIn(request: Request): string {
  const userId = namesInPath(request.url)[2]
  if (!userShape.isValid(userId)) throw notFound('Member not found')
  return userId
}

export const organizationMissing = 'Organization not found'

async function roleOf(store: Store, organizationId: string, userId: string): Promise<Role | undefined> {
  const value = await store.get(keyOf('member', organizationId, userId))
  return value === undefined ? undefined : readRole(value)
}

/** A member takes as long as a kilobyte of a large record: the time is that of the garbage it leaves. */
export const bytesOfMembers = (count: number) => count * 1000

/** In the order of their ids. */
export async function* everyMember(store: Store, organizationId: string, slices?: Slices): AsyncGenerator<Member> {
  const prefix = prefixOf('member', organizationId)
  for await (const { key, value } of everyEntry(store, prefix, membersPerRead, slices))
    yield { userId: Buffer.from(key).toString('utf8', prefix.length), role: readRole(value) }
}

/**
 * The organization in the path. Throws 403 as `requireApiKey`; 404 for an organization that is not there, or that the
 * caller is no member of; 403 for another role. Operators may all.
 */
export async function requireRole(store: Store, context: RequestContext, roles: readonly Role[]): Promise<string> {
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
 * caller's time, which somebody else may use up who has a token of the caller: for one member of an organization at a
 * time. Rejects with `rate_limited`.
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

/** Whether the other owner is still one; if not, there may be a third. Throws 409 if there was none. */
async function isStillOwner(store: Store, organizationId: string, other: OtherOwner): Promise<boolean> {
  if (other === null) throw conflict('An organization must have an owner: make another member an owner first')
  return other !== undefined && (await roleOf(store, organizationId, other)) === 'owner'
}

/**
 * Throws 403 if the organization has as many members as it may. They are counted in the caller's time, before the
 * change, for which everybody waits. Requests that add members at once may exceed the bound by their number. Rejects
 * with `rate_limited`.
 */
export async function requireRoomForMember(store: Store, request: Request, organizationId: string): Promise<void> {
  const allowance = allowanceOf(request)
  const prefix = prefixOf('member', organizationId)
  const countMembers = async () => {
    let counted = 0
    for await (const _ of everyKey(store, prefix, membersPerRead, allowance.slices())) counted += 1
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
export function organizationIn(request: Request): string {
  const [organizationId] = namesInPath(request.url)
  if (!idShape.isValid(organizationId)) throw notFound(organizationMissing)
  return organizationId
}
