/** Registered servers as the official MCP Registry describes servers. */

import { createdAtOf } from '../../model/organization.ts'
import type { ServerDetail, ServerListing } from '../../model/server.ts'
import { officialMeta, type RegistryEntry, type ServerJson } from '../../model/server-json.ts'
import { isUrl } from '../../schema/url-host.ts'

/** The first version of all: postern keeps one of each server. */
const onlyVersion = '1.0.0'
const longestText = 100
const longestIconUrl = 255

/** The facts about a server that the registry's lists filter by. `name`: undefined for one that can have none there. */
export function registryFactsOf(listing: ServerListing) {
  const { serverJson } = listing
  return {
    name: serverJson?.name ?? nameFor(listing),
    version: serverJson?.version ?? onlyVersion,
    updatedAt: updatedAtOf(listing),
  }
}

/** A name there has a slash, so a namespace-only server has its namespace twice. */
function nameFor({ qualifiedName }: ServerListing): string | undefined {
  const name = qualifiedName.includes('/') ? qualifiedName : `${qualifiedName}/${qualifiedName}`
  return /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/.test(name) ? name : undefined
}

function updatedAtOf(listing: ServerListing): string {
  return listing.updatedAt ?? createdAtOf(listing)
}

/** Of a server that has a name there. An imported one is shown as it was imported. */
export function registryEntry(listing: ServerListing, detail: ServerDetail): RegistryEntry {
  const times = { publishedAt: createdAtOf(listing), updatedAt: updatedAtOf(listing) }
  return {
    server: listing.serverJson ?? made(listing, detail),
    _meta: { [officialMeta]: { status: 'active', ...times, isLatest: true } },
  }
}

function made(listing: ServerListing, detail: ServerDetail): ServerJson {
  const { homepage, repositoryUrl } = listing
  const { displayName, description, iconUrl, connections } = detail
  const title = shortened(displayName)
  const packages = connections.flatMap((option) =>
    option.type === 'stdio' && option.bundleUrl !== ''
      ? [{ registryType: 'mcpb', identifier: option.bundleUrl, transport: { type: 'stdio' } }]
      : [],
  )
  const remotes = connections.flatMap((option) =>
    option.type === 'http' ? [{ type: 'streamable-http', url: option.deploymentUrl }] : [],
  )
  const source = repositoryUrl === null ? undefined : hostOf(repositoryUrl)
  return {
    name: nameFor(listing) as string,
    // It must not be empty there.
    description: shortened(description) || title,
    title,
    version: onlyVersion,
    ...(homepage !== null && { websiteUrl: homepage }),
    ...(source !== undefined && { repository: { url: repositoryUrl as string, source } }),
    ...(iconUrl?.startsWith('https:') === true && iconUrl.length <= longestIconUrl && { icons: [{ src: iconUrl }] }),
    ...(packages.length > 0 && { packages }),
    ...(remotes.length > 0 && { remotes }),
  }
}

/** A title or description, cut to as many characters as the registry takes. */
export function shortened(text: string): string {
  const characters = [...text]
  return characters.length <= longestText ? text : `${characters.slice(0, longestText - 1).join('')}…`
}

/** `github` for github.com: the registry's word for where a repository is hosted. */
function hostOf(url: string): string | undefined {
  if (!isUrl(url)) return undefined
  const { hostname } = new URL(url)
  return hostname.split('.').at(-2) ?? hostname
}
