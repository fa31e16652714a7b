/**
 * List cursors: where a walk stands, sealed (contract 5). A cursor holds the id where the walk goes on,
 * which its holder may not be allowed to see, so it is encrypted and not only signed; and it is bound to
 * the namespace and the filters it was made for. AES-256-GCM with a nonce derived from what is sealed, so
 * the same page is the same bytes every time it is made, and two pages never share a nonce.
 */

import { createCipheriv, createDecipheriv } from 'node:crypto'
import { cursorCharsMax, cursorsKeptMax } from '../../limits.ts'

export interface Cursors {
  /** `binding` is what the walk must keep: its namespace and filters, in one spelling. `from` is ASCII. */
  seal(binding: string, from: string): string
  /** Where to go on, or undefined for a cursor that is not ours, not for this walk, or not whole. */
  open(binding: string, cursor: string): string | undefined
}

const version = 1
const nonceAt = 1
const sealedAt = nonceAt + 12
const tagBytes = 16

export function createCursors(key: Buffer): Cursors {
  const nonceKey = key.toString('hex')
  /** Cursors by binding and position, and the other way round: most come back at once, from whoever walks. */
  const cursorAt = new Map<string, string>()
  const positionOf = new Map<string, string>()

  /** A keyed hash: cut short, and with a key of fixed length in front, SHA-256 serves as one. */
  function nonceOf(text: string): Uint8Array {
    return (Bun.SHA256.hash(nonceKey + text) as Uint8Array).subarray(0, sealedAt - nonceAt)
  }

  function unseal(binding: string, cursor: string): string | undefined {
    if (cursor.length > cursorCharsMax) return undefined
    const bytes = Buffer.from(cursor, 'base64url')
    if (bytes.toString('base64url') !== cursor) return undefined
    if (bytes.length <= sealedAt + tagBytes || bytes[0] !== version) return undefined
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
