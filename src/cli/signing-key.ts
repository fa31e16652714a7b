/** `postern signing-key list | rotate | revoke`: keys that sign tokens. A server sees a change at its next request. */

import {
  changeSigningKeys,
  keyRing,
  removeKey,
  rotateKeys,
  type SigningKeyRecord,
  shownKeys,
} from '../auth/signing-keys.ts'
import { systemClock } from '../clock.ts'
import { CommandError } from '../errors.ts'
import { openExistingDataFolder, type Place } from '../maintenance/data-folder.ts'
import { storeSeconds } from '../storage/store-seconds.ts'
import { signingKeyHeading, signingKeyRow } from './access-rows.ts'
import { auditCommand } from './audit.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

/** Prints all keys with their state: next, active or retired. */
export async function listSigningKeys(place: Place, { stdout, stderr }: Terminal): Promise<void> {
  stdout((await change(place, stderr, () => undefined)).listing)
}

/** Makes the next key active and the active one retired, and creates a new next key. */
export async function rotateSigningKeys(place: Place, { stdout, stderr }: Terminal): Promise<void> {
  const { active, listing } = await change(place, stderr, rotateKeys)
  await auditCommand(place.data, 'signing-key.rotated', { kid: active.kid })
  stdout(`${active.kid} signs from now on\n\n${listing}`)
}

/** Removes a key at once: every token that it signed is refused. Throws CommandError for an unknown id. */
export async function revokeSigningKey(kid: string, place: Place, { stdout, stderr }: Terminal): Promise<void> {
  const { listing } = await change(place, stderr, (before, at) => {
    const after = removeKey(before, kid, at)
    if (after === undefined)
      throw new CommandError(`there is no signing key ${JSON.stringify(kid)}: see \`postern signing-key list\``)
    return after
  })
  await auditCommand(place.data, 'signing-key.revoked', { kid })
  stdout(`${kid} is revoked, and every token it signed\n\n${listing}`)
}

/**
 * Changes the keys as `how` returns them; undefined leaves them alone. `how` may run more than once, if another process
 * changes them too. The time is the store's, so that all machines agree on when a key may be replaced.
 */
async function change(
  place: Place,
  stderr: Terminal['stderr'],
  how: (records: readonly SigningKeyRecord[], nowSeconds: number) => SigningKeyRecord[] | undefined,
) {
  await using folder = await openExistingDataFolder(place, stderr)
  const { store, secrets } = folder
  const nowSeconds = await storeSeconds(store, systemClock)
  const records = await changeSigningKeys(store, secrets.sealingKey, (before) => how(before ?? [], nowSeconds))
  const { active, all } = keyRing(records ?? [])
  return { active, listing: table([signingKeyHeading, ...shownKeys(all, nowSeconds).map(signingKeyRow)]) }
}
