/** The chain of the audit log: how lines are linked, and what is wrong with lines that are not. Pure. */

import { createHash } from 'node:crypto'
import { printable } from '../printable.ts'

/** What the first line stands on. */
export const firstHash = '0'.repeat(64)

/** The line's text ends with the hash (SHA-256, hex) of the same text without it. */
export function lineOf(entry: { readonly seq: number; readonly prev: string } & Readonly<Record<string, unknown>>): {
  text: string
  hash: string
} {
  const body = printable(JSON.stringify(entry)).slice(0, -1)
  const hash = createHash('sha256').update(body).digest('hex')
  return { text: `${body},"hash":"${hash}"}`, hash }
}

interface Link {
  readonly seq: number
  readonly prev: string
  readonly hash: string
}

/** What links a line, or undefined for one that is not whole or not as it was written. */
export function linked(line: string): Link | undefined {
  const [, body, hash] = /^(\{.*),"hash":"([0-9a-f]{64})"\}$/.exec(line) ?? []
  if (body === undefined || hash === undefined) return undefined
  if (createHash('sha256').update(body).digest('hex') !== hash) return undefined
  const { seq, prev } = JSON.parse(`${body}}`) as { seq: number; prev: string }
  return { seq, prev, hash }
}

export interface ChainReport {
  readonly entries: number
  readonly lastHash: string
  /** Where the chain is broken, a line each. */
  readonly problems: readonly string[]
  /** Lines that a crash cut short: nothing is missing after them. */
  readonly torn: readonly number[]
}

export interface ChainVerifier {
  /** The lines of the log, in order. */
  take(line: string): void
  report(): ChainReport
}

export function chainVerifier(): ChainVerifier {
  const problems: string[] = []
  const torn: number[] = []
  let last = { seq: 0, hash: firstHash }
  let entries = 0
  let number = 0
  /** The line before this one, where it begins like one of ours and ends too soon. */
  let short = 0
  const changed = (line: number) => problems.push(`${line}: was changed, or is not of this log`)

  return {
    take(line) {
      number += 1
      const link = linked(line)
      if (link === undefined) {
        if (short > 0) changed(short)
        short = isShort(line) ? number : 0
        if (short === 0) changed(number)
        return
      }
      const follows = link.prev === last.hash && link.seq === last.seq + 1
      if (!follows) {
        problems.push(`${number}: does not follow the entry before it: lines were changed, taken out or put in`)
      }
      if (short > 0) torn.push(short)
      short = 0
      last = link
      entries += 1
    },
    report: () => ({ entries, lastHash: last.hash, problems, torn: short > 0 ? [...torn, short] : torn }),
  }
}

/** Could a crash have left this of a line? */
function isShort(line: string): boolean {
  return line.startsWith('{"seq":'.slice(0, line.length)) && !/,"hash":"[0-9a-f]{64}"\}$/.test(line)
}
