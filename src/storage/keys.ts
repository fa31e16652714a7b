/**
 * The key layout: the only place that joins and splits keys (table in `storage/README.md`). A key is one letter for its
 * kind, then its parts with a NUL between them: names hold no control characters, so the parts cannot run into each
 * other. `parseKey` takes apart what the functions before it put together.
 */

import { asBuffer, copyBytes, type Key, type Range } from './store.ts'

function key(kind: string, ...parts: readonly string[]): Key {
  return Buffer.from(kind + parts.join('\0'))
}

/** A prefix and, after it, ASCII text. */
function withSuffix(prefix: Key, text: string): Key {
  const bytes = Buffer.allocUnsafe(prefix.length + text.length)
  bytes.set(prefix)
  bytes.write(text, prefix.length, 'latin1')
  return bytes
}

/** All keys that begin with these bytes: up to the prefix with its last byte raised. */
export function prefixRange(prefix: Key): Omit<Range, 'limit'> {
  let end = prefix.length
  while (prefix[end - 1] === 0xff) end -= 1
  if (end === 0) throw new Error('a prefix of 0xff bytes has no end')
  const lt = copyBytes(prefix, 0, end)
  lt[end - 1] = (prefix[end - 1] as number) + 1
  return { gte: prefix, lt }
}

/** Changes with every write to the registry: organizations, members, namespaces, keys, servers. */
export const registryVersionKey = key('G')
/** Set by the first start, which makes the operator key. */
export const startedKey = key('B')
/** What clients called the server that last served from here: the issuer of its tokens. */
export const baseUrlKey = key('U')
/** What the loaded fixtures were, so that the same ones need no second load. */
export const fixturesDigestKey = key('F')

export const organizationKey = (organizationId: string): Key => key('o', organizationId)
export const memberKey = (organizationId: string, userId: string): Key => key('m', organizationId, userId)
export const namespaceKey = (namespace: string): Key => key('n', namespace)
/** A namespace that went with its fixture and left connections behind (`leftovers.ts`): it was not lost. */
export const leftKey = (namespace: string): Key => key('l', namespace)
export const left = key('l')
export const serverKey = (qualifiedName: string): Key => key('s', qualifiedName)
export const apiKeyKey = (keyId: string): Key => key('k', keyId)
export const apiKeys = key('k')
/** From the keyed hash of an API key (hex) to its id. */
export const apiKeyDigestKey = (digest: string): Key => key('h', digest)
/** From a token's id to when it is over, Unix seconds as text. */
export const revocationKey = (jti: string): Key => key('r', jti)
export const revocations = key('r')
/** The signing keys, sealed. */
export const signingKeysKey = key('y')
/** What was recorded for mocks of a server. */
export const mocksOf = (server: string): Key => key('a', server, '')
export const mockKey = (server: string, position: string): Key => key('a', server, position)

/** Before every connection. */
export const connections = key('c')
/** Before everything that connections have beside their records. */
export const privates = key('p')
export const connectionKey = (namespace: string, connectionId: string): Key => key('c', namespace, connectionId)
/** The same as `latin1Key` of it. */
export const connectionLatin1Key = (namespace: string, connectionId: string): string => `c${namespace}\0${connectionId}`
export const connectionsOf = (namespace: string): Key => key('c', namespace, '')
export const privatesOf = (namespace: string): Key => key('p', namespace, '')
/** What a connection has beside its public record. */
export const connectionPrivateKey = (namespace: string, connectionId: string): Key => key('p', namespace, connectionId)
/** Changes with every write to the namespace's connections. */
export const connectionsVersionKey = (namespace: string): Key => key('g', namespace)

/** How many connections a namespace has, and how many bytes they are, with what is beside them: two decimals. */
export const usageKey = (namespace: string): Key => key('u', namespace)
export const usages = key('u')
/** The namespaces whose connections are being written ahead of the commit that shows them, a line each (`ahead.ts`). */
export const aheadKey = key('A')

/** The keys of the records that the loaded fixtures brought, in parts of some hundred, one key a line. */
export const manifestKey = (part: number): Key => key('f', String(part).padStart(6, '0'))
export const manifest = key('f')

/** Bytes of a term's digest: long enough that nobody finds two values with the same one. */
export const termBytes = 16

/**
 * One searchable fact of a connection, as 16 bytes: values of any length make keys of one length. `kind`
 * keeps apart a string and the JSON text of another value, which compare alike to a filter only.
 */
export function termDigest(kind: 'name' | 'mcpUrl' | 'string' | 'json', name: string, value: string): Uint8Array {
  // Not remembered: most facts of a load come once, and looking for those that do not costs more than the hash.
  Bun.SHA256.hash(`${kind}\0${name.length}\0${name}${value}`, digest)
  return digest.slice(0, termBytes)
}
const digest = new Uint8Array(32)

/** Before every entry of the index. */
export const indexKind = key('x')
export const termsIn = (namespace: string): Key => key('x', namespace, '')
/** All connections of a namespace with a term, in the order of their ids. */
export function termEntries(namespace: string, term: Uint8Array): Key {
  return Buffer.concat([key('x', namespace, ''), term])
}
export function termKey(namespace: string, term: Uint8Array, connectionId: string): Key {
  return withSuffix(termEntries(namespace, term), connectionId)
}
/** The same for many entries of one namespace, in a buffer that holds them all. */
export function termKeyWriter(namespace: string) {
  const prefix = key('x', namespace, '')
  return {
    lengthOf: (connectionId: string) => prefix.length + termBytes + connectionId.length,
    /** Writes a key at `start`, its term taken from `terms` at `termAt`; returns where it ends. */
    write(target: Buffer, start: number, terms: Buffer, termAt: number, connectionId: string): number {
      target.set(prefix, start)
      const termStart = start + prefix.length
      terms.copy(target, termStart, termAt, termAt + termBytes)
      return termStart + termBytes + target.write(connectionId, termStart + termBytes, 'latin1')
    },
  }
}

/** A key as text, a character a byte: for maps and for keeping. */
export function latin1Key(key: Key): string {
  return asBuffer(key).toString('latin1')
}

/** The connection's id at the end of a connection's or a term's key. */
export function idOfKey(prefix: Key, key: Key): string {
  return asBuffer(key).toString('latin1', prefix.length)
}

/** What a key is of, and its parts. */
export type ParsedKey =
  | { readonly kind: 'organization'; readonly organizationId: string }
  | { readonly kind: 'member'; readonly organizationId: string; readonly userId: string }
  | { readonly kind: 'namespace'; readonly namespace: string }
  | { readonly kind: 'leftNamespace'; readonly namespace: string }
  | { readonly kind: 'apiKey'; readonly keyId: string }
  | { readonly kind: 'apiKeyDigest'; readonly digest: string }
  | { readonly kind: 'server'; readonly qualifiedName: string }
  | { readonly kind: 'mock'; readonly server: string; readonly position: string }
  | { readonly kind: 'connection'; readonly namespace: string; readonly connectionId: string }
  | { readonly kind: 'connectionPrivate'; readonly namespace: string; readonly connectionId: string }
  | { readonly kind: 'indexEntry'; readonly namespace: string; readonly connectionId: string }
  | { readonly kind: 'connectionsVersion'; readonly namespace: string }
  | { readonly kind: 'usage'; readonly namespace: string }
  | { readonly kind: 'revocation'; readonly jti: string }
  | { readonly kind: 'signingKeys' | 'registryVersion' | 'started' | 'baseUrl' }
  | { readonly kind: 'fixturesDigest' | 'fixturesManifest' | 'ahead' }

/** By the letters that the functions above write. A kind that is not here is read by nobody. */
const kinds: Readonly<Record<string, (first: string, second: string, key: Key) => ParsedKey>> = {
  o: (organizationId) => ({ kind: 'organization', organizationId }),
  m: (organizationId, userId) => ({ kind: 'member', organizationId, userId }),
  n: (namespace) => ({ kind: 'namespace', namespace }),
  l: (namespace) => ({ kind: 'leftNamespace', namespace }),
  k: (keyId) => ({ kind: 'apiKey', keyId }),
  h: (digest) => ({ kind: 'apiKeyDigest', digest }),
  s: (qualifiedName) => ({ kind: 'server', qualifiedName }),
  a: (server, position) => ({ kind: 'mock', server, position }),
  c: (namespace, connectionId) => ({ kind: 'connection', namespace, connectionId }),
  p: (namespace, connectionId) => ({ kind: 'connectionPrivate', namespace, connectionId }),
  x(namespace, _, key) {
    // A term may hold any byte, so the id is found by its length.
    const connectionId = latin1Key(key).slice(1 + namespace.length + 1 + termBytes)
    return { kind: 'indexEntry', namespace, connectionId }
  },
  g: (namespace) => ({ kind: 'connectionsVersion', namespace }),
  u: (namespace) => ({ kind: 'usage', namespace }),
  r: (jti) => ({ kind: 'revocation', jti }),
  y: () => ({ kind: 'signingKeys' }),
  G: () => ({ kind: 'registryVersion' }),
  B: () => ({ kind: 'started' }),
  U: () => ({ kind: 'baseUrl' }),
  F: () => ({ kind: 'fixturesDigest' }),
  f: () => ({ kind: 'fixturesManifest' }),
  A: () => ({ kind: 'ahead' }),
}

/** Undefined for a key of no kind that this version knows. */
export function parseKey(key: Key): ParsedKey | undefined {
  const parse = kinds[String.fromCharCode(key[0] ?? 0)]
  // Ids of users are UTF-8; the other names are ASCII.
  const [first = '', second = ''] = asBuffer(key).toString('utf8', 1).split('\0', 2)
  return parse?.(first, second, key)
}

/** The namespace of a connection's key, or of one of its index entries; without taking all of it apart. */
export function namespaceIn(key: Key): string {
  return latin1Key(key).slice(1).split('\0', 1)[0] ?? ''
}

/** What a record is called, for a person: `connection acme/notes`. */
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
    case 'leftNamespace':
      return `mark of the removed namespace ${parsed.namespace}`
    case 'apiKey':
      return `API key ${parsed.keyId}`
    case 'apiKeyDigest':
      return `hash of an API key ${parsed.digest}`
    case 'server':
      return `server ${parsed.qualifiedName}`
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
    case 'signingKeys':
      return 'signing keys'
    case 'registryVersion':
      return 'version of the registry'
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
