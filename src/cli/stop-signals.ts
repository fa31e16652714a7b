/** Signals of a server: what ends it, and what does not. */

import { closeSync, openSync } from 'node:fs'
import { isatty } from 'node:tty'

/**
 * Until it is known what SIGHUP is to do, it does nothing; it never ends the process. But where the terminal that this
 * was started in was closed, nobody is left to stop it: that counts as SIGTERM.
 */
export function ignoredHangUp(): { does(work: () => Promise<void>): void } {
  const hasTerminal = isatty(0)
  let act: (() => Promise<void>) | undefined
  process.on('SIGHUP', () => {
    if (hasTerminal && !isTerminalThere()) process.kill(process.pid, 'SIGTERM')
    else void act?.()
  })
  return {
    does(work) {
      act = work
    },
  }
}

function isTerminalThere(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

const stopSignals = [
  ['SIGINT', 2],
  ['SIGTERM', 15],
] as const

/** Resolves at the first SIGINT or SIGTERM; a second one ends the process at once. */
export function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    const stop = (signal: string) => {
      for (const [name, number] of stopSignals) process.on(name, () => process.exit(128 + number))
      resolve(signal)
    }
    for (const [name] of stopSignals) process.once(name, stop)
  })
}
