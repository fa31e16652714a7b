/**
 * The export format: a JSON object a line for each record, its schema, and its store entries. Not exported: secrets
 * (sealed headers, signing keys), and what is derived (index, versions, usages, manifest).
 */

import { type Static, type TObject, type TProperties, Type } from '@sinclair/typebox'
import { Connection } from '../model/connection.ts'
import { ConnectionId, OrganizationId, QualifiedName, Slug, UserId } from '../model/names.ts'
import { ApiKey, Namespace, Organization, Role } from '../model/organization.ts'
import { RecordedAnswer } from '../model/recorded-answer.ts'
import { ServerDetail, ServerListing } from '../model/server.ts'
import { View } from '../model/view.ts'
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
  viewEntry,
  withIndex,
} from '../storage/directory-records.ts'
import { keyOf } from '../storage/keys.ts'
import type { Entry } from '../storage/store.ts'

/** The first line. `secret` identifies the instance secret, with which API keys are hashed, and does not reveal it. */
export const headShape = validatorOf(
  closedObject({ postern: Type.Literal('export'), version: Type.Literal(1), secret: Type.String() }),
)

/** The last line. A truncated file does not have it. */
export const endShape = validatorOf(closedObject({ postern: Type.Literal('end'), records: Type.Integer() }))

/** A kind of line: its own fields, and the store entries of one, with their index, without versions and usage. */
function kindOf<P extends TProperties>(fields: P, entries: (line: Static<TObject<P>>) => readonly Entry[]) {
  return { fields, entries }
}

const digest = Type.String({ pattern: '^[0-9a-f]{64}$' })
const position = Type.String({ pattern: '^\\d{6,9}$' })
const jti = Type.String({ pattern: '^[A-Za-z0-9_-]{1,100}$' })

const kinds = {
  organization: kindOf({ organization: Organization }, (line) => [organizationEntry(line.organization)]),
  member: kindOf({ organizationId: OrganizationId, userId: UserId, role: Role }, (line) =>
    withIndex(memberEntry(line.organizationId, line.userId, line.role)),
  ),
  view: kindOf({ view: View }, (line) => [viewEntry(line.view)]),
  namespace: kindOf({ namespace: Namespace }, (line) => withIndex(namespaceEntry(line.namespace))),
  apiKey: kindOf({ apiKey: ApiKey, digest }, (line) => apiKeyEntries(line.apiKey, line.digest).flatMap(withIndex)),
  server: kindOf({ server: ServerDetail }, (line) => [serverEntry(line.server)]),
  listing: kindOf({ listing: ServerListing }, (line) => [listingEntry(line.listing)]),
  mock: kindOf({ position, mock: RecordedAnswer }, (line) => [mockEntry(line.position, line.mock)]),
  /** Its first line has the id by which the private part of its connection, which comes later, names it. */
  pins: kindOf({ namespace: Slug, connectionId: ConnectionId, record: Type.String() }, (line) => [
    { key: keyOf('pins', line.namespace, line.connectionId), value: Buffer.from(line.record) },
  ]),
  /** Its entries depend on what the store has (`import.ts`). */
  connection: kindOf({ namespace: Slug, connection: Connection, server: Type.Optional(QualifiedName) }, () => []),
  revocation: kindOf({ jti, until: Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER }) }, (line) => [
    revocationEntry(line.jti, line.until),
  ]),
}
type Kinds = typeof kinds
/** A line between head and end. */
export type ExportLine = {
  [K in keyof Kinds]: { readonly kind: K } & Static<TObject<Kinds[K]['fields']>>
}[keyof Kinds]

/** Of the lines between, by their `kind`. */
export const lineShapes = Object.fromEntries(
  Object.entries(kinds).map(([kind, { fields }]) => [
    kind,
    validatorOf(closedObject({ kind: Type.Literal(kind), ...fields })),
  ]),
)

/** The store entries of a line other than a connection's, with their index, without versions and usage. */
export function entriesOf(line: Exclude<ExportLine, { kind: 'connection' }>): readonly Entry[] {
  return kinds[line.kind].entries(line as never)
}
