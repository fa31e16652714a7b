/** Checks logs of any length line by line, and finds lines that break a chain. Pure. */

import { type ChainEnd, firstHash, type Link, parseLine } from './audit-chain.ts'

/** One chain: the log of a server, or of one of several replicas; on the way through its lines. */
type Chain = ReturnType<typeof chainFrom>

function chainFrom({ seq, prev, replica }: Link, openEnd: string | undefined, firstPlace: string) {
  // Earlier files may be stored elsewhere, so a log may begin with any entry. Entry 1 must follow the first hash.
  const follows: ChainEnd = seq > 1 ? { seq: seq - 1, hash: prev } : { seq: 0, hash: firstHash }
  return {
    /** As its lines name it; undefined where none does. */
    replica,
    entries: 0,
    /** The entry before the first one: number 0 with the first hash, or the last entry of an earlier file. */
    follows,
    last: follows,
    /** The place of a last line that ends too soon: nobody knows whether more came after it. */
    openEnd,
    hasHash: false,
    firstPlace,
  }
}

export class AuditVerifier {
  /** Of an entry that the caller looks for. */
  readonly #hash: string | undefined
  /** Whether the lines are those of one data folder, so that all of them are one chain. */
  readonly #isOneLog: boolean
  /** Breaks of a chain, one text each. */
  readonly #problems: string[] = []
  /** Places of lines truncated by a crash: the entry after such a line follows the one before it. */
  readonly #truncatedLines: string[] = []
  readonly #chains: Chain[] = []
  readonly #byLastHash = new Map<string, Chain>()
  /** By the name in their lines; undefined: the chain whose lines have none. */
  readonly #byReplica = new Map<string | undefined, Chain>()
  #current: Chain | undefined
  #isFirstOfFile = true
  /** As a chain's `openEnd`, before any entry. */
  #openStart: string | undefined

  constructor({ hash, isOneLog = false }: { readonly hash?: string | undefined; readonly isOneLog?: boolean } = {}) {
    this.#hash = hash
    this.#isOneLog = isOneLog
  }

  /** Says that the next line begins a file. */
  nextFile(): void {
    this.#isFirstOfFile = true
  }

  /** Adds the next line, across all files. `place` is how a report names the line. */
  push(line: string, place: string): void {
    const link = parseLine(line)
    if (link === undefined) this.#pushUnreadable(line, place)
    else this.#pushEntry(link, place)
    this.#isFirstOfFile = false
  }

  report() {
    const end = this.#openStart === undefined ? [] : [`${this.#openStart}: ${openEndText}`]
    return {
      logs: this.#chains as readonly Readonly<Chain>[],
      problems: [...this.#problems, ...end],
      truncatedLines: this.#truncatedLines,
    }
  }

  /** A line that ends too soon is judged with the next entry: if that follows the last one, a crash truncated it. */
  #pushUnreadable(line: string, place: string): void {
    const before = this.#current === undefined ? this.#openStart : this.#current.openEnd
    if (before !== undefined) this.#changed(before)
    const openEnd = isTruncated(line) ? place : undefined
    if (openEnd === undefined) this.#changed(place)
    if (this.#current === undefined) this.#openStart = openEnd
    else this.#current.openEnd = openEnd
  }

  #pushEntry(link: Link, place: string): void {
    const chain = this.#chainOf(link, place)
    const { last, openEnd } = chain
    const isNext = link.prev === last.hash && link.seq === last.seq + 1
    if (!isNext) this.#problems.push(`${place}: ${breakText(last.seq, link.seq)}`)
    if (openEnd !== undefined && isNext) this.#truncatedLines.push(openEnd)
    if (openEnd !== undefined && !isNext) this.#changed(openEnd)
    this.#byLastHash.delete(last.hash)
    this.#byLastHash.set(link.hash, chain)
    chain.last = { seq: link.seq, hash: link.hash }
    chain.openEnd = undefined
    chain.entries += 1
    chain.hasHash ||= link.hash === this.#hash
    this.#current = chain
  }

  #changed(place: string): void {
    this.#problems.push(`${place}: was changed, or belongs to another log`)
  }

  /**
   * The chain that an entry follows, or else the chain of its name. Commands write no name, so an entry without one
   * begins a chain only at the start of a file.
   */
  #chainOf(link: Link, place: string): Chain {
    const { prev, seq, replica } = link
    const followed = this.#byLastHash.get(prev)
    if (followed?.last.seq === seq - 1) {
      if (replica !== undefined && replica !== followed.replica) this.#rename(followed, replica)
      return followed
    }
    const isContinued = this.#isOneLog || (replica === undefined && !this.#isFirstOfFile)
    const continued = isContinued ? this.#current : undefined
    return this.#byReplica.get(replica) ?? continued ?? this.#begin(link, place)
  }

  #begin(link: Link, place: string): Chain {
    const chain = chainFrom(link, this.#openStart, place)
    // The first entry of a file proves the one before it, which an older file has. A chain that begins further on may
    // be a line that somebody wrote with a hash that they read, under any name.
    chain.hasHash = this.#isFirstOfFile && chain.follows.seq > 0 && chain.follows.hash === this.#hash
    this.#openStart = undefined
    this.#chains.push(chain)
    this.#byReplica.set(link.replica, chain)
    return chain
  }

  /** From here on the chain is that of the replica. If another one was, lines between the two are missing. */
  #rename(chain: Chain, replica: string): void {
    const other = this.#byReplica.get(replica)
    if (other !== undefined)
      this.#problems.push(`${chain.firstPlace}: ${breakText(other.last.seq, chain.follows.seq + 1)}`)
    if (this.#byReplica.get(chain.replica) === chain) this.#byReplica.delete(chain.replica)
    chain.replica = replica
    this.#byReplica.set(replica, chain)
  }
}

/** Said of a last line that ends too soon. */
export const openEndText =
  'ends in the middle of a line, because of a crash, or because somebody cut the log. Later entries may be missing'

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
