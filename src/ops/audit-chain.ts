/** The chain of the audit log: formats linked lines, and reads what links them. Pure. */

import { escapeControlCharacters } from './escape-control.ts'

/** `prev` of the first entry. */
export const firstHash = '0'.repeat(64)

/** The last entry, which the next one links to. */
export interface ChainEnd {
  readonly seq: number
  readonly hash: string
}

/** The fields that link an entry and say when it was written; `time` and `event` need no escapes in JSON. */
interface LineHead extends Link {
  readonly time: string
  readonly event: string
  readonly replica: string | undefined
}

/**
 * Formats an entry with these fields as a line. It ends with the SHA-256 (hex) of the line's text without that hash.
 * Control characters are escaped first, so the hash covers what is in the file.
 */
export function formatLine({ seq, time, event, replica, prev }: Omit<LineHead, 'hash'>, fields: object) {
  const own = JSON.stringify(fields).slice(1, -1)
  const middle = `${own === '' ? '' : `,${own}`}${replica === undefined ? '' : `,"replica":${JSON.stringify(replica)}`}`
  const body = escapeControlCharacters(`{"seq":${seq},"time":"${time}","event":"${event}"${middle},"prev":"${prev}"`)
  const hash = Bun.SHA256.hash(body, 'hex')
  return { text: `${body},"hash":"${hash}"}`, hash }
}

/** The fields that link a line to its neighbours. */
export interface Link {
  readonly seq: number
  readonly prev: string
  readonly hash: string
  /** The replica that wrote the line, if several write a log each. */
  readonly replica?: string | undefined
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
