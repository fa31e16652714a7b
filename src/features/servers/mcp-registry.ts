/**
 * The read API of the official MCP Registry, `/v0.1/servers`, over the registered servers: for editors that can be
 * pointed at a registry. There is one version of each server.
 */

import type { Authorizer, RequestContext } from '../../auth/authorize.ts'
import { inByteOrder, reachedNamespaces } from '../../auth/reach.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import { readFlag, readInteger } from '../../http/numbered-pages.ts'
import { pathOf } from '../../http/path.ts'
import { readQuery, unknownParameter } from '../../http/query.ts'
import { privateJson } from '../../http/respond.ts'
import type { Handlers } from '../../http/router.ts'
import { registryPageDefault, registryPageMax } from '../../limits.ts'
import type { RegistryEntry, RegistryPage } from '../../model/server-json.ts'
import { allowsNamespace } from '../../policy/decide.ts'
import { serverKey } from '../../storage/keys.ts'
import { readServer } from '../../storage/registry-records.ts'
import type { Store } from '../../storage/store.ts'
import type { Catalogue, Listed } from './catalogue.ts'
import { registryEntry, registryNameOf, updatedAtOf, versionOf } from './server-json.ts'

export interface RegistryReadDeps {
  readonly authorizer: Authorizer
  readonly store: Store
  readonly catalogue: Catalogue
  /** Whether readers without a credential see what is listed for all (`--open-registry`). */
  readonly isOpen: boolean
}

/** Whether a URL is of this API. */
export function isRegistryUrl(url: string): boolean {
  return pathOf(url).startsWith('/v0.1/')
}

type RegistryReadHandlers = Pick<Handlers, 'listRegistryServers' | 'listRegistryVersions' | 'getRegistryVersion'>

/** A server under the name that it has there. */
interface Named {
  readonly name: string
  readonly server: Listed
}

export function registryReadHandlers(deps: RegistryReadDeps): RegistryReadHandlers {
  const { store, catalogue } = deps

  return {
    async listRegistryServers(request) {
      const isVisible = await visibility(deps, request) // 401, 429, 403
      const { limit, after, search, version, since } = readPageQuery(request.url) // 400
      await catalogue.refresh()
      const wanted = namedServers(catalogue, isVisible).filter(
        ({ name, server: { listing } }) =>
          (after === undefined || name > after) &&
          (search === undefined || name.toLowerCase().includes(search)) &&
          (version === undefined || version === 'latest' || versionOf(listing) === version) &&
          (since === undefined || Date.parse(updatedAtOf(listing)) >= since),
      )
      const servers = await entriesOf(wanted.slice(0, limit))
      const last = wanted.length > limit ? wanted[limit - 1] : undefined
      const page: RegistryPage = {
        servers,
        metadata: { count: servers.length, ...(last !== undefined && { nextCursor: cursorOf(last.name) }) },
      }
      return new Response(JSON.stringify(page), { headers: privateJson })
    },

    async listRegistryVersions(request) {
      const [found] = await findNamed(request) // 401, 429, 403, 404, 400
      const page: RegistryPage = { servers: [found], metadata: { count: 1 } }
      return new Response(JSON.stringify(page), { headers: privateJson })
    },

    async getRegistryVersion(request) {
      const [found, wanted] = await findNamed(request) // 401, 429, 403, 404, 400
      if (wanted !== 'latest' && wanted !== found.server.version) throw notFound()
      return new Response(JSON.stringify(found), { headers: privateJson })
    },
  }

  /** The server in the path, and the version after it. */
  async function findNamed(request: Request): Promise<[RegistryEntry, string | undefined]> {
    const isVisible = await visibility(deps, request)
    const [, path = '', version] =
      /^\/v0\.1\/servers\/(.+?)\/versions(?:\/([^/]+))?\/?$/.exec(pathOf(request.url)) ?? []
    const query = readQuery(request.url)
    for (const name of query.keys()) if (name !== 'include_deleted') throw unknownParameter(name, 'include_deleted')
    readFlag(query, 'include_deleted')
    await catalogue.refresh()
    const name = decoded(path)
    const named = namedServers(catalogue, isVisible).find((one) => one.name === name)
    const [entry] = await entriesOf(named === undefined ? [] : [named])
    if (entry === undefined) throw notFound()
    return [entry, version === undefined ? undefined : decoded(version)]
  }

  async function entriesOf(named: readonly Named[]): Promise<RegistryEntry[]> {
    const details = await store.getMany(named.map(({ server }) => serverKey(server.listing.qualifiedName)))
    return named.flatMap(({ name, server }, index) => {
      const detail = details[index]
      // Deleted meanwhile.
      return detail === undefined ? [] : [registryEntry(name, server.listing, readServer(detail))]
    })
  }
}

/** Which servers the reader may see. Throws 401 for one without a credential, unless the registry is open. */
async function visibility(
  { authorizer, store, isOpen }: RegistryReadDeps,
  request: Request,
): Promise<(server: Listed) => boolean> {
  if (isOpen && !request.headers.has('authorization')) return ({ listing }) => !listing.unlisted
  const context: RequestContext = await authorizer.authenticate(request)
  authorizer.requireList(context, { resource: 'servers', operation: 'read' })
  const { caller } = context
  const isOperator = caller.operator && caller.organizationId === undefined
  const reached = isOperator ? undefined : new Set(await reachedNamespaces(store, caller))
  return ({ listing, namespace }) =>
    allowsNamespace(caller.blocks, namespace) && (!listing.unlisted || reached?.has(namespace) !== false)
}

/** In the order of their names. Of several with one name, the first by qualifiedName that is visible has it. */
function namedServers(catalogue: Catalogue, isVisible: (server: Listed) => boolean): Named[] {
  const named: Named[] = []
  for (const one of sortedByName(catalogue.all())) {
    if (named.at(-1)?.name !== one.name && isVisible(one.server)) named.push(one)
  }
  return named
}

/** Sorted once for each state of the catalogue. */
const sortedLists = new WeakMap<readonly Listed[], readonly Named[]>()

function sortedByName(all: readonly Listed[]): readonly Named[] {
  const kept = sortedLists.get(all)
  if (kept !== undefined) return kept
  const named = all.flatMap((server) => {
    const name = registryNameOf(server.listing)
    return name === undefined ? [] : [{ name, server }]
  })
  // The sort is stable, so those of one name stay in the order of their qualifiedNames.
  named.sort((a, b) => inByteOrder(a.name, b.name))
  sortedLists.set(all, named)
  return named
}

const parameters = ['cursor', 'limit', 'search', 'updated_since', 'version', 'include_deleted']

const timePattern = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/

/** Throws `invalid_request`. */
function readPageQuery(url: string) {
  const query = readQuery(url)
  for (const name of query.keys()) {
    if (!parameters.includes(name)) throw unknownParameter(name, parameters.join(', '))
  }
  readFlag(query, 'include_deleted')
  const since = query.get('updated_since')
  if (since !== undefined && !(timePattern.test(since) && !Number.isNaN(Date.parse(since))))
    throw invalidRequest('updated_since: must be a time like 2026-01-31T08:00:00Z')
  const cursor = query.get('cursor') || undefined
  return {
    limit: readInteger(query, 'limit', { least: 1, most: registryPageMax, otherwise: registryPageDefault }),
    after: cursor === undefined ? undefined : nameIn(cursor),
    search: query.get('search')?.toLowerCase(),
    version: query.get('version'),
    since: since === undefined ? undefined : Date.parse(since),
  }
}

function cursorOf(name: string): string {
  return Buffer.from(name).toString('base64url')
}

function nameIn(cursor: string): string {
  const name = Buffer.from(cursor, 'base64url').toString()
  if (cursorOf(name) === cursor && /^[\w.-]+\/[\w.-]+$/.test(name)) return name
  throw invalidRequest('cursor: not valid; start again without it')
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw notFound()
  }
}
