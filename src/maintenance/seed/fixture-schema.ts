/**
 * The fixture format (contract 7): the model's own schemas, with the fields that a fixture may leave out made optional.
 * `fixtures/fixtures.schema.json` is generated from it for editors.
 */

import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Connection, connectionName, Url } from '../../model/connection.ts'
import { ConnectionId, QualifiedName, Slug, UserId } from '../../model/names.ts'
import { ApiKeyName, Namespace, Organization, Role } from '../../model/organization.ts'
import { RecordedAnswer } from '../../model/recorded-answer.ts'
import { ServerDetail, Tool } from '../../model/server.ts'

const closed = { additionalProperties: false } as const

function optional<T extends TSchema>(schema: T) {
  return Type.Optional(schema)
}

/** An organization with its members. Members have no records of their own in a file. */
export const FixtureOrganization = Type.Object(
  {
    ...Organization.properties,
    members: Type.Array(Type.Object({ userId: UserId, role: Role }, closed)),
  },
  closed,
)

/** An API key with its text. The store keeps a hash only. */
export const FixtureApiKey = Type.Object(
  {
    name: optional(ApiKeyName),
    userId: UserId,
    key: Type.String({ description: 'At least 32 characters, for development only.' }),
    operator: optional(Type.Boolean({ description: 'Reaches everything and may mint for any organization.' })),
  },
  closed,
)

const { iconUrl, deploymentUrl, security, resources, prompts, ...requiredOfServer } = ServerDetail.properties
const { tools: _tools, ...requiredWithoutTools } = requiredOfServer

/** A server. The nullable fields and tool descriptions may be left out; `complete.ts` sets them to null. */
export const FixtureServer = Type.Object(
  {
    ...requiredWithoutTools,
    iconUrl: optional(iconUrl),
    deploymentUrl: optional(deploymentUrl),
    security: optional(security),
    tools: optional(
      Type.Union([
        Type.Array(Type.Object({ ...Tool.properties, description: optional(Tool.properties.description) }, closed)),
        Type.Null(),
      ]),
    ),
    resources: optional(resources),
    prompts: optional(prompts),
  },
  closed,
)

const { transport, mock, iconUrl: connectionIcon, serverInfo, metadata, createdAt, status } = Connection.properties

/**
 * A connection, with its namespace and the registered server that it belongs to, neither of which is in the public
 * record.
 */
export const FixtureConnection = Type.Object(
  {
    namespace: Slug,
    connectionId: ConnectionId,
    name: optional(connectionName),
    mcpUrl: optional(Type.Union([Url, Type.Null()])),
    metadata: optional(metadata),
    transport: optional(transport),
    mock: mock,
    iconUrl: connectionIcon,
    createdAt: optional(createdAt),
    status: optional(status),
    serverInfo: serverInfo,
    server: optional(QualifiedName),
  },
  closed,
)
export type FixtureConnection = Static<typeof FixtureConnection>

/** One fixture file. Every list may be left out; names may refer to records in other files. */
export const FixtureFile = Type.Object(
  {
    $schema: optional(Type.String()),
    organizations: optional(Type.Array(FixtureOrganization)),
    namespaces: optional(Type.Array(Namespace)),
    apiKeys: optional(Type.Array(FixtureApiKey)),
    servers: optional(Type.Array(FixtureServer)),
    connections: optional(Type.Array(FixtureConnection)),
    mocks: optional(Type.Array(RecordedAnswer)),
  },
  closed,
)
export type FixtureFile = Static<typeof FixtureFile>
