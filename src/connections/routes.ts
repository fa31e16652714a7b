/** `GET /connect/{namespace}` (spec 4.2): the walk of one request, top to bottom. */

import { bearer } from '@elysiajs/bearer'
import { Elysia } from 'elysia'
import { type Authenticator, reaches } from '../auth/authenticate.ts'
import { readCredential } from '../auth/credential.ts'
import { forbidden, invalidRequest, notFound } from '../errors.ts'
import { nameAfter } from '../http/path.ts'
import { jsonResponse } from '../http/respond.ts'
import { isSlug } from '../model/names.ts'
import { decide } from '../policy/decide.ts'
import type { ConnectionLists } from './list.ts'
import { readListQuery } from './query.ts'

export interface ConnectionDeps {
  readonly authenticator: Authenticator
  readonly lists: ConnectionLists
}

export function connectionRoutes({ authenticator, lists }: ConnectionDeps) {
  return new Elysia({ name: 'connections' }).use(bearer()).get('/connect/:namespace', async ({ request, bearer }) => {
    const credential = readCredential(request.headers.get('authorization'), bearer) // 401
    const { caller, registry } = await authenticator.authenticate(credential) // 401

    const namespace = nameAfter('/connect/', request.url)
    if (namespace === undefined || !isSlug(namespace)) throw notFound()
    const record = await registry.namespace(namespace)
    if (record === undefined || !(await reaches(caller, record, registry))) throw notFound()

    const decision = decide(caller.blocks, {
      namespace,
      resource: 'connections',
      operation: 'read',
      metadata: 'narrowed',
    })
    if (!decision.allowed) throw decision.visible ? forbidden(decision) : notFound() // 403, 404

    const query = readListQuery(request.url) // 400
    const scope = { namespace, filters: query.filters, blocks: caller.blocks }
    const page = await lists.page({ scope, query, rowScope: caller.rowScope })
    if (page === 'bad_cursor') throw invalidRequest('cursor: is not one that this list gave for these filters')

    const headers = { 'cache-control': 'private, no-cache', etag: page.etag, vary: 'authorization, origin' }
    if (request.headers.get('if-none-match')?.includes(page.etag)) return new Response(null, { status: 304, headers })
    return jsonResponse(page.body, headers)
  })
}
