/** `GET /servers`: the servers that a caller may see, filtered, or found by words (door contract, 2.1 to 2.4). */

import type { Authorizer, RequestContext } from '../../auth/authorizer.ts'
import { accessOf, namespacesOf } from '../../auth/namespace-access.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import {
  fieldsIn,
  type PageNumber,
  pageOf,
  paginationOf,
  readPageNumber,
  withFields,
} from '../../http/numbered-pages.ts'
import { pathOf } from '../../http/path.ts'
import { readFlag, readInteger, readQuery } from '../../http/query.ts'
import { wholeResponse } from '../../http/respond.ts'
import type { Handlers } from '../../http/router.ts'
import {
  searchCharsMax,
  searchHitsMax,
  searchHitsMin,
  searchWordsMax,
  serversPageDefault,
  serversPageMax,
} from '../../limits.ts'
import { createdAtOf } from '../../model/organization.ts'
import type { ServerItem } from '../../model/server.ts'
import { namespaceFilter } from '../../policy/decide.ts'
import { wordsOf } from '../../search/words.ts'
import type { Store } from '../../storage/store.ts'
import { type Catalogue, type Listed, serversPerStep, serversStepCost } from './catalogue.ts'

export interface ServerListDeps {
  readonly authorizer: Authorizer
  readonly store: Store
  readonly catalogue: Catalogue
  readonly baseUrl: string
  /** Called with each response body, so that the fast lane can reuse it. */
  readonly onPage: (context: RequestContext, json: Uint8Array) => void
}

interface ServerQuery {
  readonly page: PageNumber
  readonly q: string | undefined
  readonly topK: number
  readonly fields: ReadonlySet<string> | undefined
  readonly ownerId: string | undefined
  /** Whether a server has what the other filters ask for. */
  readonly matches: (server: Listed) => boolean
}

/** A server that matches, with its score if it was found by words. */
interface Match {
  readonly server: Listed
  readonly score: number | null
}

export function serverListHandlers(deps: ServerListDeps): Pick<Handlers, 'listServers'> {
  const { authorizer, store, catalogue, onPage } = deps
  return {
    async listServers(request) {
      const context = await authorizer.authenticate(request) // 401, 429
      authorizer.requireList(context, { resource: 'servers', operation: 'read' }) // 403
      // `/servers/` names a server without a name.
      if (pathOf(request.url).endsWith('/')) throw notFound('Server not found') // 404
      const query = readServerQuery(request.url) // 400
      await catalogue.refresh()
      const mayAccess = await accessOf(store, context)
      const owners = await ownersOf(store, context, { ownerId: query.ownerId, mayAccess })
      const isAllowed = namespaceFilter(context.caller.blocks)
      const isWanted = (server: Listed) =>
        query.matches(server) &&
        isAllowed(server.namespace) &&
        (!server.listing.unlisted || mayAccess(server.namespace)) &&
        owners(server.namespace)
      const work = query.q === undefined ? matching(catalogue, isWanted) : searching(catalogue, query, isWanted)
      const matches = await allowanceOf(request).run(work) // 429
      const items = await Promise.all(
        pageOf(matches, query.page).map(async (match) =>
          withFields(await itemOf(deps.baseUrl, context, match, mayAccess), query.fields),
        ),
      )
      const page = { servers: items, pagination: paginationOf(query.page, matches.length) }
      const json = Buffer.from(JSON.stringify(page))
      onPage(context, json)
      return wholeResponse(request, json)
    },
  }
}

function* matching(catalogue: Catalogue, isWanted: (server: Listed) => boolean): Generator<number, Match[]> {
  const matches: Match[] = []
  for (const [index, server] of catalogue.all().entries()) {
    if (index % serversPerStep === 0) yield serversStepCost
    if (isWanted(server)) matches.push({ server, score: null })
  }
  return matches
}

function* searching(
  { find, words }: Catalogue,
  { q = '', topK }: ServerQuery,
  isWanted: (server: Listed) => boolean,
): Generator<number, Match[]> {
  const hits = yield* words.search(wordsOf(q).slice(0, searchWordsMax), {
    most: topK,
    isWanted(name) {
      const server = find(name)
      return server !== undefined && isWanted(server)
    },
  })
  // Beside the best: how rare a word is among all servers would tell of those that the caller does not see.
  const best = hits[0]?.score ?? 1
  return hits.flatMap(({ id, score }) => {
    const server = find(id)
    return server === undefined ? [] : [{ server, score: Math.round((score / best) * 1e4) / 1e4 }]
  })
}

/** Whether a namespace belongs to the wanted owner, as far as the caller may know. */
async function ownersOf(
  store: Pick<Store, 'keys'>,
  context: RequestContext,
  { ownerId, mayAccess }: { readonly ownerId: string | undefined; readonly mayAccess: (namespace: string) => boolean },
): Promise<(namespace: string) => boolean> {
  if (ownerId === undefined) return () => true
  const owned = await namespacesOf(store, context, ownerId)
  return (namespace) => mayAccess(namespace) && owned.has(namespace)
}

async function itemOf(
  baseUrl: string,
  { directory }: RequestContext,
  { server: { listing, namespace, id }, score }: Match,
  mayAccess: (namespace: string) => boolean,
): Promise<ServerItem> {
  const { qualifiedName, displayName, description, iconUrl, verified, remote, isDeployed, homepage } = listing
  const slash = qualifiedName.indexOf('/')
  const owner = mayAccess(namespace) ? await directory.namespace(namespace) : undefined
  return {
    id,
    qualifiedName,
    namespace,
    slug: slash < 0 ? null : qualifiedName.slice(slash + 1),
    displayName,
    description,
    iconUrl,
    verified,
    useCount: 0,
    remote,
    isDeployed,
    createdAt: createdAtOf(listing),
    homepage: homepage ?? `${baseUrl}/servers/${qualifiedName}`,
    bySmithery: false,
    owner: owner === undefined ? null : 'userId' in owner ? owner.userId : owner.organizationId,
    score,
  }
}

const parameters = [
  ...['page', 'pageSize', 'q', 'topK', 'seed', 'fields', 'namespace', 'qualifiedName', 'ids', 'remote', 'isDeployed'],
  ...['verified', 'smitheryManaged', 'ownerId', 'repoOwner', 'repoName'],
]

/** Throws `invalid_request`. */
function readServerQuery(url: string): ServerQuery {
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
  filter(query.get('qualifiedName'), (wanted, { listing }) => listing.qualifiedName === wanted)
  filter(readFlag(query, 'remote'), (wanted, { listing }) => listing.remote === wanted)
  filter(readFlag(query, 'isDeployed'), (wanted, { listing }) => listing.isDeployed === wanted)
  filter(readFlag(query, 'verified'), (wanted, { listing }) => listing.verified === wanted)
  // Nothing here is managed by anybody else.
  filter(readFlag(query, 'smitheryManaged'), (wanted) => !wanted)
  filter(query.get('repoOwner'), (wanted, { listing }) => repositoryOf(listing.repositoryUrl)?.owner === wanted)
  filter(query.get('repoName'), (wanted, { listing }) => repositoryOf(listing.repositoryUrl)?.name === wanted)
  return (server) => tests.every((test) => test(server))
}

/** `https://github.com/acme/weather.git` is `weather` of `acme`. */
function repositoryOf(url: string | null): { readonly owner: string; readonly name: string } | undefined {
  const [, owner, name] = /^https?:\/\/[^/]+\/([^/]+)\/([^/?#]+)/.exec(url ?? '') ?? []
  return owner === undefined || name === undefined ? undefined : { owner, name: name.replace(/\.git$/, '') }
}
