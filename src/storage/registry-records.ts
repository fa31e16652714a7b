/**
 * Records of the registry as the store has them: the one place that writes and reads their values. A member's role, the
 * id behind an API key's digest and the end of a revocation are text; everything else is JSON.
 */

import type { RecordedAnswer } from '../model/recorded-answer.ts'
import type { ApiKey, Namespace, Organization, Role } from '../model/registry.ts'
import type { ServerDetail } from '../model/server.ts'
import { asBuffer } from './bytes.ts'
import {
  apiKeyDigestKey,
  apiKeyKey,
  memberKey,
  mockKey,
  namespaceKey,
  organizationKey,
  revocationKey,
  serverKey,
} from './keys.ts'
import type { Entry, Key } from './store.ts'

export function organizationEntry(organization: Organization): Entry {
  return jsonEntry(organizationKey(organization.organizationId), organization)
}

export function memberEntry(organizationId: string, userId: string, role: Role): Entry {
  return textEntry(memberKey(organizationId, userId), role)
}

export function readRole(value: Uint8Array): Role {
  return textOf(value) as Role
}

export function namespaceEntry(namespace: Namespace): Entry {
  return jsonEntry(namespaceKey(namespace.namespace), namespace)
}

export function readNamespace(value: Uint8Array): Namespace {
  return jsonOf(value)
}

export function apiKeyEntry(record: ApiKey): Entry {
  return jsonEntry(apiKeyKey(record.keyId), record)
}

export function readApiKey(value: Uint8Array): ApiKey {
  return jsonOf(value)
}

/**
 * The two entries of an API key: its record by id, and its id by digest. `digest`: the keyed hash of the API key, in
 * hex (`auth/api-key.ts`).
 */
export function apiKeyEntries(record: ApiKey, digest: string): readonly Entry[] {
  return [apiKeyEntry(record), textEntry(apiKeyDigestKey(digest), record.keyId)]
}

export function readKeyId(value: Uint8Array): string {
  return textOf(value)
}

/** The value is answered as it is stored (`GET /servers/{qualifiedName}`). */
export function serverEntry(server: ServerDetail): Entry {
  return jsonEntry(serverKey(server.qualifiedName), server)
}

/** `position`: six digits, so that answers keep the order of the fixtures. */
export function mockEntry(position: string, mock: RecordedAnswer): Entry {
  return jsonEntry(mockKey(mock.server, position), mock)
}

export function readMock(value: Uint8Array): RecordedAnswer {
  return jsonOf(value)
}

/** `until`, Unix seconds: by then the token and its children have expired. */
export function revocationEntry(jti: string, until: number): Entry {
  return textEntry(revocationKey(jti), String(until))
}

/** Unix seconds; 0 for a token that is not revoked. */
export function readRevocation(value: Uint8Array | undefined): number {
  return value === undefined ? 0 : Number(textOf(value))
}

function jsonEntry(key: Key, value: object): Entry {
  return textEntry(key, JSON.stringify(value))
}

function textEntry(key: Key, text: string): Entry {
  return { key, value: Buffer.from(text) }
}

function jsonOf<T>(value: Uint8Array): T {
  return JSON.parse(textOf(value)) as T
}

function textOf(value: Uint8Array): string {
  return asBuffer(value).toString()
}
