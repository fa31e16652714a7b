/** `/registry/{namespace}`: the read API of the official MCP Registry, leading to this platform (contract, 20.13). */

import type { RequestContext } from '../../auth/authorizer.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { invalidRequest, notFound, unauthorized } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { handlersOf } from '../../http/handler.ts'
import { namesInPath, pathOf } from '../../http/path.ts'
import { readInteger, readQuery, refuseQuery } from '../../http/query.ts'
import { privateJson, wholeResponse } from '../../http/respond.ts'
import { registryPageDefault, registryPageMax } from '../../limits.ts'
import { createdAtOf, type Namespace } from '../../model/organization.ts'
import { officialMeta, type RegistryEntry, type RegistryPage } from '../../model/server-json.ts'
import { canonicalBytes } from '../../schema/base64.ts'
import { isDateTime } from '../../schema/check.ts'
import { parseForeign } from '../../schema/json.ts'
import { successor } from '../connections/id-stream.ts'
import { connectionIds } from '../endpoint/seen-connections.ts'
import { viewsOf } from '../organizations/views.ts'
import { publishedEntries } from './published-entries.ts'
import { connectionServer, entryOf, namespaceServer, viewServer } from './registry-entries.ts'
import { isLinkSecret } from './registry-links.ts'

/** Connections that are looked through at once for a page. */
const connectionsPerRead = 256

/** Whether a URL is of this API: pages of any origin may read it. */
export function isNamespaceRegistryUrl(url: string): boolean {
  return pathOf(url).startsWith('/registry/')
}

export const registryHandlers = handlersOf({ listNamespaceRegistry, listNamespaceVersions, getNamespaceVersion })

async function listNamespaceRegistry(deps: SharedParts, request: Request): Promise<Response> {
  const reader = await enter(deps, request) // 404, 401, 429
  const query = readPageQuery(request.url) // 400
  const { limit, after, isWithConnections } = query
  const isWanted = wantedBy(query)
  const own = await ownEntries(deps, request, reader.namespace)
  const found = own.filter(([position, entry]) => position > after && isWanted(entry))
  if (isWithConnections) {
    const context = await requireReader(deps, request, reader) // 401, 404, 403
    found.push(...(await connectionEntries(deps, context, reader.namespace, query)).filter(([, one]) => isWanted(one)))
  }
  const shown = found.slice(0, limit)
  const [last] = found.length > limit ? (shown.at(-1) ?? []) : []
  const nextCursor = last === undefined ? undefined : cursorOf(query, last)
  const metadata = { count: shown.length, ...(nextCursor !== undefined && { nextCursor }) }
  return answer(request, { servers: shown.map(([, entry]) => entry), metadata })
}

async function listNamespaceVersions(deps: SharedParts, request: Request): Promise<Response> {
  const [entry] = await findEntry(deps, request) // 404, 401, 429, 400
  return answer(request, { servers: [entry], metadata: { count: 1 } })
}

async function getNamespaceVersion(deps: SharedParts, request: Request): Promise<Response> {
  const [entry, wanted] = await findEntry(deps, request) // 404, 401, 429, 400
  if (wanted !== 'latest' && wanted !== entry.server.version) throw notFound()
  return answer(request, entry)
}

interface Reader {
  readonly namespace: Namespace
  /** Undefined for anybody, and for a link. */
  readonly context?: RequestContext
}

/** The namespace whose registry the request may read. Throws the same 404 for one that is off and for none. */
async function enter(deps: SharedParts, request: Request): Promise<Reader> {
  const { directory, authorizer } = deps
  const [first = ''] = namesInPath(request.url)
  const [name = '', secret, ...rest] = first.split('~')
  const namespace = rest.length > 0 ? undefined : await (await directory.current()).namespace(name)
  const { registry = 'off' } = namespace ?? {}
  const isOpen = registry === 'public' || secret !== undefined
  if (namespace === undefined || registry === 'off' || isOpen) await allowanceOf(request).belongsToStranger() // 429
  if (namespace === undefined || registry === 'off') throw notFound()
  if (secret !== undefined && !(await isLinkSecret(deps, namespace, secret))) throw notFound()
  if (isOpen) return { namespace }
  const context = await authorizer.authenticate(request) // 401, 429
  await authorizer.requireReadOrCall(context, name) // 404, 403
  return { namespace, context }
}

/** The caller, who may list connections. A link is no credential. */
async function requireReader(
  { authorizer }: SharedParts,
  request: Request,
  { namespace: { namespace }, context }: Reader,
): Promise<RequestContext> {
  if (namesInPath(request.url)[0] !== namespace) throw unauthorized()
  const reader = context ?? (await authorizer.authenticate(request))
  await authorizer.requireNamespace(reader, namespace, 'read')
  return reader
}

/** The endpoint and the views, by their positions in the list. */
async function ownEntries(
  { store, clock, base }: SharedParts,
  request: Request,
  of: Namespace,
): Promise<[string, RegistryEntry][]> {
  const { namespace } = of
  const views = await viewsOf(store, request, namespace) // 429
  const all = [
    { view: '', createdAt: createdAtOf(of), server: namespaceServer(base, of) },
    ...views.map((view) => ({ view: view.name, createdAt: view.createdAt, server: viewServer(base, of, view) })),
  ]
  const published = await publishedEntries({ store, clock }, namespace, all)
  return published.map((entry, at) => [`v${all[at]?.view ?? ''}`, entry])
}

/** Milliseconds of an entry that is made and perhaps shown, with its garbage. Past it: as for `ownerTimeShare`. */
const entryMs = 0.006

/** Entries of connections, from the cursor on: as many as fit a page that asks for one more than it shows. */
async function connectionEntries(
  { store, base }: SharedParts,
  context: RequestContext,
  of: Namespace,
  { after, limit, search }: PageQuery,
): Promise<[string, RegistryEntry][]> {
  const found: [string, RegistryEntry][] = []
  const allowance = allowanceOf(context.request)
  const slices = allowance.slices()
  // Without a search, each is found.
  const most = search === undefined ? limit + 1 : connectionsPerRead
  let from = after.startsWith('w') ? successor(after.slice(1)) : ''
  while (found.length <= limit) {
    if (slices.isOver) await slices.next()
    const ids = await connectionIds(store, context, of.namespace, { from, most })
    allowance.spend(ids.length * entryMs)
    for (const id of ids) {
      const entry = connectionEntry(base, of, id)
      if (isFound(entry, search)) found.push([`w${id}`, entry])
    }
    const last = ids.at(-1)
    if (last === undefined || ids.length < most) break
    from = successor(last)
  }
  return found
}

/** An entry of a connection says what its URL says, so it never changes. */
function connectionEntry(base: string, of: Namespace, connectionId: string): RegistryEntry {
  const createdAt = createdAtOf(of)
  const published = { hash: '', changes: 0, publishedAt: createdAt, updatedAt: createdAt }
  return entryOf(connectionServer(base, of.namespace, connectionId), published)
}

/** The entry of the name in the path, and the version after it. */
async function findEntry(deps: SharedParts, request: Request): Promise<[RegistryEntry, string | undefined]> {
  const reader = await enter(deps, request)
  const { namespace } = reader
  refuseQuery(request.url)
  const [, , , ...parts] = namesInPath(request.url)
  const end = parts.lastIndexOf('versions')
  const name = parts.slice(0, end).join('/')
  const own = (await ownEntries(deps, request, namespace)).find(([, { server }]) => server.name === name)
  const found = own?.[1] ?? (await findConnectionEntry(deps, request, reader, name))
  if (found === undefined) throw notFound()
  return [found, parts[end + 1]]
}

/** The entry of a connection; undefined if there is no such name, or no credential. */
async function findConnectionEntry(
  deps: SharedParts,
  request: Request,
  reader: Reader,
  name: string,
): Promise<RegistryEntry | undefined> {
  const { namespace } = reader.namespace
  const start = name.indexOf('/') + namespace.length + 2
  const connectionId = name.endsWith('.connection') ? name.slice(start, -'.connection'.length) : ''
  const entry = connectionEntry(deps.base, reader.namespace, connectionId)
  if (connectionId === '' || entry.server.name !== name || !request.headers.has('authorization')) return undefined
  const context = await requireReader(deps, request, reader)
  await deps.authorizer.requireConnection(context, 'read', { namespace, connectionId })
  return entry
}

function isFound({ server: { name, title, description } }: RegistryEntry, search: string | undefined): boolean {
  return search === undefined || [name, title, description].some((text) => text?.toLowerCase().includes(search))
}

function wantedBy({ search, version, since }: PageQuery): (entry: RegistryEntry) => boolean {
  return (entry) =>
    isFound(entry, search) &&
    (version === undefined || version === 'latest' || entry.server.version === version) &&
    (since === undefined || Date.parse(entry._meta[officialMeta].updatedAt) >= since)
}

/** The whole answer, or 304. The URL may have a secret, which no page that a reader follows a link to should learn. */
function answer(request: Request, body: RegistryPage | RegistryEntry): Response {
  const text = JSON.stringify(body)
  const etag = `"${Bun.SHA256.hash(text, 'base64').slice(0, 22)}"`
  return wholeResponse(request, text, { headers: { ...privateJson, 'referrer-policy': 'no-referrer' }, etag })
}

type PageQuery = ReturnType<typeof readPageQuery>

const held = ['search', 'version', 'include'] as const
const parameters = ['limit', 'cursor', 'updated_since', ...held]

/** A cursor holds these parameters by itself: VS Code sends it without them. Throws `invalid_request`. */
function readPageQuery(url: string) {
  const query = readQuery(url, parameters)
  const cursor = query.get('cursor') || undefined
  const { after, ...kept } = cursor === undefined ? { after: '' } : readCursor(cursor)
  for (const name of held)
    if (cursor !== undefined && query.has(name) && query.get(name) !== kept[name])
      throw invalidRequest(
        `${name}: differs from the request that returned the cursor: leave it out, or begin without cursor`,
      )
  const given = cursor === undefined ? Object.fromEntries(held.map((name) => [name, query.get(name)])) : kept
  const { search, version, include } = given as Partial<Record<(typeof held)[number], string>>
  if (include !== undefined && include !== 'connections')
    throw invalidRequest('include: must be "connections", or left out')
  const since = query.get('updated_since')
  if (since !== undefined && !isDateTime(since))
    throw invalidRequest('updated_since: must be a time like 2026-01-31T08:00:00Z')
  return {
    limit: readInteger(query, 'limit', { least: 1, most: registryPageMax, otherwise: registryPageDefault }),
    ...{ after, version, given, isWithConnections: include !== undefined },
    search: search?.toLowerCase(),
    since: since === undefined ? undefined : Date.parse(since),
  }
}

interface Cursor extends Partial<Record<(typeof held)[number], string>> {
  /** The position of the last entry that was shown. */
  readonly after: string
}

function cursorOf({ given }: PageQuery, after: string): string {
  return Buffer.from(JSON.stringify({ ...given, after })).toString('base64url')
}

function readCursor(cursor: string): Cursor {
  try {
    const read = parseForeign(canonicalBytes(cursor)?.toString() ?? '') as Cursor
    const values = Object.entries(read)
    const isCursor = values.every(
      ([name, value]) => typeof value === 'string' && ['after', ...held].includes(name as 'after'),
    )
    if (isCursor && /^[vw][\w.-]*$/.test(read.after)) return read
  } catch {
    // Not one of ours: as below.
  }
  throw invalidRequest('cursor: not valid; start again without it')
}
