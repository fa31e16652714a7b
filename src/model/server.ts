/** The details of a registered server (spec 2.7 to 2.11; contract, 9.1). */

import { isDeepStrictEqual } from 'node:util'
import { type Static, type TObject, Type } from '@sinclair/typebox'
import { searchedCharsMax, urlCharsMax } from '../limits.ts'
import type { Problem } from '../schema/check.ts'
import { cutText } from '../schema/cut-text.ts'
import { closedObject, nullable, OptionalText, oneOf, openObject } from '../schema/shapes.ts'
import { Url } from './connection.ts'
import { QualifiedName, Slug } from './names.ts'
import { Pagination } from './organization.ts'
import { ServerJson } from './server-json.ts'

/** Ours: characters of a server's license. Past it: 400. */
const serverLicenseCharsMax = 200
/** Ours: characters of a server's display name. Past it: 400. */
export const serverNameCharsMax = 200
/** Ours: characters of a server's description. Past it: 400. */
export const serverDescriptionCharsMax = 10_000

/** A server's own JSON Schema: any object, passed through unchanged. */
const JsonSchema = Type.Record(Type.String(), Type.Unknown())

export const ConnectionOption = Type.Union([
  closedObject({
    type: Type.Literal('stdio'),
    bundleUrl: Type.String(),
    runtime: oneOf(['node', 'python', 'binary', 'bun']),
    configSchema: JsonSchema,
  }),
  closedObject({ type: Type.Literal('http'), deploymentUrl: Url, configSchema: JsonSchema }),
])

export const Tool = closedObject({
  name: Type.String({ minLength: 1 }),
  description: nullable(Type.String()),
  inputSchema: openObject({ type: Type.Literal('object') }),
  outputSchema: Type.Optional(openObject({ type: Type.Literal('object') })),
})

export const Resource = closedObject({
  name: Type.String(),
  uri: Type.String(),
  description: OptionalText,
  mimeType: OptionalText,
})

export const PromptArgument = closedObject({
  name: Type.String(),
  description: OptionalText,
  required: Type.Optional(Type.Boolean()),
})

export const Prompt = closedObject({
  name: Type.String({ minLength: 1 }),
  description: OptionalText,
  arguments: Type.Optional(Type.Array(PromptArgument)),
})

/** Every field is always present; nullable ones may be null. */
export const ServerDetail = closedObject({
  qualifiedName: QualifiedName,
  displayName: Type.String(),
  description: Type.String(),
  iconUrl: nullable(Type.String()),
  remote: Type.Boolean(),
  deploymentUrl: nullable(Url),
  connections: Type.Array(ConnectionOption),
  security: nullable(closedObject({ scanPassed: Type.Boolean() })),
  tools: nullable(Type.Array(Tool)),
  resources: nullable(Type.Array(Resource)),
  prompts: nullable(Type.Array(Prompt)),
})
export type ServerDetail = Static<typeof ServerDetail>

const text = (max: number) => Type.String({ maxLength: max })

/** The fields that a listing has of its own, beyond those of the details. */
export const ListingExtras = closedObject({
  createdAt: OptionalText,
  verified: Type.Boolean(),
  /** Listed only for those who may access its namespace. */
  unlisted: Type.Boolean(),
  homepage: nullable(text(urlCharsMax)),
  repositoryUrl: nullable(text(urlCharsMax)),
  backlinkUrl: nullable(text(urlCharsMax)),
  license: nullable(text(serverLicenseCharsMax)),
  /** The time of the last write. */
  updatedAt: OptionalText,
  /** The `server.json` that it was imported from, if it was. */
  serverJson: Type.Optional(ServerJson),
  /** The last one (`features/servers/releases.ts`). */
  release: Type.Optional(closedObject({ id: Type.String(), createdAt: Type.String(), upstreamUrl: Type.String() })),
})
export type ListingExtras = Static<typeof ListingExtras>

const CopiedDetails = Type.Pick(ServerDetail, ['qualifiedName', 'displayName', 'description', 'iconUrl', 'remote'])

/** The fields of a server that lists and search know. Those of the details are copied from there. */
export const ServerListing = closedObject({
  ...CopiedDetails.properties,
  /** It has an http option. */
  isDeployed: Type.Boolean(),
  /** The names of its tools. */
  tools: Type.Array(Type.String()),
  ...ListingExtras.properties,
})
export type ServerListing = Static<typeof ServerListing>

/** A server in a list (contract, 9.3). */
export const ServerItem = closedObject({
  id: Type.String({ format: 'uuid' }),
  qualifiedName: QualifiedName,
  namespace: Slug,
  /** Null for a namespace-only server. */
  slug: nullable(Slug),
  ...Type.Pick(ServerListing, ['displayName', 'description', 'iconUrl', 'verified', 'remote', 'isDeployed']).properties,
  useCount: Type.Integer(),
  createdAt: Type.String({ format: 'date-time' }),
  homepage: Type.String(),
  bySmithery: Type.Literal(false),
  /** Null unless the caller may access the namespace. */
  owner: nullable(Type.String()),
  /** Null unless it was found by words. */
  score: nullable(Type.Number()),
})
export type ServerItem = Static<typeof ServerItem>
export const ServerPage = closedObject({ servers: Type.Array(Type.Partial(ServerItem)), pagination: Pagination })

export const noExtras: ListingExtras = {
  verified: false,
  unlisted: false,
  homepage: null,
  repositoryUrl: null,
  backlinkUrl: null,
  license: null,
}

/** The fields of a value that a schema has, in the schema's order. */
export function fieldsOf<S extends TObject, T extends object>(schema: S, value: T): Pick<T, keyof T & keyof Static<S>> {
  const names = Object.keys(schema.properties) as (keyof T & keyof Static<S>)[]
  const fields = names.flatMap((name) => (value[name] === undefined ? [] : [[name, value[name]]]))
  return Object.fromEntries(fields) as Pick<T, keyof T & keyof Static<S>>
}

/** In one order, so that what is the same has the same bytes. */
export function extrasOf(listing: ListingExtras): ListingExtras {
  return fieldsOf(ListingExtras, listing)
}

export function listingOf(detail: ServerDetail, extras: ListingExtras): ServerListing {
  return {
    ...fieldsOf(CopiedDetails, detail),
    isDeployed: detail.connections.some(({ type }) => type === 'http'),
    tools: searchedNames(detail.tools?.map(({ name }) => name) ?? []),
    ...extrasOf(extras),
  }
}

/** The first of the names, as many as are searched. */
function searchedNames(names: readonly string[]): string[] {
  let left = searchedCharsMax
  const found: string[] = []
  for (const name of names) {
    if (left <= 0) break
    found.push(cutText(name, left))
    left -= name.length
  }
  return found
}

type Place = Pick<ServerDetail, 'deploymentUrl' | 'connections'>

/** Whether a server can be reached, or run, as before: facts that it stated, or an operator verified, still hold. */
export function isSamePlace(before: Place, after: Place): boolean {
  return before.deploymentUrl === after.deploymentUrl && isDeepStrictEqual(before.connections, after.connections)
}

/** The second of two tools with the same name, or undefined. */
export function sameNameProblem(tools: readonly { readonly name: string }[] | null): Problem | undefined {
  const names = new Set<string>()
  for (const [index, { name }] of (tools ?? []).entries()) {
    if (names.has(name)) return { place: `tools[${index}].name`, message: 'is given twice' }
    names.add(name)
  }
  return undefined
}

const displayName = Type.String({ minLength: 1, maxLength: serverNameCharsMax })
const description = Type.String({ maxLength: serverDescriptionCharsMax })
const link = nullable(Url)

/** The fields of a server that its people write (contract, 9.6). */
const written = {
  displayName: Type.Optional(displayName),
  description: Type.Optional(description),
  iconUrl: Type.Optional(link),
  homepage: Type.Optional(link),
  repositoryUrl: Type.Optional(link),
  backlinkUrl: Type.Optional(link),
  license: Type.Optional(nullable(text(serverLicenseCharsMax))),
  unlisted: Type.Optional(Type.Boolean()),
}
const optionalTool = closedObject({ ...Tool.properties, description: Type.Optional(Tool.properties.description) })
const Parts = Type.Pick(ServerDetail, ['remote', 'deploymentUrl', 'connections', 'tools', 'resources', 'prompts'])
const details = {
  ...Type.Partial(Parts).properties,
  tools: Type.Optional(nullable(Type.Array(optionalTool))),
}

/** The body of `PUT`: fields that are left out stay. `mcpUrl` takes the place of the details. */
export const ServerWrite = closedObject({ ...written, mcpUrl: Type.Optional(Url), ...details })
export type ServerWrite = Static<typeof ServerWrite>

/** The body of `PATCH`. `verified` is set by operators alone. */
export const ServerChange = closedObject({ ...written, verified: Type.Optional(Type.Boolean()) })
export type ServerChange = Static<typeof ServerChange>

const named = { namespace: Slug, server: Type.String() }
export const ServerMade = closedObject({
  ...named,
  displayName: Type.String(),
  description: Type.String(),
  createdAt: Type.String({ format: 'date-time' }),
  /** The facts that postern could not learn from the server at `mcpUrl`. */
  warnings: Type.Optional(Type.Array(Type.String())),
})
export type ServerMade = Static<typeof ServerMade>
export const ServerChanged = closedObject({ success: Type.Literal(true), ...named })
export type ServerChanged = Static<typeof ServerChanged>

/** The payload of a release (contract, 9.10). Other types would be built and hosted. Fields for scans are ignored. */
export const ReleasePayload = openObject({
  type: Type.Literal('external', { errorMessage: 'must be "external"; nothing is built or hosted here' }),
  upstreamUrl: Url,
  configSchema: Type.Optional(JsonSchema),
})
export type ReleasePayload = Static<typeof ReleasePayload>
export const ReleaseMade = closedObject({
  deploymentId: Type.String(),
  status: Type.Literal('SUCCESS'),
  mcpUrl: Url,
  warnings: Type.Optional(Type.Array(Type.String())),
})
export type ReleaseMade = Static<typeof ReleaseMade>
export const Release = closedObject({
  id: Type.String(),
  status: Type.Literal('SUCCESS'),
  type: Type.Literal('external'),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  mcpUrl: Url,
  upstreamUrl: Url,
})
export type Release = Static<typeof Release>
