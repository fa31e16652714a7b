/** Some of what `make torture` does at length: hostile clients, browsers and servers (trial `hostile-sign-ins`). */

import { expect, test } from 'bun:test'
import { random } from '../../support/random.ts'
import { hostileServers } from '../upstream-sign-in/hostile.ts'
import { hostileRequests } from './hostile.ts'

const seed = Number(process.env['SEED'] ?? Math.floor(Math.random() * 2 ** 31))
const held = (holds: boolean, what: () => string) => {
  if (!holds) expect({ seed, what: what() }).toBeUndefined()
}

test('whatever comes', () => hostileRequests(2000, random(seed), held))

test('whatever servers say', async () => {
  const { connected, refused } = await hostileServers(400, random(seed), held)
  // Lies are few enough that some get through, and many enough that most do not.
  expect({ seed, some: [connected > 0, refused > 0] }).toEqual({ seed, some: [true, true] })
})
