/** Processes of this machine, and what they started. */

import { readdirSync, readFileSync } from 'node:fs'

/** Sends a signal to a process and its children. */
export function signalAll(pid: number, signal: NodeJS.Signals): void {
  // A process that ends may be replaced by another meanwhile, but not after the first one has stopped.
  for (const one of [pid, ...childrenOf(pid)]) kill(one, signal)
}

function childrenOf(parent: number): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      try {
        // The name in parentheses may have spaces; the parent follows it and the state.
        return (
          Number(
            readFileSync(`/proc/${pid}/stat`, 'utf8')
              .replace(/^.*\) /, '')
              .split(' ')[1],
          ) === parent
        )
      } catch {
        return false
      }
    })
}

function kill(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // It has ended by itself.
  }
}
