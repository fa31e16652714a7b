/**
 * Clients that may ask for access: registered ones (RFC 7591), and those whose `client_id` is the URL of a document
 * about them. All are public: none has a secret (contract, 13.3).
 */

import { createHmac, randomBytes } from 'node:crypto'
import { Type } from '@sinclair/typebox'
import { LRUCache } from 'lru-cache'
import { readClient, type StoredClient } from '../../auth/grants.ts'
import { secondsOf } from '../../clock.ts'
import { type Holder, ownerOf } from '../../fairness/owner.ts'
import { requireRate } from '../../fairness/rate-limit.ts'
import { clientUrlCharsMax, oauthFetchTimeoutMs } from '../../limits.ts'
import { validatorOf } from '../../schema/check.ts'
import { cutText } from '../../schema/cut-text.ts'
import { parseForeign } from '../../schema/json.ts'
import { isUrl } from '../../schema/url-host.ts'
import { asBuffer } from '../../storage/bytes.ts'
import { jsonEntry } from '../../storage/directory-records.ts'
import { keyOf, prefixOf, prefixRange, unusedClientIn } from '../../storage/keys.ts'
import type { Key } from '../../storage/store.ts'
import { UpstreamError, type UpstreamResponse } from '../../upstream/upstream.ts'
import type { Client, KeptDocuments, OAuthDeps } from './oauth-deps.ts'
import { OAuthError } from './oauth-error.ts'
import { redirectUriProblem } from './redirect-uris.ts'

/** Contract 13.3: time in which somebody must use a client that has registered. Past it: the client is removed. */
export const unusedClientSeconds = 24 * 60 * 60
/** Contract 13.3: registered clients that nobody has used. Past it: postern removes the oldest client of the network that registered most of these clients. */
export const unusedClientsMax = 1000

/** Ours: characters of a client's name. Past it: it is cut. */
const clientNameCharsMax = 100
/** Contract 13.4: redirect URIs of a client. Past it: 400. */
const redirectUrisMax = 10
/** Contract 13.3: bytes of a client's document. Past it: 400. */
export const clientDocumentBytesMax = 16 * 1024
/** Contract 13.3: longest time that a client's document is kept. Past it: it is fetched again. */
export const clientDocumentSecondsMax = 24 * 60 * 60

/** Client documents that are kept. Past it: the one unused longest is fetched again. */
const clientDocumentsMax = 1000

/** Documents of clients, for as long as their headers allow. */
export function createKeptDocuments(): KeptDocuments {
  return new LRUCache({ max: clientDocumentsMax })
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

/** `mcp_`, the time in base 36, which orders unused clients, 48 bits of a keyed hash of the network, 128 random. */
const registeredShape = /^mcp_([0-9a-z]{8})([A-Za-z0-9_-]{8})[A-Za-z0-9_-]{22}$/

/** Registers a client, as `readMetadata` read it, for somebody in this network. */
export async function registerClient(deps: OAuthDeps, stored: StoredClient, network: string): Promise<Client> {
  const { store, signInKey, clock } = deps
  const mark = createHmac('sha256', signInKey).update(`network\0${network}`).digest().toString('base64url', 0, 6)
  const clientId = `mcp_${timeText(secondsOf(clock))}${mark}${randomBytes(16).toString('base64url')}`
  await store.commit({
    deletes: await removable(deps),
    puts: [jsonEntry(keyOf('unusedClient', clientId), stored)],
  })
  return { clientId, ...stored }
}

/** Throws OAuthError for a registered client that does not exist. Fetches nothing. */
export async function requireKnownClient(deps: OAuthDeps, clientId: string): Promise<void> {
  if (!isDocumentUrl(clientId)) await findRegistered(deps, clientId)
}

/** The client of this id. Throws OAuthError `invalid_client` with a text for the user, and `rate_limited`. */
export async function findClient(deps: OAuthDeps, clientId: string, holder: Holder): Promise<Client> {
  return isDocumentUrl(clientId) ? findDocument(deps, clientId, holder) : findRegistered(deps, clientId)
}

/** The writes that note that a user uses the client from now on. A commit that makes a grant for it includes them. */
export function usesOf({ clientId, host, ...stored }: Client, userId: string, usedAt: number) {
  if (host !== undefined) return { puts: [], deletes: [] }
  const value = { userId, ...stored, usedAt } satisfies StoredClient
  return {
    puts: [jsonEntry(keyOf('oauthClient', clientId), value)],
    deletes: [keyOf('unusedClient', clientId)],
  }
}

/**
 * The unused clients to delete: the expired, and beyond `unusedClientsMax` the oldest of the network that has most, so
 * that nobody throws out the clients of others.
 */
async function removable({ store, clock }: OAuthDeps): Promise<Key[]> {
  const { keys } = await store.keys({ ...prefixRange(prefixOf('unusedClient')), limit: 2 * unusedClientsMax })
  const firstKept = keyOf('unusedClient', `mcp_${timeText(secondsOf(clock) - unusedClientSeconds)}`)
  const gone = keys.filter((key) => Buffer.compare(key, firstKept) < 0)
  const byNetwork = Map.groupBy(keys.slice(gone.length), (key) => registeredShape.exec(unusedClientIn(key))?.[2])
  while (keys.length - gone.length >= unusedClientsMax) {
    // The oldest of those that have as many.
    const [most = []] = [...byNetwork.values()].sort((one, other) => other.length - one.length)
    gone.push(...most.splice(0, 1))
  }
  return gone
}

async function findRegistered({ store, clock }: OAuthDeps, clientId: string): Promise<Client> {
  const issued = Number.parseInt(registeredShape.exec(clientId)?.[1] ?? '', 36)
  if (Number.isNaN(issued)) throw unknownClient()
  const [used, unused] = await store.getMany([keyOf('oauthClient', clientId), keyOf('unusedClient', clientId)])
  const bytes = used ?? (issued + unusedClientSeconds > secondsOf(clock) ? unused : undefined)
  if (bytes === undefined) throw unknownClient()
  return { clientId, ...readClient(bytes) }
}

async function findDocument(deps: OAuthDeps, url: string, holder: Holder): Promise<Client> {
  const { documents, clock, keptDocuments } = deps
  const kept = keptDocuments.get(url)
  if (kept !== undefined && kept.until > clock.now()) return kept.client
  requireRate(documents.take(ownerOf(holder)), 'Too many documents of clients are being fetched for this user')
  const { client, seconds } = await fetchDocument(deps, url, holder)
  if (seconds > 0) keptDocuments.set(url, { client, until: clock.now() + seconds * 1000 })
  return client
}

function unknownClient(): OAuthError {
  return new OAuthError('invalid_client', 'This client is not registered here, or no longer: let it register again')
}

function timeText(seconds: number): string {
  return seconds.toString(36).padStart(8, '0')
}

/** The metadata that a client sends to register, or has in its document. Throws OAuthError. */
export function readMetadata(body: unknown, redirectSchemes: readonly string[]): StoredClient {
  if (!metadataShape.isValid(body)) {
    const problem = metadataShape.firstProblem(body)
    const code = problem.place.startsWith('redirect_uris') ? 'invalid_redirect_uri' : 'invalid_client_metadata'
    throw new OAuthError(code, `${problem.place === '' ? 'the body' : problem.place}: ${problem.message}`)
  }
  for (const [index, uri] of body.redirect_uris.entries()) {
    const problem = redirectUriProblem(uri, redirectSchemes)
    if (problem !== undefined) throw new OAuthError('invalid_redirect_uri', `redirect_uris[${index}]: ${problem}`)
  }
  // Without what would hide or turn around the words beside it, or is blank.
  const name = body.client_name
    ?.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800]/gu, '')
    .trim()
  return {
    ...(name !== undefined && name !== '' && { name: cutText(name, clientNameCharsMax) }),
    redirectUris: body.redirect_uris,
    // RFC 7591: without this field a client has the authorization code grant only.
    refreshes: body.grant_types?.includes('refresh_token') === true,
  }
}

/** An https URL with a path, without user, fragment, or dots that a reader could resolve otherwise. */
function isDocumentUrl(clientId: string): boolean {
  if (!clientId.startsWith('https://') || clientId.length > clientUrlCharsMax || !isUrl(clientId)) return false
  const { href, pathname, username, password } = new URL(clientId)
  return href === clientId && pathname !== '/' && username + password === '' && !clientId.includes('#')
}

const advice = {
  announced:
    'Where postern has no access to the internet, start it with --no-public-upstream, so that clients register instead; then remove the server from the client, and add it again',
  remembered:
    'postern no longer asks for a document, but the client remembers that it did: remove postern from the client, and add it again',
}

/** The client that a document describes, and the seconds for which it may be kept. Throws OAuthError. */
async function fetchDocument({ upstream, settings, clock }: OAuthDeps, url: string, holder: Holder) {
  const remedy = settings.takesDocuments ? advice.announced : advice.remembered
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
    const { host } = new URL(url)
    const client: Client = { clientId: url, ...readMetadata(document, settings.redirectSchemes), host }
    return { client, seconds: keepSecondsOf(headers, clock.now()) }
  } catch (thrown) {
    if (thrown instanceof OAuthError) throw thrown
    if (thrown instanceof UpstreamError) throw unusable(`could not be fetched: ${thrown.message}. ${remedy}`)
    throw unusable('is not JSON')
  }
}

/** By the headers (RFC 9111, 4.2), or five minutes; at most `clientDocumentSecondsMax`. `now`: ms since 1970. */
function keepSecondsOf(headers: UpstreamResponse['headers'], now: number): number {
  const { 'cache-control': cacheControl = '', expires, age = '0' } = headers
  if (/\bno-(?:store|cache)\b/i.test(cacheControl)) return 0
  const told = /\bmax-age="?(\d{1,9})\b/i.exec(cacheControl)?.[1]
  // An invalid `Expires` counts as a time in the past (RFC 9111, 5.3).
  const untilExpiry = expires === undefined ? 300 : Math.floor(((Date.parse(expires) || 0) - now) / 1000)
  const seconds = told === undefined ? untilExpiry : Number(told) - (Number(age) || 0)
  return Math.min(Math.max(0, seconds), clientDocumentSecondsMax)
}
