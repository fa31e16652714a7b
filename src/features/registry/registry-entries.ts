/** The entries of a namespace's registry: its endpoint, its views, and its connections (contract, 20.13). */

import type { Namespace } from '../../model/organization.ts'
import type { PublishedEntry } from '../../model/registry.ts'
import { officialMeta, type RegistryEntry, type ServerJson } from '../../model/server-json.ts'
import type { View } from '../../model/view.ts'
import { shortened } from '../servers/to-server-json.ts'

const schema = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'
const publisherMeta = 'io.modelcontextprotocol.registry/publisher-provided'

/** A server without its version. */
export type Unversioned = Omit<ServerJson, 'version'>

/** `base`: the base URL without a slash at its end. */
export function namespaceServer(base: string, { namespace, title, description }: Namespace): Unversioned {
  return serverOf(base, namespace, { title: title ?? namespace, description, place: [namespace, 'mcp'] })
}

export function viewServer(base: string, of: Namespace, { name, title, description }: View): Unversioned {
  const { namespace } = of
  const place = [namespace, 'mcp', name]
  return serverOf(base, `${namespace}.${name}`, {
    ...{ title: title ?? `${of.title ?? namespace}, ${name}`, description: description ?? of.description, place },
  })
}

/** It says what its URL says, so it never changes. */
export function connectionServer(base: string, namespace: string, connectionId: string): Unversioned {
  const description = `The connection ${connectionId} of ${namespace}.`
  const place = [namespace, connectionId, 'mcp']
  return serverOf(base, `${namespace}.${connectionId}.connection`, { title: connectionId, description, place })
}

interface Told {
  readonly title: string
  readonly description: string | null | undefined
  readonly place: readonly string[]
}

function serverOf(base: string, name: string, { title, description, place }: Told): Unversioned {
  const text = description ?? `Tools of ${place[0]} through one endpoint.`
  const readme = `# ${title}\n\n${text}\n\nYou sign in when your client first connects.\n`
  return {
    ...{
      $schema: schema,
      name: `${reversedHost(base)}/${name}`,
      title: shortened(title),
      description: shortened(text),
    },
    remotes: [{ type: 'streamable-http', url: `${base}/connect/${place.join('/')}` }],
    _meta: { [publisherMeta]: { github: { readme } } },
  }
}

/** The host of the base URL with its labels in reverse; `local` for an address. */
function reversedHost(base: string): string {
  const { hostname } = new URL(base)
  return /^[\d.]+$|^\[/.test(hostname) ? 'local' : hostname.split('.').reverse().join('.')
}

export function entryOf(server: Unversioned, { changes, publishedAt, updatedAt }: PublishedEntry): RegistryEntry {
  const { $schema, name, title, description, ...rest } = server
  return {
    server: { $schema, name, title, description, version: `1.0.${changes}`, ...rest } as ServerJson,
    _meta: { [officialMeta]: { status: 'active', isLatest: true, publishedAt, updatedAt } },
  }
}
