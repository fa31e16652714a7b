/**
 * The instance secret: 32 random bytes in a file of the data folder. All other keys are derived from it (HKDF-SHA256),
 * so that only this file needs protection. Also sealing: authenticated encryption with such a key.
 */

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { CommandError } from '../errors.ts'
import { canonicalBytes } from '../schema/base64.ts'
import { requirePrivate } from '../storage/private-file.ts'

export type Secrets = Readonly<ReturnType<typeof openSecrets>>

/** Reads the secret in a file; creates one if there is none. Throws CommandError. */
export function openSecrets(file: string) {
  const secret = readOrCreate(file, () => randomBytes(32).toString('base64url'))
  const bytes = Buffer.from(secret, 'base64url')
  if (bytes.length !== 32) {
    const wrong = `${file} is damaged, or is not an instance secret, which is 32 bytes in base64url`
    throw new CommandError(`${wrong}: restore it from a backup, or copy it from the first replica`)
  }
  // A purpose must never be renamed or reused: everything sealed with its key would be lost.
  const derive = (purpose: string): Buffer => Buffer.from(hkdfSync('sha256', bytes, '', `postern ${purpose}`, 32))
  return {
    /** The HMAC key for the API key hashes in the store. */
    apiKeyPepper: derive('api-key pepper'),
    /** Seals list cursors. */
    cursorKey: derive('cursor key'),
    /** Seals the signing keys in the store. */
    sealingKey: derive('sealing key'),
    /** Seals the own headers of connections. */
    headersKey: derive('connection headers key'),
    /** Seals the MCP session ids that clients receive. */
    sessionKey: derive('session key'),
    /** Seals and hashes what sign-in keeps: sessions, attempts, codes, refresh tokens. */
    signInKey: derive('sign-in key'),
    /** Marks the ids of tokens with their user. */
    tokenIdKey: derive('token id'),
    /** Hashes the arguments of recorded calls. */
    callKey: derive('call record'),
    /** Makes the value by which a database knows the secret that belongs to it. */
    storeCheckKey: derive('store check'),
    /** Our name in `Via` headers (RFC 9110, 7.6.3); the same for all processes with this secret. */
    pseudonym: `postern-${derive('pseudonym').toString('hex').slice(0, 12)}`,
  }
}

const nonceBytes = 12
const tagBytes = 16

/** AES-256-GCM: nonce, ciphertext and tag. It does not open with other `associatedData`, which identify its place. */
export function seal(key: Buffer, text: string, associatedData = '', nonce: Uint8Array = randomBytes(nonceBytes)) {
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(associatedData))
  return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
}

/** The text; undefined if it was not sealed with this key and associated data, or was altered. */
export function openSealed(key: Buffer, sealed: Buffer, associatedData = ''): string | undefined {
  if (sealed.length < nonceBytes + tagBytes) return undefined
  try {
    const nonce = sealed.subarray(0, nonceBytes)
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: tagBytes })
      .setAAD(Buffer.from(associatedData))
      .setAuthTag(sealed.subarray(-tagBytes))
    return decipher.update(sealed.subarray(nonceBytes, -tagBytes), undefined, 'utf8') + decipher.final('utf8')
  } catch {
    return undefined
  }
}

/** Seals a text for somebody to hold, in base64url. */
export function sealText(key: Buffer, text: string, associatedData: string): string {
  return seal(key, text, associatedData).toString('base64url')
}

/** The text of what `sealText` gave; undefined for anything else, and for another spelling of the same bytes. */
export function openText(key: Buffer, sealed: string, associatedData: string): string | undefined {
  const bytes = canonicalBytes(sealed)
  return bytes && openSealed(key, bytes, associatedData)
}

/**
 * The text of a private file, without surrounding white space; `create` makes it if the file is missing. Throws
 * CommandError if anyone but its owner may read it, because it may have been read already.
 */
export function readOrCreate(path: string, create: () => string): string {
  if (!existsSync(path)) createWhole(path, `${create()}\n`)
  requirePrivate(path, 'file')
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new CommandError(`cannot read ${path}: ${(error as Error).message}`, 1, { cause: error })
  }
}

/** Creates the file atomically and durably. If another process creates it first, that file is kept. */
function createWhole(path: string, text: string): void {
  // Not named by the process's id: in containers that share a volume, each process has the same.
  const draft = `${path}.${randomBytes(8).toString('hex')}.new`
  try {
    writeFileSync(draft, text, { mode: 0o600, flush: true, flag: 'wx' })
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw new CommandError(`cannot write ${path}: ${(error as Error).message}`, 1, { cause: error })
    }
  } finally {
    rmSync(draft, { force: true })
  }
}
