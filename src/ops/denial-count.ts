/**
 * Decides which denials of a second a log writes one by one and which are only counted. Each caller has a bound, so
 * that one who floods the log cannot hide the others; all callers together have one too, so that many cannot fill the
 * disk.
 * Pure: the user of this file decides when a second ends.
 */

/**
 * Callers whose first refusal in a second is always written; about half a kilobyte each. Past it: one number for all
 * others.
 */
export const auditCallersPerSecond = 500

/** Counted by user or organization, because a caller can mint many tokens, and an organization can make many keys. */
export interface RefusedCaller {
  readonly userId: string
  readonly keyId: string
}

export interface RefusalBounds {
  /** Of each caller, in a second. */
  readonly perCaller: number
  /** Of all callers, in a second, beyond the first of each. */
  readonly inAll: number
}

export function createRefusalCount({ perCaller, inAll }: RefusalBounds) {
  const callers = new Map<string, { readonly caller: RefusedCaller; count: number; unwritten: number }>()
  /** Written denials beyond the first of each caller. */
  let more = 0
  let strangers = 0

  return {
    /** Counts a denial. True if it is to be written, which it never is without `hasRoom`. */
    isWritten(caller: RefusedCaller, hasRoom: boolean): boolean {
      const known = callers.get(caller.userId)
      if (known === undefined) {
        if (callers.size >= auditCallersPerSecond) {
          strangers += 1
          return false
        }
        callers.set(caller.userId, { caller, count: 1, unwritten: hasRoom ? 0 : 1 })
        return hasRoom
      }
      known.count += 1
      if (hasRoom && known.count <= perCaller && more < inAll) {
        more += 1
        return true
      }
      known.unwritten += 1
      return false
    },
    /**
     * Returns the unwritten denials by caller, and begins a new second. No caller: the sum of all beyond
     * `auditCallersPerSecond`.
     */
    end() {
      const unwritten: { caller: RefusedCaller | undefined; count: number }[] = []
      for (const { caller, unwritten: count } of callers.values()) if (count > 0) unwritten.push({ caller, count })
      if (strangers > 0) unwritten.push({ caller: undefined, count: strangers })
      callers.clear()
      more = 0
      strangers = 0
      return unwritten
    },
  }
}
