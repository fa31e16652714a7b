/** The chain of the audit log: how lines are linked, and what is wrong with lines that are not. Pure. */

import { createHash } from 'node:crypto'
import { escapeControlCharacters } from './escape-control.ts'

/** What the first line stands on. */
export const firstHash = '0'.repeat(64)

/** Where the next entry goes on. */
export interface ChainEnd {
  readonly seq: number
  readonly hash: string
}

/** The line's text ends with the hash (SHA-256, hex) of the same text without it. */
export function formatLine(
  entry: { readonly seq: number; readonly prev: string } & Readonly<Record<string, unknown>>,
): {
  text: string
  hash: string
} {
  const body = escapeControlCharacters(JSON.stringify(entry)).slice(0, -1)
  const hash = createHash('sha256').update(body).digest('hex')
  return { text: `${body},"hash":"${hash}"}`, hash }
}

interface Link {
  readonly seq: number
  readonly prev: string
  readonly hash: string
}

/** What links a line, or undefined for one that is not whole or not as it was written. */
export function parseLine(line: string): Link | undefined {
  const [, body, hash] = /^(\{.*),"hash":"([0-9a-f]{64})"\}$/.exec(line) ?? []
  if (body === undefined || hash === undefined) return undefined
  if (createHash('sha256').update(body).digest('hex') !== hash) return undefined
  try {
    const { seq, prev } = JSON.parse(`${body}}`) as { seq?: unknown; prev?: unknown }
    if (!Number.isSafeInteger(seq) || typeof prev !== 'string') return undefined
    return { seq: seq as number, prev, hash }
  } catch {
    // The hash is right and the body is none of ours: anybody can make a hash.
    return undefined
  }
}

export interface ChainReport {
  readonly entries: number
  /** What the first entry stands on: entry 0 with the first hash, or the last entry of an earlier file. */
  readonly follows: { readonly seq: number; readonly hash: string }
  readonly lastHash: string
  /** Where the chain is broken, a line each. */
  readonly problems: readonly string[]
  /** Places of lines that a crash cut short: nothing is missing after them. */
  readonly truncatedLines: readonly string[]
}

export interface ChainVerifier {
  /** The lines of the log, in order, through all its files; `place` is what a report calls the line. */
  push(line: string, place: string): void
  report(): ChainReport
}

export function chainVerifier(): ChainVerifier {
  const problems: string[] = []
  const truncatedLines: string[] = []
  let follows: ChainReport['follows'] | undefined
  let last = { seq: 0, hash: firstHash }
  let entries = 0
  /** The place of the line before this one, where it begins like one of ours and ends too soon. */
  let pendingTruncated: string | undefined
  const changed = (place: string) => problems.push(`${place}: was changed, or is not of this log`)

  return {
    push(line, place) {
      const link = parseLine(line)
      if (link === undefined) {
        if (pendingTruncated !== undefined) changed(pendingTruncated)
        pendingTruncated = isTruncated(line) ? place : undefined
        if (pendingTruncated === undefined) changed(place)
        return
      }
      // Earlier files may be kept elsewhere: a log may begin with any entry. The first of all has nothing before it.
      if (follows === undefined && link.seq > 1) last = { seq: link.seq - 1, hash: link.prev }
      follows ??= last
      if (link.prev !== last.hash || link.seq !== last.seq + 1)
        problems.push(`${place}: ${breakText(last.seq, link.seq)}`)
      if (pendingTruncated !== undefined) truncatedLines.push(pendingTruncated)
      pendingTruncated = undefined
      last = link
      entries += 1
    },
    report: () => ({
      entries,
      follows: follows ?? last,
      lastHash: last.hash,
      problems,
      truncatedLines: pendingTruncated === undefined ? truncatedLines : [...truncatedLines, pendingTruncated],
    }),
  }
}

/** What is wrong with an entry that does not follow the one before it. */
function breakText(before: number, seq: number): string {
  const missing = seq - before - 1
  if (missing > 0) {
    const which = missing === 1 ? `entry ${before + 1} is` : `entries ${before + 1} to ${seq - 1} are`
    return `does not follow the entry before it: ${which} missing`
  }
  if (missing < 0) {
    return `does not follow the entry before it: entry ${seq} stands after entry ${before} (give the oldest file first)`
  }
  return 'does not follow the entry before it: lines were changed, taken out or put in'
}

/** Could a crash have left this of a line? */
function isTruncated(line: string): boolean {
  return line.startsWith('{"seq":'.slice(0, line.length)) && !/,"hash":"[0-9a-f]{64}"\}$/.test(line)
}
