/** Names of records for people: in messages of commands, and in logs. */

import { asBuffer } from './bytes.ts'
import { parseKey } from './keys.ts'
import type { Key } from './store.ts'

/** The name of a record in messages: `connection acme/notes`. */
export function recordName(key: Key): string {
  const parsed = parseKey(key)
  switch (parsed?.kind) {
    case undefined:
      return `record ${asBuffer(key).toString('utf8').replaceAll('\0', '/')}`
    case 'organization':
      return `organization ${parsed.organizationId}`
    case 'member':
      return `member ${parsed.organizationId}/${parsed.userId}`
    case 'namespace':
      return `namespace ${parsed.namespace}`
    case 'apiKey':
      return `API key ${parsed.keyId}`
    case 'apiKeyDigest':
      return `hash of an API key ${parsed.digest}`
    case 'server':
      return `server ${parsed.qualifiedName}`
    case 'listing':
      return `listing of server ${parsed.qualifiedName}`
    case 'listingGroupVersion':
    case 'listingsVersion':
      return 'version of the listings of servers'
    case 'membership':
      return `membership of ${parsed.userId} in ${parsed.organizationId}`
    case 'owned':
      return `owner of namespace ${parsed.namespace}`
    case 'folded':
      return `name of namespace ${parsed.namespace} in small letters`
    case 'endedNamespace':
      return `end of a namespace ${parsed.namespace}`
    case 'deletingNamespace':
      return `mark of namespace ${parsed.namespace}, which is being deleted`
    case 'organizationApiKey':
      return `API key ${parsed.keyId} of organization ${parsed.organizationId}`
    case 'place':
      return `fixture of ${recordName(parsed.record)}`
    case 'mock':
      return `mock ${parsed.server}/${parsed.position}`
    case 'connection':
      return `connection ${parsed.namespace}/${parsed.connectionId}`
    case 'connectionPrivate':
      return `private part of connection ${parsed.namespace}/${parsed.connectionId}`
    case 'indexEntry':
      return `index entry of connection ${parsed.namespace}/${parsed.connectionId}`
    case 'connectionsVersion':
      return `version of the connections of ${parsed.namespace}`
    case 'usage':
      return `usage of namespace ${parsed.namespace}`
    case 'revocation':
      return `revocation of token ${parsed.jti}`
    case 'expiring':
      return `expiring record ${parsed.digest}`
    case 'upstreamClient':
      return `client at an authorization server ${parsed.digest}`
    case 'grant':
      return `grant ${parsed.grantId}`
    case 'oauthClient':
      return `registered client ${parsed.clientId}`
    case 'signingKeys':
      return 'signing keys'
    case 'directoryVersion':
      return 'version of the directory'
    case 'started':
      return 'time of the first start'
    case 'baseUrl':
      return 'base URL'
    case 'fixturesDigest':
    case 'fixturesManifest':
      return 'list of the loaded fixtures'
    case 'ahead':
      return 'list of namespaces that are being loaded'
  }
}
