/**
 * Which refusals of a second are written one by one, and which are only counted. Each caller has a bound of its own, so
 * that one that floods the log cannot hide the others; all of them together have one too, so that a crowd cannot fill
 * the disk. Pure: whoever uses it says when a second is over.
 */

import { auditCallersPerSecond, auditRefusalsPerCaller, auditRefusalsPerSecond } from '../limits.ts'

/** Whose refusals count together: all tokens of an API key, because a caller can mint them by the dozen. */
export interface RefusedCaller {
  readonly userId: string
  readonly keyId: string
}

export interface Unwritten {
  /** Undefined for all callers together that came when too many others had been refused already. */
  readonly caller: RefusedCaller | undefined
  readonly count: number
}

export interface RefusalCount {
  /** One more refusal of this caller: is it to be written? */
  isWritten(caller: RefusedCaller): boolean
  /** What was not written, whose and how often. A new second begins. */
  end(): Unwritten[]
}

export function createRefusalCount(): RefusalCount {
  const callers = new Map<string, { readonly caller: RefusedCaller; count: number; unwritten: number }>()
  /** Written, beyond the first of each caller. */
  let more = 0
  let strangers = 0

  return {
    isWritten(caller) {
      const known = callers.get(caller.keyId)
      if (known === undefined) {
        if (callers.size >= auditCallersPerSecond) {
          strangers += 1
          return false
        }
        callers.set(caller.keyId, { caller, count: 1, unwritten: 0 })
        return true
      }
      known.count += 1
      if (known.count <= auditRefusalsPerCaller && more < auditRefusalsPerSecond) {
        more += 1
        return true
      }
      known.unwritten += 1
      return false
    },
    end() {
      const unwritten: Unwritten[] = []
      for (const { caller, unwritten: count } of callers.values()) if (count > 0) unwritten.push({ caller, count })
      if (strangers > 0) unwritten.push({ caller: undefined, count: strangers })
      callers.clear()
      more = 0
      strangers = 0
      return unwritten
    },
  }
}
