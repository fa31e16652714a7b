/** The records that a start stores for later starts: the operator key and the base URL. */

import { apiKeyDigest, findApiKey, fixtureKeyId, makeApiKey } from '../auth/api-key.ts'
import { CommandError } from '../errors.ts'
import type { DataFolder } from '../maintenance/data-folder.ts'
import type { ApiKey } from '../model/organization.ts'
import type { Log } from '../ops/log.ts'
import { textOf } from '../storage/bytes.ts'
import { directoryVersionKey, keyOf } from '../storage/keys.ts'
import type { Store } from '../storage/store.ts'
import { newVersion } from '../storage/versions.ts'

/**
 * Creates one operator key at the first start of a data folder. Resolves with the key to show, or undefined at later
 * starts and if the environment gave the key. Throws CommandError if that key is also in the fixtures.
 */
export async function firstStart(
  { store, secrets }: Pick<DataFolder, 'store' | 'secrets'>,
  operatorKey: string | undefined,
  log: Log,
): Promise<string | undefined> {
  if (await hasStarted(store)) {
    if (operatorKey !== undefined)
      log.warn(
        'POSTERN_API_KEY is read at the first start only, and was ignored: you can unset it. `postern keys create --user operator --operator` makes another operator key',
      )
    return undefined
  }
  const digest = operatorKey === undefined ? undefined : apiKeyDigest(secrets.apiKeyPepper, operatorKey)
  const known = digest === undefined ? undefined : await findApiKey(store, digest)
  if (digest !== undefined && known !== undefined) requireOperator(known, digest)
  const now = new Date()
  const given = operatorKey === undefined ? {} : { key: operatorKey }
  const wanted = { userId: 'operator', name: 'first start', operator: true, now, ...given }
  const { key, puts } = known !== undefined ? { key: undefined, puts: [] } : makeApiKey(secrets.apiKeyPepper, wanted)
  // One commit, so that of several starts at once, or after one that was killed, one alone makes a key.
  const committed = await store.commit({
    checks: [{ key: keyOf('started'), value: null }],
    puts: [...puts, newVersion(directoryVersionKey), { key: keyOf('started'), value: Buffer.from(now.toISOString()) }],
  })
  return committed.ok && operatorKey === undefined ? key : undefined
}

/** Whether a server has run on this store before. */
export async function hasStarted(store: Pick<Store, 'get'>): Promise<boolean> {
  return (await store.get(keyOf('started'))) !== undefined
}

/** Throws CommandError for a key of fixtures, and for one that opens nothing for an operator. */
function requireOperator({ keyId, userId, operator, revokedAt }: ApiKey, digest: string): void {
  const isFixture = keyId === fixtureKeyId(digest, userId)
  const what = isFixture
    ? 'of the fixtures'
    : revokedAt !== null
      ? 'that was revoked'
      : 'of somebody who is no operator'
  if (isFixture || revokedAt !== null || !operator)
    throw new CommandError(
      `POSTERN_API_KEY is also an API key ${what} (${keyId}): choose another value for the variable`,
    )
}

/** The base URL of the last start; undefined if the store has never been served. */
export async function storedBaseUrl(store: Pick<Store, 'get'>): Promise<string | undefined> {
  const stored = await store.get(keyOf('baseUrl'))
  return stored && textOf(stored)
}

/** Stores the base URL, and warns if it has changed: it is the issuer of tokens, so earlier ones are refused. */
export async function recordBaseUrl(store: Store, url: string, log: Log): Promise<void> {
  const before = await storedBaseUrl(store)
  if (before === url) return
  if (before !== undefined)
    log.warn(
      'the base URL has changed since the last start, so earlier tokens are refused: mint new ones, or start with the former one',
      { before, now: url },
    )
  try {
    await store.commit({ puts: [{ key: keyOf('baseUrl'), value: Buffer.from(url) }] })
  } catch (error) {
    // A full disk must not prevent serving: only `token explain` needs the stored URL.
    log.warn('the base URL could not be stored, so `postern token explain` and `signin-link` may use a former one', {
      error: (error as Error).message,
    })
  }
}

/** On stdout and not in the log: logs are kept and shipped, and this key may access everything. */
export function operatorKeyBlock(key: string, url: string): string {
  const line = '─'.repeat(72)
  return `${line}
  Operator key, shown only once. It may access everything: keep it safe.

  ${key}

  Log in with it: postern login ${url}
  The first steps: ${url}/docs/company
${line}
`
}
