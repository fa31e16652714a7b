/** `postern keys create | list | revoke`: API keys. A running server sees a change at its next request. */

import { createApiKey, listApiKeys, revokeApiKey } from '../auth/api-key.ts'
import { endGrantsOfKeys } from '../auth/grants.ts'
import { CommandError } from '../errors.ts'
import {
  madeFolder,
  type NamedFolder,
  openExistingDataFolder,
  openNamedDataFolder,
  type Place,
} from '../maintenance/data-folder.ts'
import { UserId } from '../model/names.ts'
import { ApiKey } from '../model/organization.ts'
import { validatorOf } from '../schema/check.ts'
import { readApiKey } from '../storage/directory-records.ts'
import { keyOf } from '../storage/keys.ts'
import { keyHeading, keyRow } from './access-rows.ts'
import { auditCommand } from './audit.ts'
import { requireShape } from './json-input.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

const userShape = validatorOf(UserId)
const nameShape = validatorOf(ApiKey.properties.name)

/** `user`: the id of the user that the key acts for. `name`: a note for people. */
export interface CreateFlags extends NamedFolder {
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
  const { store, secrets, isNew } = await openNamedDataFolder(flags, terminal.stderr)
  const made = { userId: user, name, operator, now: new Date() }
  const { key, record } = await createApiKey(store, secrets.apiKeyPepper, made)
  await store.close()
  // Audited before the key is printed: a key that is not in the log is never shown.
  await auditCommand(data, 'key.created', { keyId: record.keyId, userId: user, operator })
  terminal.stdout(`${key}\n`)
  if (isNew) terminal.stderr(madeFolder(data))
  terminal.stderr(`${record.keyId} belongs to ${user}${operator ? ', an operator' : ''}. The key is not shown again.\n`)
}

/** Prints all keys, revoked ones included, as a table. */
export async function listKeys(place: Place, { stdout, stderr }: Terminal): Promise<void> {
  const { store } = await openExistingDataFolder(place, stderr)
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
  await using folder = await openExistingDataFolder(place, stderr)
  const { store } = folder
  const now = new Date()
  if (!(await revokeApiKey(store, keyId, now)))
    throw new CommandError(`there is no key ${JSON.stringify(keyId)}: see \`postern keys list\``)
  await auditCommand(place.data, 'key.revoked', { keyId })
  const { userId } = readApiKey((await store.get(keyOf('apiKey', keyId))) as Uint8Array)
  for (const grantId of await endGrantsOfKeys(store, { userId, keyIds: [keyId] }, now.getTime() / 1000))
    await auditCommand(place.data, 'grant.ended', { grantId, reason: 'its key was revoked' })
  stdout(`${keyId} is revoked, and every token minted with it\n`)
}
