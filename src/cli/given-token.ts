/**
 * A token given to a command: the text itself, or `-` for stdin. Arguments of a process are visible to every user of
 * the machine.
 */

import { readFileSync } from 'node:fs'

/** Reads the token. Blocks until stdin ends. */
export function readToken(given: string): string {
  return (given === '-' ? readFileSync(0, 'utf8') : given).trim()
}
