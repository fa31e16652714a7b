import type { Pace } from '../../src/fairness/pace.ts'

/** For tests of responses that nobody else waits for. */
export const unhurried: Pace = { wait: () => 0, spend() {}, pause: async () => {} }
export const enterHandshake = async () => () => {}
