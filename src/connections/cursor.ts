/**
 * List cursors: where a walk stands, sealed (contract 5). A cursor holds the id where the walk goes on,
 * which its holder may not be allowed to see, so it is encrypted and not only signed; and it is bound to
 * the namespace and the filters it was made for. AES-256-GCM with a nonce derived from what is sealed, so
 * the same page is the same bytes every time it is made, and two pages never share a nonce.
 */

import { createCipheriv, createDecipheriv } from 'node:crypto'
import { cursorCharsMax } from '../limits.ts'

const version = 1
const nonceBytes = 12
const tagBytes = 16

/** `binding` is what the walk must keep: its namespace and filters, in one spelling. */
export function sealCursor(key: Buffer, binding: string, from: string): string {
  const nonce = nonceOf(key, `${binding}\0${from}`)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(binding))
  const sealed = Buffer.concat([cipher.update(from), cipher.final()])
  return Buffer.concat([Buffer.of(version), nonce, sealed, cipher.getAuthTag()]).toString('base64url')
}

/** Where to go on, or undefined for a cursor that is not ours, not for this walk, or not whole. */
export function openCursor(key: Buffer, binding: string, cursor: string): string | undefined {
  if (cursor.length > cursorCharsMax) return undefined
  const bytes = Buffer.from(cursor, 'base64url')
  if (bytes.toString('base64url') !== cursor) return undefined
  if (bytes.length <= 1 + nonceBytes + tagBytes || bytes[0] !== version) return undefined
  const nonce = bytes.subarray(1, 1 + nonceBytes)
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
      .setAAD(Buffer.from(binding))
      .setAuthTag(bytes.subarray(-tagBytes))
    const sealed = bytes.subarray(1 + nonceBytes, -tagBytes)
    return decipher.update(sealed, undefined, 'latin1') + decipher.final('latin1')
  } catch {
    return undefined
  }
}

/** A keyed hash; cut short, and with a key of fixed length in front, SHA-256 serves as one. */
function nonceOf(key: Buffer, text: string): Uint8Array {
  const hash = new Uint8Array(32)
  Bun.SHA256.hash(Buffer.concat([key, Buffer.from(text)]), hash)
  return hash.subarray(0, nonceBytes)
}
