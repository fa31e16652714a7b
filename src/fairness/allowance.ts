/**
 * The part that one request takes of its owner's share of everything (`fairness.ts`). The router opens an allowance for
 * every request with the costs of its operation (`operations.ts`), and ends it when the request is answered;
 * authentication says whose it is. Bodies, answers and expensive work ask it, so an operation cannot forget to.
 */

import { rateLimited } from '../errors.ts'
import { bodyMemoryFactor, chunkedBodyBytesMax, parsedResponseMemoryFactor } from '../limits.ts'
import type { Costs, OperationId } from '../operations.ts'
import { PerRequest } from '../per-request.ts'
import { drained } from '../schema/steps.ts'
import type { Fairness } from './fairness.ts'
import { bodyHolderOf, type Holder, ownerOf, strangerAt } from './owner.ts'
import { parseMsOf, smallCharsMax, unqueuedCharsMax } from './parse-time.ts'
import type { Queue } from './queue.ts'
import type { Shares } from './shares.ts'
import { Slices } from './slices.ts'
import type { Work } from './turns.ts'

/** Milliseconds to read, join and send a megabyte of a large answer. Past `ownerTimeShare`: the owner waits. */
export const answerMsPerMegabyte = 2.5

/** Milliseconds for a megabyte of records that are read from the store, with their checksums. */
const readMsPerMegabyte = 2

/** Values of an ordinary body, which take no time to speak of. Past it: each takes its time. */
const fewValues = 1000
/** Bytes for a value of a parsed body, with its canonical copy and the garbage. Past it: as for `pendingBytesMax`. */
const valueBytes = 160
/** Milliseconds for such a value, most of them to collect its garbage. Past `ownerTimeShare`: the owner waits. */
const valueMs = 0.00025

/**
 * Bytes of memory of a request that waits for a pass, without its body. A client may have many: where another request
 * follows on its connection, the runtime closes that, the client begins the next one at once, and the request goes on
 * waiting. Past it: as for `pendingBytesMax`.
 */
const waitingRequestBytes = 8 * 1024

/**
 * Bytes of memory for a byte of a connection's record in its parsed form, which has at most 1,000 values besides its
 * texts. Past it: as for `pendingBytesMax`.
 */
const parsedRecordMemoryFactor = 3

/** The places that requests wait for, by what they read. */
const placesFor = { many: 'reads', question: 'questions', log: 'logReads' } as const

export class Allowance {
  /** Left out by tests. */
  readonly operation: OperationId | undefined
  readonly costs: Costs
  readonly #fairness: Fairness
  readonly #request: Request
  readonly #addressOf: (request: Request) => string
  #holder: Holder | undefined
  /** Bytes of the body as it was announced; undefined until their memory is taken. */
  #announced: number | undefined
  /** Bytes of memory for the request and its body, and the holder that they were taken for. */
  #bodyBytes = 0
  #bodyHolder: Holder | undefined
  /** Leaves the place for reads of many records. */
  #leave: (() => void) | undefined
  #slices: Slices | undefined
  /** Answers that outlive their handler. */
  #holds = 0
  #hasEnded = false
  #atEnd: (() => void) | undefined

  /** `addressOf`: the client's address, whose network is the holder until the request is authenticated. */
  constructor(
    fairness: Fairness,
    request: Request,
    addressOf: (request: Request) => string,
    { id, costs }: { readonly id?: OperationId; readonly costs: Costs },
  ) {
    this.#fairness = fairness
    this.costs = costs
    this.operation = id
    this.#request = request
    this.#addressOf = addressOf
  }

  get holder(): Holder {
    return this.#holder ?? strangerAt(this.#addressOf(this.#request))
  }

  /**
   * Says whose the request is, once. Waits for a pass in which the owner has room, and for one of its places if the
   * operation reads many records; undefined where it need not. Rejects with, or throws, `rate_limited`.
   */
  belongsTo(holder: Holder): Promise<void> | undefined {
    if (this.#holder !== undefined) return undefined
    this.#holder = holder
    const pass = this.pass()
    if (this.costs.reads === 'few') return pass
    const places = this.#fairness[placesFor[this.costs.reads]]
    if (pass === undefined && this.#fairness.time.wait(ownerOf(holder)) === 0) this.#leave = places.enterNow(holder)
    return this.#leave === undefined ? this.#enter(holder, places, pass) : undefined
  }

  /** Waits for a pass of the event loop in which the owner has room; undefined in this one. An end is not refused. */
  pass(at: 'begin' | 'end' = 'begin'): Promise<void> | undefined {
    const { passes } = this.#fairness
    const { holder } = this
    // Meanwhile the runtime receives the body, whether anybody reads it or not. The end of a stream has none.
    if (at === 'begin' && passes.isFull(holder)) {
      this.#takeBodyMemory(waitingRequestBytes)
      this.takeAnnouncedBody()
    }
    return passes.enter(holder)
  }

  /** Says that the request has no credential: it is a stranger's. Waits and rejects as `belongsTo`. */
  belongsToStranger(): Promise<void> | undefined {
    return this.belongsTo(this.holder)
  }

  async #enter(holder: Holder, places: Queue, pass: Promise<void> | undefined): Promise<void> {
    await pass
    this.#leave = await places.enter(holder)
    // Inside the place, so that an owner has few requests that wait here.
    await this.#fairness.time.pause(ownerOf(holder))
    this.requireClient()
  }

  /** Throws `rate_limited`, which nobody gets, if the client has gone while its work waited, for minutes perhaps. */
  requireClient(): void {
    if (this.#request.signal.aborted) throw rateLimited('The client disconnected', 1)
  }

  /** Takes the memory of the body that the request announces, once, and returns its bytes. Throws `rate_limited`. */
  takeAnnouncedBody(): number {
    if (this.#announced !== undefined) return this.#announced
    const { headers } = this.#request
    const announced = Number(headers.get('content-length') ?? Number.NaN)
    const isChunked = Number.isNaN(announced) && headers.has('transfer-encoding')
    const expected = isChunked ? chunkedBodyBytesMax / bodyMemoryFactor : announced || 0
    this.takeBody(expected)
    this.#announced = expected
    return expected
  }

  /** Takes the memory of a body of so many bytes, and of what it is parsed into. Throws `rate_limited`. */
  takeBody(bytes: number): void {
    this.#takeBodyMemory(bytes * bodyMemoryFactor)
  }

  #takeBodyMemory(bytes: number): void {
    const about = { isRemoval: this.costs.isRemoval === true, isKnown: this.#holder !== undefined }
    this.#bodyHolder ??= bodyHolderOf(this.holder, this.#request.headers, about)
    this.#take(this.#bodyHolder, bytes, 'Too many request bodies of this caller are being read')
    this.#bodyBytes += bytes
  }

  /** Waits until the owner may have a body of so many bytes handled; undefined for one that waits for nothing. */
  paceBody(bytes: number): Promise<void> | undefined {
    return this.costs.isRemoval === true ? undefined : this.pace((bytes / 2 ** 20) * this.costs.bodyMsPerMegabyte)
  }

  /** Waits until the owner may have work of so many milliseconds done, and counts it. Rejects as `requireClient`. */
  async pace(milliseconds: number): Promise<void> {
    this.requireClient()
    await this.#fairness.time.pause(ownerOf(this.holder), milliseconds)
    this.requireClient()
  }

  /**
   * Counts work of so many milliseconds that is not waited for. Between the authorization of a request and its act
   * nothing waits for its owner's time: that may take seconds, and the right may end meanwhile.
   */
  spend(milliseconds: number): void {
    this.#fairness.time.spend(ownerOf(this.holder), milliseconds)
  }

  /** As `spend`, in a request that waits for none of its owner's time: it keeps others waiting half as long. */
  spendAtOnce(milliseconds: number): void {
    this.#fairness.time.spendAtOnce(ownerOf(this.holder), milliseconds)
  }

  /** Takes memory for a body's values, and counts the time to check, write and collect them. Throws `rate_limited`. */
  takeValues(values: number): void {
    if (values <= fewValues) return
    this.#takeBodyMemory(values * valueBytes)
    this.#fairness.time.spend(ownerOf(this.holder), values * valueMs)
  }

  /** Takes the memory of an answer until its client has read it. Returns the function that gives it back. */
  takeAnswer(bytes: number): () => void {
    // An answer that finds no room was read all the same.
    this.#fairness.time.spend(ownerOf(this.holder), (bytes / 2 ** 20) * answerMsPerMegabyte)
    return this.takeMemory(bytes)
  }

  /** As `takeAnswer`, for what is kept of answers whose time was counted when they were parsed. Throws `rate_limited`. */
  takeMemory(bytes: number): () => void {
    return this.#lend(bytes, 'This caller has too many unread responses open: read or close some')
  }

  /** As `takeAnswer`, of records of so many bytes in their parsed form. Throws `rate_limited`. */
  takeRecords(bytes: number): () => void {
    return this.#lend(bytes * parsedRecordMemoryFactor, 'Too many requests of this caller wait for servers')
  }

  #lend(bytes: number, refusal: string): () => void {
    const { holder } = this
    this.#take(holder, bytes, refusal)
    return () => this.#fairness.memory.giveBack(holder, bytes)
  }

  #take(holder: Holder, bytes: number, refusal: string, shares: Shares = this.#fairness.memory): void {
    if (!shares.take(holder, bytes)) throw rateLimited(refusal, 1)
  }

  /** Slices of the event loop, the same for all parts of the request: each of a thousand may be shorter than one. */
  slices(): Slices {
    this.#slices ??= new Slices(this.#fairness.turns, this.holder)
    return this.#slices
  }

  /** Parses a body in the owner's turns, as `Turns.run`, or at once where it takes access away. */
  parseBody<T>(work: Work<T>): Promise<T> | T {
    return this.costs.isRemoval === true ? drained(work) : this.run(work)
  }

  /** Runs work in the owner's turns, as `Turns.run`. */
  run<T>(work: Work<T>): Promise<T> | T {
    return this.#fairness.turns.run(this.holder, work)
  }

  /**
   * Runs work that parses so many characters, of another server's response or of a record, in the owner's turns and
   * time. Each counts against the holder's share while the work waits, and its parsed form, which takes
   * `parsedResponseMemoryFactor` bytes for each, until the work is done. An owner parses one large text at a time.
   * Rejects with `rate_limited` if the share is used up. A small text of an owner that need not wait is parsed at once,
   * and takes no memory to speak of.
   */
  parse<T>(characters: number, work: Work<T>): Promise<T> | T {
    const { time, turns } = this.#fairness
    const owner = ownerOf(this.holder)
    if (characters > smallCharsMax || time.wait(owner) > 0) return this.#parseInTurn(characters, async () => work)
    time.spend(owner, parseMsOf(characters))
    return turns.run(this.holder, work)
  }

  /**
   * Reads a record of so many bytes and runs the work on it, as `parse`: all that it takes is taken before it is read,
   * and an owner reads one large record at a time. `parsedBytes`: of its parsed form. Resolves with undefined where
   * `read` does.
   */
  parseRecord<T>(
    { bytes, parsedBytes }: { readonly bytes: number; readonly parsedBytes?: number },
    read: () => Promise<Uint8Array | undefined>,
    work: (record: Uint8Array) => Work<T>,
  ): Promise<T | undefined> {
    const begin = async () => ofRecord(await read(), work)
    return this.#parseInTurn(bytes, begin, parsedBytes)
  }

  /**
   * Reads records of which nobody knows how large they are. Those of one owner are read one after the other, when it
   * has time. `bytesOf`: how many were read. Rejects with `rate_limited`, also if the client has gone meanwhile.
   */
  readRecords<T>(read: () => Promise<T>, bytesOf: (records: T) => number): Promise<T> {
    const { records, time } = this.#fairness
    const owner = ownerOf(this.holder)
    return records.run(owner, this.holder, async () => {
      await time.pause(owner)
      this.requireClient()
      const found = await read()
      this.spendRead(bytesOf(found))
      return found
    })
  }

  /** Counts the reading of records of so many bytes that is not waited for. */
  spendRead(bytes: number): void {
    this.spend((bytes / 2 ** 20) * readMsPerMegabyte)
  }

  async #parseInTurn<T>(
    characters: number,
    begin: () => Promise<Work<T>>,
    parsedBytes = characters * (parsedResponseMemoryFactor - 1),
  ): Promise<T> {
    const { parsers, parses, memory, parsed, time, turns } = this.#fairness
    const { holder } = this
    const isLarge = characters > unqueuedCharsMax
    const ends: (() => void)[] = []
    const take = (bytes: number, shares: Shares) => {
      this.#take(holder, bytes, 'This caller has too many unread responses open: read or close some', shares)
      ends.push(() => shares.giveBack(holder, bytes))
    }
    try {
      take(characters, memory)
      if (isLarge) ends.push(await parsers.enter(holder))
      await time.pause(ownerOf(holder), parseMsOf(characters))
      // After the pause: an owner that waits for its time holds up nobody else.
      if (isLarge) ends.push(await parses.enter(holder))
      take(parsedBytes, isLarge ? parsed : memory)
      return await turns.run(holder, await begin())
    } finally {
      for (const end of ends) end()
    }
  }

  /**
   * Runs a write alone among those of this name, in one of the owner's places, which it takes first: where it waits for
   * one, it holds up nobody else. One that takes access away has places of its own, and comes first. Rejects with what
   * the task throws, and as `Queue.enter`.
   */
  write<T>(name: string, task: () => Promise<T>, kind?: 'removal'): Promise<T> {
    return this.commit(() => this.#fairness.writes.run(name, this.holder, task, kind === 'removal'), kind)
  }

  /**
   * Changes the directory alone among all owners, as `write`. Everybody waits for the task, so it must not wait for
   * anything of its owner: a place, a turn or time.
   */
  changeDirectory<T>(task: () => Promise<T>, kind?: 'removal'): Promise<T> {
    return this.#fairness.writes.run('directory', this.holder, task, kind === 'removal')
  }

  /** Runs a write that waits for no others, in one of the owner's places. Rejects as `write`. */
  async commit<T>(task: () => Promise<T>, kind?: 'removal'): Promise<T> {
    const { commits, removals } = this.#fairness
    const leave = await (kind === 'removal' ? removals : commits).enter(this.holder)
    return task().finally(leave)
  }

  /** For an answer that outlives its handler: keeps all that was taken until the returned function is called. */
  hold(): () => void {
    this.#holds += 1
    let isHeld = true
    return () => {
      if (isHeld) this.#holds -= 1
      isHeld = false
      if (this.#hasEnded) this.end()
    }
  }

  /** Has this called once the request is over: answered, and nothing holds it any more. */
  atEnd(act: () => void): void {
    this.#atEnd = act
  }

  /** The request is answered: gives back all but answers, when nothing holds it any more. */
  end(): void {
    this.#hasEnded = true
    if (this.#holds > 0) return
    this.#atEnd?.()
    this.#atEnd = undefined
    if (this.#bodyHolder !== undefined) this.#fairness.memory.giveBack(this.#bodyHolder, this.#bodyBytes)
    this.#bodyHolder = undefined
    this.#bodyBytes = 0
    this.#leave?.()
    this.#leave = undefined
  }
}

/** By request, because nothing else reaches all that a request runs through. */
const allowances = new PerRequest<Allowance>()

export function openAllowance(request: Request, allowance: Allowance): void {
  allowances.set(request, allowance)
}

/** The operation that the router has found for a request; undefined if it did not get that far. */
export function routedOperation(request: Request): OperationId | undefined {
  return allowances.get(request)?.operation
}

/** The allowance of a request in progress. Throws Error for a request that did not come through the router. */
export function allowanceOf(request: Request): Allowance {
  const allowance = allowances.get(request)
  if (allowance === undefined) throw new Error('a request without an allowance')
  return allowance
}

function* ofRecord<T>(record: Uint8Array | undefined, work: (record: Uint8Array) => Work<T>): Work<T | undefined> {
  return record && (yield* work(record))
}
