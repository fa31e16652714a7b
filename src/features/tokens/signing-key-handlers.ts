/** `GET /signing-keys` and `POST /signing-keys/rotate`: the keys that sign tokens, for operators (contract, 22.3). */

import { auditedCaller } from '../../auth/authenticate.ts'
import { requireOperator } from '../../auth/authorizer.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { changeSigningKeys, keyRing, rotateKeys, type SigningKeyRecord, shownKeys } from '../../auth/signing-keys.ts'
import { CommandError, conflict } from '../../errors.ts'
import { refuseBody } from '../../http/body.ts'
import { handlersOf } from '../../http/handler.ts'
import { refuseQuery } from '../../http/query.ts'
import { noStoreJson, wholeResponse } from '../../http/respond.ts'
import type { SigningKeyList } from '../../model/token.ts'
import { storeSeconds } from '../../storage/store-seconds.ts'

export interface SigningKeyDeps extends Pick<SharedParts, 'authorizer' | 'audit' | 'store' | 'writes' | 'clock'> {
  readonly sealingKey: Buffer
}

export const signingKeyHandlers = handlersOf({ listSigningKeys, rotateSigningKeys })

async function listSigningKeys(deps: SigningKeyDeps, request: Request): Promise<Response> {
  requireOperator(await deps.authorizer.authenticate(request)) // 401, 429, 403
  refuseQuery(request.url) // 400
  const { store, clock, sealingKey } = deps
  const now = await storeSeconds(store, clock)
  return listResponse(request, await changeSigningKeys(store, sealingKey, () => undefined), now)
}

async function rotateSigningKeys(deps: SigningKeyDeps, request: Request): Promise<Response> {
  const { writes, store, sealingKey, clock, audit } = deps
  const context = await writes.authenticate(request) // 401, 429
  requireOperator(context) // 403
  refuseQuery(request.url) // 400
  await refuseBody(request) // 400
  const now = await storeSeconds(store, clock)
  try {
    const rotated = await changeSigningKeys(store, sealingKey, (before) => rotateKeys(before ?? [], now))
    const { kid } = keyRing(rotated ?? []).active
    await audit.recordDone('signing-key.rotated', { ...auditedCaller(context.caller), kid })
    return listResponse(request, rotated, now)
  } catch (thrown) {
    // Verifiers may still have a list without the next key.
    throw thrown instanceof CommandError ? conflict(thrown.message) : thrown
  }
}

function listResponse(request: Request, records: readonly SigningKeyRecord[] = [], now: number): Response {
  const list: SigningKeyList = { keys: shownKeys(keyRing(records).all, now) }
  return wholeResponse(request, JSON.stringify(list), { headers: noStoreJson })
}
