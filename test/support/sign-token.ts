/** Complete tokens, signed on this thread. The server signs on others (`features/tokens/signers.ts`). */

import { createPrivateKey, type KeyObject, sign } from 'node:crypto'
import { signingInput } from '../../src/auth/service-token.ts'
import type { SigningKey } from '../../src/auth/signing-keys.ts'
import type { ServiceTokenClaims } from '../../src/model/token.ts'

/** RFC 8410: all bytes of a private key but the seed, which comes last. */
const pkcs8Prefix = Buffer.from('302e020100300506032b657004220420', 'hex')
const opened = new WeakMap<Uint8Array, KeyObject>()

/** The same as `signatureOf` makes (`signers.test.ts` compares), in a thirtieth of its time. */
export function quickSignatureOf(text: string, secretKey: Uint8Array): string {
  const key = Buffer.concat([pkcs8Prefix, secretKey.subarray(0, 32)])
  const privateKey = opened.get(secretKey) ?? createPrivateKey({ key, format: 'der', type: 'pkcs8' })
  opened.set(secretKey, privateKey)
  return sign(null, Buffer.from(text), privateKey).toString('base64url')
}

export function signToken(claims: ServiceTokenClaims, key: SigningKey): string {
  const text = signingInput(claims, key)
  return `${text}.${quickSignatureOf(text, key.secretKey)}`
}
