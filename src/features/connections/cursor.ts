/**
 * List cursors (contract 5): a sealed position in a list. A cursor contains the id where the next page starts. The
 * caller may not be allowed to see that id, so the cursor is encrypted, not only signed. It is bound to the namespace
 * and the filters. AES-256-GCM with a nonce derived from the sealed content, so the same page always has the same
 * bytes, and no two different contents share a nonce.
 */

import { createCipheriv, createDecipheriv } from 'node:crypto'
import { canonicalBytes } from '../../schema/base64.ts'

/** Ours: the longest sealed cursor has 214 characters. Past it: 400. */
export const cursorCharsMax = 256

/** Issued cursors in decoded form, some hundred bytes each. Past it: decrypted again. */
export const cursorsKeptMax = 5000

export interface Cursors {
  /** `binding`: the namespace and filters in canonical form, which later requests must repeat. `from` is ASCII. */
  seal(binding: string, from: string): string
  /** The position. Undefined if the cursor was not sealed here, is for another binding, or is damaged. */
  open(binding: string, cursor: string): string | undefined
}

/** Layout: version (1 byte), nonce (12), ciphertext, tag (16); in base64url. */
const version = 1
const nonceAt = 1
const sealedAt = nonceAt + 12
const tagBytes = 16

export function createCursors(key: Buffer): Cursors {
  const nonceKey = key.toString('hex')
  /** Recent cursors by binding and position, and the reverse: a client usually sends a cursor back at once. */
  const cursorAt = new Map<string, string>()
  const positionOf = new Map<string, string>()

  /** A keyed hash. A fixed-length key as prefix and a truncated result make plain SHA-256 safe for this. */
  function nonceOf(text: string): Uint8Array {
    return (Bun.SHA256.hash(nonceKey + text) as Uint8Array).subarray(0, sealedAt - nonceAt)
  }

  function unseal(binding: string, cursor: string): string | undefined {
    if (cursor.length > cursorCharsMax) return undefined
    const bytes = canonicalBytes(cursor)
    if (bytes === undefined || bytes.length <= sealedAt + tagBytes || bytes[0] !== version) return undefined
    try {
      const nonce = bytes.subarray(nonceAt, sealedAt)
      const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
        .setAAD(Buffer.from(binding))
        .setAuthTag(bytes.subarray(-tagBytes))
      return decipher.update(bytes.subarray(sealedAt, -tagBytes), undefined, 'latin1') + decipher.final('latin1')
    } catch {
      return undefined
    }
  }

  function sealNew(binding: string, from: string): string {
    const bytes = Buffer.allocUnsafe(sealedAt + from.length + tagBytes)
    const nonce = nonceOf(`${binding}\0${from}`)
    const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(binding))
    bytes[0] = version
    bytes.set(nonce, nonceAt)
    bytes.set(cipher.update(from, 'latin1'), sealedAt)
    cipher.final()
    bytes.set(cipher.getAuthTag(), sealedAt + from.length)
    return bytes.toString('base64url')
  }

  return {
    seal(binding, from) {
      const position = `${binding}\0${from}`
      const known = cursorAt.get(position)
      if (known !== undefined) return known
      const cursor = sealNew(binding, from)
      if (cursorAt.size >= cursorsKeptMax) {
        cursorAt.clear()
        positionOf.clear()
      }
      cursorAt.set(position, cursor)
      positionOf.set(`${binding}\0${cursor}`, from)
      return cursor
    },
    open: (binding, cursor) => positionOf.get(`${binding}\0${cursor}`) ?? unseal(binding, cursor),
  }
}
