/** Letting others go first, in work that waits for nothing by itself. */

/** Resolves in the next turn of the event loop, after what others have ready in this one. */
export const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
