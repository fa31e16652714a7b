/**
 * List cursors (contract, 5.2): a sealed position in a list. A cursor contains the id where the next page starts. The
 * caller may not be allowed to see that id, so the cursor is encrypted, not only signed. It is bound to the namespace
 * and the filters. AES-256-GCM with a nonce derived from the sealed content, so the same page always has the same
 * bytes, and no two different contents share a nonce.
 */

import { openSealed, seal } from '../../auth/secrets.ts'
import { canonicalBytes } from '../../schema/base64.ts'

/** Ours: characters of a cursor; the longest one that postern makes has 214. Past it: 400. */
export const cursorCharsMax = 256

/** The first byte; what is sealed follows. In base64url. */
const version = 1

/** Seals and opens cursors. */
export type Cursors = ReturnType<typeof createCursors>

export function createCursors(key: Buffer) {
  const nonceKey = key.toString('hex')
  return {
    /** `binding`: the namespace and filters in canonical form, which later requests must repeat. `from` is ASCII. */
    seal(binding: string, from: string): string {
      // A keyed hash. A fixed-length key as prefix and a truncated result make plain SHA-256 safe for this.
      const nonce = (Bun.SHA256.hash(`${nonceKey}${binding}\0${from}`) as Uint8Array).subarray(0, 12)
      return Buffer.concat([Buffer.of(version), seal(key, from, binding, nonce)]).toString('base64url')
    },
    /** The position. Undefined if the cursor was not sealed here, is for another binding, or is damaged. */
    open(binding: string, cursor: string): string | undefined {
      const bytes = cursor.length > cursorCharsMax ? undefined : canonicalBytes(cursor)
      if (bytes === undefined || bytes[0] !== version) return undefined
      return openSealed(key, bytes.subarray(1), binding) || undefined
    },
  }
}
