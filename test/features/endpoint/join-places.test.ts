/** The time that joining large lists takes of its owner. */

import { expect, test } from 'bun:test'
import { createFairness } from '../../../src/fairness/fairness.ts'
import { Paces } from '../../../src/fairness/pace.ts'
import { JoinPlaces } from '../../../src/features/endpoint/join-places.ts'
import { withAllowance } from '../../support/allowance.ts'

test('a join is paid by its bytes and by its definitions, before it begins', async () => {
  const paid: number[] = []
  class Noted extends Paces {
    override async pause(_: string, milliseconds = 0) {
      paid.push(milliseconds)
    }
  }
  const request = withAllowance(new Request('http://a/'), {}, { ...createFairness(), time: new Noted() })
  const context = { caller: { userId: 'ada', keyId: 'key_a' }, request } as never
  const places = new JoinPlaces()
  for (const definitions of [0, 4096]) (await places.enter(context, { bytes: 2 ** 20, definitions }))[Symbol.dispose]()
  expect(paid).toEqual([20, 40])
})
