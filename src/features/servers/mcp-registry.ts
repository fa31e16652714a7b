/**
 * The read API of the official MCP Registry, `/v0.1/servers`, over the registered servers: for editors that can be
 * pointed at a registry. There is one version of each server.
 */

import type { Authorizer, RequestContext } from '../../auth/authorizer.ts'
import { accessOf } from '../../auth/namespace-access.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import type { Handlers } from '../../http/handler.ts'
import { pathOf } from '../../http/path.ts'
import { readFlag, readInteger, readQuery } from '../../http/query.ts'
import { wholeResponse } from '../../http/respond.ts'
import { registryPageDefault, registryPageMax } from '../../limits.ts'
import type { RegistryEntry, RegistryPage } from '../../model/server-json.ts'
import { namespaceFilter } from '../../policy/decide.ts'
import { canonicalBytes } from '../../schema/base64.ts'
import { isDateTime } from '../../schema/check.ts'
import { reading } from '../../schema/json.ts'
import { readServer } from '../../storage/directory-records.ts'
import { keyOf, listingKey } from '../../storage/keys.ts'
import type { Store } from '../../storage/store.ts'
import { type Catalogue, type Listed, placeAfter, readingShown, serversPerStep, serversStepCost } from './catalogue.ts'
import { registryEntry } from './to-server-json.ts'

/**
 * Bytes of the details that a page of `/v0.1/servers` is read from, beyond the last server. Past it: the rest is on
 * the next page.
 */
export const registryPageBytesMax = 4 * 2 ** 20
/** Details of servers that a page of `/v0.1/servers` reads at once. Past it: the next read. */
const registryDetailsPerRead = 8

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
interface NamedServer {
  readonly name: string
  readonly server: Listed
}

export function registryReadHandlers(deps: RegistryReadDeps): RegistryReadHandlers {
  return {
    listRegistryServers: (request) => listRegistryServers(deps, request),
    listRegistryVersions: (request) => listRegistryVersions(deps, request),
    getRegistryVersion: (request) => getRegistryVersion(deps, request),
  }
}

async function listRegistryServers(deps: RegistryReadDeps, request: Request): Promise<Response> {
  const { catalogue } = deps
  const isVisible = await visibleTo(deps, request) // 401, 429, 403
  const { limit, after, search, version, since } = readPageQuery(request.url) // 400
  await catalogue.refresh()
  const isWanted = ({ name, server: { registry } }: NamedServer) =>
    (search === undefined || name.toLowerCase().includes(search)) &&
    (version === undefined || version === 'latest' || registry.version === version) &&
    (since === undefined || Date.parse(registry.updatedAt) >= since)
  const work = firstNamed(catalogue, { after, most: limit + 1, isVisible, isWanted })
  const wanted = await allowanceOf(request).run(work) // 429
  const { servers, next } = await entriesOf(deps, request, wanted.slice(0, limit))
  const last = next < wanted.length ? wanted[next - 1] : undefined
  const page: RegistryPage = {
    servers,
    metadata: {
      count: servers.length,
      ...(last !== undefined && { nextCursor: cursorOf(last.server.qualifiedName) }),
    },
  }
  return wholeResponse(request, JSON.stringify(page))
}

async function listRegistryVersions(deps: RegistryReadDeps, request: Request): Promise<Response> {
  const [found] = await findNamed(deps, request) // 401, 429, 403, 400, 404
  const page: RegistryPage = { servers: [found], metadata: { count: 1 } }
  return wholeResponse(request, JSON.stringify(page))
}

async function getRegistryVersion(deps: RegistryReadDeps, request: Request): Promise<Response> {
  const [found, wanted] = await findNamed(deps, request) // 401, 429, 403, 400, 404
  if (wanted !== 'latest' && wanted !== found.server.version) throw notFound()
  return wholeResponse(request, JSON.stringify(found))
}

/** The server in the path, and the version after it. */
async function findNamed(deps: RegistryReadDeps, request: Request): Promise<[RegistryEntry, string | undefined]> {
  const { catalogue } = deps
  const isVisible = await visibleTo(deps, request)
  const [, path = '', version] = /^\/v0\.1\/servers\/(.+?)\/versions(?:\/([^/]+))?\/?$/.exec(pathOf(request.url)) ?? []
  const query = readQuery(request.url, ['include_deleted'])
  readFlag(query, 'include_deleted')
  await catalogue.refresh()
  const name = decoded(path)
  const named = await allowanceOf(request).run(serverNamed(catalogue, name, isVisible))
  const [entry] = (await entriesOf(deps, request, named)).servers
  if (entry === undefined) throw notFound()
  return [entry, version === undefined ? undefined : decoded(version)]
}

/**
 * The entries of servers, until their details reach `registryPageBytesMax`, and the index of the first server that is
 * not among them. Each is parsed in turns: it may have a megabyte.
 */
async function entriesOf(
  deps: RegistryReadDeps,
  request: Request,
  named: readonly NamedServer[],
): Promise<{ readonly servers: RegistryEntry[]; readonly next: number }> {
  const { store } = deps
  const servers: RegistryEntry[] = []
  let bytes = 0
  let next = 0
  while (next < named.length && bytes < registryPageBytesMax) {
    const batch = named.slice(next, next + registryDetailsPerRead)
    const names = batch.map(({ server }) => server.qualifiedName)
    const values = await store.getMany([...names.map((name) => keyOf('server', name)), ...names.map(listingKey)])
    for (const [index, { name, server }] of batch.entries()) {
      if (bytes >= registryPageBytesMax) break
      next += 1
      const detail = values[index]
      const work = readingShown(server, values[index + batch.length])
      const listing = await allowanceOf(request).run(work) // 429
      // Deleted meanwhile.
      if (detail === undefined || listing === undefined) continue
      bytes += detail.length
      const entry = reading(detail.length, () => registryEntry(name, listing, readServer(detail)))
      servers.push(await allowanceOf(request).run(entry)) // 429
    }
  }
  return { servers, next }
}

/** The servers that the reader may see. Throws 401 for one without a credential, unless the registry is open. */
async function visibleTo(
  { authorizer, store, isOpen }: RegistryReadDeps,
  request: Request,
): Promise<(server: Listed) => boolean> {
  if (isOpen && !request.headers.has('authorization')) {
    await allowanceOf(request).belongsToStranger() // 429
    return ({ unlisted }) => !unlisted
  }
  const context: RequestContext = await authorizer.authenticate(request)
  authorizer.requireList(context, { resource: 'servers', operation: 'read' })
  const { caller } = context
  const isAllowed = namespaceFilter(caller.blocks)
  const mayAccess = await accessOf(store, context)
  return ({ unlisted, namespace }) => isAllowed(namespace) && (!unlisted || mayAccess(namespace))
}

/** The names that servers have in the registry. */
interface RegistryNames {
  /** The name of each server, in the catalogue's order; undefined if it has none. */
  readonly each: readonly (string | undefined)[]
  /**
   * The server that a name stands for: the visible one whose qualifiedName it is, or else the first visible one in the
   * catalogue's order.
   */
  readonly find: (name: string, isVisible: (server: Listed) => boolean) => Listed | undefined
}

/** Made once for each state of the catalogue. */
const namesOfState = new WeakMap<readonly Listed[], RegistryNames>()

/** As work in steps. */
function* namesOf(all: readonly Listed[]): Generator<number, RegistryNames> {
  const kept = namesOfState.get(all)
  if (kept !== undefined) return kept
  const each: (string | undefined)[] = []
  const byName = new Map<string, Listed[]>()
  for (const [index, server] of all.entries()) {
    if (index % serversPerStep === 0) yield serversStepCost
    const { name } = server.registry
    each.push(name)
    if (name === undefined) continue
    const others = byName.get(name)
    if (others === undefined) byName.set(name, [server])
    else if (server.qualifiedName === name) others.unshift(server)
    else others.push(server)
  }
  const names: RegistryNames = { each, find: (name, isVisible) => byName.get(name)?.find(isVisible) }
  namesOfState.set(all, names)
  return names
}

interface DesiredRecords {
  /** The qualifiedName that they come after. */
  readonly after: string | undefined
  readonly most: number
  readonly isVisible: (server: Listed) => boolean
  readonly isWanted: (named: NamedServer) => boolean
}

/** The first servers that are wanted, in the order of their qualifiedNames. */
function* firstNamed(
  catalogue: Catalogue,
  { after, most, isVisible, isWanted }: DesiredRecords,
): Generator<number, NamedServer[]> {
  const all = catalogue.all()
  const names = yield* namesOf(all)
  // Each name is looked up once: many servers may have the same.
  const found = new Map<string, Listed | undefined>()
  const servers: NamedServer[] = []
  const start = after === undefined ? 0 : placeAfter(all, after)
  for (let at = start; at < all.length && servers.length < most; at += 1) {
    if ((at - start) % serversPerStep === 0) yield serversStepCost
    const server = all[at] as Listed
    const name = names.each[at]
    if (name === undefined || !isWanted({ name, server }) || !isVisible(server)) continue
    if (!found.has(name)) found.set(name, names.find(name, isVisible))
    if (found.get(name) === server) servers.push({ name, server })
  }
  return servers
}

/** The server that has a name, or none. */
function* serverNamed(
  catalogue: Catalogue,
  name: string,
  isVisible: (server: Listed) => boolean,
): Generator<number, NamedServer[]> {
  const names = yield* namesOf(catalogue.all())
  const server = names.find(name, isVisible)
  return server === undefined ? [] : [{ name, server }]
}

const parameters = ['cursor', 'limit', 'search', 'updated_since', 'version', 'include_deleted']

/** Throws `invalid_request`. */
function readPageQuery(url: string) {
  const query = readQuery(url, parameters)
  readFlag(query, 'include_deleted')
  const since = query.get('updated_since')
  if (since !== undefined && !isDateTime(since))
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

function cursorOf(qualifiedName: string): string {
  return Buffer.from(qualifiedName).toString('base64url')
}

function nameIn(cursor: string): string {
  const name = canonicalBytes(cursor)?.toString() ?? ''
  if (/^[\w.-]+(?:\/[\w.-]+)?$/.test(name)) return name
  throw invalidRequest('cursor: not valid; start again without it')
}

function decoded(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch {
    throw notFound()
  }
}
