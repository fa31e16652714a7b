/** `postern token revoke`: a running server sees the revocation at its next request. */

import { revokeToken } from '../auth/revocation.ts'
import { issuedClaims, unverifiedClaims } from '../auth/service-token.ts'
import { readKeyRing } from '../auth/signing-keys.ts'
import { secondsOf, systemClock } from '../clock.ts'
import { CommandError } from '../errors.ts'
import { openExistingDataFolder, type Place } from '../maintenance/data-folder.ts'
import { tokenIdShape } from '../model/token.ts'
import { auditCommand } from './audit.ts'
import { noToken, readToken, revokedToken } from './json-input.ts'
import type { Terminal } from './terminal.ts'

/** `named`: a token, its id, or `-` for stdin. Throws CommandError for another text, and another instance's token. */
export async function revokeTokenCommand(place: Place, { stdout, stderr }: Terminal, named: string): Promise<void> {
  const token = readToken(named)
  const claims = unverifiedClaims(token)
  if (claims === undefined && !tokenIdShape.test(token)) throw new CommandError(noToken, 2)
  const { data } = place
  await using folder = await openExistingDataFolder(place, stderr)
  const { store, secrets } = folder
  if (claims !== undefined) {
    const keys = await readKeyRing(store, secrets.sealingKey)
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
