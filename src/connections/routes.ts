/** `GET /connect/{namespace}` (spec 4.2): the walk of one request, top to bottom. */

import { Elysia } from 'elysia'
import { LRUCache } from 'lru-cache'
import type { Refusals } from '../audit/refusals.ts'
import { type Authenticator, type Caller, reaches } from '../auth/authenticate.ts'
import { readCredential } from '../auth/credential.ts'
import { forbidden, invalidRequest, notFound } from '../errors.ts'
import { nameAfter } from '../http/path.ts'
import { grantsKeptMax, grantUrlCharsMax } from '../limits.ts'
import { isSlug } from '../model/names.ts'
import { type Access, decide } from '../policy/decide.ts'
import type { RegistrySnapshot } from '../registry/registry.ts'
import { type ConnectionLists, type ListRequest, listRequest } from './list.ts'
import { readListQuery } from './query.ts'

export interface ConnectionDeps {
  readonly authenticator: Authenticator
  readonly lists: ConnectionLists
  readonly refusals: Refusals
}

export function connectionRoutes({ authenticator, lists, refusals }: ConnectionDeps) {
  return new Elysia({ name: 'connections' }).get('/connect/:namespace', async ({ request }) => {
    const credential = readCredential(request.headers.get('authorization')) // 401
    const { caller, registry } = await authenticator.authenticate(credential, request) // 401
    const list =
      granted(caller, request.url) ?? grant(caller, request.url, await settle(caller, registry, request, refusals))
    const answer = await lists.page(list, ({ body, etag, headers }) =>
      isUnchanged(request, etag) ? new Response(null, { status: 304, headers }) : new Response(body, { headers }),
    )
    if (answer === 'bad_cursor') throw invalidRequest('cursor: is not one that this list gave for these filters')
    return answer
  })
}

/** What the caller asks for, once it is clear that it may. Throws 404, 403 and 400, in this order. */
async function settle(
  caller: Caller,
  registry: RegistrySnapshot,
  request: Request,
  refusals: Refusals,
): Promise<ListRequest> {
  const { url } = request
  const namespace = nameAfter('/connect/', url)
  if (namespace === undefined || !isSlug(namespace)) throw notFound()
  const record = await registry.namespace(namespace)
  if (record === undefined || !(await reaches(caller, record, registry))) throw notFound()
  const access: Access = { namespace, resource: 'connections', operation: 'read', metadata: 'narrowed' }
  const decision = decide(caller.blocks, access)
  if (!decision.allowed) {
    refusals.policy(request, caller, access, decision)
    throw decision.visible ? forbidden(decision) : notFound()
  }
  const query = readListQuery(url)
  return listRequest({ namespace, filters: query.filters, blocks: caller.blocks }, query, caller.rowScope)
}

/**
 * Grants by caller and URL. A caller stands for one generation of the registry, so what it was granted holds
 * as long as it does; a client that asks the same again is spared the way there. Long URLs are not kept.
 */
const grants = new LRUCache<string, ListRequest>({ max: grantsKeptMax })

function granted(caller: Caller, url: string): ListRequest | undefined {
  return grants.get(`${caller.serial} ${url}`)
}

function grant(caller: Caller, url: string, request: ListRequest): ListRequest {
  if (url.length <= grantUrlCharsMax) grants.set(`${caller.serial} ${url}`, request)
  return request
}

/** RFC 9110, 13.1.2: a list of tags, compared weakly. */
function isUnchanged(request: Request, etag: string): boolean {
  const known = request.headers.get('if-none-match')
  return known !== null && (known === '*' || known.includes(etag))
}
