/**
 * API keys over HTTP: an organization's, which outlive their maker (contract, 10.7 to 10.9), one's own, everybody's.
 */

import { listApiKeys, makeApiKey, revocationOf } from '../../auth/api-key.ts'
import { auditedCaller, isOrganizationAdmin } from '../../auth/authenticate.ts'
import { type RequestContext, requireApiKey, requireOperator } from '../../auth/authorizer.ts'
import { endGrantsOfKeys } from '../../auth/grants.ts'
import { namesUnder } from '../../auth/namespace-access.ts'
import { answerWhileAllowed } from '../../auth/while-allowed.ts'
import { olderFirst, secondsOf } from '../../clock.ts'
import { notFound, PlatformError } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { requireRate } from '../../fairness/rate-limit.ts'
import { readOptionalBody } from '../../http/body.ts'
import { type Answer, handlersOf } from '../../http/handler.ts'
import { pageOf, paginationOf, readPageNumber } from '../../http/numbered-pages.ts'
import { lastNameInPath, namesInPath } from '../../http/path.ts'
import { readQuery, refuseQuery } from '../../http/query.ts'
import { doneResponse, noStoreJson, wholeResponse } from '../../http/respond.ts'
import { holderApiKeysMax, listPageMax } from '../../limits.ts'
import { organizationUserId } from '../../model/names.ts'
import {
  AnyApiKeyWrite,
  type ApiKey,
  type ApiKeyList,
  type ApiKeyMade,
  type ApiKeyPage,
  ApiKeyWrite,
} from '../../model/organization.ts'
import type { AuditFields } from '../../ops/audit-log.ts'
import { validatorOf } from '../../schema/check.ts'
import { readApiKey } from '../../storage/directory-records.ts'
import { keyOf, prefixOf } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import type { OrganizationDeps } from './organization-deps.ts'

const writeShape = validatorOf(ApiKeyWrite)
const anyWriteShape = validatorOf(AnyApiKeyWrite)

export const apiKeyHandlers = handlersOf({
  createApiKey: createFor(organizationInPath),
  listApiKeys: listFor(organizationInPath),
  deleteApiKey: revokeFor(organizationInPath),
  createOwnApiKey: createFor(userOf),
  listOwnApiKeys: listFor(userOf),
  deleteOwnApiKey: revokeFor(userOf),
  createAnyApiKey,
  listAllApiKeys: answerWhileAllowed(apiKeysOfAll),
  deleteAnyApiKey: revokeFor(requireOperator),
})

/** The user or the organization that the keys of a request act for, as a key's record names it. */
type Holder = Pick<ApiKey, 'userId' | 'organizationId'>
type HolderOf<H> = (context: RequestContext) => H | Promise<H>

function createFor(holderOf: HolderOf<Holder>): Answer<OrganizationDeps> {
  return async (deps, request) => {
    const { store, writes } = deps
    const { caller, allowed: holder, change } = await writes.begin(request, holderOf) // 401, 429, 403, 400
    const { name } = await readOptionalBody(request, writeShape) // 400
    const { key, record } = await change(async () => {
      if ((await liveKeys(store, holder.userId)).length >= holderApiKeysMax)
        throw new PlatformError(
          'forbidden',
          `${nameOf(holder)} has at most ${holderApiKeysMax} API keys: revoke one first`,
        )
      requireRate(deps.newKeys.take(holder.userId), `${nameOf(holder)} makes API keys too often`) // 429
      return newKey(deps, { ...holder, name, operator: false })
    })
    return answerMade(deps, key, record, auditedCaller(caller))
  }
}

async function createAnyApiKey(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { caller, change } = await deps.writes.begin(request, requireOperator) // 401, 429, 403, 400
  const { userId, name = null, operator = false } = await readOptionalBody(request, anyWriteShape) // 400
  const { key, record } = await change(async () => newKey(deps, { userId, name, operator }))
  return answerMade(deps, key, record, { ...auditedCaller(caller), operator })
}

function newKey({ pepper, clock }: OrganizationDeps, wanted: Holder & Pick<ApiKey, 'name' | 'operator'>) {
  const made = makeApiKey(pepper, { ...wanted, now: new Date(clock.now()) })
  return { write: { puts: made.puts }, result: made }
}

/** The audit entry comes before the answer: a key that is not in the log is never shown. */
async function answerMade({ audit }: OrganizationDeps, key: string, record: ApiKey, caller: object): Promise<Response> {
  const { keyId, userId, organizationId, createdAt } = record
  await audit.recordDone('key.created', { ...caller, organizationId, created: keyId, holder: userId })
  const made: ApiKeyMade = { id: keyId, name: record.name ?? '', key, createdAt }
  return new Response(JSON.stringify(made), { status: 201, headers: noStoreJson })
}

function listFor(holderOf: HolderOf<Holder>): Answer<OrganizationDeps> {
  return async ({ authorizer, store }, request) => {
    const { userId } = await holderOf(await authorizer.authenticate(request)) // 401, 429, 403
    refuseQuery(request.url) // 400
    const records = await liveKeys(store, userId)
    const list: ApiKeyList = {
      apiKeys: records.map(({ keyId, name, createdAt }) => ({ id: keyId, name: name ?? '', createdAt })),
    }
    return wholeResponse(request, JSON.stringify(list))
  }
}

async function apiKeysOfAll({ store }: OrganizationDeps, context: RequestContext): Promise<ApiKeyPage> {
  const { request } = context
  requireOperator(context) // 403
  const query = readQuery(request.url, ['page', 'pageSize', 'userId']) // 400
  const page = readPageNumber(query, { sizeDefault: listPageMax, sizeMax: listPageMax }) // 400
  const wanted = query.get('userId')
  const all = await listApiKeys(store, allowanceOf(request).slices()) // 429
  const records = wanted === undefined ? all : all.filter(({ userId }) => userId === wanted)
  return {
    apiKeys: pageOf(records, page).map(({ keyId, userId, name, operator, createdAt, revokedAt }) => {
      return { id: keyId, userId, name: name ?? '', operator, createdAt, revokedAt }
    }),
    pagination: paginationOf(page, records.length),
  }
}

/** `holderOf`: without a result, the key may be anybody's. */
function revokeFor(holderOf: HolderOf<Holder | undefined>): Answer<OrganizationDeps> {
  return async (deps, request) => {
    const { store, clock, writes } = deps
    // 401, 429, 403, 400
    const { caller, allowed: holder, change } = await writes.begin(request, holderOf, 'removal')
    const keyId = lastNameInPath(request.url)
    const now = new Date(clock.now())
    const userId = await change(async () => {
      const stored = await store.get(keyOf('apiKey', keyId))
      const record = stored && readApiKey(stored)
      const isOthers = holder !== undefined && record?.userId !== holder.userId
      if (record === undefined || record.revokedAt !== null || isOthers) throw notFound('API key not found')
      const checks = [{ key: keyOf('apiKey', keyId), value: stored as Uint8Array }]
      return { write: { ...revocationOf(record, now), checks, fromReserve: 'revocation' }, result: record.userId }
    })
    const about = { ...auditedCaller(caller), organizationId: holder?.organizationId }
    await recordRevoked(deps, request, { userId, keyIds: [keyId] }, about)
    return doneResponse()
  }
}

/** Writes what keys were revoked into the audit log, and ends what clients were granted with them. */
export async function recordRevoked(
  { audit, store, clock }: OrganizationDeps,
  request: Request,
  of: { readonly userId: string; readonly keyIds: readonly string[] },
  about: AuditFields,
): Promise<void> {
  for (const revoked of of.keyIds) await audit.recordDone('key.revoked', { ...about, revoked })
  for (const grantId of await endGrantsOfKeys(store, of, secondsOf(clock), allowanceOf(request)))
    await audit.recordDone('grant.ended', { grantId, reason: 'its key was revoked' })
}

/** The organization in the path. Throws the same 403 for a caller who may not and for a missing organization. */
async function organizationInPath(context: RequestContext): Promise<Holder> {
  requireApiKey(context)
  const [organizationId = ''] = namesInPath(context.request.url)
  if (await isOrganizationAdmin(context.caller, organizationId, context.directory))
    return { userId: organizationUserId(organizationId), organizationId }
  throw new PlatformError(
    'forbidden',
    'Only owners and admins of the organization may manage its API keys: ask one of them',
  )
}

/** The user of the caller's API key. Throws 403 for another credential. */
function userOf(context: RequestContext): Holder {
  requireApiKey(context, 'API keys')
  return { userId: context.caller.userId }
}

const nameOf = ({ organizationId }: Holder) => (organizationId === undefined ? 'A user' : 'An organization')

/** The keys of a user or an organization that are not revoked, oldest first. */
async function liveKeys(store: Store, userId: string): Promise<ApiKey[]> {
  const ids = await namesUnder(store, prefixOf('heldApiKey', userId))
  const records = await store.getMany(ids.map((id) => keyOf('apiKey', id)))
  return records.flatMap((value) => (value === undefined ? [] : [readApiKey(value)])).sort(olderFirst)
}

/** The write that revokes all keys of an organization, and their ids. */
export async function revocationsOfKeys(store: Store, organizationId: string, now: Date) {
  const keys = await liveKeys(store, organizationUserId(organizationId))
  const writes = keys.map((record) => revocationOf(record, now))
  return {
    keyIds: keys.map(({ keyId }) => keyId),
    puts: writes.flatMap(({ puts }) => puts),
    deletes: writes.flatMap(({ deletes }) => deletes),
  }
}
