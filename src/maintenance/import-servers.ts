/**
 * Imports servers that are described by `server.json`: one document, a list of them, or pages of a directory that
 * speaks the official MCP Directory's API (`{servers: [{server, _meta}]}`), the public one for example. Each keeps its
 * name in `/v0.1/servers`. Its qualifiedName is the same, or is in one namespace for all.
 */

import { urlProblem } from '../model/connection.ts'
import { isSlug, namespaceOf } from '../model/names.ts'
import type { Namespace } from '../model/organization.ts'
import { extrasOf, isSamePlace, type ListingExtras, listingOf, noExtras, type ServerDetail } from '../model/server.ts'
import { officialMeta, ServerJson } from '../model/server-json.ts'
import { problemText, validatorOf } from '../schema/check.ts'
import {
  listingEntry,
  namespaceEntry,
  newListingVersions,
  readListing,
  readServer,
  serverEntry,
  withIndex,
} from '../storage/directory-records.ts'
import { changeDirectory } from '../storage/directory-write.ts'
import {
  deletingKey,
  foldedLike,
  idOfKey,
  listingKey,
  namespaceKey,
  placeKey,
  prefixRange,
  serverKey,
} from '../storage/keys.ts'
import type { Entry, Store } from '../storage/store.ts'
import { createUsages } from '../storage/usage.ts'

/** Bytes of a `server.json` that is imported. Past it: it is left out, and the command says so. */
const serverJsonBytesMax = 64 * 1024

const serverShape = validatorOf(ServerJson)

export interface ServerImportOptions {
  /** The namespace of all; without it each has that of its name. */
  readonly namespace?: string
  /** The owner of namespaces that are made. */
  readonly userId: string
  readonly now: Date
}

export interface ServersImported {
  /** qualifiedNames. */
  readonly servers: readonly string[]
  /** Those that were made. */
  readonly namespaces: readonly string[]
  /** The servers that were left out, each with the reason: `NAME: reason`. */
  readonly leftOut: readonly string[]
}

/** A version of a server, as a directory lists it. */
interface Given {
  readonly server: unknown
  readonly isLatest: boolean
  readonly isActive: boolean
  readonly publishedAt: string | undefined
}

/** `documents`: the values of a file, one or more. Resolves when all are durable, in one write. */
export async function importServers(
  store: Store,
  documents: readonly unknown[],
  { namespace, userId, now }: ServerImportOptions,
): Promise<ServersImported> {
  const leftOut: string[] = []
  const chosen = new Map<string, { readonly json: ServerJson; readonly publishedAt: string | undefined }>()
  const given = documents.flatMap(givenIn)
  const deleted = new Set(given.filter(({ isLatest, isActive }) => isLatest && !isActive).map(nameOf))
  for (const name of deleted) leftOut.push(`${name}: it was deleted`)
  for (const one of given) {
    const name = nameOf(one)
    // An older version does not stand for a server whose latest is deleted.
    if (deleted.has(name) || !one.isActive) continue
    const { server, isLatest, publishedAt } = one
    const reason = denialReason(server)
    if (reason !== undefined) leftOut.push(`${name}: ${reason}`)
    // Of several versions the latest; where none is said to be, the last one given.
    else if (isLatest || !chosen.has(name)) chosen.set(name, { json: server as ServerJson, publishedAt })
  }
  return changeDirectory(store, async () => {
    const puts: Entry[] = []
    const usages = createUsages()
    const names: string[] = []
    const taken = new Set<string>()
    /** New namespaces, by their names in small letters. */
    const namespaces = new Map<string, string>()
    const problems = [...leftOut]
    for (const { json, publishedAt } of chosen.values()) {
      const qualifiedName = qualifiedNameOf(json.name, namespace)
      const first = namespaceOf(qualifiedName)
      const isNew = (await store.get(namespaceKey(first))) === undefined
      const like = isNew ? await nameLike(store, first, namespaces) : undefined
      const fixture = await store.get(placeKey(serverKey(qualifiedName)))
      const [stored, storedListing] = await store.getMany([serverKey(qualifiedName), listingKey(qualifiedName)])
      const kept = storedListing === undefined ? undefined : extrasOf(readListing(storedListing))
      if (!isQualified(qualifiedName))
        problems.push(`${json.name}: ${qualifiedName} cannot be the name of a server here`)
      else if (fixture !== undefined) problems.push(`${json.name}: a fixture brings it (${Buffer.from(fixture)})`)
      else if (stored !== undefined && kept?.serverJson === undefined)
        problems.push(
          `${json.name}: ${qualifiedName} was registered here: delete it first, or choose another --namespace`,
        )
      else if (kept?.serverJson !== undefined && kept.serverJson.name !== json.name)
        problems.push(
          `${json.name}: ${qualifiedName} is ${kept.serverJson.name} here: delete that first, or choose another --namespace`,
        )
      else if (taken.has(qualifiedName))
        problems.push(`${json.name}: ${qualifiedName} is the name of another server in the file`)
      else if ((await store.get(deletingKey(first))) !== undefined)
        problems.push(`${json.name}: the namespace ${first} is being deleted`)
      else if (like !== undefined)
        problems.push(`${json.name}: the namespace ${first} would be too like ${like}: choose one with --namespace`)
      else {
        if (isNew) namespaces.set(first.toLowerCase(), first)
        const before = stored === undefined ? undefined : readServer(stored)
        const imported = detailOf(qualifiedName, json)
        const isKnown = before !== undefined && isSamePlace(before, imported)
        // A server.json does not list a server's tools, resources and prompts: the import keeps the stored ones.
        const detail = isKnown ? { ...before, ...imported } : { ...imported, ...nothingIntrospected }
        const said = extrasOfImport(json, publishedAt ?? kept?.createdAt, now)
        const extras = { ...noExtras, ...kept, verified: kept?.verified === true && isKnown, ...said }
        const entries = [serverEntry(detail), listingEntry(listingOf(detail, extras))]
        for (const entry of entries) usages.add(entry)
        usages.remove(serverKey(qualifiedName), stored)
        usages.remove(listingKey(qualifiedName), storedListing)
        puts.push(...entries)
        names.push(qualifiedName)
        taken.add(qualifiedName)
      }
    }
    for (const name of namespaces.values()) {
      const made: Namespace = { namespace: name, userId, createdAt: now.toISOString() }
      puts.push(...withIndex(namespaceEntry(made)))
    }
    const result = { servers: names, namespaces: [...namespaces.values()], leftOut: problems }
    if (names.length === 0) return { result }
    return { write: { puts: [...puts, ...newListingVersions(names)], counts: usages.counts() }, result }
  })
}

/** The servers in a document, whichever of the forms it has. */
function givenIn(document: unknown): Given[] {
  if (Array.isArray(document)) return document.flatMap(givenIn)
  const { servers, server, _meta } = (document ?? {}) as Record<string, unknown>
  if (Array.isArray(servers)) return servers.flatMap(givenIn)
  const meta = (_meta as Record<string, unknown> | undefined)?.[officialMeta] as Record<string, unknown> | undefined
  const publishedAt = meta?.['publishedAt']
  return [
    {
      server: server ?? document,
      isLatest: meta?.['isLatest'] !== false,
      isActive: meta?.['status'] !== 'deleted',
      publishedAt: typeof publishedAt === 'string' ? timeOf(publishedAt) : undefined,
    },
  ]
}

/** In the one form that the platform shows. */
function timeOf(text: string): string | undefined {
  const ms = Date.parse(text)
  const time = Number.isNaN(ms) ? '' : new Date(ms).toISOString()
  // Years of more digits are no RFC 3339.
  return /^\d{4}-/.test(time) ? time : undefined
}

function nameOf({ server }: Given): string {
  const name = (server as { name?: unknown } | null)?.name
  return typeof name === 'string' ? name.slice(0, 200) : 'a server without a name'
}

function denialReason(server: unknown): string | undefined {
  if (!serverShape.isValid(server)) {
    return problemText(serverShape.firstProblem(server))
  }
  const bytes = Buffer.byteLength(JSON.stringify(server))
  return bytes > serverJsonBytesMax ? `has ${bytes} bytes; at most ${serverJsonBytesMax} are kept` : undefined
}

/** Another namespace whose name differs in small and capital letters alone. */
async function nameLike(store: Store, name: string, others: ReadonlyMap<string, string>): Promise<string | undefined> {
  const other = others.get(name.toLowerCase())
  if (other !== undefined) return other === name ? undefined : other
  const small = name.toLowerCase()
  if (small !== name && (await store.get(namespaceKey(small))) !== undefined) return small
  const prefix = foldedLike(name)
  const { keys } = await store.keys({ ...prefixRange(prefix), limit: 1 })
  return keys[0] === undefined ? undefined : idOfKey(prefix, keys[0])
}

function qualifiedNameOf(name: string, namespace: string | undefined): string {
  return namespace === undefined ? name : `${namespace}/${name.replace('/', '.')}`
}

function isQualified(name: string): boolean {
  return name.split('/').every(isSlug)
}

const nothingIntrospected = { security: null, tools: null, resources: null, prompts: null }

function detailOf(qualifiedName: string, json: ServerJson): Omit<ServerDetail, keyof typeof nothingIntrospected> {
  const { name, title, description, icons, remotes = [], packages = [] } = json
  const urls = remotes.flatMap(({ type, url }) =>
    type === 'streamable-http' && url !== undefined && isPlainUrl(url) ? [url] : [],
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
function isPlainUrl(url: string): boolean {
  return /^https?:\/\/[^\s{}]+$/.test(url) && urlProblem(url) === undefined
}

/** The fields that an import states itself; the rest stays as it was. */
function extrasOfImport(json: ServerJson, createdAt: string | undefined, now: Date): Partial<ListingExtras> {
  const isUrl = (text: string | undefined) => text !== undefined && /^https?:\/\/\S+$/.test(text)
  const { websiteUrl, repository } = json
  return {
    createdAt: createdAt ?? now.toISOString(),
    updatedAt: now.toISOString(),
    homepage: isUrl(websiteUrl) ? (websiteUrl as string) : null,
    repositoryUrl: isUrl(repository?.url) ? (repository?.url as string) : null,
    serverJson: json,
  }
}
