/** Turns that a test is told of. */

import { Turns } from '../../src/fairness/turns.ts'

/** `note` is called before work is given to the turns; if it throws, the work is refused. */
export function notedTurns(note: () => void): Pick<Turns, 'run'> {
  const turns = new Turns()
  return {
    async run(holder, work) {
      note()
      return turns.run(holder, work)
    },
  }
}
