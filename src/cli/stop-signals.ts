/** Signals: which end a server, and which do not. */

import { closeSync, openSync } from 'node:fs'
import { constants } from 'node:os'
import { isatty } from 'node:tty'

/**
 * Handles SIGHUP: it never ends the process, and does nothing while `work` is undefined. Exception: if the process was
 * started in a terminal that has been closed, SIGHUP counts as SIGTERM, because no one could press Ctrl-C any more.
 */
export function ignoredHangUp(): { work: (() => Promise<void>) | undefined } {
  const hasTerminal = isatty(0)
  const hangUp: ReturnType<typeof ignoredHangUp> = { work: undefined }
  process.on('SIGHUP', () => {
    if (hasTerminal && !isTerminalThere()) process.kill(process.pid, 'SIGTERM')
    else void hangUp.work?.()
  })
  return hangUp
}

/** True if the process still has a controlling terminal. */
function isTerminalThere(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'))
    return true
  } catch {
    return false
  }
}

const stopSignals = ['SIGINT', 'SIGTERM'] as const

/** Resolves with the first SIGINT or SIGTERM. A second one ends the process at once, with the shell's exit code. */
export function stopSignal(): Promise<string> {
  return new Promise((resolve) => {
    const stop = (signal: string) => {
      for (const name of stopSignals) process.on(name, () => process.exit(128 + constants.signals[name]))
      resolve(signal)
    }
    for (const name of stopSignals) process.once(name, stop)
  })
}
