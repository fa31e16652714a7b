/** Work that is asked for more often than it can be done. */

/**
 * Runs one update at a time. A call waits for an update that begins after it. All calls that wait for the same update
 * share its result, so they must give the same arguments. Rejects with what that update throws.
 */
export function oneAtATime<Given extends unknown[], Result>(
  update: (...given: Given) => Promise<Result>,
): (...given: Given) => Promise<Result> {
  let last: Promise<unknown> = Promise.resolve()
  let next: Promise<Result> | undefined
  return (...given) => {
    next ??= last.then(() => {
      next = undefined
      const underWay = update(...given)
      last = underWay.catch(() => {})
      return underWay
    })
    return next
  }
}
