/** Builds `ConcatenatedValues` (store.ts), for every engine. */

import { wrapBytesMax } from '../limits.ts'
import type { ConcatenatedValues, Key } from './store.ts'

export const comma = 0x2c
/**
 * Values already joined in `buffer` from `start` to `end`, with `wrapBytesMax` free bytes before and after. Borrows it.
 */
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
  const edge = Buffer.allocUnsafe(wrapBytesMax)
  const parts = values.flatMap((value, index) => (index === 0 ? [value] : [commaBytes, value]))
  const buffer = Buffer.concat([edge, ...parts, edge])
  return concatenatedIn(buffer, edge.length, buffer.length - edge.length, { count: values.length, lastKeyIfMore })
}
const commaBytes = Buffer.of(comma)
