/**
 * Pins: the definitions of a connection that somebody accepted (contract, 20.12). Every list and greeting of its server
 * is compared with them. A definition that is not accepted is written to the audit log, and hidden where the pins
 * `block`.
 */

import { LRUCache } from 'lru-cache'
import type { AuthorizedConnection, RequestContext } from '../../auth/authorizer.ts'
import type { SharedParts } from '../../auth/shared-parts.ts'
import { namespaceFull } from '../../errors.ts'
import { allowanceOf } from '../../fairness/allowance.ts'
import { ownerOf } from '../../fairness/owner.ts'
import { createRateLimit, type RateLimit } from '../../fairness/rate-limit.ts'
import type { Work } from '../../fairness/turns.ts'
import type { ConnectionRef } from '../../model/connection.ts'
import type { PinsSetting } from '../../model/pins.ts'
import { reading } from '../../schema/json.ts'
import { bytesPerCharacter } from '../../storage/bytes.ts'
import { connectionChange, findConnection, isSameConnection } from '../../storage/connections.ts'
import { decideAgain } from '../../storage/decide-again.ts'
import { keyOf } from '../../storage/keys.ts'
import type { Usage } from '../../storage/usage.ts'
import {
  type ChangedPins,
  type ConnectionPins,
  noPins,
  type Pin,
  type PinRecord,
  readingPinRecord,
  readingPins,
  type Seen,
  stateOf,
  withSeen,
  writingPins,
} from './pin-record.ts'

/** Ours: writes of a connection's pins that postern may do at once, if they change only the present definitions that `.pins` shows. Past it: one write every 10 seconds; until then, `.pins` shows an earlier definition. */
export const shownWritesAtOnce = 20
const shownWritesPerSecond = 0.1
/** Ours: writes that postern may do at once to unblock a tool, because the tool's server returned to the accepted definition. Past it: one write every second. */
const backWritesAtOnce = 60
/** Ours: lines `pin.changed` that postern writes at once for all connections of a namespace. Past it: one line every second. postern writes the line of a change when it reads the list again and the rate allows a line. */
const pinLinesAtOnce = 2000
/** Bytes of memory of pins, of all connections. Past it: the least recently used ones are read again. */
const pinsKeptBytesMax = 16 * 2 ** 20
/** Bytes of memory for a tool with its two hashes, besides its name; for a hash that was reported, less. */
const pinBytes = 400
/** Comparing a pin takes about as long as parsing so many characters. */
const pinChars = 100
/**
 * Answers that were found to list what was accepted, by a hash. Past it: the least recently used one is compared again.
 */
const comparedMax = 20_000

interface PinsDeps extends Pick<SharedParts, 'store' | 'audit' | 'clock'> {
  readonly quota: Usage
}

export class Pins {
  readonly #deps: PinsDeps
  readonly #read = new LRUCache<string, ConnectionPins>({
    maxSize: pinsKeptBytesMax,
    sizeCalculation: ({ tools, reported }) => {
      let bytes = pinBytes * (reported.size + 1)
      for (const name of tools?.keys() ?? []) bytes += pinBytes + bytesPerCharacter * name.length
      return bytes
    },
  })
  readonly #shownWrites: RateLimit
  readonly #backWrites: RateLimit
  readonly #lines: RateLimit
  /** The change in progress of a connection for an owner. `what`: a hash of what was seen. */
  readonly #underWay = new Map<string, { readonly what: string; readonly done: Promise<ConnectionPins> }>()
  readonly #compared = new LRUCache<string, string>({ max: comparedMax })

  constructor(deps: PinsDeps) {
    this.#deps = deps
    const { clock } = deps
    this.#shownWrites = createRateLimit({ perSecond: shownWritesPerSecond, burst: shownWritesAtOnce, clock })
    this.#backWrites = createRateLimit({ perSecond: 1, burst: backWritesAtOnce, clock })
    this.#lines = createRateLimit({ perSecond: 1, burst: pinLinesAtOnce, clock })
  }

  /** The setting of a connection, or else of its namespace. A mock has no pins. */
  async settingOf({ directory }: RequestContext, connection: AuthorizedConnection): Promise<PinsSetting> {
    const { mock, pins } = connection.stored.connection
    if (mock?.enabled === true) return 'off'
    return pins ?? (await directory.namespace(connection.namespace))?.pins ?? 'warn'
  }

  /** The pins as they are stored. */
  async of(
    context: RequestContext,
    { namespace, connectionId, stored }: AuthorizedConnection,
  ): Promise<ConnectionPins> {
    const { pins } = stored.privatePart
    if (pins === undefined) return noPins
    const name = nameOf({ namespace, connectionId })
    const known = () => (this.#read.get(name)?.id === pins.id ? this.#read.get(name) : undefined)
    const kept = known()
    if (kept !== undefined) return kept
    // Requests of one owner read one after the other, and the first may have read it for all.
    const read = async () => (known() === undefined ? this.#stored(namespace, connectionId) : undefined)
    const parsed = await allowanceOf(context.request).parseRecord(pins, read, readingPins)
    if (parsed !== undefined) this.#read.set(name, parsed)
    return parsed ?? known() ?? noPins
  }

  #stored(namespace: string, connectionId: string) {
    return this.#deps.store.get(keyOf('pins', namespace, connectionId))
  }

  /** The pins with the definitions of their hashes. */
  async recordOf(
    context: RequestContext,
    { namespace, connectionId, stored }: AuthorizedConnection,
  ): Promise<PinRecord> {
    const { pins } = stored.privatePart
    if (pins === undefined) return noPins
    const read = () => this.#stored(namespace, connectionId)
    return (await allowanceOf(context.request).parseRecord(pins, read, readingPinRecord)) ?? noPins
  }

  /**
   * Compares what a server lists, or its greeting, with the pins, and keeps what has changed. Resolves with the pins as
   * they are then. Throws `forbidden` if the namespace is full, 429, and StoreError.
   */
  async see(context: RequestContext, connection: AuthorizedConnection, seen: Seen): Promise<ConnectionPins> {
    const before = await this.of(context, connection)
    const name = nameOf(connection)
    const count = (before.tools?.size ?? 0) + (seen.tools?.list.length ?? 0)
    const compare = () => {
      const hasRoom = this.#lines.wait(connection.namespace) === 0
      const made = withSeen({ ...before, texts: new Map() }, seen, () => hasRoom)
      return { ...made, step: stepBetween(before, made.pins) }
    }
    const { pins, changes, step } = await allowanceOf(context.request).run(reading(count * pinChars, compare))
    if (changes.length === 0 && step === 'none') return before
    if (changes.length === 0 && step === 'shown' && this.#shownWrites.take(name) > 0) return pins
    if (changes.length === 0 && step === 'back' && this.#backWrites.take(name) > 0) return pins
    // Many clients list a connection at once when it is new, and all see the same.
    const what = await allowanceOf(context.request).run(reading(count * pinChars, () => hashOfSeen(seen)))
    // Of one owner, who may have to wait for its own places and time.
    const key = `${name}\0${ownerOf(context.caller)}`
    const isFirst = seen.tools !== undefined ? before.tools === undefined : before.instructions === undefined
    const current = this.#underWay.get(key)
    // A server may list something else each time, and each of its lists has megabytes: one waits, and the pins see the
    // others when the server lists them again.
    if (current !== undefined && current.what !== what && !isFirst) return pins
    const mayReport = () => this.#lines.take(connection.namespace) === 0
    const seeing = (record: PinRecord) =>
      reading((record.tools?.size ?? 0) * pinChars, () => withSeen(record, seen, mayReport))
    const underWay = current?.what === what ? current : { what, done: this.change(context, connection, seeing) }
    this.#underWay.set(key, underWay)
    try {
      return await underWay.done
    } catch (thrown) {
      // A namespace may be full. All that is accepted is known, and nothing else becomes so.
      if (isFirst) throw thrown
      return pins
    } finally {
      if (this.#underWay.get(key) === underWay) this.#underWay.delete(key)
    }
  }

  /**
   * Replaces the pins by what `make` returns, which may be called again; undefined changes nothing. Writes the changes
   * that the audit log does not have yet. `authorize` is called right before the write. Throws as `see`, and what
   * `authorize` throws.
   */
  async change(
    context: RequestContext,
    connection: AuthorizedConnection,
    make: (before: PinRecord) => Work<ChangedPins | undefined>,
    authorize: () => Promise<unknown> = async () => {},
  ): Promise<ConnectionPins> {
    const { store, quota, audit } = this.#deps
    const { namespace, connectionId } = connection
    const ref = { namespace, connectionId }
    const allowance = allowanceOf(context.request)
    const queue = `the pins of ${nameOf(ref)}`
    const written = await decideAgain(queue, () =>
      allowance.write(queue, async () => {
        const stored = await findConnection(store, namespace, connectionId)
        // Another connection by now: what was seen is not about it.
        if (stored === undefined || !isSameConnection(stored, connection.stored)) return noPins
        const before = await this.recordOf(context, { ...ref, stored })
        const made = await allowance.run(make(before))
        if (made === undefined) return before
        const { id, text } = await allowance.run(writingPins(made.pins))
        if (id === before.id) return before
        const value = Buffer.from(text)
        const privatePart = { ...stored.privatePart, pins: { bytes: value.length, id } }
        const change = connectionChange(ref, stored, { connection: stored.connection, privatePart }, quota)
        const puts = [...(change.puts ?? []), { key: keyOf('pins', namespace, connectionId), value }]
        // After all that its owner's time was waited for.
        await authorize()
        const committed = await store.commit({ ...change, puts })
        if (!committed.ok && committed.full.length > 0) throw namespaceFull(namespace)
        if (!committed.ok) return 'again'
        for (const change of made.changes) await audit.recordDone('pin.changed', { ...ref, ...change })
        return { ...made.pins, id }
      }),
    )
    const { id, tools, instructions, reported } = written
    const pins = { id, tools, instructions, reported }
    this.#read.set(nameOf(ref), pins)
    return pins
  }

  /** Writes to the audit log, once for each hash, that nobody knows whether a list or greeting is the accepted one. */
  async noteUnreadable({ namespace, connectionId }: ConnectionRef, hash: string): Promise<void> {
    const ref = { namespace, connectionId }
    const key = `${nameOf(ref)}\0unreadable ${hash}`
    if (this.#compared.has(key) || this.#lines.take(namespace) > 0) return
    this.#compared.set(key, '')
    await this.#deps.audit.record('pin.changed', { ...ref, tool: null, state: 'unreadable', pin: hash })
  }

  /** Whether an answer with this hash was found to list what these pins have. */
  isCompared(ref: ConnectionRef, hash: string, { id }: ConnectionPins): boolean {
    return this.#compared.get(`${nameOf(ref)}\0${hash}`) === id
  }

  noteCompared(ref: ConnectionRef, hash: string, { id }: ConnectionPins): void {
    this.#compared.set(`${nameOf(ref)}\0${hash}`, id)
  }
}

/** Hashed piece by piece: the names and hashes of a long list have a megabyte. */
function hashOfSeen({ tools, instructions }: Seen): string {
  const hasher = new Bun.CryptoHasher('sha256')
  for (const { name, hash } of tools?.list ?? []) hasher.update(`${hash} ${name}\0`)
  return hasher.update(JSON.stringify([tools?.isComplete, instructions?.hash])).digest('hex')
}

const nameOf = ({ namespace, connectionId }: ConnectionRef) => `${namespace}/${connectionId}`

/**
 * How pins have changed: `kept` if the next request depends on it, because a definition is accepted for the first time,
 * or is no longer; `back` if one is again; `shown` if only people who look at them would see it.
 */
function stepBetween(before: ConnectionPins, after: ConnectionPins): 'none' | 'shown' | 'back' | 'kept' {
  if ((before.tools === undefined) !== (after.tools === undefined)) return 'kept'
  if ((before.instructions === undefined) !== (after.instructions === undefined)) return 'kept'
  let step: 'none' | 'shown' | 'back' = before.tools?.size === after.tools?.size ? 'none' : 'shown'
  const all: [Pin | undefined, Pin | undefined][] = [[before.instructions, after.instructions]]
  for (const [name, pin] of after.tools ?? []) all.push([before.tools?.get(name), pin])
  for (const [former, pin] of all) {
    if (former?.accepted === pin?.accepted && former?.present === pin?.present) continue
    if (former !== undefined && isUsable(former) && !isUsable(pin)) return 'kept'
    if (former !== undefined && !isUsable(former) && isUsable(pin)) step = 'back'
    else if (step === 'none') step = 'shown'
  }
  return step
}

/** Whether a tool may be called: nothing is listed in place of what was accepted. */
export function isUsable(pin: Pin | undefined): boolean {
  const state = stateOf(pin)
  return state === 'accepted' || state === 'removed'
}
