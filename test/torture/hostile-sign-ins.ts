/** Hostile clients, browsers and servers, at length; a part of it is in every `make test` (`hostile.test.ts`). */

import { hostileRequests } from '../features/authorization/hostile.ts'
import { hostileServers } from '../features/upstream-sign-in/hostile.ts'
import { random } from '../support/random.ts'
import { collector, type Trial } from './trial.ts'

export const hostileSignIns: Trial = {
  name: 'hostile-sign-ins',
  promise:
    'No form, redirect URI, registration, callback or metadata makes postern send a token to a wrong place, or answer 500',
  times: { full: 20_000, short: 300 },

  async run(times, seed) {
    const { broken, expect } = collector()
    const half = Math.ceil(times / 2)
    await hostileRequests(half, random(seed), expect)
    const { connected, refused } = await hostileServers(half, random(seed + 1), expect)
    const figure = `${half} requests of strangers; sign-ins to ${half} servers that lie: ${connected} sign-ins succeeded, and postern refused ${refused}`
    return { figure, broken, seen: { 'sign-ins that ended well': [connected, 1], refused: [refused, 1] } }
  },
}
