/** Complete tokens, signed on this thread. The server signs on others (`features/tokens/signers.ts`). */

import { signingInput } from '../../src/auth/service-token.ts'
import { signatureOf } from '../../src/auth/signature.ts'
import type { SigningKey } from '../../src/auth/signing-keys.ts'
import type { ServiceTokenClaims } from '../../src/model/token.ts'

export function signToken(claims: ServiceTokenClaims, key: SigningKey): string {
  const text = signingInput(claims, key)
  return `${text}.${signatureOf(text, key.secretKey)}`
}
