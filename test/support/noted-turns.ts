/** Turns that a test is told of. */

import { createTurns, type Turns } from '../../src/fairness/turns.ts'

/** `note` is called before work is given to the turns; if it throws, the work is refused. */
export function notedTurns(note: () => void): Pick<Turns, 'run'> {
  const turns = createTurns()
  return {
    async run(holder, work) {
      note()
      return turns.run(holder, work)
    },
  }
}
