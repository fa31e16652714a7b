/**
 * A token given to a command: the text itself, or `-` for stdin, because every user of a machine sees the arguments
 * of its processes.
 */

import { readFileSync } from 'node:fs'

export function readToken(given: string): string {
  return (given === '-' ? readFileSync(0, 'utf8') : given).trim()
}
