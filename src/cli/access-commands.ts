/** Keys, grants, tokens and signing keys of a data folder or database. A server sees a change at its next request. */

import { createApiKey, listApiKeys, revokeApiKey } from '../auth/api-key.ts'
import { createExpiringRecords } from '../auth/expiring-records.ts'
import { endGrant, endGrantsOfKeys, listGrants, shownGrant } from '../auth/grants.ts'
import { revokeToken } from '../auth/revocation.ts'
import { issuedClaims, unverifiedClaims } from '../auth/service-token.ts'
import * as signing from '../auth/signing-keys.ts'
import { secondsOf, systemClock } from '../clock.ts'
import { CommandError } from '../errors.ts'
import type { LoginLink } from '../features/sign-in/sign-in-handlers.ts'
import { loginLinkSeconds } from '../limits.ts'
import * as folders from '../maintenance/data-folder.ts'
import { UserId } from '../model/names.ts'
import { ApiKey } from '../model/organization.ts'
import { tokenIdShape } from '../model/token.ts'
import { validatorOf } from '../schema/check.ts'
import { readApiKey } from '../storage/directory-records.ts'
import { keyOf } from '../storage/keys.ts'
import { storeSeconds } from '../storage/store-seconds.ts'
import { grantHeading, grantRow, keyHeading, keyRow, signingKeyHeading, signingKeyRow } from './access-rows.ts'
import { auditCommand } from './audit.ts'
import { storedBaseUrl } from './first-start.ts'
import { noToken, readToken, requireShape, revokedToken } from './json-input.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

type Place = folders.Place

const userShape = validatorOf(UserId)
const nameShape = validatorOf(ApiKey.properties.name)
const noKey = (id: string) => new CommandError(`there is no key ${JSON.stringify(id)}: see \`postern keys list\``)

/** `user`: the id of the user that the key acts for. `name`: a note for people. */
export interface CreateFlags extends folders.NamedFolder {
  readonly user?: string
  readonly name?: string
  readonly operator?: boolean
}

/** Creates a key and prints it alone on stdout, for scripts. Throws CommandError 2 for an invalid flag. */
export async function createKey(flags: CreateFlags, terminal: Terminal): Promise<void> {
  const { data, user, name = null, operator = false } = flags
  // A key without a user could not be told from others in the audit log, nor ended with its owner.
  if (user === undefined) throw new CommandError('--user: name the user that the key belongs to', 2)
  requireShape('--user', userShape, user)
  requireShape('--name', nameShape, name)
  const { store, secrets, isNew } = await folders.openNamedDataFolder(flags, terminal.stderr)
  const made = { userId: user, name, operator, now: new Date() }
  const { key, record } = await createApiKey(store, secrets.apiKeyPepper, made)
  await store.close()
  // Audited before the key is printed: a key that is not in the log is never shown.
  await auditCommand(data, 'key.created', { keyId: record.keyId, userId: user, operator })
  terminal.stdout(`${key}\n`)
  if (isNew) terminal.stderr(folders.madeFolder(data))
  terminal.stderr(`${record.keyId} belongs to ${user}${operator ? ', an operator' : ''}. The key is not shown again.\n`)
}

/** Prints all keys, revoked ones included, as a table. */
export async function listKeys(place: Place, { stdout, stderr }: Terminal): Promise<void> {
  const { store } = await folders.openExistingDataFolder(place, stderr)
  const keys = await listApiKeys(store)
  await store.close()
  const rows = keys.map((key) => keyRow({ ...key, id: key.keyId, name: key.name ?? '' }))
  stdout(table([keyHeading, ...rows]))
}

/**
 * Revokes a key and with it every token minted from it. Grants that its sessions gave to clients are over from then on;
 * they are removed and audited after it. Throws CommandError for an unknown id.
 */
export async function revokeKey(place: Place, { stdout, stderr }: Terminal, keyId: string): Promise<void> {
  await using folder = await folders.openExistingDataFolder(place, stderr)
  const { store } = folder
  const now = new Date()
  if (!(await revokeApiKey(store, keyId, now))) throw noKey(keyId)
  await auditCommand(place.data, 'key.revoked', { keyId })
  const { userId } = readApiKey((await store.get(keyOf('apiKey', keyId))) as Uint8Array)
  for (const grantId of await endGrantsOfKeys(store, { userId, keyIds: [keyId] }, now.getTime() / 1000))
    await auditCommand(place.data, 'grant.ended', { grantId, reason: 'its key was revoked' })
  stdout(`${keyId} is revoked, and every token minted with it\n`)
}

/**
 * Prints a link that signs somebody in as the user of an API key, once: for people who should not have to paste a key
 * into a browser, and for those who have none. The key itself is not in it: the store has a hash of the link's secret,
 * and the key's id. Throws CommandError for an unknown or revoked key, and for a folder that no server ever used.
 */
export async function loginLink(keyId: string, place: Place, { stdout, stderr }: Terminal): Promise<void> {
  const { data } = place
  await using folder = await folders.openExistingDataFolder(place, stderr)
  const { store, secrets } = folder
  const stored = await store.get(keyOf('apiKey', keyId))
  const key = stored === undefined ? undefined : readApiKey(stored)
  if (key === undefined) throw noKey(keyId)
  if (key.revokedAt !== null) throw new CommandError(`${keyId} is revoked: create a key, or name another one`)
  // The command has no flags of the server: it uses the URL under which the last start served.
  const baseUrl = await storedBaseUrl(store)
  if (baseUrl === undefined) throw new CommandError(`postern has not served ${data} yet: run \`postern serve\` first`)
  const records = createExpiringRecords(store, secrets.signInKey, systemClock)
  const secret = await records.add('login link', { keyId } satisfies LoginLink, loginLinkSeconds)
  await auditCommand(data, 'signin.link_created', { keyId, userId: key.userId })
  // The link alone on stdout, for `| pbcopy` and scripts. The sentence goes to stderr.
  stdout(`${baseUrl.replace(/\/$/, '')}/signin?link=${secret}\n`)
  stderr(`It signs in as ${key.userId}, once, within ten minutes.\n`)
}

/** Prints all grants that have not expired, as a table. Their tokens are not in it, as the store holds none. */
export async function listGrantsCommand(place: Place, { stdout, stderr }: Terminal): Promise<void> {
  const { store } = await folders.openExistingDataFolder(place, stderr)
  const keys = await listApiKeys(store)
  const live = new Set(keys.filter(({ revokedAt }) => revokedAt === null).map(({ keyId }) => keyId))
  const all = await listGrants(store, secondsOf(systemClock))
  await store.close()
  // A grant ends when the API key of the user who allowed it is revoked.
  const rows = all.filter(({ keyId }) => live.has(keyId)).map((grant) => grantRow(shownGrant(grant)))
  stdout(table([grantHeading, ...rows]))
}

/** Ends a grant with all its tokens. The user may allow the client again. Throws CommandError for an unknown id. */
export async function revokeGrantCommand(place: Place, { stdout, stderr }: Terminal, grantId: string): Promise<void> {
  const { store } = await folders.openExistingDataFolder(place, stderr)
  const found = await endGrant(store, grantId, secondsOf(systemClock))
  await store.close()
  if (!found) throw new CommandError(`there is no grant ${JSON.stringify(grantId)}: see \`postern grants list\``)
  await auditCommand(place.data, 'grant.ended', { grantId, reason: 'revoked by operator' })
  stdout(`${grantId} is revoked, and every token of it\n`)
}

/** `named`: a token, its id, or `-` for stdin. Throws CommandError for another text, and another instance's token. */
export async function revokeTokenCommand(place: Place, { stdout, stderr }: Terminal, named: string): Promise<void> {
  const token = readToken(named)
  const claims = unverifiedClaims(token)
  if (claims === undefined && !tokenIdShape.test(token)) throw new CommandError(noToken, 2)
  const { data } = place
  await using folder = await folders.openExistingDataFolder(place, stderr)
  const { store, secrets } = folder
  if (claims !== undefined) {
    const keys = await signing.readKeyRing(store, secrets.sealingKey)
    // By its own issuer: the base URL may have changed since.
    if (keys === undefined || issuedClaims(token, { keys, issuer: claims.iss }) === undefined)
      throw new CommandError(
        `this token was not issued by ${data}: there is nothing to revoke; name another folder with --data`,
      )
  }
  const jti = claims?.jti ?? token
  // An id alone says nothing about its expiry: it is then revoked for the longest lifetime.
  await revokeToken(store, jti, { exp: claims?.exp, nowSeconds: secondsOf(systemClock) })
  await auditCommand(data, 'token.revoked', { jti })
  stdout(`${revokedToken(jti, claims === undefined)}\n`)
}

/** Prints all signing keys with their state: next, active or retired. */
export async function listSigningKeys(place: Place, { stdout, stderr }: Terminal): Promise<void> {
  stdout((await changeSigningKeys(place, stderr, () => undefined)).listing)
}

/** Makes the next key active and the active one retired, and creates a new next key. */
export async function rotateSigningKeys(place: Place, { stdout, stderr }: Terminal): Promise<void> {
  const { active, listing } = await changeSigningKeys(place, stderr, signing.rotateKeys)
  await auditCommand(place.data, 'signing-key.rotated', { kid: active.kid })
  stdout(`${active.kid} signs from now on\n\n${listing}`)
}

/** Removes a signing key at once: every token that it signed is refused. Throws CommandError for an unknown id. */
export async function revokeSigningKey(kid: string, place: Place, { stdout, stderr }: Terminal): Promise<void> {
  const { listing } = await changeSigningKeys(place, stderr, (before, at) => {
    const after = signing.removeKey(before, kid, at)
    if (after === undefined)
      throw new CommandError(`there is no signing key ${JSON.stringify(kid)}: see \`postern signing-key list\``)
    return after
  })
  await auditCommand(place.data, 'signing-key.revoked', { kid })
  stdout(`${kid} is revoked, and every token it signed\n\n${listing}`)
}

/**
 * Changes the signing keys as `how` returns them; undefined leaves them alone. `how` may run more than once, if another
 * process changes them too. The time is the store's, so that all machines agree on when a key may be replaced.
 */
async function changeSigningKeys(
  place: Place,
  stderr: Terminal['stderr'],
  how: (records: readonly signing.SigningKeyRecord[], nowSeconds: number) => signing.SigningKeyRecord[] | undefined,
) {
  await using folder = await folders.openExistingDataFolder(place, stderr)
  const { store, secrets } = folder
  const nowSeconds = await storeSeconds(store, systemClock)
  const records = await signing.changeSigningKeys(store, secrets.sealingKey, (before) => how(before ?? [], nowSeconds))
  const { active, all } = signing.keyRing(records ?? [])
  return { active, listing: table([signingKeyHeading, ...signing.shownKeys(all, nowSeconds).map(signingKeyRow)]) }
}
