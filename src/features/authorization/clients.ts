/**
 * Clients that may ask for access: registered ones (RFC 7591), and those whose `client_id` is the URL of a document
 * about them. All are public: none has a secret (sign-in contract, 3.3).
 */

import { createHmac, randomBytes } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { LRUCache } from 'lru-cache'
import { readClient, type StoredClient } from '../../auth/grants.ts'
import { type Clock, secondsOf } from '../../clock.ts'
import { type Holder, ownerOf } from '../../fairness/owner.ts'
import { type RateLimit, requireRate } from '../../fairness/rate-limit.ts'
import { clientUrlCharsMax, oauthFetchTimeoutMs } from '../../limits.ts'
import { validatorOf } from '../../schema/check.ts'
import { parseForeign } from '../../schema/json.ts'
import { asBuffer } from '../../storage/bytes.ts'
import { oauthClientKey, prefixRange, unusedClientIn, unusedClientKey, unusedClients } from '../../storage/keys.ts'
import type { Entry, Key, Store } from '../../storage/store.ts'
import { type Upstream, UpstreamError, type UpstreamResponse } from '../../upstream/upstream.ts'
import { OAuthError } from './oauth-error.ts'
import { redirectUriProblem } from './redirect-uris.ts'

/** Contract (sign-in 3.3): time that a registered client has to be used. Past it: it is removed. */
export const unusedClientSeconds = 24 * 60 * 60
/** Contract (sign-in 3.3): registered clients that nobody has used. Past it: the oldest of the network that has most is removed. */
export const unusedClientsMax = 1000

/** Ours: characters of a client's name. Past it: it is cut. */
const clientNameCharsMax = 100
/** Contract (sign-in 3.4): redirect URIs of a client. Past it: 400. */
const redirectUrisMax = 10
/** Contract (sign-in 3.3): bytes of a client's document. Past it: 400. */
export const clientDocumentBytesMax = 16 * 1024
/** Contract (sign-in 3.3): longest time that a client's document is kept. Past it: it is fetched again. */
export const clientDocumentSecondsMax = 24 * 60 * 60

/** Client documents that are kept. Past it: the one unused longest is fetched again. */
const clientDocumentsMax = 1000

export interface Client {
  readonly clientId: string
  /** The name that the client gives itself: not verified. */
  readonly name: string | undefined
  readonly redirectUris: readonly string[]
  /** Whether it takes refresh tokens. */
  readonly refreshes: boolean
  /** The host of its document, which vouches for it; undefined for a registered client, for which nobody does. */
  readonly host: string | undefined
  /** The user who was the first to allow a registered client something. */
  readonly userId?: string
}

export interface Clients {
  /** Reads the metadata that a client sends to register. Throws OAuthError. */
  read(body: unknown): Registration
  /** Registers a client for somebody in this network. */
  register(registration: Registration, network: string): Promise<Client>
  /**
   * The client of this id; its document is fetched for the holder. Throws OAuthError `invalid_client` with a text for
   * the user, and `rate_limited`.
   */
  find(clientId: string, holder: Holder): Promise<Client>
  /** Throws OAuthError for a registered client that does not exist. Fetches nothing. */
  requireKnown(clientId: string): Promise<void>
  /** The writes that note that a user uses the client from now on. A commit that makes a grant for it includes them. */
  use(client: Client, userId: string): { readonly puts: readonly Entry[]; readonly deletes: readonly Key[] }
}

export interface ClientsOptions {
  readonly store: Store
  readonly upstream: Upstream
  readonly signInKey: Buffer
  /** Schemes from `--redirect-scheme`. */
  readonly schemes: readonly string[]
  /** Whether the metadata says that clients may point to a document. Some remember it from before. */
  readonly takesDocuments: boolean
  /** Limits the fetches of documents, by owner: each is a request to somebody's server. */
  readonly fetches: RateLimit
  readonly clock: Clock
}

/** The fields that are read of a registration and of a client's document. All others are ignored. */
const Metadata = Type.Object({
  redirect_uris: Type.Array(Type.String(), { minItems: 1, maxItems: redirectUrisMax }),
  client_name: Type.Optional(Type.String()),
  grant_types: Type.Optional(Type.Array(Type.String())),
})
const metadataShape = validatorOf(Metadata)

const Document = Type.Composite([
  Metadata,
  Type.Object({
    client_id: Type.String(),
    client_name: Type.String({ minLength: 1 }),
    token_endpoint_auth_method: Type.Optional(Type.String()),
  }),
])
const documentShape = validatorOf(Document)

/** A client as it describes itself. */
export interface Registration {
  readonly name?: string
  readonly redirectUris: readonly string[]
  readonly refreshes: boolean
}

/**
 * `mcp_`, the time in base 36, so that unused clients are ordered by age, 48 bits of a keyed hash of the network that
 * registered it, and 128 random bits.
 */
const registeredShape = /^mcp_([0-9a-z]{8})([A-Za-z0-9_-]{8})[A-Za-z0-9_-]{22}$/

interface Parts extends ClientsOptions {
  readonly documents: LRUCache<string, { readonly client: Client; readonly until: number }>
}

export function createClients(options: ClientsOptions): Clients {
  const { store, signInKey, clock } = options
  const documents: Parts['documents'] = new LRUCache({ max: clientDocumentsMax })
  const parts = { ...options, documents }
  const markOf = (network: string) =>
    createHmac('sha256', signInKey).update(`network\0${network}`).digest().toString('base64url', 0, 6)

  return {
    read: (body) => readMetadata(body, options.schemes),
    async register(stored, network) {
      const clientId = `mcp_${timeText(secondsOf(clock))}${markOf(network)}${randomBytes(16).toString('base64url')}`
      await store.commit({
        deletes: await removable(parts),
        puts: [{ key: unusedClientKey(clientId), value: Buffer.from(JSON.stringify(stored)) }],
      })
      return {
        clientId,
        name: stored.name,
        redirectUris: stored.redirectUris,
        refreshes: stored.refreshes,
        host: undefined,
      }
    },
    async requireKnown(clientId) {
      if (!isDocumentUrl(clientId)) await findRegistered(parts, clientId)
    },
    find: async (clientId, holder) =>
      isDocumentUrl(clientId) ? findDocument(parts, clientId, holder) : findRegistered(parts, clientId),
    use({ clientId, name, redirectUris, refreshes, host, userId: first }, userId) {
      if (host !== undefined) return { puts: [], deletes: [] }
      const stored: StoredClient = {
        ...(name !== undefined && { name }),
        redirectUris,
        refreshes,
        usedAt: secondsOf(clock),
        userId: first ?? userId,
      }
      const entry = { key: oauthClientKey(clientId), value: Buffer.from(JSON.stringify(stored)) }
      return { puts: [entry], deletes: [unusedClientKey(clientId)] }
    },
  }
}

/**
 * The unused clients to delete: the expired ones, and beyond `unusedClientsMax` the oldest of the network that has
 * most, so that nobody throws out the clients of others.
 */
async function removable(parts: Parts): Promise<Key[]> {
  const { store, clock } = parts
  const { keys } = await store.keys({ ...prefixRange(unusedClients), limit: 2 * unusedClientsMax })
  const firstKept = unusedClientKey(`mcp_${timeText(secondsOf(clock) - unusedClientSeconds)}`)
  const gone = keys.filter((key) => Buffer.compare(key, firstKept) < 0)
  const byNetwork = Map.groupBy(keys.slice(gone.length), (key) => registeredShape.exec(unusedClientIn(key))?.[2])
  while (keys.length - gone.length >= unusedClientsMax) {
    // The oldest of those that have as many.
    const [most = []] = [...byNetwork.values()].sort((one, other) => other.length - one.length)
    gone.push(...most.splice(0, 1))
  }
  return gone
}

async function findRegistered(parts: Parts, clientId: string): Promise<Client> {
  const { store, clock } = parts
  const issued = Number.parseInt(registeredShape.exec(clientId)?.[1] ?? '', 36)
  if (Number.isNaN(issued)) throw unknownClient()
  const [used, unused] = await store.getMany([oauthClientKey(clientId), unusedClientKey(clientId)])
  const bytes = used ?? (issued + unusedClientSeconds > secondsOf(clock) ? unused : undefined)
  if (bytes === undefined) throw unknownClient()
  const { name, redirectUris, refreshes, userId } = readClient(bytes)
  return { clientId, name, redirectUris, refreshes, host: undefined, ...(userId !== undefined && { userId }) }
}

async function findDocument(parts: Parts, url: string, holder: Holder): Promise<Client> {
  const { fetches, clock, documents } = parts
  const kept = documents.get(url)
  if (kept !== undefined && kept.until > clock.now()) return kept.client
  requireRate(fetches.take(ownerOf(holder)), 'Too many documents of clients are being fetched for you')
  const { client, seconds } = await fetchDocument(parts, url, holder)
  if (seconds > 0) documents.set(url, { client, until: clock.now() + seconds * 1000 })
  return client
}

function unknownClient(): OAuthError {
  return new OAuthError('invalid_client', 'This client is not registered here, or no longer: let it register again')
}

function timeText(seconds: number): string {
  return seconds.toString(36).padStart(8, '0')
}

/** Throws OAuthError. */
function readMetadata(body: unknown, schemes: readonly string[]): Registration {
  if (!metadataShape.isValid(body)) {
    const problem = metadataShape.firstProblem(body)
    const code = problem.place.startsWith('redirect_uris') ? 'invalid_redirect_uri' : 'invalid_client_metadata'
    throw new OAuthError(code, `${problem.place === '' ? 'the body' : problem.place}: ${problem.message}`)
  }
  for (const [index, uri] of body.redirect_uris.entries()) {
    const problem = redirectUriProblem(uri, schemes)
    if (problem !== undefined) throw new OAuthError('invalid_redirect_uri', `redirect_uris[${index}] ${problem}`)
  }
  // Without what would hide or turn around the words beside it.
  const name = body.client_name
    ?.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, '')
    .trim()
    .slice(0, clientNameCharsMax)
  return {
    ...(name !== undefined && name !== '' && { name }),
    redirectUris: body.redirect_uris,
    // RFC 7591: without this field a client has the authorization code grant only.
    refreshes: body.grant_types?.includes('refresh_token') === true,
  }
}

/** An https URL with a path, without user, fragment, or dots that a reader could resolve otherwise. */
function isDocumentUrl(clientId: string): boolean {
  if (!clientId.startsWith('https://') || clientId.length > clientUrlCharsMax || !URL.canParse(clientId)) return false
  const { href, pathname, username, password } = new URL(clientId)
  return href === clientId && pathname !== '/' && username + password === '' && !clientId.includes('#')
}

/** Advice for a document that cannot be fetched. */
const advice = {
  announced:
    'An operator without access to the internet can stop announcing documents with --no-public-upstream; clients then register instead',
  remembered:
    'This server asks for no document: the client remembers that it once did. Remove the server from the client, and add it again',
}

/** The client that a document describes, and the seconds for which it may be kept. Throws OAuthError. */
async function fetchDocument(
  {
    upstream,
    schemes,
    takesDocuments,
    clock,
  }: Pick<ClientsOptions, 'upstream' | 'schemes' | 'takesDocuments' | 'clock'>,
  url: string,
  holder: Holder,
) {
  const remedy = takesDocuments ? advice.announced : advice.remembered
  const unusable = (why: string) => new OAuthError('invalid_client', `The client's document ${url} ${why}`)
  try {
    const { status, headers, body } = await upstream.send({
      url,
      method: 'GET',
      headers: { accept: 'application/json' },
      timeoutMs: oauthFetchTimeoutMs,
      bodyBytesMax: clientDocumentBytesMax,
      holder,
    })
    if (status !== 200) throw unusable(`could not be fetched: it answered ${status}. ${remedy}`)
    const document: unknown = parseForeign(body instanceof Uint8Array ? asBuffer(body).toString() : '')
    if (!documentShape.isValid(document)) throw unusable('does not describe a client')
    if (document.client_id !== url) throw unusable('is about another client_id')
    if ((document.token_endpoint_auth_method ?? 'none') !== 'none') {
      throw unusable('is about a client with a secret; only public clients are accepted')
    }
    const { name, redirectUris, refreshes } = readMetadata(document, schemes)
    const client: Client = { clientId: url, name, redirectUris, refreshes, host: new URL(url).host }
    return { client, seconds: keepSecondsOf(headers, clock.now()) }
  } catch (thrown) {
    if (thrown instanceof OAuthError) throw thrown
    if (thrown instanceof UpstreamError) {
      throw unusable(`could not be fetched: ${thrown.message}. ${remedy}`)
    }
    throw unusable('is not JSON')
  }
}

/**
 * As the headers say (RFC 9111, 4.2), up to `clientDocumentSecondsMax`; five minutes if they say nothing. `now`:
 * milliseconds since 1970.
 */
function keepSecondsOf(headers: UpstreamResponse['headers'], now: number): number {
  const { 'cache-control': cacheControl = '', expires, age = '0' } = headers
  if (/\bno-(?:store|cache)\b/i.test(cacheControl)) return 0
  const told = /\bmax-age="?(\d{1,9})\b/i.exec(cacheControl)?.[1]
  // An invalid `Expires` counts as a time in the past (RFC 9111, 5.3).
  const untilExpiry = expires === undefined ? 300 : Math.floor(((Date.parse(expires) || 0) - now) / 1000)
  const seconds = told === undefined ? untilExpiry : Number(told) - (Number(age) || 0)
  return Math.min(Math.max(0, seconds), clientDocumentSecondsMax)
}
