/** An answer that is made again when its caller has lost what it tells of. */

import { expect, test } from 'bun:test'
import type { Caller } from '../../src/auth/authenticate.ts'
import { contextOf, namespaceOf } from '../../src/auth/authorizer.ts'
import type { DirectorySnapshot } from '../../src/auth/directory.ts'
import { whileAllowed } from '../../src/auth/while-allowed.ts'
import { clockOf } from '../support/clock.ts'

for (const [what, createdAt] of [
  ['with a time of its making', '2026-03-02T09:00:00.000Z'],
  ['that has none', undefined],
] as const)
  test(`the loss of a namespace ${what} is noticed`, async () => {
    let now = 0
    const clock = clockOf(() => now)
    const caller = { userId: 'ada', operator: false } as unknown as Caller
    const record = { namespace: 'acme', userId: 'ada', ...(createdAt && { createdAt }) }
    const directory = (namespace: object | undefined) =>
      ({ namespace: async () => namespace }) as unknown as DirectorySnapshot
    const request = new Request('http://a/')
    const told: boolean[] = []
    const answer = await whileAllowed(
      {
        authorizer: {
          authenticate: async () => contextOf({ caller, directory: directory(undefined) }, request, clock),
        },
        clock,
      },
      contextOf({ caller, directory: directory(record) }, request, clock),
      async (context) => {
        told.push((await namespaceOf(context, 'acme')) !== undefined)
        now += 100
        return told.length
      },
    )
    expect([answer, told]).toEqual([2, [true, false]])
  })
