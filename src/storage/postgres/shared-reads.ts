/**
 * Reads of small records that share statements (contract, 16.5). Each caller gets what was there at some moment after
 * it asked, so it sees every commit that was acknowledged before. One statement is under way; callers that ask
 * meanwhile share the next. So a busy replica asks the database once a round trip, and not once a request.
 */

import type { Clock } from '../../clock.ts'
import { sharedReadKeysMax } from '../../limits.ts'
import { asBuffer } from '../bytes.ts'
import type { Key } from '../store.ts'

interface Batch<T> {
  readonly keys: Map<string, Key>
  readonly since: number
  readonly values: PromiseWithResolvers<ReadonlyMap<string, T | undefined>>
}

/** `read`: a statement for at most `sharedReadKeysMax` keys and one caller's; `since`: when its first caller asked. */
export function createSharedReads<T>(
  read: (keys: readonly Key[], since: number) => Promise<readonly (T | undefined)[]>,
  clock: Clock,
): (keys: readonly Key[]) => Promise<readonly (T | undefined)[]> {
  /** Not sent yet: the first begins when the one under way has ended. */
  const waiting: Batch<T>[] = []
  let isUnderWay = false

  async function send(): Promise<void> {
    isUnderWay = true
    // Callers that ask in this turn share the first statement too.
    await Promise.resolve()
    for (let batch = waiting.shift(); batch !== undefined; batch = waiting.shift()) {
      const names = [...batch.keys.keys()]
      const { resolve, reject } = batch.values
      await read([...batch.keys.values()], batch.since).then(
        (values) => resolve(new Map(names.map((name, index) => [name, values[index]]))),
        reject,
      )
    }
    isUnderWay = false
  }

  return async (keys) => {
    const names = keys.map((key) => asBuffer(key).toString('latin1'))
    let batch = waiting.at(-1)
    if (batch === undefined || batch.keys.size >= sharedReadKeysMax) {
      batch = { keys: new Map(), since: clock.monotonic(), values: Promise.withResolvers() }
      waiting.push(batch)
    }
    for (const [index, name] of names.entries()) batch.keys.set(name, keys[index] as Key)
    if (!isUnderWay) void send()
    const found = await batch.values.promise
    return names.map((name) => found.get(name))
  }
}
