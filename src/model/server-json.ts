/**
 * `server.json`, the official MCP Registry's description of a server (its OpenAPI document of 2025-12-01), and its list
 * of such. Fields that postern does not use are kept as they are.
 */

import { type Static, Type } from '@sinclair/typebox'

const open = { additionalProperties: true } as const

const Transport = Type.Object({ type: Type.String(), url: Type.Optional(Type.String()) }, open)
const Package = Type.Object(
  {
    registryType: Type.String(),
    registryBaseUrl: Type.Optional(Type.String()),
    identifier: Type.String(),
    version: Type.Optional(Type.String()),
    runtimeHint: Type.Optional(Type.String()),
    transport: Transport,
  },
  open,
)

export const ServerJson = Type.Object(
  {
    name: Type.String({
      minLength: 3,
      maxLength: 200,
      pattern: '^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$',
      errorMessage: 'must be NAMESPACE/NAME: letters, digits, "." and "-", and after the slash "_" too',
    }),
    description: Type.String(),
    version: Type.String({ minLength: 1, maxLength: 255 }),
    title: Type.Optional(Type.String()),
    websiteUrl: Type.Optional(Type.String()),
    repository: Type.Optional(
      Type.Object({ url: Type.Optional(Type.String()), source: Type.Optional(Type.String()) }, open),
    ),
    icons: Type.Optional(Type.Array(Type.Object({ src: Type.String() }, open))),
    packages: Type.Optional(Type.Array(Package)),
    remotes: Type.Optional(Type.Array(Transport)),
  },
  open,
)
export type ServerJson = Static<typeof ServerJson>

/** The key of a registry's facts about a version of a server, beyond its `server.json`. */
export const officialMeta = 'io.modelcontextprotocol.registry/official'
const Official = Type.Object(
  {
    status: Type.Union([Type.Literal('active'), Type.Literal('deprecated'), Type.Literal('deleted')]),
    publishedAt: Type.String(),
    updatedAt: Type.String(),
    isLatest: Type.Boolean(),
  },
  open,
)

export const RegistryEntry = Type.Object(
  { server: ServerJson, _meta: Type.Object({ [officialMeta]: Official }, open) },
  { additionalProperties: false },
)
export type RegistryEntry = Static<typeof RegistryEntry>

export const RegistryPage = Type.Object(
  {
    servers: Type.Array(RegistryEntry),
    metadata: Type.Object({ count: Type.Integer(), nextCursor: Type.Optional(Type.String()) }),
  },
  { additionalProperties: false },
)
export type RegistryPage = Static<typeof RegistryPage>
