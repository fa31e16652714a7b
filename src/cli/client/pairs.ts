/** `KEY=VALUE` arguments. */

import { CommandError } from '../../errors.ts'

/** Throws CommandError 2 for an argument that is not a pair. */
export function readPairs(given: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    given.map((pair) => {
      const equals = pair.indexOf('=')
      if (equals < 1) throw new CommandError(`${pair}: must be KEY=VALUE`, 2)
      return [pair.slice(0, equals), pair.slice(equals + 1)]
    }),
  )
}
