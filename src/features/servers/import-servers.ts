/**
 * Imports servers that are described by `server.json`: one document, a list of them, or pages of a directory that
 * speaks the official MCP Directory's API (`{servers: [{server, _meta}]}`), the public one for example. Each keeps its
 * name in `/v0.1/servers`. Its qualifiedName is the same, or is in one namespace for all.
 */

import { isPlainUrl } from '../../model/connection.ts'
import { isQualifiedName, namespaceOf } from '../../model/names.ts'
import { extrasOf, isSamePlace, listingOf, noExtras, type ServerDetail } from '../../model/server.ts'
import { officialMeta, ServerJson } from '../../model/server-json.ts'
import { nextTurn } from '../../next-turn.ts'
import { problemText, validatorOf } from '../../schema/check.ts'
import {
  listingEntry,
  namespaceEntry,
  newListingVersions,
  readListing,
  readNamespace,
  readServer,
  serverEntry,
  withIndex,
} from '../../storage/directory-records.ts'
import { changeDirectory } from '../../storage/directory-write.ts'
import { foldedLike, idOfKey, keyOf, listingKey, placeKey, prefixRange } from '../../storage/keys.ts'
import type { Entry, Store } from '../../storage/store.ts'
import { createUsages } from '../../storage/usage.ts'

/** Bytes of a `server.json` that is imported. Past it: it is left out, and the command says so. */
const serverJsonBytesMax = 64 * 1024

const serverShape = validatorOf(ServerJson)

interface ImportOptions {
  /** Of all servers. Without it, each has that of its name. */
  readonly namespace?: string | undefined
  /** The owner of namespaces that are made, where `owner` is left out. */
  readonly userId: string
  /** Of those, and of the namespaces that servers come into. Left out: a `namespace` may belong to anybody. */
  readonly owner?: string | undefined
  readonly now: Date
}

/**
 * `documents`: the values of a file, one or more. Resolves when all are durable, in one write, with qualifiedNames, the
 * namespaces that were made, and the servers that were left out, each with the reason: `NAME: reason`.
 */
export function importServers(store: Store, documents: readonly unknown[], options: ImportOptions) {
  return changeDirectory(store, () => planImport(store, documents, options))
}

/** The write of an import, and what `importServers` resolves with. */
export async function planImport(store: Store, documents: readonly unknown[], options: ImportOptions) {
  const { namespace, userId, now } = options
  const owner = options.owner ?? userId
  const wanted = namespace === undefined ? owner : options.owner
  const { chosen, leftOut } = await chooseVersions(documents)
  const puts: Entry[] = []
  const usages = createUsages()
  const names = new Set<string>()
  /** New namespaces, by their names in small letters. */
  const namespaces = new Map<string, string>()
  for (const one of chosen) {
    // Not a turn of the owner's: everybody who changes the directory waits for the import, and the owner's other work
    // may take seconds.
    await nextTurn()
    const place = await placeOf(store, qualifiedNameOf(one.json.name, namespace))
    const problem = await refusalOf(store, one, place, { names, namespaces, owner: wanted })
    if (problem !== undefined) {
      leftOut.push(`${one.json.name}: ${problem}`)
      continue
    }
    const { qualifiedName, stored, storedListing } = place
    if (place.isNew) namespaces.set(place.namespace.toLowerCase(), place.namespace)
    const entries = entriesOf(one, place, now)
    for (const entry of entries) usages.add(entry)
    usages.remove(keyOf('server', qualifiedName), stored)
    usages.remove(listingKey(qualifiedName), storedListing)
    puts.push(...entries)
    names.add(qualifiedName)
  }
  for (const name of namespaces.values())
    puts.push(...withIndex(namespaceEntry({ namespace: name, userId: owner, createdAt: now.toISOString() })))
  const servers = [...names]
  const result = { servers, namespaces: [...namespaces.values()], leftOut }
  if (servers.length === 0) return { result }
  return { write: { puts: [...puts, ...newListingVersions(servers)], counts: usages.counts() }, result }
}

interface Chosen {
  readonly json: ServerJson
  readonly publishedAt: string | undefined
}

/** One version of each server, and why others are left out. */
async function chooseVersions(documents: readonly unknown[]) {
  const leftOut: string[] = []
  const chosen = new Map<string, Chosen>()
  const given = serversIn(documents).map(givenBy)
  const deleted = new Set(given.filter(({ isLatest, isActive }) => isLatest && !isActive).map(nameOf))
  for (const name of deleted) leftOut.push(`${name}: it was deleted`)
  for (const one of given) {
    await nextTurn()
    const name = nameOf(one)
    // An older version does not stand for a server whose latest is deleted.
    if (deleted.has(name) || !one.isActive) continue
    const { server, isLatest, publishedAt } = one
    const reason = denialReason(server)
    if (reason !== undefined) leftOut.push(`${name}: ${reason}`)
    // Of several versions the latest; where none is said to be, the last one given.
    else if (isLatest || !chosen.has(name)) chosen.set(name, { json: server as ServerJson, publishedAt })
  }
  return { chosen: [...chosen.values()], leftOut }
}

type Place = Awaited<ReturnType<typeof placeOf>>

/** Where a server is imported to, what is there, and the `owner` of the namespace. `isNew`: there is no namespace. */
async function placeOf(store: Store, qualifiedName: string) {
  const namespace = namespaceOf(qualifiedName)
  const keys = [keyOf('namespace', namespace), keyOf('server', qualifiedName), listingKey(qualifiedName)]
  const [holder, stored, storedListing] = await store.getMany(keys)
  const kept = storedListing === undefined ? undefined : extrasOf(readListing(storedListing))
  const found = holder && readNamespace(holder)
  const owner = found && ('organizationId' in found ? found.organizationId : found.userId)
  return { qualifiedName, namespace, isNew: holder === undefined, owner, stored, storedListing, kept }
}

interface Before {
  readonly names: ReadonlySet<string>
  readonly namespaces: ReadonlyMap<string, string>
  /** Of the import: the owner of a namespace may send its servers elsewhere. Undefined: anybody. */
  readonly owner: string | undefined
}

/** Undefined if nothing is against the import of a server. */
async function refusalOf(
  store: Store,
  { json }: Chosen,
  { qualifiedName, namespace, isNew, owner, stored, kept }: Place,
  { names, namespaces, owner: wanted }: Before,
): Promise<string | undefined> {
  if (!isQualifiedName(qualifiedName)) return `${qualifiedName} cannot be the name of a server here`
  if (!isNew && wanted !== undefined && owner !== wanted)
    return `the namespace ${namespace} belongs to ${owner}: choose another --namespace, or name ${owner} as the --owner`
  const fixture = await store.get(placeKey(keyOf('server', qualifiedName)))
  if (fixture !== undefined) return `a fixture defines ${qualifiedName} (${Buffer.from(fixture)}): change it there`
  if (stored !== undefined && kept?.serverJson === undefined)
    return `${qualifiedName} exists and was not imported: delete it first, or choose another --namespace`
  if (kept?.serverJson !== undefined && kept.serverJson.name !== json.name)
    return `${qualifiedName} was imported as ${kept.serverJson.name}: delete it first, or choose another --namespace`
  if (names.has(qualifiedName)) return `${qualifiedName} is the name of another server in the file`
  if ((await store.get(keyOf('deletingNamespace', namespace))) !== undefined)
    return `the namespace ${namespace} is being deleted`
  const like = isNew ? await nameLike(store, namespace, namespaces) : undefined
  if (like !== undefined)
    return `the name of the namespace ${namespace} differs too little from ${like}: choose another with --namespace`
  return undefined
}

function entriesOf({ json, publishedAt }: Chosen, { qualifiedName, stored, kept }: Place, now: Date): Entry[] {
  const before = stored === undefined ? undefined : readServer(stored)
  const imported = detailOf(qualifiedName, json)
  const isKnown = before !== undefined && isSamePlace(before, imported)
  // A server.json does not list a server's tools, resources and prompts: the import keeps the stored ones.
  const detail = isKnown ? { ...before, ...imported } : { ...imported, ...nothingIntrospected }
  const updatedAt = now.toISOString()
  const extras = {
    ...noExtras,
    ...kept,
    verified: kept?.verified === true && isKnown,
    createdAt: publishedAt ?? kept?.createdAt ?? updatedAt,
    updatedAt,
    homepage: urlOrNull(json.websiteUrl),
    repositoryUrl: urlOrNull(json.repository?.url),
    serverJson: json,
  }
  return [serverEntry(detail), listingEntry(listingOf(detail, extras))]
}

/** The servers in a document, whichever of the forms it has. */
export function serversIn(document: unknown): unknown[] {
  if (Array.isArray(document)) return document.flatMap(serversIn)
  const { servers } = (document ?? {}) as { readonly servers?: unknown }
  return Array.isArray(servers) ? servers.flatMap(serversIn) : [document]
}

/** A version of a server, as a directory lists it. */
function givenBy(listed: unknown) {
  const { server, _meta } = (listed ?? {}) as Record<string, unknown>
  const meta = (_meta as Record<string, unknown> | undefined)?.[officialMeta] as Record<string, unknown> | undefined
  const publishedAt = meta?.['publishedAt']
  return {
    server: server ?? listed,
    isLatest: meta?.['isLatest'] !== false,
    isActive: meta?.['status'] !== 'deleted',
    publishedAt: typeof publishedAt === 'string' ? timeOf(publishedAt) : undefined,
  }
}

/** In the one form that the platform shows. */
function timeOf(text: string): string | undefined {
  const ms = Date.parse(text)
  const time = Number.isNaN(ms) ? '' : new Date(ms).toISOString()
  // Years of more digits are no RFC 3339.
  return /^\d{4}-/.test(time) ? time : undefined
}

function nameOf({ server }: { readonly server: unknown }): string {
  const name = (server as { name?: unknown } | null)?.name
  return typeof name === 'string' ? name.slice(0, 200) : 'a server without a name'
}

function denialReason(server: unknown): string | undefined {
  if (!serverShape.isValid(server)) return problemText(serverShape.firstProblem(server))
  const bytes = Buffer.byteLength(JSON.stringify(server))
  return bytes > serverJsonBytesMax ? `has ${bytes} bytes; at most ${serverJsonBytesMax} are kept` : undefined
}

/** Another namespace whose name differs in small and capital letters alone. */
async function nameLike(store: Store, name: string, others: ReadonlyMap<string, string>): Promise<string | undefined> {
  const small = name.toLowerCase()
  const other = others.get(small)
  if (other !== undefined) return other === name ? undefined : other
  if (small !== name && (await store.get(keyOf('namespace', small))) !== undefined) return small
  const prefix = foldedLike(name)
  const { keys } = await store.keys({ ...prefixRange(prefix), limit: 1 })
  return keys[0] === undefined ? undefined : idOfKey(prefix, keys[0])
}

function qualifiedNameOf(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}/${name.replace('/', '.')}`
}

const nothingIntrospected = { security: null, tools: null, resources: null, prompts: null }

function detailOf(qualifiedName: string, json: ServerJson): Omit<ServerDetail, keyof typeof nothingIntrospected> {
  const { name, title, description, icons, remotes = [], packages = [] } = json
  const urls = remotes.flatMap(({ type, url }) =>
    type === 'streamable-http' && url !== undefined && canBeReached(url) ? [url] : [],
  )
  return {
    qualifiedName,
    displayName: title ?? name.slice(name.indexOf('/') + 1),
    description,
    iconUrl: icons?.[0]?.src ?? null,
    remote: remotes.length > 0,
    deploymentUrl: urls[0] ?? null,
    connections: [
      ...urls.map((deploymentUrl) => ({ type: 'http' as const, deploymentUrl, configSchema: {} })),
      ...packages.map(({ registryType, identifier }) => ({
        type: 'stdio' as const,
        bundleUrl: identifier,
        runtime: runtimes[registryType] ?? ('binary' as const),
        configSchema: {},
      })),
    ],
  }
}

const runtimes: Readonly<Record<string, 'node' | 'python'>> = { npm: 'node', pypi: 'python' }

/** Not a template: a connection can be made to it as it is. */
function canBeReached(url: string): boolean {
  return /^https?:\/\/[^\s{}]+$/.test(url) && isPlainUrl(url)
}

function urlOrNull(text = ''): string | null {
  return /^https?:\/\/\S+$/.test(text) ? text : null
}
