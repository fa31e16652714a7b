/** As which client postern asks an authorization server (contract, 14.4). */

import { type ClientAuth, ClientSecretPost, dynamicClientRegistrationRequest, None } from 'oauth4webapi'
import { openText, sealText } from '../../auth/secrets.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { secondsOf } from '../../clock.ts'
import { namespaceFull } from '../../errors.ts'
import { type RateLimit, requireRate } from '../../fairness/rate-limit.ts'
import { isLocalUrl } from '../../http/guard.ts'
import { grantsPerWrite } from '../../limits.ts'
import type { ConnectionRef, GivenClient } from '../../model/connection.ts'
import { cutText } from '../../schema/cut-text.ts'
import { parseForeign } from '../../schema/json.ts'
import { textOf } from '../../storage/bytes.ts'
import { connectionChange, type NewConnection, type StoredConnection } from '../../storage/connections.ts'
import { everyEntry } from '../../storage/every-entry.ts'
import { keyOf, prefixOf } from '../../storage/keys.ts'
import type { Key, Store } from '../../storage/store.ts'
import type { Usage } from '../../storage/usage.ts'
import type { Upstream } from '../../upstream/upstream.ts'
import type { ServerMetadata } from './discovery.ts'
import { type OAuthFetch, requestOver, SignInProblem } from './oauth-fetch.ts'

/** Ours: clients that postern has registered, one at each authorization server. Past it: postern forgets the oldest clients, and registers again. */
export const upstreamClientsMax = 10_000

/** A client of one issuer. */
export interface UpstreamClient {
  readonly clientId: string
  readonly clientSecret?: string
  /** How it authenticates at the token endpoint. */
  readonly method: AuthMethod
  /** Whether it was registered by us, and may be again. */
  readonly isRegistered?: boolean
}
type AuthMethod = 'none' | 'client_secret_basic' | 'client_secret_post'

/** The client that somebody registered by hand and gave to a connection, as it is kept sealed with it. */
export interface StoredClient extends GivenClient {
  /** A person typed it on the setup page, and may correct it there. */
  readonly isTyped?: boolean
  /** Its issuer is the one that was met first, not one that was given with it. */
  readonly isIssuerMet?: boolean
}

export interface UpstreamSignInDeps extends SharedParts {
  readonly upstream: Upstream
  /** Whether postern has a document as a client: not with `--no-client-document`. */
  readonly hasDocument: boolean
  /** The most that a namespace may hold: another server says how long its tokens are. */
  readonly quota: Usage
}

/** Replaces a connection. False if it is no longer `before`. Throws 403 if that would exceed the namespace's quota. */
export async function replaceStored(
  { store, quota }: Pick<UpstreamSignInDeps, 'store' | 'quota'>,
  ref: ConnectionRef,
  before: StoredConnection,
  after: NewConnection,
): Promise<boolean> {
  const committed = await store.commit(connectionChange(ref, before, after, quota))
  if (!committed.ok && committed.full.length > 0) throw namespaceFull(ref.namespace)
  return committed.ok
}

export function redirectUriOf(base: string): string {
  return `${base}/oauth/callback`
}

/** The metadata of postern as a client, in a registration and in its document. */
function metadataOf(base: string) {
  return {
    client_name: 'postern',
    client_uri: base,
    redirect_uris: [redirectUriOf(base)],
    grant_types: ['authorization_code', 'refresh_token'],
    response_types: ['code'],
  }
}

/** The document that describes postern as a client, for servers that take such documents. */
export function clientDocument(base: string): object {
  const own = { client_id: `${base}/oauth/client.json`, token_endpoint_auth_method: 'none', application_type: 'web' }
  return { ...own, ...metadataOf(base) }
}

/** A client as it is kept, for all connections to its issuer. */
interface KeptClient {
  /** When it was registered, in seconds since 1970. */
  readonly madeAt: number
  /** The client, sealed. */
  readonly sealed: string
}

/**
 * The client to use; undefined if a person must give one. `again`: a person says that the authorization server does not
 * know the kept one; it is replaced by another one once that is there, as often as the limit allows. Throws
 * SignInProblem if registering fails, and `rate_limited`.
 */
export async function findClient(
  options: UpstreamSignInDeps,
  server: ServerMetadata,
  fetch: OAuthFetch,
  again?: RateLimit,
): Promise<UpstreamClient | undefined> {
  const { base, hasDocument, store } = options
  if (server.client_id_metadata_document_supported === true && base.startsWith('https:') && hasDocument) {
    return { clientId: `${base}/oauth/client.json`, method: 'none' }
  }
  if (server.registration_endpoint === undefined) return undefined
  const { issuer } = server
  const kept = await readClient(options, issuer)
  if (kept.client !== undefined && again === undefined) return kept.client
  const wait = kept.client === undefined ? 0 : (again?.take(issuer) ?? 0)
  requireRate(wait, `postern registered another client at ${issuer} less than an hour ago`)
  const client = await register(base, server, fetch)
  const checks = [{ key: clientKey(options, issuer), value: kept.bytes }]
  if ((await store.commit({ checks, puts: [clientEntry(options, issuer, client)] })).ok) return client
  // Somebody else has registered one meanwhile: all use that.
  return findClient(options, server, fetch)
}

/** Forgets the client that its server no longer knows, if it is still this one: the next sign-in registers again. */
export async function forgetClient(
  options: UpstreamSignInDeps,
  issuer: string,
  { clientId }: UpstreamClient,
): Promise<void> {
  const kept = await readClient(options, issuer)
  if (kept.client?.clientId !== clientId) return
  const key = clientKey(options, issuer)
  await options.store.commit({ checks: [{ key, value: kept.bytes }], deletes: [key], fromReserve: 'revocation' })
}

/** Forgets the oldest clients past `upstreamClientsMax`: an MCP server can name any issuer. */
export async function sweepUpstreamClients(store: Pick<Store, 'range' | 'commit'>): Promise<void> {
  const all: { readonly key: Key; readonly madeAt: number }[] = []
  for await (const { key, value } of everyEntry(store, prefixOf('upstreamClient')))
    all.push({ key, madeAt: keptIn(value).madeAt })
  const excess = Math.max(0, all.length - upstreamClientsMax)
  const gone = all.sort((one, other) => one.madeAt - other.madeAt).slice(0, excess)
  while (gone.length > 0) {
    await store.commit({ deletes: gone.splice(0, grantsPerWrite).map(({ key }) => key), fromReserve: 'revocation' })
  }
}

/** `client`: undefined if there is none, or it was sealed with another secret. */
async function readClient(options: UpstreamSignInDeps, issuer: string) {
  const bytes = await options.store.get(clientKey(options, issuer))
  if (bytes === undefined) return { client: undefined, bytes: null }
  const opened = openText(options.signInKey, keptIn(bytes).sealed, `client ${issuer}`)
  return { client: opened === undefined ? undefined : (JSON.parse(opened) as UpstreamClient), bytes }
}

function keptIn(bytes: Uint8Array): KeptClient {
  return JSON.parse(textOf(bytes)) as KeptClient
}

function clientEntry(options: UpstreamSignInDeps, issuer: string, client: UpstreamClient) {
  const sealed = sealText(options.signInKey, JSON.stringify(client), `client ${issuer}`)
  const kept: KeptClient = { madeAt: secondsOf(options.clock), sealed }
  return { key: clientKey(options, issuer), value: Buffer.from(JSON.stringify(kept)) }
}

function clientKey({ base }: UpstreamSignInDeps, issuer: string) {
  const made = `${issuer}\0${redirectUriOf(base)}`
  return keyOf('upstreamClient', Bun.SHA256.hash(made, 'base64url'))
}

async function register(base: string, server: ServerMetadata, fetch: OAuthFetch): Promise<UpstreamClient> {
  const metadata = {
    ...metadataOf(base),
    application_type: isLocalUrl(base) ? 'native' : 'web',
    token_endpoint_auth_method: methodOf(server, false),
  }
  const response = await dynamicClientRegistrationRequest(server, metadata, requestOver(fetch))
  const made = registrationIn(await response.text())
  // Servers answer 200 too, and leave out when a secret expires: the token endpoint shows whether a secret works.
  if (!response.ok || typeof made?.client_id !== 'string' || !credentialShape.test(made.client_id)) {
    throw new SignInProblem('Registering as a client', `${server.issuer} refused it: ${problemOf(made ?? {})}`)
  }
  const { client_id: clientId, client_secret: secret, token_endpoint_auth_method: asRegistered } = made
  if (typeof secret !== 'string' || secret === '') return { clientId, method: 'none', isRegistered: true }
  if (!credentialShape.test(secret))
    throw new SignInProblem(
      'Registering as a client',
      `${server.issuer} gave a secret that is not 1 to 2000 characters of ASCII`,
    )
  const method = isMethod(asRegistered) ? asRegistered : methodOf(server, true)
  return { clientId, clientSecret: secret, method, isRegistered: true }
}

/**
 * Of a client's id and secret (RFC 6749, appendices A.1 and A.2). All connections to a server share the client, and each
 * form that begins a sign-in with it keeps it.
 */
const credentialShape = /^[\x20-\x7e]{1,2000}$/

function registrationIn(text: string): Registration | undefined {
  try {
    return parseForeign(text) as Registration
  } catch {
    return undefined
  }
}

/** The fields that are used of the answer to a registration (RFC 7591, 3.2.1). */
type Registration = Partial<Record<'client_id' | 'client_secret' | 'token_endpoint_auth_method', unknown>>

/** An authorization server's words about a failed request, shortened; never what we have sent. */
export function problemOf(error: unknown): string {
  const { error: code, error_description: description } = (error ?? {}) as Record<string, unknown>
  const told = [code, description].filter((text) => typeof text === 'string').join(': ')
  const { message = 'its answer cannot be used' } = error instanceof Error ? error : {}
  return cutText(told === '' ? message : told, 300)
}

/** The first announced method that we know; basic where none is announced. */
export function methodOf(
  { token_endpoint_auth_methods_supported: announced }: ServerMetadata,
  hasSecret: boolean,
): AuthMethod {
  const usable = (announced ?? ['client_secret_basic']).filter(isMethod)
  if (hasSecret) return usable.find((method) => method !== 'none') ?? 'client_secret_basic'
  return usable.includes('none') ? 'none' : (usable[0] ?? 'client_secret_basic')
}

function isMethod(method: unknown): method is AuthMethod {
  return method === 'none' || method === 'client_secret_basic' || method === 'client_secret_post'
}

export function authenticationOf({ clientSecret, method }: UpstreamClient): ClientAuth {
  if (clientSecret === undefined || method === 'none') return None()
  return method === 'client_secret_post' ? ClientSecretPost(clientSecret) : basic(clientSecret)
}

/** RFC 6749, 2.3.1: form-encoded, then Basic. The library encodes `-` and `_` too, which some servers do not decode. */
function basic(clientSecret: string): ClientAuth {
  return (_, { client_id }, __, headers) => {
    headers.set('authorization', `Basic ${btoa(`${formEncoded(client_id)}:${formEncoded(clientSecret)}`)}`)
  }
}

function formEncoded(text: string): string {
  return new URLSearchParams({ '': text }).toString().slice(1)
}
