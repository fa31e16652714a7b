/** The values in which two definitions differ. */

import type { PinDifference } from '../../model/pins.ts'
import { isContainer } from '../../schema/json.ts'
import { shownText, shownValue } from './shown-text.ts'

/** Ours: differences of one definition that are shown. Past it: the others are left out. */
export const differencesMax = 100

/** Members and entries that differ, the innermost ones, by JSON Pointer. */
export function differencesOf(before: unknown, after: unknown): PinDifference[] {
  const found: PinDifference[] = []
  const compare = (path: string, a: unknown, b: unknown): void => {
    if (found.length >= differencesMax) return
    const [left, right] = [membersOf(a), membersOf(b)]
    if (left !== undefined && right !== undefined && Array.isArray(a) === Array.isArray(b)) {
      for (const name of new Set([...left.keys(), ...right.keys()]))
        compare(
          `${path}/${shownText(name).replaceAll('~', '~0').replaceAll('/', '~1')}`,
          left.get(name),
          right.get(name),
        )
      return
    }
    if (JSON.stringify(a) === JSON.stringify(b)) return
    const had = a === undefined ? {} : { before: shownValue(a) }
    found.push({ path, ...had, ...(b !== undefined && { after: shownValue(b) }) })
  }
  compare('', before, after)
  return found
}

function membersOf(value: unknown): Map<string, unknown> | undefined {
  return isContainer(value) ? new Map(Object.entries(value)) : undefined
}
