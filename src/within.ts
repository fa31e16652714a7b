/** Waiting for so long and no longer. */

/** The result, or after so many milliseconds what `late` returns, or throws. */
export async function within<T>(milliseconds: number, result: Promise<T>, late: () => T): Promise<T> {
  const deadline = Promise.withResolvers<void>()
  const timer = setTimeout(deadline.resolve, Math.max(0, milliseconds))
  try {
    return await Promise.race([result, deadline.promise.then(late)])
  } finally {
    clearTimeout(timer)
  }
}
