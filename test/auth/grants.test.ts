/** Grants, and the tokens that clients have by them. */

import { expect, test } from 'bun:test'
import { type Grant, grantEntry, isGrantedForAnother } from '../../src/auth/grants.ts'
import { latin1Key } from '../../src/storage/keys.ts'
import { clockOf } from '../support/clock.ts'

test('a token is for what its grant was for, whatever time a later thing of that name says it was made', async () => {
  const hour = 3600
  const madeAt = '2026-01-01T00:00:00.000Z'
  const grant = { grantId: 'grant_one', madeAt, expires: Date.parse(madeAt) / 1000 + 24 * hour } as Grant
  const { key, value } = grantEntry(grant)
  const store = { get: async (asked: Uint8Array) => (latin1Key(asked) === latin1Key(key) ? value : undefined) }
  const deps = { store, clock: clockOf(() => Date.parse(madeAt)) }
  const tokenOf = (grantId: string) =>
    ({ aud: 'a', iss: 'b', iat: Date.parse(madeAt) / 1000 + hour, par: [grantId] }) as never
  // Twice: the time of a grant is kept.
  for (let times = 0; times < 2; times += 1) {
    expect(await isGrantedForAnother(deps, tokenOf('grant_one'), madeAt)).toBe(false)
    for (const other of ['2025-06-01T00:00:00.000Z', '2026-01-01T00:00:01.000Z', '2026-01-02T00:00:00.000Z'])
      expect({ other, is: await isGrantedForAnother(deps, tokenOf('grant_one'), other) }).toEqual({ other, is: true })
    expect(await isGrantedForAnother(deps, tokenOf('grant_gone'), madeAt)).toBe(true)
  }
})
