/**
 * Decides which denials of a second a log writes one by one and which are only counted. Each caller has a bound, so
 * that one who floods the log cannot hide the others; all callers together have one too, so that many cannot fill the
 * disk.
 * Pure: the user of this file decides when a second ends.
 */

/** Callers whose first refusal in a second is written; half a kilobyte each. Past it: one number for all others. */
export const auditCallersPerSecond = 500

/** Counted by user or organization, because a caller can mint many tokens, and an organization can make many keys. */
export interface RefusedCaller {
  readonly userId: string
  readonly keyId: string
}

/** `perCaller`: denials of each caller that are written in a second. `inAll`: of all, beyond the first of each. */
export function createRefusalCount({ perCaller, inAll }: { readonly perCaller: number; readonly inAll: number }) {
  const callers = new Map<string, { readonly caller: RefusedCaller; count: number; unwritten: number }>()
  /** All beyond `auditCallersPerSecond`. */
  const others = { caller: undefined, unwritten: 0 }
  /** Written denials beyond the first of each caller. */
  let more = 0

  return {
    /** Counts a denial. True if it is to be written, which it never is without `hasRoom`. */
    isWritten(caller: RefusedCaller, hasRoom: boolean): boolean {
      const known = callers.get(caller.userId)
      if (known === undefined) {
        if (callers.size >= auditCallersPerSecond) {
          others.unwritten += 1
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
    /** Returns how many denials were not written, by caller and at last of all others, and begins a new second. */
    end() {
      const counts = [...callers.values(), { ...others }].filter(({ unwritten }) => unwritten > 0)
      callers.clear()
      others.unwritten = 0
      more = 0
      return counts
    },
  }
}
