/**
 * What is there, or a promise where it must be read first. What is there is not waited for: each step that waits costs a
 * busy server about a microsecond, and a call has many.
 */

export type Soon<T> = Promise<T> | T

/** Gives the value to `use`, at once where it is there. */
export function then<T, R>(value: Soon<T>, use: (value: T) => Soon<R>): Soon<R> {
  return value instanceof Promise ? value.then(use) : use(value)
}
