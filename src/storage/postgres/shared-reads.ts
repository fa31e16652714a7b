/**
 * Reads of single keys that share statements (stores contract, 4.1). Each caller gets what was there at some moment
 * after it asked, so it sees every commit that was acknowledged before. One statement is under way; whoever asks
 * meanwhile shares the next. So a busy replica asks the database once a round trip, and not once a request.
 */

import { sharedReadKeysMax } from '../../limits.ts'
import { asBuffer } from '../bytes.ts'
import type { Key } from '../store.ts'

type Read<T> = (keys: readonly Key[]) => Promise<readonly (T | undefined)[]>

/** The callers of one statement. */
interface Batch<T> {
  readonly keys: Map<string, Key>
  readonly values: PromiseWithResolvers<ReadonlyMap<string, T | undefined>>
}

/** `read`: one statement, one snapshot. A caller with more than `sharedReadKeysMax` keys gets a statement of its own. */
export function createSharedReads<T>(read: Read<T>): Read<T> {
  /** Not sent yet: it begins when the one under way has ended. */
  let next: Batch<T> | undefined
  let isUnderWay = false

  async function send(): Promise<void> {
    isUnderWay = true
    // Whatever asks in this turn shares the first statement too.
    await Promise.resolve()
    for (let batch = next; batch !== undefined; batch = next) {
      next = undefined
      const names = [...batch.keys.keys()]
      const { resolve, reject } = batch.values
      await read([...batch.keys.values()]).then(
        (values) => resolve(new Map(names.map((name, index) => [name, values[index]]))),
        reject,
      )
    }
    isUnderWay = false
  }

  return async (keys) => {
    const names = keys.map((key) => asBuffer(key).toString('latin1'))
    if (keys.length > sharedReadKeysMax) return read(keys)
    next ??= { keys: new Map(), values: Promise.withResolvers() }
    const { keys: wanted, values } = next
    for (const [index, name] of names.entries()) wanted.set(name, keys[index] as Key)
    if (!isUnderWay) void send()
    const found = await values.promise
    return names.map((name) => found.get(name))
  }
}
