/**
 * The read API of the official MCP Registry, `/v0.1/servers`, over the registered servers: for editors that can be
 * pointed at a registry. There is one version of each server.
 */

import type { RequestContext } from '../../auth/authorizer.ts'
import { accessOf } from '../../auth/namespace-access.ts'
import { invalidRequest, notFound } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { handlersOf } from '../../http/handler.ts'
import { namesInPath, pathOf } from '../../http/path.ts'
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
import { type Listed, placeAfter, readingShown, serversPerStep, serversStepCost } from './catalogue.ts'
import type { ServerDeps } from './server-deps.ts'
import { bytesOf } from './server-records.ts'
import { registryEntry } from './to-server-json.ts'

/** Bytes of details that a page is read from, beyond the last server. Past it: the rest is on the next page. */
export const registryPageBytesMax = 4 * 2 ** 20

/** Details of servers that a page of `/v0.1/servers` reads at once, 4 MB at most. Past it: the next read. */
const registryDetailsPerRead = 4
/** Bytes of a page for each byte of a server's listing, which is written in one piece. */
const listingFactor = 4

/** Bytes of a server's details that are parsed without memory and a place of their own. Past it: they take both. */
const smallDetailBytesMax = 16 * 1024

export function isRegistryUrl(url: string): boolean {
  return pathOf(url).startsWith('/v0.1/')
}

export const registryReadHandlers = handlersOf({ listRegistryServers, listRegistryVersions, getRegistryVersion })

async function listRegistryServers(deps: ServerDeps, request: Request): Promise<Response> {
  const isVisible = await visibleTo(deps, request) // 401, 429, 403
  const query = readPageQuery(request.url) // 400
  const { limit, search, version, since } = query
  await deps.catalogue.refresh()
  const isWanted = ({ registry }: Listed) =>
    (search === undefined || registry.name?.toLowerCase().includes(search) === true) &&
    (version === undefined || version === 'latest' || registry.version === version) &&
    (since === undefined || Date.parse(registry.updatedAt) >= since)
  const work = firstNamed(deps, query, isVisible, isWanted)
  const wanted = await allowanceOf(request).run(work) // 429
  const { servers, next } = await entriesOf(deps, request, wanted.slice(0, limit))
  const last = next < wanted.length ? wanted[next - 1] : undefined
  const nextCursor = last && Buffer.from(last.qualifiedName).toString('base64url')
  const metadata = { count: servers.length, ...(nextCursor !== undefined && { nextCursor }) }
  const page: RegistryPage = { servers, metadata }
  return wholeResponse(request, JSON.stringify(page))
}

async function listRegistryVersions(deps: ServerDeps, request: Request): Promise<Response> {
  const [found] = await findNamed(deps, request) // 401, 429, 403, 400, 404
  const page: RegistryPage = { servers: [found], metadata: { count: 1 } }
  return wholeResponse(request, JSON.stringify(page))
}

async function getRegistryVersion(deps: ServerDeps, request: Request): Promise<Response> {
  const [found, wanted] = await findNamed(deps, request) // 401, 429, 403, 400, 404
  if (wanted !== 'latest' && wanted !== found.server.version) throw notFound()
  return wholeResponse(request, JSON.stringify(found))
}

/** The server in the path, and the version after it. */
async function findNamed(deps: ServerDeps, request: Request): Promise<[RegistryEntry, string | undefined]> {
  const isVisible = await visibleTo(deps, request)
  // `servers`, the name in one part or two, `versions`, and the version.
  const [, ...parts] = namesInPath(request.url)
  const end = parts.indexOf('versions', 1)
  const name = parts.slice(0, end).join('/')
  const query = readQuery(request.url, ['include_deleted'])
  readFlag(query, 'include_deleted')
  await deps.catalogue.refresh()
  const byName = await allowanceOf(request).run(deps.catalogue.byRegistryName())
  const server = byName.get(name)?.find(isVisible)
  const [entry] = server === undefined ? [] : (await entriesOf(deps, request, [server])).servers
  if (entry === undefined) throw notFound()
  return [entry, parts[end + 1]]
}

/**
 * The entries of servers, until their details reach `registryPageBytesMax`, and the index of the first server that is
 * not among them. Each is parsed in turns: it may have a megabyte.
 */
async function entriesOf(deps: ServerDeps, request: Request, listed: readonly Listed[]) {
  const { store } = deps
  const servers: RegistryEntry[] = []
  let bytes = 0
  let next = 0
  const allowance = allowanceOf(request)
  while (next < listed.length && bytes < registryPageBytesMax) {
    const batch = listed.slice(next, next + registryDetailsPerRead)
    const names = batch.map(({ qualifiedName }) => qualifiedName)
    const keys = [...names.map((name) => keyOf('server', name)), ...names.map(listingKey)]
    const values = await allowance.readRecords(() => store.getMany(keys), bytesOf) // 429
    for (const [index, server] of batch.entries()) {
      if (bytes >= registryPageBytesMax) break
      next += 1
      const [detail, stored] = [values[index], values[index + batch.length]]
      const listing = await allowance.run(readingShown(server, stored)) // 429
      // Deleted meanwhile.
      if (detail === undefined || listing === undefined) continue
      // An imported server has its whole document there, perhaps of very many values.
      bytes += detail.length + listingFactor * (stored?.length ?? 0)
      const entry = reading(detail.length, () => registryEntry(listing, readServer(detail)))
      const isSmall = detail.length <= smallDetailBytesMax
      servers.push(await (isSmall ? allowance.run(entry) : allowance.parse(detail.length, entry))) // 429
    }
  }
  return { servers, next }
}

/** The servers that the reader may see. Throws 401 for one without a credential, unless the registry is open. */
async function visibleTo({ authorizer, store, isRegistryOpen }: ServerDeps, request: Request) {
  if (isRegistryOpen && !request.headers.has('authorization')) {
    await allowanceOf(request).belongsToStranger() // 429
    return ({ unlisted }: Listed) => !unlisted
  }
  const context: RequestContext = await authorizer.authenticate(request)
  authorizer.requireList(context, { resource: 'servers', operation: 'read' })
  const { caller } = context
  const isAllowed = namespaceFilter(caller.blocks)
  const mayAccess = await accessOf(store, context)
  return ({ unlisted, namespace }: Listed) => isAllowed(namespace) && (!unlisted || mayAccess(namespace))
}

type Test = (server: Listed) => boolean
type PageQuery = ReturnType<typeof readPageQuery>

/** The wanted servers after `after`, in the order of their qualifiedNames: as many as fit a page, and one more. */
function* firstNamed(deps: ServerDeps, { after, limit }: PageQuery, isVisible: Test, isWanted: Test) {
  const all = deps.catalogue.all()
  const byName = yield* deps.catalogue.byRegistryName()
  // Each name is looked up once: many servers may have the same.
  const found = new Map<string, Listed | undefined>()
  const servers: Listed[] = []
  const start = after === undefined ? 0 : placeAfter(all, after)
  for (let at = start; at < all.length && servers.length <= limit; at += 1) {
    if ((at - start) % serversPerStep === 0) yield serversStepCost
    const server = all[at] as Listed
    const { name } = server.registry
    if (name === undefined || !isWanted(server) || !isVisible(server)) continue
    if (!found.has(name)) found.set(name, byName.get(name)?.find(isVisible))
    if (found.get(name) === server) servers.push(server)
  }
  return servers
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

function nameIn(cursor: string): string {
  const name = canonicalBytes(cursor)?.toString() ?? ''
  if (/^[\w.-]+(?:\/[\w.-]+)?$/.test(name)) return name
  throw invalidRequest('cursor: not valid; start again without it')
}
