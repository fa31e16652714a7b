/** Hostile clients, browsers and servers, at length; a part of it is in every `make test` (`hostile.test.ts`). */

import { hostileRequests } from '../features/authorization/hostile.ts'
import { hostileServers } from '../features/upstream-sign-in/hostile.ts'
import { random } from '../support/random.ts'
import { collector, type Trial } from './trial.ts'

export const hostileSignIns: Trial = {
  name: 'hostile-sign-ins',
  promise:
    'No form, redirect URI, registration, callback or metadata moves a token to a wrong place, or is answered 500',
  times: { full: 20_000, short: 300 },

  async run(times, seed) {
    const { broken, expect } = collector()
    const half = Math.ceil(times / 2)
    await hostileRequests(half, random(seed), expect)
    const { connected, refused } = await hostileServers(half, random(seed + 1), expect)
    const figure = `${half} requests of strangers; ${half} servers that lie: ${connected} sign-ins ended well, ${refused} did not`
    return { figure, broken, seen: { 'sign-ins that ended well': [connected, 1], refused: [refused, 1] } }
  },
}
