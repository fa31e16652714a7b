/** Wraps `act` so that only the first call runs it. For clean-up that more than one event can trigger. */

export function once(act: () => void): () => void {
  let isDone = false
  return () => {
    if (!isDone) act()
    isDone = true
  }
}
