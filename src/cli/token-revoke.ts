/** `postern token revoke`: a token and all its children, whether or not the server runs. */

import { revokeToken } from '../auth/revocation.ts'
import { unverifiedClaims, verifyToken } from '../auth/service-token.ts'
import { readKeyRing } from '../auth/signing-keys.ts'
import { CommandError } from '../errors.ts'
import { openExistingDataFolder } from '../maintenance/data-folder.ts'
import { tokenIdShape } from '../model/token.ts'
import { auditCommand } from './audit.ts'
import { readToken } from './given-token.ts'
import type { Terminal } from './terminal.ts'

/** `named` is the token itself, its id, or `-` for either on stdin. */
export async function revokeTokenCommand(
  named: string,
  { data }: { readonly data: string },
  now: Date,
  { stdout, stderr }: Terminal,
): Promise<void> {
  const token = readToken(named)
  const claims = unverifiedClaims(token)
  if (claims === undefined && !tokenIdShape.test(token)) {
    throw new CommandError('this is neither a service token of postern nor a token id (tok_…)', 2)
  }
  const { store, secrets } = await openExistingDataFolder(data, stderr)
  try {
    if (claims !== undefined) {
      const keys = await readKeyRing(store, secrets.sealingKey)
      const verified = keys && verifyToken(token, { keys, issuer: claims.iss, nowSeconds: claims.iat })
      if (verified === undefined || 'refused' in verified)
        throw new CommandError(`this token is not of ${data}, so it is not accepted there anyway`)
    }
    const jti = claims?.jti ?? token
    await revokeToken(store, jti, { exp: claims?.exp, nowSeconds: Math.floor(now.getTime() / 1000) })
    await auditCommand(data, 'token.revoked', { jti })
    stdout(`${jti} is revoked, and every token minted with it\n`)
  } finally {
    await store.close()
  }
}
