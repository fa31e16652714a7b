/** The chain of the audit log: formats linked lines, and reads what links them. Pure. */

import { escapeControlCharacters } from './escape-control.ts'

/** `prev` of the first entry. */
export const firstHash = '0'.repeat(64)

/** The fields that link a line to its neighbours. */
export interface Link {
  readonly seq: number
  readonly prev: string
  readonly hash: string
  /** The replica that wrote the line, if several write a log each. */
  readonly replica?: string | undefined
}

/** The last entry, which the next one links to. */
export type ChainEnd = Pick<Link, 'seq' | 'hash'>

/** An entry, without what every line has and what links it to the others. `event` needs no escapes in JSON. */
export interface Entry {
  readonly event: string
  readonly fields: object
}

/**
 * Formats an entry as a line. `time`: ISO 8601. The line ends with the SHA-256 (hex) of its text without that hash.
 * Control characters are escaped first, so the hash covers what is in the file.
 */
export function formatLine({ seq, prev, replica }: Omit<Link, 'hash'>, time: string, { event, fields }: Entry) {
  const own = JSON.stringify(fields).slice(1, -1)
  const middle = `${own === '' ? '' : `,${own}`}${replica === undefined ? '' : `,"replica":${JSON.stringify(replica)}`}`
  const body = escapeControlCharacters(`{"seq":${seq},"time":"${time}","event":"${event}"${middle},"prev":"${prev}"`)
  const hash = Bun.SHA256.hash(body, 'hex')
  return { text: `${body},"hash":"${hash}"}`, hash }
}

/** The link of a line. Undefined if the line is incomplete or its hash is wrong. */
export function parseLine(line: string): Link | undefined {
  const [, body, hash] = /^(\{.*),"hash":"([0-9a-f]{64})"\}$/.exec(line) ?? []
  if (body === undefined || hash === undefined) return undefined
  if (Bun.SHA256.hash(body, 'hex') !== hash) return undefined
  try {
    const { seq, prev, replica } = JSON.parse(`${body}}`) as Partial<Record<keyof Link, unknown>>
    if (!Number.isSafeInteger(seq) || typeof prev !== 'string') return undefined
    return { seq: seq as number, prev, hash, ...(typeof replica === 'string' && { replica }) }
  } catch {
    // A correct hash of a body that is not ours: anyone can compute a hash.
    return undefined
  }
}
