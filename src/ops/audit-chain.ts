/** The chain of the audit log: formats linked lines, and finds lines that break the chain. Pure. */

import { escapeControlCharacters } from './escape-control.ts'

/** `prev` of the first entry. */
export const firstHash = '0'.repeat(64)

/** The last entry, which the next one links to. */
export interface ChainEnd {
  readonly seq: number
  readonly hash: string
}

/**
 * Formats an entry as a line. It ends with the SHA-256 (hex) of the line's text without that hash. Control characters
 * are escaped first, so the hash covers what is in the file.
 */
export function formatLine(
  entry: { readonly seq: number; readonly prev: string } & Readonly<Record<string, unknown>>,
): {
  text: string
  hash: string
} {
  const body = escapeControlCharacters(JSON.stringify(entry)).slice(0, -1)
  const hash = Bun.SHA256.hash(body, 'hex')
  return { text: `${body},"hash":"${hash}"}`, hash }
}

/** The fields that link a line to its neighbours. */
interface Link {
  readonly seq: number
  readonly prev: string
  readonly hash: string
}

/** The link of a line. Undefined if the line is incomplete or its hash is wrong. */
export function parseLine(line: string): Link | undefined {
  const [, body, hash] = /^(\{.*),"hash":"([0-9a-f]{64})"\}$/.exec(line) ?? []
  if (body === undefined || hash === undefined) return undefined
  if (Bun.SHA256.hash(body, 'hex') !== hash) return undefined
  try {
    const { seq, prev } = JSON.parse(`${body}}`) as { seq?: unknown; prev?: unknown }
    if (!Number.isSafeInteger(seq) || typeof prev !== 'string') return undefined
    return { seq: seq as number, prev, hash }
  } catch {
    // A correct hash of a body that is not ours: anyone can compute a hash.
    return undefined
  }
}

/** The result of checking a log. */
export interface ChainReport {
  readonly entries: number
  /** The entry before the first one: number 0 with the first hash, or the last entry of an earlier file. */
  readonly follows: { readonly seq: number; readonly hash: string }
  readonly lastHash: string
  /** Breaks of the chain, one text each. */
  readonly problems: readonly string[]
  /** Places of lines truncated by a crash, after which nothing is missing. */
  readonly truncatedLines: readonly string[]
}

/** Checks a log of any length line by line. */
export interface ChainVerifier {
  /** Adds the next line of the log, across all its files. `place` is how a report names the line. */
  push(line: string, place: string): void
  report(): ChainReport
}

export function chainVerifier(): ChainVerifier {
  const problems: string[] = []
  const truncatedLines: string[] = []
  let follows: ChainReport['follows'] | undefined
  let last = { seq: 0, hash: firstHash }
  let entries = 0
  /**
   * The place of the previous line, if it looks like one of ours that ends too soon. The next line decides: if it
   * follows the last whole entry, a crash truncated the line; otherwise it was changed.
   */
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
      // Earlier files may be stored elsewhere, so a log may begin with any entry. Entry 1 must follow the first hash.
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

/** Describes how an entry fails to follow the previous one. */
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

/** True if the line is the beginning of a possible entry, as a crash leaves it: its object is never closed. */
function isTruncated(line: string): boolean {
  return line.startsWith('{"seq":'.slice(0, line.length)) && !isClosed(line)
}

/** Whether the object with which a line of JSON begins ends in it. */
function isClosed(line: string): boolean {
  // Without strings, whose brackets do not count.
  const brackets = line.replace(/"(?:[^"\\]|\\.)*"/g, '').match(/[{}[\]]/g) ?? []
  let depth = 0
  for (const bracket of brackets) {
    depth += bracket === '{' || bracket === '[' ? 1 : -1
    if (depth === 0) return true
  }
  return false
}
