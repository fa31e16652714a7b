/** The values in which two definitions differ. */

import type { Work } from '../../fairness/turns.ts'
import { sliceCost } from '../../limits.ts'
import type { PinDifference } from '../../model/pins.ts'
import { cutText } from '../../schema/cut-text.ts'
import { isContainer } from '../../schema/json.ts'
import { valuesPerStep } from '../../schema/steps.ts'
import { shownText } from './shown-text.ts'

/** Ours: differences of one definition that are shown. Past it: the others are left out. */
export const differencesMax = 100
/** Ours: characters of all differences that one answer shows; an invisible character is written with eight. Past it: texts are cut, and the other differences are left out. */
export const differencesCharsMax = 64 * 1024
/** Characters of the differences that a value takes beside its texts. */
const valueChars = 8

/** The rest of `differencesCharsMax`, for one answer. */
export class DifferenceRoom {
  #left = differencesCharsMax

  get isFull(): boolean {
    return this.#left <= 0
  }

  /** A text as people should see it, as much of it as there is room for. */
  text(text: string): string {
    const shown = cutText(text, Math.max(0, this.#left))
    this.#left -= text.length
    return shownText(shown)
  }

  /** A JSON value with its texts, and names of members. */
  value(value: unknown): unknown {
    this.#left -= valueChars
    if (typeof value === 'string') return this.text(value)
    if (!isContainer(value)) return value
    if (Array.isArray(value)) return this.#upToRoom(value, (one) => this.value(one))
    const members = this.#upToRoom(Object.entries(value), ([name, one]) => [this.text(name), this.value(one)])
    return Object.fromEntries(members)
  }

  #upToRoom<T, R>(items: readonly T[], show: (item: T) => R): R[] {
    const shown: R[] = []
    for (const one of items) {
      if (this.isFull) break
      shown.push(show(one))
    }
    return shown
  }
}

/** Members and entries that differ, the innermost ones, by JSON Pointer. As work in steps. */
export function* differencesOf(before: unknown, after: unknown, room: DifferenceRoom): Work<PinDifference[]> {
  const found: PinDifference[] = []
  /** The names that lead to what is compared. */
  const names: string[] = []
  let compared = 0
  function* compare(a: unknown, b: unknown): Work<void> {
    compared += 1
    if (compared % valuesPerStep === 0) yield sliceCost
    if (a === b || found.length >= differencesMax || room.isFull) return
    if (isContainer(a) && isContainer(b) && Array.isArray(a) === Array.isArray(b)) {
      for (const name of namesIn(a, b)) {
        names.push(String(name))
        yield* compare(memberOf(a, name), memberOf(b, name))
        names.pop()
      }
      return
    }
    const path = names.map((name) => `/${room.text(name).replaceAll('~', '~0').replaceAll('/', '~1')}`).join('')
    const had = a === undefined ? {} : { before: room.value(a) }
    found.push({ path, ...had, ...(b !== undefined && { after: room.value(b) }) })
  }
  yield* compare(before, after)
  return found
}

/** The names of both, or the places of both lists, of which a set would take long to make. */
function namesIn(a: object, b: object): Iterable<string | number> {
  if (!Array.isArray(a) || !Array.isArray(b)) return new Set([...Object.keys(a), ...Object.keys(b)])
  return (a.length > b.length ? a : b).keys()
}

const memberOf = (value: object, name: string | number): unknown =>
  Object.hasOwn(value, name) ? (value as Record<string | number, unknown>)[name] : undefined
