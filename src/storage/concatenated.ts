/** Builds `ConcatenatedValues` (store.ts), for every engine. */

import { wrapBytesMax } from '../limits.ts'
import type { ConcatenatedValues, Key } from './store.ts'

export const comma = 0x2c
/** Values joined in `buffer` from `start` to `end`, with `wrapBytesMax` free bytes before and after. Borrows it. */
export function concatenatedIn(
  buffer: Buffer<ArrayBuffer>,
  start: number,
  end: number,
  rest: Omit<ConcatenatedValues, 'wrap'>,
): ConcatenatedValues {
  return {
    ...rest,
    wrap(prefix, suffix) {
      const first = start - prefix.length
      buffer.write(prefix, first, 'latin1')
      buffer.write(suffix, end, 'latin1')
      return buffer.subarray(first, end + suffix.length)
    },
  }
}

/** Joins separate values in a new buffer. */
export function concatenate(values: readonly Uint8Array[], lastKeyIfMore: Key | undefined): ConcatenatedValues {
  let size = Math.max(0, values.length - 1)
  for (const value of values) size += value.length
  const buffer = Buffer.allocUnsafe(size + 2 * wrapBytesMax)
  let end = wrapBytesMax
  for (const [index, value] of values.entries()) {
    if (index > 0) {
      buffer[end] = comma
      end += 1
    }
    buffer.set(value, end)
    end += value.length
  }
  return concatenatedIn(buffer, wrapBytesMax, end, { count: values.length, lastKeyIfMore })
}
