/**
 * A value of each request that is in progress. A property of the object: a `WeakMap` takes half a microsecond
 * more, and every collection of garbage looks through it.
 */
export class PerRequest<T> {
  readonly #key = Symbol()

  get(request: Request): T | undefined {
    return (request as Request & { [key: symbol]: T | undefined })[this.#key]
  }

  set(request: Request, value: T): void {
    ;(request as Request & { [key: symbol]: T })[this.#key] = value
  }
}
