/** `GET /servers`: the servers that a caller may see, filtered, or found by words (contract, 9.2 to 9.5). */

import { noteTold, type RequestContext } from '../../auth/authorizer.ts'
import { accessOf, namespacesOf } from '../../auth/namespace-access.ts'
import { whileAllowed } from '../../auth/while-allowed.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { handlersOf } from '../../http/handler.ts'
import { fieldsIn, pageOf, paginationOf, readPageNumber, withFields } from '../../http/numbered-pages.ts'
import { pathOf } from '../../http/path.ts'
import { readFlag, readInteger, readQuery } from '../../http/query.ts'
import { wholeResponse } from '../../http/respond.ts'
import { searchCharsMax, searchHitsMax, searchHitsMin, serversPageDefault, serversPageMax } from '../../limits.ts'
import { createdAtOf } from '../../model/organization.ts'
import type { ServerItem } from '../../model/server.ts'
import { namespaceFilter } from '../../policy/decide.ts'
import { reading } from '../../schema/json.ts'
import { wordsOf } from '../../search/words.ts'
import { listingKey } from '../../storage/keys.ts'
import { type Catalogue, type Listed, readingShown, serversPerStep, serversStepCost } from './catalogue.ts'
import type { ServerDeps } from './server-deps.ts'

/** Contract 9.5: words of a search that count. Past it: the others are left out. */
const searchWordsMax = 8

type ServerQuery = ReturnType<typeof readServerQuery>

/** A server that matches, with its score if it was found by words. */
interface Match {
  readonly server: Listed
  readonly score: number | null
}

export const serverListHandlers = handlersOf({ listServers })

async function listServers(deps: ServerDeps, request: Request): Promise<Response> {
  const context = await deps.authorizer.authenticate(request) // 401, 429
  const { now, json } = await whileAllowed(deps, context, async (now) => ({
    now,
    json: await pageOfServers(deps, now),
  })) // 401
  deps.onAnswer(now, json)
  return wholeResponse(request, json)
}

/** The page of servers that the request asks for, as JSON. Throws 403, 404, 400, 429. */
async function pageOfServers(deps: ServerDeps, context: RequestContext): Promise<Buffer> {
  const { authorizer, store, catalogue } = deps
  const { request } = context
  authorizer.requireList(context, { resource: 'servers', operation: 'read' }) // 403
  // `/servers/` names a server without a name.
  if (pathOf(request.url).endsWith('/')) throw notFound('Server not found') // 404
  const query = readServerQuery(request.url) // 400
  await catalogue.refresh()
  const mayAccess = await accessOf(store, context)
  const owned = query.ownerId === undefined ? undefined : await namespacesOf(store, context, query.ownerId)
  const isAllowed = namespaceFilter(context.caller.blocks)
  const isWanted = (server: Listed) =>
    query.matches(server) &&
    isAllowed(server.namespace) &&
    (!server.unlisted || mayAccess(server.namespace)) &&
    // As far as the caller may know.
    (owned === undefined || (mayAccess(server.namespace) && owned.has(server.namespace)))
  const work = query.q === undefined ? matching(catalogue, isWanted) : searching(catalogue, query, isWanted)
  const matches = await allowanceOf(request).run(work) // 429
  const page = pageOf(matches, query.page)
  const listings = await store.getMany(page.map(({ server }) => listingKey(server.qualifiedName)))
  const shown = page.map((match, index) => ({ ...match, value: listings[index] }))
  const owners = await shownOwners(context, shown, mayAccess)
  const items = await allowanceOf(request).run(itemsOf(deps.base, shown, owners, query.fields)) // 429
  const pagination = JSON.stringify(paginationOf(query.page, matches.length))
  return Buffer.from(`{"servers":[${items.join()}],"pagination":${pagination}}`)
}

function* matching(catalogue: Catalogue, isWanted: (server: Listed) => boolean): Generator<number, Match[]> {
  const matches: Match[] = []
  for (const [index, server] of catalogue.all().entries()) {
    if (index % serversPerStep === 0) yield serversStepCost
    if (isWanted(server)) matches.push({ server, score: null })
  }
  return matches
}

function* searching(catalogue: Catalogue, { q = '', topK }: ServerQuery, isWanted: (server: Listed) => boolean) {
  const hits = yield* catalogue.search(wordsOf(q).slice(0, searchWordsMax), {
    most: topK,
    isWanted(name) {
      const server = catalogue.find(name)
      return server !== undefined && isWanted(server)
    },
  })
  // Beside the best: how rare a word is among all servers would tell of those that the caller does not see.
  const best = hits[0]?.score ?? 1
  return hits.flatMap(({ id, score }) => {
    const server = catalogue.find(id)
    return server === undefined ? [] : [{ server, score: Math.round((score / best) * 1e4) / 1e4 }]
  })
}

/** The owners of the namespaces of a page, without those that the caller may not know. */
async function shownOwners(
  context: RequestContext,
  shown: readonly Match[],
  mayAccess: (namespace: string) => boolean,
): Promise<Map<string, string>> {
  const owners = new Map<string, string>()
  for (const { server } of shown) {
    const { namespace } = server
    if (!mayAccess(namespace) || owners.has(namespace)) continue
    noteTold(context, namespace)
    const owner = await context.directory.namespace(namespace)
    if (owner !== undefined) owners.set(namespace, 'userId' in owner ? owner.userId : owner.organizationId)
  }
  return owners
}

type Shown = Match & { readonly value: Uint8Array | undefined }
type Owners = Awaited<ReturnType<typeof shownOwners>>

/** The items of a page as JSON, as work in steps: each is parsed and written again, and may have many kilobytes. */
function* itemsOf(base: string, shown: readonly Shown[], owners: Owners, fields: ServerQuery['fields']) {
  const items: string[] = []
  for (const { server, score, value } of shown) {
    const listing = yield* readingShown(server, value)
    if (listing === undefined) continue
    yield* reading(value?.length ?? 0, () => {
      const { qualifiedName, displayName, description, iconUrl, verified, remote, isDeployed, homepage } = listing
      const { id, namespace } = server
      const item: ServerItem = {
        id,
        qualifiedName,
        namespace,
        slug: qualifiedName === namespace ? null : qualifiedName.slice(namespace.length + 1),
        ...{ displayName, description, iconUrl, verified },
        useCount: 0,
        ...{ remote, isDeployed },
        createdAt: createdAtOf(listing),
        homepage: homepage ?? `${base}/servers/${qualifiedName}`,
        bySmithery: false,
        owner: owners.get(namespace) ?? null,
        score,
      }
      items.push(JSON.stringify(withFields(item, fields)))
    })
  }
  return items
}

const parameters = [
  ...['page', 'pageSize', 'q', 'topK', 'seed', 'fields', 'namespace', 'qualifiedName', 'ids', 'remote', 'isDeployed'],
  ...['verified', 'smitheryManaged', 'ownerId', 'repoOwner', 'repoName'],
]

/** Throws `invalid_request`. */
function readServerQuery(url: string) {
  const query = readQuery(url, parameters)
  const q = query.get('q')
  if (q !== undefined && (q === '' || [...q].length > searchCharsMax))
    throw invalidRequest(`q: must have 1 to ${searchCharsMax} characters`)
  // It would shuffle, and nothing is shuffled here.
  readInteger(query, 'seed', { least: 0, most: Number.MAX_SAFE_INTEGER, otherwise: 0 })
  return {
    page: readPageNumber(query, { sizeDefault: serversPageDefault, sizeMax: serversPageMax }),
    q,
    topK: readInteger(query, 'topK', { least: searchHitsMin, most: searchHitsMax, otherwise: searchHitsMax }),
    fields: fieldsIn(query),
    ownerId: query.get('ownerId'),
    /** Whether a server has what the other filters ask for. */
    matches: readFilters(query),
  }
}

function readFilters(query: ReadonlyMap<string, string>): (server: Listed) => boolean {
  const tests: ((server: Listed) => boolean)[] = []
  const filter = <T>(wanted: T | undefined, test: (wanted: T, server: Listed) => boolean) => {
    if (wanted !== undefined) tests.push((server) => test(wanted, server))
  }
  const ids = query.get('ids')
  filter(ids === undefined ? undefined : new Set(ids.split(',')), (wanted, { id }) => wanted.has(id))
  filter(query.get('namespace'), (wanted, { namespace }) => namespace === wanted)
  filter(query.get('qualifiedName'), (wanted, server) => server.qualifiedName === wanted)
  filter(readFlag(query, 'remote'), (wanted, server) => server.remote === wanted)
  filter(readFlag(query, 'isDeployed'), (wanted, server) => server.isDeployed === wanted)
  filter(readFlag(query, 'verified'), (wanted, server) => server.verified === wanted)
  // Nothing here is managed by anybody else.
  filter(readFlag(query, 'smitheryManaged'), (wanted) => !wanted)
  filter(query.get('repoOwner'), (wanted, { repositoryUrl }) => repositoryOf(repositoryUrl)?.owner === wanted)
  filter(query.get('repoName'), (wanted, { repositoryUrl }) => repositoryOf(repositoryUrl)?.name === wanted)
  return (server) => tests.every((test) => test(server))
}

/** `https://github.com/acme/weather.git` is `weather` of `acme`. */
function repositoryOf(url: string | null): { readonly owner: string; readonly name: string } | undefined {
  const [, owner, name] = /^https?:\/\/[^/]+\/([^/]+)\/([^/?#]+)/.exec(url ?? '') ?? []
  return owner === undefined || name === undefined ? undefined : { owner, name: name.replace(/\.git$/, '') }
}
