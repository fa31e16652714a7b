/**
 * List cursors (contract, 5.2): a sealed position in a list. A cursor contains the id where the next page starts. The
 * caller may not be allowed to see that id, so the cursor is encrypted, not only signed. It is bound to the namespace
 * and the filters. The nonce is derived from the sealed content, so the same page always has the same bytes, and no two
 * different contents share a nonce.
 */

import { seal } from '../../auth/secrets.ts'

/** Opened by `openText`. `binding`: the namespace and filters, which later requests repeat. `from` is ASCII. */
export function sealCursor(key: Buffer, binding: string, from: string): string {
  // A keyed hash. A fixed-length key as prefix and a truncated result make plain SHA-256 safe for this.
  const nonce = (Bun.SHA256.hash(`${key.toString('hex')}${binding}\0${from}`) as Uint8Array).subarray(0, 12)
  return seal(key, from, binding, nonce).toString('base64url')
}
