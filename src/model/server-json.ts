/**
 * `server.json`, the official MCP Registry's description of a server (its OpenAPI document of 2025-12-01), and its list
 * of such. Fields that postern does not use are kept as they are.
 */

import { type Static, Type } from '@sinclair/typebox'
import { closedObject, OptionalText, oneOf, openObject } from '../schema/shapes.ts'
import { Slug, UserId } from './names.ts'

const Transport = openObject({ type: Type.String(), url: OptionalText })
const Package = openObject({
  registryType: Type.String(),
  registryBaseUrl: OptionalText,
  identifier: Type.String(),
  version: OptionalText,
  runtimeHint: OptionalText,
  transport: Transport,
})

export const ServerJson = openObject({
  $schema: OptionalText,
  name: Type.String({
    minLength: 3,
    maxLength: 200,
    pattern: '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$',
    errorMessage: 'must be NAMESPACE/NAME: letters, digits, "." and "-", and after the slash "_" too',
  }),
  description: Type.String(),
  version: Type.String({ minLength: 1, maxLength: 255 }),
  title: OptionalText,
  websiteUrl: OptionalText,
  repository: Type.Optional(openObject({ url: OptionalText, source: OptionalText })),
  icons: Type.Optional(Type.Array(openObject({ src: Type.String() }))),
  packages: Type.Optional(Type.Array(Package)),
  remotes: Type.Optional(Type.Array(Transport)),
  _meta: Type.Optional(openObject({})),
})
export type ServerJson = Static<typeof ServerJson>

/** The key of a registry's facts about a version of a server, beyond its `server.json`. */
export const officialMeta = 'io.modelcontextprotocol.registry/official'
const Official = openObject({
  status: oneOf(['active', 'deprecated', 'deleted']),
  publishedAt: Type.String(),
  updatedAt: Type.String(),
  isLatest: Type.Boolean(),
})

export const RegistryEntry = closedObject({ server: ServerJson, _meta: openObject({ [officialMeta]: Official }) })
export type RegistryEntry = Static<typeof RegistryEntry>

/** `servers`: `server.json` documents, lists of them, or pages of a registry. `namespace`: of all of them. */
export const ServersImport = closedObject({
  servers: Type.Array(Type.Unknown()),
  namespace: Type.Optional(Slug),
  owner: Type.Optional(UserId),
})
/** The qualified names, the namespaces that were made, and what was left out: `NAME: reason`. */
export const ServersImported = closedObject({
  servers: Type.Array(Type.String()),
  namespaces: Type.Array(Type.String()),
  leftOut: Type.Array(Type.String()),
})

export const RegistryPage = closedObject({
  servers: Type.Array(RegistryEntry),
  metadata: Type.Object({ count: Type.Integer(), nextCursor: OptionalText }),
})
export type RegistryPage = Static<typeof RegistryPage>
