/**
 * The fixture format (contract, 11.1): the model's own schemas, with the fields that a fixture may leave out made
 * optional. `fixtures/fixtures.schema.json` is generated from it for editors.
 */

import { type Static, Type } from '@sinclair/typebox'
import { Connection } from '../../model/connection.ts'
import { ConnectionId, QualifiedName, Slug, UserId } from '../../model/names.ts'
import { ApiKeyName, Member, Namespace, Organization } from '../../model/organization.ts'
import { RecordedAnswer } from '../../model/recorded-answer.ts'
import { ServerDetail, ServerWrite } from '../../model/server.ts'
import { FixtureView } from '../../model/view.ts'
import { closedObject } from '../../schema/shapes.ts'

/** An organization with its members. Members have no records of their own in a file. */
export const FixtureOrganization = closedObject({
  ...Organization.properties,
  members: Type.Array(Member),
})

/** An API key with its text. The store keeps a hash only. */
export const FixtureApiKey = closedObject({
  name: Type.Optional(ApiKeyName),
  userId: UserId,
  key: Type.String({ description: 'At least 32 characters, for development only.' }),
  operator: Type.Optional(
    Type.Boolean({ description: 'Has access to everything, and may mint for any organization.' }),
  ),
})

/** A server. The nullable fields and tool descriptions may be left out; `complete.ts` sets them to null. */
export const FixtureServer = closedObject({
  ...ServerDetail.properties,
  ...Type.Pick(Type.Partial(ServerDetail), ['iconUrl', 'deploymentUrl', 'security', 'resources', 'prompts']).properties,
  tools: ServerWrite.properties.tools,
})

/** A connection, with its namespace and its registered server, neither of which is in the public record. */
export const FixtureConnection = closedObject({
  namespace: Slug,
  ...Type.Partial(Connection).properties,
  connectionId: ConnectionId,
  server: Type.Optional(QualifiedName),
})
export type FixtureConnection = Static<typeof FixtureConnection>

/** One fixture file. Every list may be left out; names may refer to records in other files. */
export const FixtureFile = closedObject({
  $schema: Type.Optional(Type.String()),
  organizations: Type.Optional(Type.Array(FixtureOrganization)),
  namespaces: Type.Optional(Type.Array(Namespace)),
  views: Type.Optional(Type.Array(FixtureView)),
  apiKeys: Type.Optional(Type.Array(FixtureApiKey)),
  servers: Type.Optional(Type.Array(FixtureServer)),
  connections: Type.Optional(Type.Array(FixtureConnection)),
  mocks: Type.Optional(Type.Array(RecordedAnswer)),
})
export type FixtureFile = Static<typeof FixtureFile>
