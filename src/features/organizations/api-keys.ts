/**
 * API keys of organizations (contract, 10.7 and 10.8). Such a key acts for the organization, and outlives its maker.
 */

import { makeApiKey, revocationOf } from '../../auth/api-key.ts'
import { auditedCaller, isOrganizationAdmin } from '../../auth/authenticate.ts'
import type { RequestContext } from '../../auth/authorizer.ts'
import { namesUnder } from '../../auth/namespace-access.ts'
import { notFound, PlatformError } from '../../errors.ts'
import { requireRate } from '../../fairness/rate-limit.ts'
import { readOptionalBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { namesInPath } from '../../http/path.ts'
import { refuseQuery } from '../../http/query.ts'
import { doneResponse, noStoreJson, privateJson } from '../../http/respond.ts'
import { organizationApiKeysMax } from '../../limits.ts'
import { organizationUserId } from '../../model/names.ts'
import { type ApiKey, type ApiKeyList, type ApiKeyMade, ApiKeyWrite } from '../../model/organization.ts'
import { validatorOf } from '../../schema/check.ts'
import { readApiKey } from '../../storage/directory-records.ts'
import { keyOf, prefixOf } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { requireApiKey } from './members.ts'
import type { OrganizationDeps } from './organization-deps.ts'

const writeShape = validatorOf(ApiKeyWrite)

export const apiKeyHandlers = handlersOf({ createApiKey, listApiKeys, deleteApiKey })

async function createApiKey(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { store, audit, clock, writes } = deps
  const { caller, allowed: organizationId, change } = await writes.begin(request, requireAdmin) // 401, 429, 403, 400
  const { name } = await readOptionalBody(request, writeShape) // 400
  const wanted = { userId: organizationUserId(organizationId), organizationId, name, operator: false }
  const { key, record } = await change(async () => {
    if ((await liveKeys(store, organizationId)).length >= organizationApiKeysMax)
      throw new PlatformError('forbidden', `An organization has at most ${organizationApiKeysMax} API keys`)
    requireRate(deps.newKeys.take(organizationId), 'This organization makes API keys too often') // 429
    const made = makeApiKey(deps.pepper, { ...wanted, now: new Date(clock.now()) })
    return { write: { puts: made.puts }, result: made }
  })
  // Audited before it is answered: a key that is not in the log is never shown.
  await audit.recordDone('key.created', { ...auditedCaller(caller), organizationId, created: record.keyId })
  const made: ApiKeyMade = { id: record.keyId, name, key, createdAt: record.createdAt }
  return new Response(JSON.stringify(made), { status: 201, headers: noStoreJson })
}

async function listApiKeys(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { authorizer, store } = deps
  const organizationId = await requireAdmin(await authorizer.authenticate(request)) // 401, 429, 403
  refuseQuery(request.url) // 400
  const records = await liveKeys(store, organizationId)
  const list: ApiKeyList = {
    apiKeys: records.map(({ keyId, name, createdAt }) => ({ id: keyId, name: name ?? '', createdAt })),
  }
  return new Response(JSON.stringify(list), { headers: privateJson })
}

async function deleteApiKey(deps: OrganizationDeps, request: Request): Promise<Response> {
  const { store, audit, clock, writes } = deps
  // 401, 429, 403, 400
  const { caller, allowed: organizationId, change } = await writes.begin(request, requireAdmin, 'removal')
  const keyId = namesInPath(request.url)[2] ?? ''
  await change(async () => {
    const record = (await liveKeys(store, organizationId)).find((one) => one.keyId === keyId)
    if (record === undefined) throw notFound('API key not found')
    return { write: { ...revocationOf(record, new Date(clock.now())), fromReserve: 'revocation' }, result: undefined }
  })
  await audit.recordDone('key.revoked', { ...auditedCaller(caller), organizationId, revoked: keyId })
  return doneResponse()
}

/** The organization in the path. Throws the same 403 for a caller who may not and for a missing organization. */
async function requireAdmin(context: RequestContext): Promise<string> {
  requireApiKey(context)
  const [organizationId = ''] = namesInPath(context.request.url)
  if (await isOrganizationAdmin(context.caller, organizationId, context.directory)) return organizationId
  throw new PlatformError('forbidden', 'Only an owner or admin of the organization manages its API keys')
}

/** The keys of an organization that are not revoked, oldest first. */
async function liveKeys(store: Store, organizationId: string): Promise<ApiKey[]> {
  const ids = await namesUnder(store, prefixOf('organizationApiKey', organizationId))
  const records = await store.getMany(ids.map((id) => keyOf('apiKey', id)))
  return records
    .flatMap((value) => (value === undefined ? [] : [readApiKey(value)]))
    .sort((a, b) => a.createdAt.localeCompare(b.createdAt))
}

/** The write that revokes all keys of an organization. */
export async function revocationsOfKeys(store: Store, organizationId: string, now: Date) {
  const writes = (await liveKeys(store, organizationId)).map((record) => revocationOf(record, now))
  return { puts: writes.flatMap(({ puts }) => puts), deletes: writes.flatMap(({ deletes }) => deletes) }
}
