/**
 * The export format: one JSON object a line for each record, its schema, and the store entries that it stands for. Not
 * exported: secrets (sealed headers, signing keys) and what is derived from records (index, versions, usages,
 * manifest).
 */

import { type Static, type TSchema, Type } from '@sinclair/typebox'
import { Connection } from '../model/connection.ts'
import { OrganizationId, QualifiedName, Slug, UserId } from '../model/names.ts'
import { ApiKey, Namespace, Organization, Role } from '../model/organization.ts'
import { RecordedAnswer } from '../model/recorded-answer.ts'
import { ServerDetail, ServerListing } from '../model/server.ts'
import { validatorOf } from '../schema/check.ts'
import { closedObject } from '../schema/shapes.ts'
import {
  apiKeyEntries,
  listingEntry,
  memberEntry,
  mockEntry,
  namespaceEntry,
  organizationEntry,
  revocationEntry,
  serverEntry,
  withIndex,
} from '../storage/directory-records.ts'
import type { Entry } from '../storage/store.ts'

/** The schema of a line: `kind` and the kind's own fields, nothing else. */
function line<K extends string, P extends Record<string, TSchema>>(kind: K, properties: P) {
  return closedObject({ kind: Type.Literal(kind), ...properties })
}

/**
 * The first line. `secret` identifies the instance secret without revealing it. The import needs it, because API keys
 * are stored as hashes keyed with that secret.
 */
export const ExportHead = closedObject({
  postern: Type.Literal('export'),
  version: Type.Literal(1),
  secret: Type.String(),
})

/** The last line. A truncated file does not have it. */
const ExportEnd = closedObject({ postern: Type.Literal('end'), records: Type.Integer() })

const lines = {
  organization: line('organization', { organization: Organization }),
  member: line('member', { organizationId: OrganizationId, userId: UserId, role: Role }),
  namespace: line('namespace', { namespace: Namespace }),
  apiKey: line('apiKey', { apiKey: ApiKey, digest: Type.String({ pattern: '^[0-9a-f]{64}$' }) }),
  server: line('server', { server: ServerDetail }),
  listing: line('listing', { listing: ServerListing }),
  mock: line('mock', { position: Type.String({ pattern: '^\\d{6,9}$' }), mock: RecordedAnswer }),
  connection: line('connection', {
    namespace: Slug,
    connection: Connection,
    server: Type.Optional(QualifiedName),
  }),
  revocation: line('revocation', { jti: Type.String({ pattern: '^[A-Za-z0-9_-]{1,100}$' }), until: Type.Integer() }),
}
/** A line between head and end. */
export type ExportLine = { [K in keyof typeof lines]: Static<(typeof lines)[K]> }[keyof typeof lines]

/** Validators. A line is the head (first), the end (last), or one of `lineShapes` by its `kind`. */
export const headShape = validatorOf(ExportHead)
export const endShape = validatorOf(ExportEnd)
export const lineShapes = Object.fromEntries(Object.entries(lines).map(([kind, schema]) => [kind, validatorOf(schema)]))

/** The store entries of a line other than a connection's, with their index, without versions and usage. */
export function entriesOf(record: Exclude<ExportLine, { kind: 'connection' }>): readonly Entry[] {
  switch (record.kind) {
    case 'organization':
      return [organizationEntry(record.organization)]
    case 'member':
      return withIndex(memberEntry(record.organizationId, record.userId, record.role))
    case 'namespace':
      return withIndex(namespaceEntry(record.namespace))
    case 'apiKey':
      return apiKeyEntries(record.apiKey, record.digest).flatMap(withIndex)
    case 'listing':
      return [listingEntry(record.listing)]
    case 'server':
      return [serverEntry(record.server)]
    case 'mock':
      return [mockEntry(record.position, record.mock)]
    case 'revocation':
      return [revocationEntry(record.jti, record.until)]
  }
}
