/**
 * Grants: what a user has allowed a client to do, at one connection, until when. Kept until they expire or are ended. A
 * grant's access tokens name it as their ancestor, so revoking its id ends them all (`revocation.ts`).
 */

import { createHmac, timingSafeEqual } from 'node:crypto'
import { olderFirst } from '../clock.ts'
import type { Allowance } from '../fairness/allowance.ts'
import type { Holder } from '../fairness/owner.ts'
import { accessTokenSeconds, grantsPerWrite, usedClientSeconds, userClientsMax, userGrantsMax } from '../limits.ts'
import { createdAtOf, type Namespace } from '../model/organization.ts'
import type { ServiceTokenClaims } from '../model/token.ts'
import { nextTurn } from '../next-turn.ts'
import { reading } from '../schema/json.ts'
import { drained } from '../schema/steps.ts'
import { decideAgain } from '../storage/decide-again.ts'
import { jsonEntry, jsonOf, revocationEntry } from '../storage/directory-records.ts'
import { everyEntry, everyKey } from '../storage/every-entry.ts'
import { directoryVersionKey, idOfKey, keyOf, prefixOf } from '../storage/keys.ts'
import { piecesOf } from '../storage/pieces.ts'
import type { Entry, Key, Store } from '../storage/store.ts'
import { newVersion } from '../storage/versions.ts'

export interface Grant {
  readonly grantId: string
  readonly userId: string
  /** The API key of the browser session that allowed it: the grant ends with it. */
  readonly keyId: string
  readonly clientId: string
  /** The client's name or host, for lists. */
  readonly client: string
  readonly namespace: string
  /** Undefined if it is for the endpoint of the namespace, or of a view of it. */
  readonly connectionId?: string
  readonly view?: string
  /** When the connection was made, or the view or namespace whose endpoint it is for. */
  readonly madeAt: string
  /** The tools that may be called; all if left out. */
  readonly tools?: readonly string[]
  /** ISO 8601. */
  readonly createdAt: string
  /** Unix seconds. */
  readonly expires: number
  /** How often its refresh token was replaced; undefined if it has none. */
  readonly refreshes?: number
  /** Whether nobody can have got the current refresh token yet: then the one before is good once more. */
  readonly isUnanswered?: boolean
}

export type GrantEnd =
  | 'revoked by client'
  | 'revoked by operator'
  | 'revoked by its user'
  | 'its key was revoked'
  | 'code used twice'
  | 'refresh token used twice'
  | 'too many grants of the user'

/** The id of the grant that a code becomes. It follows from the code: one that comes again finds it, however late. */
export function grantIdOf(signInKey: Buffer, code: string): string {
  const digest = createHmac('sha256', signInKey).update(`grant\0${code}`).digest()
  return `grant_${digest.toString('base64url', 0, 16)}`
}

export function grantEntry(grant: Grant): Entry {
  return jsonEntry(keyOf('grant', grant.grantId), grant)
}

/** With its bytes as they were read, for the checks of a write. Undefined if there is none, or it has expired. */
export async function findGrant(store: Pick<Store, 'get'>, grantId: string, nowSeconds: number) {
  const bytes = await store.get(keyOf('grant', grantId))
  if (bytes === undefined) return undefined
  const grant = readGrant(bytes)
  return grant.expires > nowSeconds ? { grant, bytes } : undefined
}

/** Whether it is an access token of OAuth: its audience is the one connection that it is for. */
export function isOfSignedInClient(token: ServiceTokenClaims | undefined): token is ServiceTokenClaims {
  return token !== undefined && token.aud !== token.iss
}

/**
 * When what a client may be allowed was made for the owner of its namespace: a connection or a view that was there
 * before the namespace came to its owner was another one's. ISO 8601.
 */
export function madeAtOf(namespace: Namespace, made: { readonly createdAt: string } | undefined): string {
  const since = createdAtOf(namespace)
  return made !== undefined && Date.parse(made.createdAt) >= Date.parse(since) ? made.createdAt : since
}

/**
 * Whether a client that signed in was allowed another connection, namespace or view that has or had the same name. The
 * times of tokens cannot tell: a fixture or an import may bring an earlier `createdAt`.
 */
export async function isGrantedForAnother(
  directory: { grantMadeAt(grantId: string): Promise<string | undefined> },
  token: ServiceTokenClaims | undefined,
  createdAt: string,
): Promise<boolean> {
  return isOfSignedInClient(token) && (await directory.grantMadeAt(token.par?.[0] ?? '')) !== createdAt
}

/** A grant as the interface and commands show it. `tools`: null for all. */
export function shownGrant(grant: Grant) {
  const { grantId, userId, client, namespace, connectionId = null, view = null, tools, createdAt, expires } = grant
  const expiresAt = new Date(expires * 1000).toISOString()
  const shownTools = tools === undefined ? null : [...tools]
  return { id: grantId, userId, client, namespace, connectionId, view, tools: shownTools, createdAt, expiresAt }
}

/** The write that ends a grant and all its access tokens. */
export function endOf({ grantId, userId }: Grant, nowSeconds: number) {
  return {
    deletes: [keyOf('grant', grantId), keyOf('heldGrant', userId, grantId)],
    // No access token of it lives longer.
    puts: [revocationEntry(grantId, nowSeconds + accessTokenSeconds)],
    fromReserve: 'revocation',
  } as const
}

/** Ends a grant, durably. False if there is no such grant: of several that end one at once, one has ended it. */
export async function endGrant(
  store: Store,
  grantId: string,
  nowSeconds: number,
  allowance?: Allowance,
): Promise<boolean> {
  // Not in the queue: the code or token that names it may be made up.
  if ((await store.get(keyOf('grant', grantId))) === undefined) return false
  return (await endGrants(store, [grantId], nowSeconds, allowance)).length > 0
}

/**
 * Ends grants of one user, durably, and resolves with those that there were. Many in a write, and in the queue of the
 * request's directory changes: while thousands were ended one by one, nobody else's revocation got through.
 */
async function endGrants(
  store: Store,
  grantIds: readonly string[],
  nowSeconds: number,
  allowance?: Allowance,
): Promise<string[]> {
  const ended: string[] = []
  for (const some of piecesOf(grantIds, { most: grantsPerWrite })) {
    const end = () => endSome(store, some, { nowSeconds, holder: allowance?.holder })
    ended.push(...(await (allowance?.changeDirectory(end, 'removal') ?? end())))
  }
  return ended
}

function endSome(
  store: Store,
  grantIds: readonly string[],
  { nowSeconds, holder }: { readonly nowSeconds: number; readonly holder: Holder | undefined },
): Promise<string[]> {
  const keys = grantIds.map((grantId) => keyOf('grant', grantId))
  return decideAgain(`grants like ${grantIds[0]}`, async () => {
    const values = await store.getMany(keys)
    const checks = keys.flatMap((key, index) => (values[index] === undefined ? [] : [{ key, value: values[index] }]))
    const grants = checks.map(({ value }) => readGrant(value))
    const ends = grants.map((grant) => endOf(grant, nowSeconds))
    const [first] = ends
    if (first === undefined) return []
    const puts = [...ends.flatMap((end) => end.puts), newVersion(directoryVersionKey)]
    const { ok } = await store.commit({ ...first, holder, checks, puts, deletes: ends.flatMap((end) => end.deletes) })
    return ok ? grants.map(({ grantId }) => grantId) : 'again'
  })
}

/** Ends the grants of keys that were revoked, and returns their ids. Rejects with `rate_limited`. */
export async function endGrantsOfKeys(
  store: Store,
  { userId, keyIds }: { readonly userId: string; readonly keyIds: readonly string[] },
  nowSeconds: number,
  allowance?: Allowance,
): Promise<string[]> {
  const find = async () => {
    const found: string[] = []
    let read = 0
    for await (const value of grantsOf(store, userId)) {
      allowance?.spendRead(value.length)
      const { grantId, keyId, expires } = readGrant(value)
      if (expires > nowSeconds && keyIds.includes(keyId)) found.push(grantId)
      read += value.length
      if (read < grantBytesAtOnce) continue
      read = 0
      await nextTurn()
    }
    return found
  }
  // Not in the owner's time, which somebody may use up who has a token of it: for one revocation at a time.
  const ofKeys = await (allowance?.write(`the grants of ${userId}`, find, 'removal') ?? find())
  return endGrants(store, ofKeys, nowSeconds, allowance)
}

/** Bytes of grants that are read in one turn of the event loop, in half a millisecond. Past it: the next turn. */
const grantBytesAtOnce = 64 * 1024

interface Listed {
  /** The user whose grants are wanted; everybody's if left out. */
  readonly userId?: string | undefined
  /** That of a request: a user's grants may have 17 MB, which are parsed in their owner's time. */
  readonly allowance?: Allowance
}

/** All grants that have not expired, oldest first. Rejects with `rate_limited`. */
export async function listGrants(
  store: Store,
  nowSeconds: number,
  { userId, allowance }: Listed = {},
): Promise<Grant[]> {
  const found: Grant[] = []
  for await (const value of userId === undefined ? allGrants(store, allowance) : grantsOf(store, userId, allowance)) {
    allowance?.spendRead(value.length)
    const work = reading(value.length, () => readGrant(value))
    found.push(await (allowance?.parse(value.length, work) ?? drained(work)))
  }
  return found.filter(({ expires }) => expires > nowSeconds).sort(olderFirst)
}

async function* allGrants(store: Store, allowance: Allowance | undefined): AsyncGenerator<Uint8Array> {
  for await (const { value } of everyEntry(store, prefixOf('grant'), allowance?.slices())) yield value
}

/** Grants that are read together: a grant of 200 tools has 12 kB, and each read asks a database. */
const grantsAtOnce = 20

async function* grantsOf(store: Store, userId: string, allowance?: Allowance): AsyncGenerator<Uint8Array> {
  const prefix = prefixOf('heldGrant', userId)
  const held = everyKey(store, prefix, allowance?.slices())
  const keys = await Array.fromAsync(held, (key) => keyOf('grant', idOfKey(prefix, key)))
  for (const some of piecesOf(keys, { most: grantsAtOnce }))
    for (const value of await store.getMany(some)) if (value !== undefined) yield value
}

/**
 * Deletes expired grants and unused clients, and of each user all beyond the last `userGrantsMax` grants and
 * `userClientsMax` clients: nobody fills the disk. Returns the grants that it ended before their time.
 */
export async function sweepGrants(store: Store, nowSeconds: number): Promise<string[]> {
  const gone: Key[] = []
  const liveGrants: Dated[] = []
  const liveClients: Dated[] = []
  for await (const { key, value } of everyEntry(store, prefixOf('grant'))) {
    const { grantId, userId, createdAt, expires } = readGrant(value)
    if (expires <= nowSeconds) gone.push(key, keyOf('heldGrant', userId, grantId))
    else liveGrants.push({ userId, id: grantId, time: Date.parse(createdAt) })
  }
  const clients = prefixOf('oauthClient')
  for await (const { key, value } of everyEntry(store, clients)) {
    const { userId, usedAt = 0 } = readClient(value)
    if (usedAt + usedClientSeconds <= nowSeconds) gone.push(key)
    else if (userId !== undefined) liveClients.push({ userId, id: idOfKey(clients, key), time: usedAt })
  }
  gone.push(
    ...olderThanLast(liveClients, userClientsMax)
      .flat()
      .map((id) => keyOf('oauthClient', id)),
  )
  while (gone.length > 0) await store.commit({ deletes: gone.splice(0, grantsPerWrite), fromReserve: 'revocation' })
  const ended: string[] = []
  for (const ids of olderThanLast(liveGrants, userGrantsMax)) ended.push(...(await endGrants(store, ids, nowSeconds)))
  return ended
}

/** A grant or a client of a user, with the time of its last use. */
interface Dated {
  readonly userId: string
  readonly id: string
  readonly time: number
}

/** The ids beyond the last `most` of each user, a list for each. */
function olderThanLast(live: readonly Dated[], most: number): string[][] {
  return [...Map.groupBy(live, ({ userId }) => userId).values()]
    .filter(({ length }) => length > most)
    .map((all) => all.toSorted((a, b) => b.time - a.time).slice(most))
    .map((rest) => rest.map(({ id }) => id))
}

/** A client that was registered, as it is stored. */
export interface StoredClient {
  readonly name?: string
  readonly redirectUris: readonly string[]
  readonly refreshes: boolean
  /** Unix seconds of the last grant; undefined as long as there was none. */
  readonly usedAt?: number
  /** The user who was the first to allow it something: it counts for nobody else, however many use it. */
  readonly userId?: string
}

export const readClient: (bytes: Uint8Array) => StoredClient = jsonOf
export const readGrant: (bytes: Uint8Array) => Grant = jsonOf

/**
 * The refresh token of a grant: its id, the number of the token, and a MAC of both. The store has only the current
 * number, and still tells an old token of the grant from one that was made up.
 */
export function refreshTokenOf(signInKey: Buffer, { grantId, refreshes = 0 }: Grant): string {
  const text = `${grantId}.${refreshes.toString(36)}`
  return `${text}.${macOf(signInKey, text)}`
}

/** The grant and the number in a refresh token of ours; undefined for any other text. */
export function readRefreshToken(signInKey: Buffer, token: string) {
  const [, text = '', grantId = '', number = '', mac = ''] =
    /^((grant_[A-Za-z0-9_-]{22})\.([0-9a-z]{1,10}))\.([A-Za-z0-9_-]{43})$/.exec(token) ?? []
  if (!timingSafeEqual(Buffer.from(macOf(signInKey, text)), Buffer.from(mac.padEnd(43)))) return undefined
  return { grantId, number: Number.parseInt(number, 36) }
}

function macOf(signInKey: Buffer, text: string): string {
  return createHmac('sha256', signInKey).update(`refresh\0${text}`).digest('base64url')
}
