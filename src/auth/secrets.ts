/**
 * The instance secret: 32 random bytes in the data folder, from which the keys for other purposes are
 * derived (HKDF-SHA256), so that one file is all there is to keep safe. It never leaves the process.
 */

import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto'
import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommandError } from '../errors.ts'
import { requirePrivate } from '../storage/private-file.ts'

export interface Secrets {
  /** Keys the hash of an API key that the store keeps. */
  readonly apiKeyPepper: Buffer
  /** Seals list cursors. */
  readonly cursorKey: Buffer
  /** Seals the signing keys that the store keeps. */
  readonly sealingKey: Buffer
  /** Seals the headers of connections. */
  readonly headersKey: Buffer
  /** Seals the ids of MCP sessions that clients get. */
  readonly sessionKey: Buffer
  /** Who we are to other HTTP intermediaries (RFC 9110, 7.6.3); the same for all that share the secret. */
  readonly pseudonym: string
}

/** Reads the secret of a data folder, making one when there is none. Throws CommandError. */
export function openSecrets(folder: string): Secrets {
  const secret = readOrCreate(join(folder, 'instance-secret'), () => randomBytes(32).toString('base64url'))
  const bytes = Buffer.from(secret, 'base64url')
  if (bytes.length !== 32)
    throw new CommandError(`${join(folder, 'instance-secret')} is damaged: restore it from a backup`)
  const derive = (purpose: string) => Buffer.from(hkdfSync('sha256', bytes, '', `postern ${purpose}`, 32))
  return {
    apiKeyPepper: derive('api-key pepper'),
    cursorKey: derive('cursor key'),
    sealingKey: derive('sealing key'),
    headersKey: derive('connection headers key'),
    sessionKey: derive('session key'),
    pseudonym: `postern-${derive('pseudonym').toString('hex').slice(0, 12)}`,
  }
}

const nonceBytes = 12
const tagBytes = 16

/**
 * AES-256-GCM: nonce, sealed text, tag. `associatedData` is where it belongs: sealed for one, it does not open at
 * another.
 */
export function seal(key: Buffer, text: string, associatedData = ''): Buffer {
  const nonce = randomBytes(nonceBytes)
  const cipher = createCipheriv('aes-256-gcm', key, nonce).setAAD(Buffer.from(associatedData))
  return Buffer.concat([nonce, cipher.update(text, 'utf8'), cipher.final(), cipher.getAuthTag()])
}

/** The text, or undefined for what was not sealed with this key for this place. */
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

/**
 * A private file's text; `create` makes it when it is missing. Only its owner may read it: anything
 * looser is refused, because nobody knows who has read it already.
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

/** The file appears whole and on disk, or not at all; whoever comes second keeps what the first wrote. */
function createWhole(path: string, text: string): void {
  const draft = `${path}.${process.pid}.new`
  try {
    writeFileSync(draft, text, { mode: 0o600, flush: true })
    linkSync(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') {
      throw new CommandError(`cannot write ${path}: ${(error as Error).message}`, 1, { cause: error })
    }
  } finally {
    rmSync(draft, { force: true })
  }
}
