/**
 * `postern signing-key list | rotate | revoke`: manages the keys that sign service tokens. The server may be running;
 * it sees a change at its next request.
 */

import {
  changeSigningKeys,
  isAccepted,
  keyRing,
  removeKey,
  rotateKeys,
  type SigningKeyRecord,
} from '../auth/signing-keys.ts'
import { CommandError } from '../errors.ts'
import { keyRetirementSeconds } from '../limits.ts'
import { openExistingDataFolder } from '../maintenance/data-folder.ts'
import { auditCommand } from './audit.ts'
import { table } from './table.ts'
import type { Terminal } from './terminal.ts'

interface Flags {
  readonly data: string
}

/** Prints all keys with their state: next, active or retired. */
export async function listSigningKeys({ data }: Flags, now: Date, { stdout, stderr }: Terminal): Promise<void> {
  stdout(describeKey(await change(data, stderr, () => undefined), seconds(now)))
}

/** Makes the next key active and the active one retired, and creates a new next key. */
export async function rotateSigningKeys({ data }: Flags, now: Date, { stdout, stderr }: Terminal): Promise<void> {
  const records = await change(data, stderr, (before) => rotateKeys(before, seconds(now)))
  const { active } = keyRing(records)
  await auditCommand(data, 'signing-key.rotated', { kid: active.kid })
  stdout(`${active.kid} signs from now on\n\n${describeKey(records, seconds(now))}`)
}

/** Removes a key at once: every token that it signed is refused. Throws CommandError for an unknown id. */
export async function revokeSigningKey(
  kid: string,
  { data }: Flags,
  now: Date,
  { stdout, stderr }: Terminal,
): Promise<void> {
  const records = await change(data, stderr, (before) => {
    const after = removeKey(before, kid, seconds(now))
    if (after === undefined)
      throw new CommandError(`there is no signing key ${JSON.stringify(kid)}: see \`postern signing-key list\``)
    return after
  })
  await auditCommand(data, 'signing-key.revoked', { kid })
  stdout(`${kid} is revoked, and every token it signed\n\n${describeKey(records, seconds(now))}`)
}

/**
 * Changes the keys as `how` returns them; undefined leaves them alone. Resolves with the keys after that. `how` may run
 * more than once, if another process changes them too.
 */
async function change(
  data: string,
  stderr: Terminal['stderr'],
  how: (records: readonly SigningKeyRecord[]) => SigningKeyRecord[] | undefined,
): Promise<readonly SigningKeyRecord[]> {
  const { store, secrets } = await openExistingDataFolder(data, stderr)
  try {
    const records = await changeSigningKeys(store, secrets.sealingKey, (before) => how(before ?? []))
    return records ?? []
  } finally {
    await store.close()
  }
}

/** The table of keys. A retired key is accepted until `keyRetirementSeconds` after it was retired. */
function describeKey(records: readonly SigningKeyRecord[], nowSeconds: number): string {
  const time = (unix: number) => new Date(unix * 1000).toISOString()
  const rows = keyRing(records).all.map((key) => [
    key.kid,
    key.state,
    time(key.since),
    key.state !== 'retired'
      ? ''
      : isAccepted(key, nowSeconds)
        ? `accepted until ${time(key.since + keyRetirementSeconds)}`
        : 'over',
  ])
  return table([['KID', 'STATE', 'SINCE', ''], ...rows])
}

function seconds(now: Date): number {
  return Math.floor(now.getTime() / 1000)
}
